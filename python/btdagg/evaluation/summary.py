"""An evaluation as lines of a table, averages over them, and remarks a reader should not miss."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg.evaluation.intervals import Interval, mean_interval

if TYPE_CHECKING:
    from btdagg.evaluation.evaluating import Cell, Evaluation

FIELDS = frozenset(
    (
        *("n_votes", "n_labels", "n_items", "n_calibration", "n_evaluation", "n_splits"),
        *("method", "other", "rank", "accuracy_rank", "tied", "mae_pvalue", "accuracy_pvalue"),
        *(f"{score}{end}" for score in ("mae", "accuracy") for end in ("", "_low", "_high")),
    )
)
"""What an evaluation by some columns calls its own: no such column may have one of these names."""

# Share of splits with fits that call everything a tie, from which it is worth a word.
_OFTEN = 0.25

# Items to evaluate from which all being ties is no accident.
_ENOUGH = 20


@dataclass(frozen=True)
class Line:
    """Scores of one method in one cell, or averaged over all cells.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that the evaluation goes by.
    n_votes, n_items : int or None
        Votes per item (None for all) and labelled items (None in an average).
    method : str
        The aggregator.
    mae, accuracy : Interval
        Means over splits with 95% intervals.
    rank, accuracy_rank : int or None
        Cluster of the method by MAE and by accuracy, 1 the best; None in an average, over whose
        cells nothing is tested.
    tied : bool or None
        Whether its MAE cannot be told from the best one; None in an average.
    """

    key: tuple[str, ...]
    n_votes: int | None
    n_items: int | None
    method: str
    mae: Interval
    accuracy: Interval
    rank: int | None = None
    accuracy_rank: int | None = None
    tied: bool | None = None

    def as_dict(self, by: Sequence[str]) -> dict[str, Any]:
        """Plain values by name, with the columns that the evaluation goes by first.

        Raises
        ------
        InputError
            If a column has the name of another value.
        """
        scores = {
            "mae": self.mae.mean,
            "mae_low": self.mae.low,
            "mae_high": self.mae.high,
            "accuracy": self.accuracy.mean,
            "accuracy_low": self.accuracy.low,
            "accuracy_high": self.accuracy.high,
        }
        size = {} if self.n_items is None else {"n_items": self.n_items}
        ranks = {
            name: value
            for name, value in (
                ("rank", self.rank),
                ("accuracy_rank", self.accuracy_rank),
                ("tied", self.tied),
            )
            if value is not None
        }
        return record(
            dict(zip(by, self.key, strict=False)),
            {"n_votes": self.n_votes, **size, "method": self.method, **scores, **ranks},
        )


def record(where: Mapping[str, str | None], fields: Mapping[str, object]) -> dict[str, object]:
    """Values of the columns that were gone by, and then a result's own.

    Raises
    ------
    InputError
        If a column has the name of a field, which would be lost.
    """
    refuse_fields(where, fields)
    return {**where, **fields}


def refuse_fields(columns: Iterable[str], fields: Container[str] = FIELDS) -> None:
    """Raise an `InputError` where a column to go by has the name of a field of the result."""
    for column in columns:
        if column in fields:
            raise InputError(
                f"column {column!r} is named like a field of the results, which would be lost; "
                "rename the column"
            )


def name_of_average(names: Container[str]) -> str:
    """What an average is called beside parts of these names."""
    name = "average"
    while name in names:
        name += " of all"
    return name


def lines(evaluation: Evaluation) -> list[Line]:
    """One line per cell and method."""
    found = []
    for cell in evaluation.cells:
        comparison = cell.comparison
        found += [
            Line(
                cell.key,
                cell.n_votes,
                comparison.n_items,
                method.name,
                method.mae_interval,
                method.accuracy_interval,
                int(comparison.mae_ranking.ranks[place]),
                int(comparison.accuracy_ranking.ranks[place]),
                bool(comparison.mae_ranking.tied[place]),
            )
            for place, method in enumerate(comparison.methods)
        ]
    return found


def averages(evaluation: Evaluation) -> list[Line]:
    """Mean over cells by number of votes and method; none where there is one cell each.

    Cells count alike, whatever their number of items. Scores are averaged split by split.
    """
    budgets = list(dict.fromkeys(cell.n_votes for cell in evaluation.cells))
    if len(evaluation.cells) == len(budgets):
        return []
    name = name_of_average({value for cell in evaluation.cells for value in cell.key[:1]})
    key = (name, *("" for _ in evaluation.by[1:]))
    found = []
    for budget in budgets:
        compared = [c.comparison.methods for c in evaluation.cells if c.n_votes == budget]
        by_method = [
            (
                several[0].name,
                np.mean([method.mae for method in several], axis=0),
                np.mean([method.accuracy for method in several], axis=0),
            )
            for several in zip(*compared, strict=True)
        ]
        found += [
            Line(key, budget, None, method, mean_interval(mae), mean_interval(accuracy))
            for method, mae, accuracy in by_method
        ]
    return found


def remarks(evaluation: Evaluation) -> list[str]:
    """What was left out, and where a judge adds nothing that a constant would not."""
    found = []
    by_key: dict[tuple[str, ...], Cell] = {}  # of the most votes
    for cell in evaluation.cells:
        other = by_key.setdefault(cell.key, cell)
        if (cell.n_votes or 0) > (other.n_votes or 0):
            by_key[cell.key] = cell
    for one, many, count in (
        ("item has votes but no label", "items have votes but no label", evaluation.n_unlabelled),
        ("label has no votes", "labels have no votes", evaluation.n_without_votes),
        ("vote is missing", "votes are missing", sum(c.n_missing for c in by_key.values())),
    ):
        if count:
            found.append(f"1 {one}" if count == 1 else f"{count} {many}")
            found[-1] += " and is left out" if count == 1 else " and are left out"
    for cell in by_key.values():
        where = f"{' '.join(cell.key)}: " if cell.key else ""
        if cell.n_empty:
            found.append(
                f"{where}{cell.n_empty} of {cell.comparison.n_items} items have no vote that is "
                "not missing, and are decided without any"
            )
        if cell.n_short == cell.comparison.n_items:
            found.append(f"{where}no item has {cell.n_votes} votes; those there are were used")
    found += [f"{' '.join(key)}: not evaluated: {reason}" for key, reason in evaluation.skipped]
    found += [remark for cell in by_key.values() for remark in _constant(cell)]
    return found


def _constant(cell: Cell) -> list[str]:
    """Say so where the model calls everything a tie."""
    if cell.fitted is None or cell.fitted.calibration is None:
        return []
    where = f"{' '.join(cell.key)}: " if cell.key else ""
    fitted = cell.fitted.calibration
    scores = next(m for m in cell.comparison.methods if m.name == cell.fitted.name)
    if fitted.max_votes and fitted.model.always_ties(fitted.max_votes):
        return [
            f"{where}fitted to all {fitted.n_labels} labels, the model calls every item with up "
            f"to {fitted.max_votes} votes a tie, however they fall (MAE {scores.mae.mean():.3f}; "
            f"always answering tie has {1 - cell.comparison.gold_tie_share:.3f}): this judge adds "
            "nothing here that a constant would not"
        ]
    n_evaluated = cell.comparison.n_items - cell.comparison.n_calibration
    share = float(np.mean(scores.tie_share == 1)) if n_evaluated >= _ENOUGH else 0.0
    if share >= _OFTEN:
        return [
            f"{where}calibrated on {cell.comparison.n_calibration:.0f} labels, the model calls "
            f"every item a tie on {share:.0%} of the splits: calibrate on more"
        ]
    return []
