"""Scores as lines of a table, and averages over them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.evaluation.intervals import Interval, mean_interval

if TYPE_CHECKING:
    from btdagg.evaluation.cells import Cell
    from btdagg.evaluation.scores import Scores

_SCORES: tuple[Literal["mae", "accuracy"], ...] = ("mae", "accuracy")

FIELDS = frozenset(
    (
        *("n_votes", "n_labels", "n_items", "n_calibration", "n_evaluation", "n_splits"),
        *("method", "other", "rank", "accuracy_rank", "tied", "mae_pvalue", "accuracy_pvalue"),
        *(
            f"{name}{end}"
            for name in (*_SCORES, "mae_less_majority", "mae_less_best")
            for end in ("", "_low", "_high")
        ),
        *("use", "constant", "mae_of_constant", "advice"),
    )
)
"""What the results call their own: no column to group by may have one of these names."""


@readable
@dataclass(frozen=True)
class Line:
    """Scores of one method in one cell, or averaged over several.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that votes are grouped by.
    n_votes : int or None
        Votes per item; None for all.
    method : str
        The aggregator.
    mae, accuracy : Interval
        Means over splits with 95% intervals.
    n_splits : int
        Number of splits.
    cell : Cell or None
        Where the scores are from; None in an average.
    rank, accuracy_rank : int or None
        Cluster of the method by MAE and by accuracy, 1 the best; None where nothing was tested, as
        in an average.
    tied : bool or None
        Whether its MAE cannot be told from the best one; None where nothing was tested.
    mae_less_majority : Interval or None
        Its MAE less that of majority vote, with a 95% interval for new items; None of majority vote
        itself, where that is not compared, and where nothing was cross-fitted.
    mae_less_best : Interval or None
        Its MAE less the lowest of the other methods, with an interval that allows for the choice;
        None in an average, of a method alone, and where nothing was cross-fitted.
    """

    key: tuple[str, ...]
    n_votes: int | None
    method: str
    mae: Interval
    accuracy: Interval
    n_splits: int
    cell: Cell | None = None
    rank: int | None = None
    accuracy_rank: int | None = None
    tied: bool | None = None
    mae_less_majority: Interval | None = None
    mae_less_best: Interval | None = None

    @property
    def n_items(self) -> int | None:
        """Labelled items; None in an average."""
        return None if self.cell is None else self.cell.comparison.n_items

    def as_dict(self, by: Sequence[str]) -> dict[str, Any]:
        """Plain values by name, with the columns that votes are grouped by first."""
        names = ["n_votes", "method", "mae", "accuracy"]
        names[1:1] = [] if self.cell is None else ["n_items"]
        names += [] if self.rank is None else ["rank", "accuracy_rank", "tied"]
        if self.cell is not None and self.cell.comparison.new_items is not None:
            names += ["n_calibration"]
        names += [] if self.mae_less_majority is None else ["mae_less_majority"]
        names += [] if self.mae_less_best is None else ["mae_less_best"]
        return record(dict(zip(by, self.key, strict=False)), self.fields(*names))

    def fields(self, *names: str) -> dict[str, Any]:
        """Return some of the values by name; a score is a mean and the ends of its interval."""
        sources = (self,) if self.cell is None else (self, self.cell, self.cell.comparison)
        fields: dict[str, Any] = {}
        for name in names:
            value = next(getattr(source, name) for source in sources if hasattr(source, name))
            fields |= spread(name, value) if isinstance(value, Interval) else {name: value}
        return fields


def spread(name: str, interval: Interval | None) -> dict[str, object]:
    """Fields of a record for a mean and its interval."""
    mean, low, high = (None, None, None) if interval is None else interval
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def record(where: Mapping[str, str | None], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the columns that votes are grouped by, and then a result's own."""
    refuse_fields(where, fields)
    return {**where, **fields}


def refuse_fields(columns: Iterable[str], fields: Container[str] = FIELDS) -> None:
    """Raise an `InputError` where a column to group by has the name of a field of the result."""
    for column in columns:
        if column in fields:
            raise InputError(
                f"column {column!r} has the name of a field of the results, which would be lost; "
                "rename the column"
            )


def name_of_average(names: Container[str]) -> str:
    """What an average is called beside parts of these names."""
    name = "average"
    while name in names:
        name += " of all"
    return name


def lines(scores: Scores) -> list[Line]:
    """One line per cell and method."""
    return [line for cell in scores.cells for line in lines_of(cell)]


def lines_of(cell: Cell) -> list[Line]:
    """One line per method of a cell."""
    compared = cell.comparison
    more: list[dict[str, Any]] = [{} for _ in compared.methods]
    if compared.tested is not None:
        by_mae, by_accuracy = compared.mae_ranking, compared.accuracy_ranking
        for number, of_method in enumerate(more):
            of_method["rank"] = int(by_mae.ranks[number])
            of_method["accuracy_rank"] = int(by_accuracy.ranks[number])
            of_method["tied"] = bool(by_mae.tied[number])
    if compared.new_items is not None and len(more) > 1:
        for number, to_best in enumerate(compared.new_items.to_best()):
            more[number]["mae_less_best"] = to_best
            if compared.baseline not in (None, number):
                less = compared.new_items.difference(number, compared.baseline)
                more[number]["mae_less_majority"] = less
    return [
        Line(
            cell.key,
            cell.n_votes,
            method.name,
            method.mae_interval,
            method.accuracy_interval,
            compared.n_splits,
            cell,
            **of_method,
        )
        for method, of_method in zip(compared.methods, more, strict=True)
    ]


def averages(scores: Scores) -> list[Line]:
    """Mean over cells by number of votes and method; none where there is one cell each."""
    budgets = list(dict.fromkeys(cell.n_votes for cell in scores.cells))
    if len(scores.cells) == len(budgets):
        return []
    name = name_of_average({value for cell in scores.cells for value in cell.key[:1]})
    key = (name, *("" for _ in scores.by[1:]))
    averaged = []
    for budget in budgets:
        cells = [cell for cell in scores.cells if cell.n_votes == budget]
        if len(cells) == len(scores.by_key()):  # a mean over fewer would look comparable
            averaged += average(cells, key)
    return averaged


def average(cells: Sequence[Cell], key: tuple[str, ...]) -> list[Line]:
    """Average each method over cells, split by split.

    Cells count alike, whatever their number of items.
    """
    averaged = []
    for place, of_cells in enumerate(zip(*map(lines_of, cells), strict=True)):
        first, methods = of_cells[0], [cell.comparison.methods[place] for cell in cells]
        less = None
        if methods[0].of_new_items:
            mae, accuracy = (_over_cells([getattr(line, s) for line in of_cells]) for s in _SCORES)
            if first.mae_less_majority is not None:
                less = _over_cells([line.mae_less_majority for line in of_cells])
        else:
            mae, accuracy = (
                mean_interval(np.mean([getattr(method, score) for method in methods], axis=0))
                for score in _SCORES
            )
        line = Line(key, first.n_votes, first.method, mae, accuracy, first.n_splits)
        averaged.append(replace(line, mae_less_majority=less))
    return averaged


def _over_cells(intervals: Sequence[Any]) -> Interval:
    """Average intervals. Cells may share items: no smaller one holds whatever they share."""
    return Interval(*np.mean(intervals, axis=0).tolist())
