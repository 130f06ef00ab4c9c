"""The result of an evaluation: cells, remarks on them, and lines of a table with their averages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg import remarks
from btdagg._util.display import picture
from btdagg._util.extras import as_frame
from btdagg._util.lazy import pl
from btdagg._util.wording import MISSING, fixed
from btdagg.evaluation.parts import names_of
from btdagg.evaluation.remarks import about_scores, about_votes
from btdagg.evaluation.wording import (
    basis_of,
    capitalised,
    not_evaluated,
    record,
    spread,
    votes_of,
    with_error,
)
from btdagg.inference.intervals import mean_interval
from btdagg.remarks import Remark, as_remarks
from btdagg.result import Entry, Interval, Result, ResultTable, Row

if TYPE_CHECKING:
    from btdagg._util.display import Picture
    from btdagg.evaluation.cells import Cell
    from btdagg.evaluation.parts import Key
    from btdagg.votes.items import Items

Line = Mapping[str, Any]
"""What a table has of a method in a cell, by name; see `Cell.lines`."""

# Of a line, what its record has.
_RECORDED = (
    *("n_votes", "n_labels", "n_items", "method", "mae", "accuracy", "rank", "accuracy_rank"),
    *("tied", "n_calibration", "mae_less_majority", "kappa", "bias"),
)


@dataclass(frozen=True, eq=False)
class Scores(Result):
    """The result of an evaluation of votes and labels.

    Attributes
    ----------
    by : tuple of str
        Columns that votes are grouped by.
    cells : tuple of Cell
        One per key, value of `column`, number of votes and number of labels.
    skipped : tuple of (key, reason)
        Parts that could not be evaluated. In an ablation the key may end in a value of `column`.
    n_unlabelled, n_without_votes : int
        Items with votes but no label, and labels of the same tasks whose item has no votes.
    n_sharing : int
        Items that share a prompt with another, without a group that says so.
    column : str
        In an ablation, the column that is varied.
    n_left_out : dict of key to int
        In an ablation, the number of items left out because they lack votes under one value.
    about_data : tuple of str
        Remarks on the votes and labels that were read.
    """

    by: Key
    cells: tuple[Cell, ...]
    skipped: tuple[tuple[Key, str], ...] = ()
    n_unlabelled: int = 0
    n_without_votes: int = 0
    n_sharing: int = 0
    column: str = ""
    n_left_out: Mapping[Key, int] = field(default_factory=dict)
    about_data: tuple[Remark, ...] = ()

    @cached_property
    def remarks(self) -> tuple[Remark, ...]:
        """Remarks to read before using the numbers."""
        cells = self.at_most_votes().values()
        about = [*self.about_data]
        for single, plural, count in (
            ("item has votes but no label", "items have votes but no label", self.n_unlabelled),
            ("label has no votes", "labels have no votes", self.n_without_votes),
            ("vote is missing", "votes are missing", sum(cell.n_missing for cell in cells)),
        ):
            if count:
                about.append(remarks.unmatched(count, single, plural))
        about += _in_cells(about_votes, cells)
        about += [remarks.not_evaluated(" ".join(key), reason) for key, reason in self.skipped]
        about += [remarks.shared_prompts(self.n_sharing)] if self.n_sharing else []
        return *about, *self._about_averages(), *_in_cells(about_scores, cells)

    def _about_averages(self) -> Iterator[Remark]:
        """Say where an average is over judges, or templates, of different items."""
        most = self.at_most_votes() if self.averages else {}
        for place, column in enumerate(self.by):
            parts: dict[Key, list[set[Any]]] = {}
            for key, cell in most.items():
                if column not in ("task", "criterion") and cell.items is not None:
                    parts.setdefault((*key[:place], *key[place + 1 :]), []).append(
                        {*cell.items.ids.tolist()}
                    )
            for rest, items in parts.items():
                if any(ids != items[0] for ids in items):
                    numbers, n_common = [*map(len, items)], len(set.intersection(*items))
                    mixed = remarks.mixed_average(column, numbers, n_common)
                    yield mixed.within(" ".join(rest))

    def sentence(self) -> str:
        """Return which method has the least error; of several parts, in how many."""
        most = self.at_most_votes().values()
        if len(most) == 1:
            return next(iter(most)).sentence()
        best = Counter(cell.best.name for cell in most)
        parts = (f"{name} in {n}" for name, n in best.most_common())
        return f"lowest error, in {len(most)} parts: {', '.join(parts)}"

    def table(self) -> ResultTable:
        """Return what to use in each part."""
        return answers_table(self)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return what to use in each part, and how good each method is."""
        return self.table(), scores_table(self)

    def plot(self, choice: str | None = None) -> Picture:
        """Draw errors against numbers of votes or labels; of one number, the labels that are given.

        `choice` names one of several figures, as of several judges; an unknown name is an
        `InputError` that lists them.
        """
        return picture(self, choice)

    def by_key(self) -> dict[Key, tuple[Cell, ...]]:
        """Cells by key: where there are several of each, curves over the votes or labels."""
        cells: dict[Key, tuple[Cell, ...]] = {}
        for cell in self.cells:
            cells[cell.key] = (*cells.get(cell.key, ()), cell)
        return cells

    def at_most_votes(self) -> dict[Key, Cell]:
        """For each key the cell with the most votes."""
        return {key: most_voted(cells) for key, cells in self.by_key().items()}

    @property
    def parts(self) -> dict[str, Cell]:
        """The cell of each part with the most votes, by the part's name."""
        most = self.at_most_votes()
        return dict(zip(names_of(most), most.values(), strict=True))

    @property
    def items(self) -> dict[str, Items]:
        """Labelled items of each part, by its name."""
        return {name: cell.items for name, cell in self.parts.items()}

    @property
    def n_calibration(self) -> str:
        """Labels that models are calibrated on: one number, or from the least to the most."""
        numbers = [round(cell.n_calibration) for cell in self.cells]
        low, high = min(numbers), max(numbers)
        return str(low) if low == high else f"{low} to {high}"

    @property
    def lines(self) -> tuple[dict[str, Any], ...]:
        """Values in tables for each cell and method, by name; see `Cell.lines`."""
        return tuple(line for cell in self.cells for line in cell.lines)

    @cached_property
    def averages(self) -> tuple[dict[str, Any], ...]:
        """Means over cells by number of votes, all weighed equally; none for one cell each."""
        budgets = list(dict.fromkeys(cell.n_votes for cell in self.cells))
        if len(self.cells) == len(budgets):
            return ()
        name = name_of_average({value for cell in self.cells for value in cell.key[:1]})
        key, averages = (name, *("" for _ in self.by[1:])), []
        for budget in budgets:
            cells = [cell for cell in self.cells if cell.n_votes == budget]
            if len(cells) < len(self.by_key()):  # a mean over fewer would look comparable
                continue
            for place, of_cells in enumerate(zip(*(cell.lines for cell in cells), strict=True)):
                line = {"key": key, "n_votes": budget, "method": of_cells[0]["method"]}
                for score in (*cells[0].scores, "mae_less_majority"):
                    if score not in of_cells[0]:
                        continue
                    if cells[0].new_items is not None:
                        # Cells may share items: no smaller interval holds whatever they share.
                        mean = np.mean([of[score] for of in of_cells], axis=0)
                        line[score] = Interval(*mean.tolist())
                    else:  # split by split
                        of_splits = [getattr(cell.methods[place], score) for cell in cells]
                        line[score] = mean_interval(np.mean(of_splits, axis=0))
                averages.append(line)
        return tuple(averages)

    def record(self, line: Mapping[str, Any], names: Sequence[str] = _RECORDED) -> dict[str, Any]:
        """Plain values of a line, with its key first; a score is a mean and its interval's ends."""
        fields: dict[str, Any] = {}
        for name in names:
            if isinstance(line.get(name), Interval):
                fields |= spread(name, line[name])
            elif name in line:
                fields[name] = line[name]
        return record(dict(zip(self.by, line["key"], strict=False)), fields)

    def with_remarks(self, remarks: Iterable[Remark]) -> Self:
        """Return the result with more remarks on its data, before the others."""
        return replace(self, about_data=(*as_remarks(remarks), *self.about_data))

    def values(self) -> dict[str, Any]:
        """Return the lines and their averages."""
        averages = [self.record({**line, "key": ()}) for line in self.averages]
        return {"by": self.by, "lines": [*map(self.record, self.lines)], "averages": averages}

    def to_frame(self) -> pl.DataFrame:
        """Return the lines as a data frame."""
        return as_frame([self.record(line) for line in self.lines])


def _in_cells(about: Callable[[Cell], Iterator[Remark]], cells: Iterable[Cell]) -> Iterator[Remark]:
    for cell in cells:
        yield from (remark.within(" ".join(cell.key)) for remark in about(cell))


def most_voted(cells: Sequence[Cell]) -> Cell:
    """Return the cell with the most votes, and labels in a sweep over them."""
    return max(cells, key=lambda cell: (cell.n_votes or 0, cell.n_labels or 0))


def name_of_average(names: Container[str]) -> str:
    """Name of an average, which no part has."""
    name = "average"
    while name in names:
        name += " of all"
    return name


def best_lines(lines: Sequence[Line]) -> list[Line]:
    """Lines of the lowest mean MAE; several where it is equal."""
    lowest = min(line["mae"].mean for line in lines)
    return [line for line in lines if line["mae"].mean == lowest]


def scores_table(scores: Scores) -> ResultTable:
    """Tabulate MAE, accuracy and rank of each method, by part and number of votes, and averages."""
    cell = scores.cells[0]
    is_ranked = cell.test is not None and len(cell.methods) > 1
    difference_column = _difference_column(cell)
    more = [difference_column] if cell.new_items is not None and cell.baseline is not None else []
    columns = ["MAE", *more, "accuracy", *cell.scores[2:], *(["rank"] if is_ranked else [])]

    def rows() -> Iterator[Row]:
        for line in (*scores.lines, *scores.averages):
            rank = line.get("rank", "")
            difference = line.get("mae_less_majority")
            cells: dict[str, str | Entry] = {
                "MAE": Entry(with_error(line["mae"]), is_ranked and rank == 1),
                difference_column: ""
                if difference is None
                else with_error(difference, signed=True),
                "accuracy": with_error(line["accuracy"]),
                "kappa": with_error(line.get("kappa")),
                "bias": with_error(line.get("bias"), signed=True),
                "rank": Entry(str(rank), is_ranked and rank == 1),
            }
            size = str(line.get("n_items", ""))
            yield Row(
                (*line["key"], votes_of(line["n_votes"]), size, line["method"]),
                {column: cells[column] for column in columns},
                [scores.record(line)],
            )

    labels = "label" if scores.n_calibration == "1" else "labels"
    how = (
        f"models calibrated on {scores.n_calibration} {labels} in each of {cell.n_splits} "
        "random splits; ±: half of the 95% interval of the mean over splits, not one for new items"
    )
    if cell.new_items is not None:
        how = (
            f"each item decided by models calibrated on {scores.n_calibration} other {labels}; "
            "±: the longer half of the 95% interval for new items, or new groups of items"
        )
    if is_ranked:
        how = f"rank: clusters by MAE; {cell.tested.words}; {how}"
    return ResultTable.of_rows(
        "scores",
        "Error and accuracy of each method",
        how,
        (*scores.by, "votes", "items", "method"),
        rows(),
        columns,
    )


# Of labels from -1 to 1, or as much of another scale: a fall of the error that is worth twice the
# votes; one that is not worth a word; and the half-width of an interval from which more labels are
# the first thing to get.
_WORTH, _NOTHING, _WIDE = 0.01, 0.003, 0.05


def answers_table(scores: Scores) -> ResultTable:
    """Say in a row for each part what to use, how good it is, and what would improve it."""
    # The written model or majority vote, whichever has the lower MAE at most votes, unless another
    # method is significantly better, or a constant answer is.
    first = scores.cells[0]
    difference_column, has_kappa = _difference_column(first), "kappa" in first.scores
    by_key, most = scores.by_key(), scores.at_most_votes()
    errors = {key: min(_best(of)["mae"].mean, of.best_constant[1]) for key, of in most.items()}
    worst = {
        key[:1]: max(errors[other] for other in errors if other[:1] == key[:1]) for key in errors
    }

    def rows() -> Iterator[Row]:
        for key in sorted(errors, key=lambda key: (-worst[key[:1]], -errors[key])):
            cells, cell = by_key[key], most[key]
            best, (constant, error) = _best(cell), cell.best_constant
            beaten = best["mae"].mean >= error
            use = f"always {constant}" if beaten else best["method"]
            advice = _advice(cells, cell, best, beaten=beaten)
            difference = None if beaten else best.get("mae_less_majority")
            names = ("n_votes", "n_items", "n_calibration", "method", *cell.scores)
            answer = {"use": use, "constant": constant, "mae_of_constant": error, "advice": advice}
            yield Row(
                key or ("all items",),
                {
                    "use": Entry(use, True),
                    "MAE": fixed(error) if beaten else with_error(best["mae"]),
                    difference_column: with_error(difference, signed=True),
                    **({"kappa": with_error(best["kappa"])} if has_kappa else {}),
                    "labels": f"{cell.n_items:,}",
                    "votes": votes_of(cell.n_votes),
                    "what would improve it": advice,
                },
                [{**scores.record(best, names), **answer}],
            )

    how = "on new items, of a model calibrated on these labels"
    if first.new_items is None:
        how = (
            f"of models calibrated on {scores.n_calibration} labels, over {first.n_splits} "
            "random splits"
        )
    constant = scores.cells[0].label_scale.names[-1]
    return ResultTable.of_rows(
        "answers",
        "What to use",
        f"Mean absolute error (MAE) {how}, at the largest number of votes. "
        f"{capitalised(basis_of(scores.cells).error)} {difference_column}: the difference of the "
        f"errors. In a row of always {constant}, or of another constant answer, neither the model "
        "nor the baseline is better than that answer."
        + (" Kappa is quadratic-weighted." if has_kappa else "")
        + " The worst come first."
        + not_evaluated(key for key, _ in scores.skipped),
        scores.by or ("items",),
        rows(),
    )


def _difference_column(cell: Cell) -> str:
    return f"MAE − {cell.methods[cell.baseline or 0].name.removesuffix(' vote')}"


def _best(cell: Cell) -> Line:
    """The model that is written or majority vote; a peer only where it is surely better."""
    (lowest, *_) = best_lines(cell.lines)
    usable = [cell.lines[k] for k in (cell.calibrated, cell.baseline) if k is not None]
    if not usable:
        return lowest
    (best, *_) = best_lines(usable)
    return best if best.get("tied", True) else lowest


def _advice(cells: Sequence[Cell], cell: Cell, best: Line, *, beaten: bool) -> str:
    if beaten:
        return "another judge or prompt: these votes are no better than a constant answer"
    advice, points = [], cell.label_scale.points
    unit = (points[-1] - points[0]) / 2
    fewer = [other for other in cells if (other.n_votes or 0) < (cell.n_votes or 0)]
    if fewer:
        before = most_voted(fewer)
        (same,) = (line for line in before.lines if line["method"] == best["method"])
        gain = same["mae"].mean - best["mae"].mean
        is_seen = same["mae"].low > best["mae"].high  # of the same items, so that less would do
        if gain >= _WORTH * unit and is_seen:
            advice.append(
                f"more votes: {cell.n_votes} instead of {before.n_votes} lowered the error by "
                f"{gain:.3f}"
            )
        elif gain <= _NOTHING * unit:
            advice.append(
                f"not more votes: {cell.n_votes} and {before.n_votes} have about the same error"
            )
    half = (best["mae"].high - best["mae"].low) / 2
    if cell.new_items is not None and half > _WIDE * unit:
        advice.append(f"more labels: four times as many would halve the ±{half:.3f}")
    return "; ".join(advice) or MISSING
