"""Results of labelling: a table, agreement, and the win rate once the planned labels are there."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from btdagg._util.errors import InputError
from btdagg._util.files import write_table
from btdagg._util.lazy import pl
from btdagg._util.spreadsheets import guarded
from btdagg._util.wording import counted
from btdagg.evaluation.metrics import krippendorff_alpha
from btdagg.questions.estimate import estimate
from btdagg.votes.labels import read_labels
from btdagg.votes.sides import UNNAMED, Sides
from btdagg.votes.source import LABEL_COLUMNS
from btdagg.votes.votes import read_votes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from btdagg.labelling.assignment import Assignment
    from btdagg.labelling.store import Answer
    from btdagg.questions.estimate import Estimates
    from btdagg.votes.votes import Votes

_TYPED = ("rater", "note")  # what raters wrote themselves


class Agreement(NamedTuple):
    """Agreement of raters on the items that two or more of them labelled; skips do not count."""

    # `alpha` is Krippendorff's; `disputed` are labels on which raters disagree, furthest apart
    # first.

    alpha: float
    n_items: int
    disputed: list[list[Answer]]


def agreement(answers: Iterable[Answer], *, ordinal: bool = True) -> Agreement:
    """Measure agreement of one answer per rater and item; labels of pairs are `ordinal`."""
    answers_of: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.label is not None:
            answers_of[answer.item, answer.criterion].append(answer)
    shared = [of for of in answers_of.values() if len(of) > 1]
    labels = [(number, answer.label) for number, of in enumerate(shared) for answer in of]
    alpha = krippendorff_alpha(*zip(*labels, strict=True), ordinal=ordinal) if labels else math.nan
    disputed = sorted(filter(_spread, shared), key=_spread, reverse=True)
    return Agreement(alpha, len(shared), disputed)


def in_dispute(answers: Iterable[Answer]) -> set[str]:
    """Return the items of which no label has more than half of two raters or more."""
    shared = agreement(answers).disputed
    counts = [(of[0].item, Counter(answer.label for answer in of)) for of in shared]
    return {item for item, of in counts if 2 * max(of.values()) <= of.total()}


def _spread(answers: list[Answer]) -> float:
    labels = [answer.label for answer in answers if answer.label is not None]
    return max(labels) - min(labels)


class Outcome:
    """Tables and figures of the answers to an assignment.

    Parameters
    ----------
    assignment : Assignment
    design : polars.DataFrame, optional
        `item` (text), and what else the table is to have, such as `probability` and `group`.
    votes : Votes, optional
        The judge's votes. They make the estimate narrower; nobody is shown one.
    sides : Sides
        Names of A and B.
    """

    def __init__(
        self,
        assignment: Assignment,
        design: pl.DataFrame | None = None,
        votes: Votes | None = None,
        sides: Sides = UNNAMED,
    ) -> None:
        self._assignment, self._design, self._votes = assignment, design, votes
        self._sides = sides

    def table(self, answers: Sequence[Answer]) -> pl.DataFrame:
        """A row per item and rater, in the order of the items, others last; skips have no label."""
        place = {item: row for row, item in enumerate(self._assignment.items)}
        rows = sorted(
            answers,
            key=lambda answer: (place.get(answer.item, len(place)), answer.item, answer.rater),
        )
        names, kinds = [*LABEL_COLUMNS], [pl.String, pl.String, pl.Float64, pl.Float64, pl.String]
        if any(answer.criterion for answer in rows):
            names, kinds = [*names, "criterion"], [*kinds, pl.String]
        values = [[getattr(answer, name) for name in names] for answer in rows]
        schema = dict(zip(names, kinds, strict=True))
        table = pl.DataFrame(values, schema, orient="row").with_columns(pl.col("seconds").round(1))
        if all(answer.label is None or answer.label.is_integer() for answer in rows):
            table = table.with_columns(pl.col("label").cast(pl.Int64))
        if self._design is not None:
            keys = [name for name in ("item", "criterion") if name in self._design.columns]
            table = table.join(self._design, on=keys, how="left", maintain_order="left")
        ids = table["item"].cast(self._assignment.pairs.frame["item"].dtype, strict=False)
        # Others than those of the pairs may be among them.
        return table if ids.null_count() else table.with_columns(ids)

    def save(self, answers: Sequence[Answer], path: Path) -> None:
        """Write the table; in CSV no text of a rater runs as a formula, and is read as it was."""
        frame = self.table(answers)
        if path.suffix in (".csv", ".tsv"):
            typed = pl.col(_TYPED).map_elements(guarded, pl.String)
            frame = frame.with_columns(typed)
        write_table(frame, path, path.suffix)

    def is_complete(self, answers: Sequence[Answer]) -> bool:
        """Whether somebody has answered each item of the assignment, by each of its criteria."""
        wanted = (
            (item, name)
            for item in self._assignment.items
            for name in self._assignment.criteria(item)
        )
        return {(answer.item, answer.criterion) for answer in answers}.issuperset(wanted)

    def estimates(self, answers: Sequence[Answer]) -> dict[str, Estimates]:
        """Estimate over all items, by criterion; `InputError` if there are too few labels."""
        scale, votes = self._assignment.scale, self._votes or self._no_votes()
        if self._sides != UNNAMED:
            votes = votes.with_names(*self._sides)
        planned = [answer for answer in answers if answer.item in self._assignment]
        rows = self.table(planned).drop("seconds", "note")
        labels = read_labels(rows, scale=scale)
        if "criterion" not in rows.columns:
            return {"": estimate(votes, labels)}
        tasks = labels.frame["task"].unique(maintain_order=True)
        return {
            task: estimate(votes.filter({"task": task}), labels.filter({"task": task}))
            for task in tasks
        }

    def _no_votes(self) -> Votes:
        # With no vote, or of grades with the same, labels alone estimate.
        pairs, scale = self._assignment.pairs.frame, self._assignment.scale
        key = [name for name in ("item", "task", "criterion") if name in pairs.columns]
        items = pairs.select(key if "criterion" in key else "item")
        if self._design is not None and "group" in self._design.columns:
            groups = self._design.select("item", "group").unique("item")
            text = items.with_columns(pl.col("item").cast(pl.String))
            group = text.join(groups, on="item", how="left", maintain_order="left")["group"]
            items = items.with_columns(group)
        if not scale.mirrored:
            return read_votes(items.with_columns(vote=scale.points[0]), scale=scale)
        return read_votes(items.with_columns(minus=0, tie=0, plus=0))

    def lines(self, answers: Sequence[Answer]) -> list[str]:
        """Summarise the labels, with the estimate once all planned labels are given."""
        n_skips = sum(answer.label is None for answer in answers)
        lines = [
            f"{counted(len(answers) - n_skips, 'label')} and {counted(n_skips, 'skip')} by "
            f"{counted(len({answer.rater for answer in answers}), 'rater')} on "
            f"{counted(len({answer.item for answer in answers}), 'item')}"
        ]
        lines += self._agreement(answers)
        if answers and self.is_complete(answers):
            lines += self._estimated(answers)
        return lines

    def _agreement(self, answers: Sequence[Answer]) -> list[str]:
        how = self._assignment.scale.mode.measurement
        by_criterion = defaultdict(list)
        for answer in answers:
            by_criterion[answer.criterion].append(answer)
        shared = {k: agreement(of, ordinal=how == "ordinal") for k, of in by_criterion.items()}
        lines = []
        for name, of in sorted(shared.items(), key=lambda entry: (entry[1].alpha, entry[0])):
            if of.n_items:
                alpha = "no alpha" if math.isnan(of.alpha) else f"alpha {of.alpha:.2f}"
                lines.append(
                    f"{name and f'{name}: '}agreement on {counted(of.n_items, 'item')} with two "
                    f"labels or more: {alpha} (Krippendorff, {how}); raters "
                    f"disagree on {len(of.disputed)}"
                    f"{' and count by their mean' if of.disputed else ''}"
                )
        return lines

    def _estimated(self, answers: Sequence[Answer]) -> list[str]:
        scale = self._assignment.scale
        try:
            estimates = self.estimates(answers)
        except InputError as error:
            return [f"no {scale.measure.name} yet: {error}"]
        lines = []
        in_order = sorted(estimates.items(), key=lambda by: by[1].estimates[by[1].main].value)
        for name, of in in_order:
            begin = name and f"{name}: "
            lines.append(begin + of.sentence())
            lines += () if self._votes is None else (f"{begin}{text}" for text in of.remarks)
        return lines
