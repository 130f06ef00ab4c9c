"""The paper's tables of MAE and pairwise accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg.evaluation.intervals import Interval, mean_interval
from btdagg.evaluation.summary import name_of_average, record
from btdagg.report.table import Entry, ReportTable
from btdagg.report.tables.common import Key, Record, plain, splits_of, spread, where
from btdagg.report.wording import (
    MISSING,
    SPLITS_NOTE,
    not_evaluated,
    votes_of,
    with_error,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation import Cell, Comparison, Scores

Score = Literal["mae", "accuracy"]
Ranks = Callable[["Comparison", Score], "NDArray[np.int_]"]
"""Rank clusters of the methods of a comparison, by a score; 1 is the best."""

_TITLES = {"mae": "Mean absolute error", "accuracy": "Pairwise accuracy"}


def score_tables(evaluation: Scores, ranks: Ranks | None = None) -> tuple[ReportTable, ReportTable]:
    """Tabulate MAE and pairwise accuracy: tasks in columns, methods in rows by judge and votes.

    Parameters
    ----------
    evaluation : Scores
        What goes in columns is the task, where the evaluation goes by it, or else the first column
        that it goes by. Where there is more than one, their mean is the last column, split by
        split, all counting alike.
    ranks : callable, optional
        Gives the rank cluster of each method of a comparison. Those of rank 1 are bold; without
        it, the best mean. In the last column it is always the best mean.

    Returns
    -------
    tuple of ReportTable
        ``mae`` and ``accuracy``.

    References
    ----------
    The paper's tables of MAE and pairwise accuracy, for one judge and for several.
    """
    layout = _Layout.of(evaluation)
    return _table(layout, "mae", ranks), _table(layout, "accuracy", ranks)


@dataclass(frozen=True)
class _Layout:
    """Cells of an evaluation by block (the rest of the key), number of votes, and column."""

    evaluation: Scores
    column: str | None
    blocks_by: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[Key, int | None], dict[str, Cell]]

    @classmethod
    def of(cls, evaluation: Scores) -> _Layout:
        by = evaluation.by
        place = by.index("task") if "task" in by else 0
        cells: dict[tuple[Key, int | None], dict[str, Cell]] = {}
        # Skipped keys have a column too, so that a reader sees what is missing.
        columns = [key[place] if by else "" for key in (c.key for c in evaluation.cells)]
        columns += [key[place] for key, _ in evaluation.skipped if by]
        blocks = list(
            dict.fromkeys((*c.key[:place], *c.key[place + 1 :]) for c in evaluation.cells)
        )
        for block in blocks:
            for cell in evaluation.cells:
                if (*cell.key[:place], *cell.key[place + 1 :]) == block:
                    row = cells.setdefault((block, cell.n_votes), {})
                    row[cell.key[place] if by else ""] = cell
        return cls(
            evaluation,
            by[place] if by else None,
            (*by[:place], *by[place + 1 :]),
            tuple(dict.fromkeys(columns)),
            cells,
        )

    def where(self, block: Key, column: str) -> dict[str, str]:
        own = {} if self.column is None else {self.column: column}
        return {**own, **where(self.blocks_by, block)}


def _table(layout: _Layout, score: Score, ranks: Ranks | None) -> ReportTable:
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    averaged = len(layout.columns) > 1
    average = [name_of_average(layout.columns)] if averaged else []
    columns = (*layout.columns, *average)
    for (block, budget), cells in layout.cells.items():
        written = {name: _cell_entries(cell, score, ranks) for name, cell in cells.items()}
        for name in average:
            written[name] = _average_entries(layout, cells, score)
        methods = [m.name for m in next(iter(cells.values())).comparison.methods]
        for place, method in enumerate(methods):
            entries = [
                written[column][place][0] if column in written else Entry(MISSING)
                for column in columns
            ]
            rows.append((*plain(*block, votes_of(budget), method), *entries))
            records += [
                record(
                    layout.where(block, column),
                    {"n_votes": budget, "method": method, **written[column][place][1]},
                )
                for column in columns
                if column in written
            ]
    better = "lower" if score == "mae" else "higher"
    best = "the lowest mean" if score == "mae" else "the highest mean"
    bold = best if ranks is None else "rank 1, which no test tells apart from the best"
    if ranks is not None and averaged:
        bold += f" (in the column of averages, {best})"
    n_splits = splits_of([len(c.comparison.methods[0].mae) for c in layout.evaluation.cells])
    skipped = not_evaluated(key for key, _ in layout.evaluation.skipped)
    names = layout.columns if layout.column is not None else ("all items",)
    return ReportTable(
        score,
        _TITLES[score],
        f"Means over {n_splits}, {better} is better; {SPLITS_NOTE}. Bold: {bold}.{skipped}",
        (*layout.blocks_by, "votes", "method", *names, *average),
        tuple(rows),
        tuple(records),
        n_label_columns=len(layout.blocks_by) + 2,
    )


def _cell_entries(cell: Cell, score: Score, ranks: Ranks | None) -> list[tuple[Entry, Record]]:
    """Entry and record of each method in one cell."""
    scores = [getattr(method, score) for method in cell.comparison.methods]
    rank = None if ranks is None else np.asarray(ranks(cell.comparison, score))
    first = _best(scores, score) if rank is None else rank == 1
    more: list[Record] = [
        {
            "n_items": cell.comparison.n_items,
            "n_calibration": cell.comparison.n_calibration,
            "n_splits": len(values),
            **({} if rank is None else {"rank": int(rank[place])}),
        }
        for place, values in enumerate(scores)
    ]
    return list(_entries(scores, first, score, more))


def _average_entries(
    layout: _Layout, cells: dict[str, Cell], score: Score
) -> list[tuple[Entry, Record]]:
    """Entry and record of the mean over columns; of one that lacks some, a dash.

    Other blocks have all columns, and a mean over fewer would look comparable with theirs.
    """
    methods = zip(*(cell.comparison.methods for cell in cells.values()), strict=True)
    scores = [np.mean([getattr(m, score) for m in several], axis=0) for several in methods]
    if len(cells) < len(layout.columns):
        return [(Entry(MISSING), spread(score, None)) for _ in scores]
    return list(_entries(scores, _best(scores, score), score, [{} for _ in scores]))


def _entries(
    scores: Sequence[NDArray[Any]], first: NDArray[Any], score: Score, more: Sequence[Record]
) -> Iterator[tuple[Entry, Record]]:
    for values, bold, fields in zip(scores, first.tolist(), more, strict=True):
        found: Interval = mean_interval(values)
        yield Entry(with_error(found), bold), {**spread(score, found), **fields}


def _best(scores: Sequence[NDArray[Any]], score: Score) -> NDArray[np.bool_]:
    means = np.array([values.mean() for values in scores])
    return np.asarray(means == (means.min() if score == "mae" else means.max()))
