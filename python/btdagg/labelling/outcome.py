"""What labels come to: a table, and the win rate once the planned labels are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import btdagg
from btdagg._util.files import write_table
from btdagg._util.spreadsheets import guarded
from btdagg.estimates.items import all_items
from btdagg.estimates.prediction_powered import estimate_items
from btdagg.labelling.agreement import agreement
from btdagg.report.wording import counted
from btdagg.votes.source import LABEL_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from btdagg.estimates import Estimates
    from btdagg.labelling.assignment import Assignment
    from btdagg.labelling.store import Answer
    from btdagg.votes import Votes

_TYPED = ("rater", "note")  # what raters wrote themselves


class Outcome:
    """Tables and figures of the answers to an assignment.

    Parameters
    ----------
    assignment : Assignment
    design : polars.DataFrame, optional
        `item` (text), and what else the table is to have, such as `probability` and `group`.
    votes : Votes, optional
        Of the judge. They make the estimate narrower; nobody is shown one.
    """

    def __init__(
        self,
        assignment: Assignment,
        design: pl.DataFrame | None = None,
        votes: Votes | None = None,
    ) -> None:
        self._assignment, self._design, self._votes = assignment, design, votes

    def table(self, answers: Sequence[Answer]) -> pl.DataFrame:
        """One row per item and rater, in the order of the items; a skip has no label.

        Answers to items that are not to be labelled now are last: none is lost.
        """
        import polars as pl

        place = {item: row for row, item in enumerate(self._assignment.items)}
        last = len(place)
        rows = sorted(answers, key=lambda each: (place.get(each.item, last), each.item, each.rater))
        kinds = (pl.String, pl.String, pl.Int8, pl.Float64, pl.String)
        schema = dict(zip(LABEL_COLUMNS, kinds, strict=True))
        found = pl.DataFrame(
            [[getattr(each, name) for name in LABEL_COLUMNS] for each in rows], schema, orient="row"
        )
        found = found.with_columns(pl.col("seconds").round(1))
        if self._design is not None:
            found = found.join(self._design, on="item", how="left", maintain_order="left")
        ids = self._assignment.pairs.frame["item"].dtype
        # Others than those of the pairs may be among them.
        whole = found["item"].cast(ids, strict=False)
        return found if whole.null_count() else found.with_columns(whole)

    def save(self, answers: Sequence[Answer], path: Path) -> None:
        """Write the table; in CSV no text of a rater runs as a formula, and is read as it was."""
        import polars as pl

        frame = self.table(answers)
        if path.suffix in (".csv", ".tsv"):
            typed = pl.col(_TYPED).map_elements(guarded, pl.String)
            frame = frame.with_columns(typed)
        write_table(frame, path, path.suffix)

    def is_complete(self, answers: Sequence[Answer]) -> bool:
        """Whether somebody has answered each item of the assignment."""
        return set(self._assignment.items) <= {each.item for each in answers}

    def estimate(self, answers: Sequence[Answer]) -> Estimates:
        """Estimate over all items from the answers to the assignment, by the mean of raters.

        Raises
        ------
        InputError
            If there are too few labels.
        """
        planned = [each for each in answers if each.item in self._assignment]
        labels = btdagg.read_labels(self.table(planned).drop("seconds", "note"))
        if self._votes is not None:
            return estimate_items(all_items(self._votes, labels))
        ids = self._assignment.pairs.frame["item"].to_list()
        place = {item: row for row, item in enumerate(ids)}
        rows = [place[item] for item in labels.ids]
        known = np.full((len(ids), 3), np.nan)
        known[rows] = labels.shares
        given = None
        if "probability" in labels.columns:
            given = np.full(len(ids), np.nan)
            given[rows] = labels.frame["probability"].cast(float).to_numpy()
        return btdagg.estimate(
            np.zeros((len(ids), 3), dtype=np.int64),
            known,
            groups=self._groups(ids),
            probabilities=given,
        )

    def _groups(self, items: Sequence[object]) -> list[str] | None:
        """The group of each item, one by itself where none is known; None if none is."""
        if self._design is None or "group" not in self._design.columns:
            return None
        known = dict(self._design.select("item", "group").iter_rows())
        if not any(known.values()):
            return None
        return [known[item] or f" {item}" for item in map(str, items)]

    def lines(self, answers: Sequence[Answer]) -> list[str]:
        """Say what the labels come to, with the estimate if the planned ones are all there."""
        n_labels = sum(each.label is not None for each in answers)
        n_skips = len(answers) - n_labels
        raters = sorted({each.rater for each in answers})
        said = [
            f"{counted(n_labels, 'label')} and {counted(n_skips, 'skip')} by "
            f"{counted(len(raters), 'rater')} on "
            f"{counted(len({each.item for each in answers}), 'item')}"
        ]
        found = agreement(answers)
        if found.n_items:
            alpha = "no alpha" if np.isnan(found.alpha) else f"alpha {found.alpha:.2f}"
            said.append(
                f"agreement on {counted(found.n_items, 'item')} with two labels or more: {alpha} "
                f"(Krippendorff, ordinal); raters disagree on {len(found.disputed)}"
                f"{', which count by their mean' if found.disputed else ''}"
            )
        if answers and self.is_complete(answers):
            said += self._estimated(answers)
        return said

    def _estimated(self, answers: Sequence[Answer]) -> list[str]:
        try:
            found = self.estimate(answers)
        except btdagg.InputError as error:
            return [f"no win rate yet: {error}"]
        rate, net = found.estimates["win rate"], found.estimates["net win rate"]
        by = "the labels" if self._votes is None else "the labels and the votes"
        said = [
            f"win rate of A, ties as half, over {counted(found.n_items, 'item')} by {by}: "
            f"{rate.value:.3f} ({rate.low:.3f} to {rate.high:.3f})"
        ]
        if found.n_labels < found.n_items:
            more = found.labels_for((net.high - net.low) / 2)
            said.append(
                f"an interval half as wide takes about {more:,} labels"
                if more is not None
                else "even with a label on every item the interval is more than half as wide"
            )
        return said if self._votes is None else [*said, *found.remarks]
