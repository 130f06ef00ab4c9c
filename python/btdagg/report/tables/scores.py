"""The paper's tables of MAE and pairwise accuracy, and p-values of methods against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg._core import InputError
from btdagg.evaluation.intervals import Interval, mean_interval
from btdagg.report.table import Entry, ReportTable
from btdagg.report.tables.common import Key, Record, plain, splits_of, spread, where
from btdagg.report.wording import (
    MISSING,
    SPLITS_NOTE,
    not_evaluated,
    pvalue,
    votes_of,
    with_error,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.evaluation import Cell, Comparison, Evaluation

Score = Literal["mae", "accuracy"]
Ranks = Callable[["Comparison", Score], "NDArray[np.int_]"]
"""Rank clusters of the methods of a comparison, by a score; 1 is the best."""

_TITLES = {"mae": "Mean absolute error", "accuracy": "Pairwise accuracy"}


def score_tables(
    evaluation: Evaluation, ranks: Ranks | None = None
) -> tuple[ReportTable, ReportTable]:
    """Tabulate MAE and pairwise accuracy: tasks in columns, methods in rows by judge and votes.

    Parameters
    ----------
    evaluation : Evaluation
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


def pvalue_table(
    names: Sequence[str], pvalues: ArrayLike, title: str, name: str = "pvalues"
) -> ReportTable:
    """Tabulate the p-values of m methods against each other.

    Parameters
    ----------
    names : sequence of str
        The m methods.
    pvalues : (m, m) array
        Row against column. The diagonal is not looked at; NaN is missing.
    title : str
    name : str
        Stem of the table's files.

    Raises
    ------
    InputError
        If shapes disagree.
    """
    matrix = np.asarray(pvalues, dtype=np.float64)
    m = len(names)
    if matrix.shape != (m, m):
        raise InputError(f"pvalues has shape {matrix.shape}, want ({m}, {m})")
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for place, method in enumerate(names):
        cells = []
        for other, value in enumerate(matrix[place].tolist()):
            missing = place == other or np.isnan(value)
            text = MISSING if missing else pvalue(value)
            cells.append(Entry(text, bold=not missing and value < 0.05))
            if place != other:
                records.append({"method": method, "other": names[other], "pvalue": value})
        rows.append((Entry(method), *cells))
    return ReportTable(
        name,
        title,
        "p-values of the method in the row against the one in the column. Bold: below 0.05.",
        ("method", *names),
        tuple(rows),
        tuple(records),
    )


@dataclass(frozen=True)
class _Layout:
    """Cells of an evaluation by block (the rest of the key), number of votes, and column."""

    evaluation: Evaluation
    column: str | None
    blocks_by: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[Key, int | None], dict[str, Cell]]

    @classmethod
    def of(cls, evaluation: Evaluation) -> _Layout:
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

    def record(self, block: Key, column: str, budget: int | None) -> Record:
        own: Record = {} if self.column is None else {self.column: column}
        return {**own, **where(self.blocks_by, block), "n_votes": budget}


def _table(layout: _Layout, score: Score, ranks: Ranks | None) -> ReportTable:
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    averaged = len(layout.columns) > 1
    for (block, budget), cells in layout.cells.items():
        written = {name: _cell_entries(cell, score, ranks) for name, cell in cells.items()}
        if averaged:
            written["average"] = _average_entries(layout, cells, score)
        columns = (*layout.columns, *(["average"] if averaged else []))
        methods = [m.name for m in next(iter(cells.values())).comparison.methods]
        for place, method in enumerate(methods):
            entries = [
                written[column][place][0] if column in written else Entry(MISSING)
                for column in columns
            ]
            rows.append((*plain(*block, votes_of(budget), method), *entries))
            records += [
                {
                    **layout.record(block, column, budget),
                    "method": method,
                    **written[column][place][1],
                }
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
        (*layout.blocks_by, "votes", "method", *names, *(["average"] if averaged else [])),
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
