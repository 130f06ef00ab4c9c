"""Scores of methods: what to use, and how they do by task, votes and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from btdagg._core import InputError
from btdagg.evaluation.cells import Cell
from btdagg.evaluation.intervals import Interval
from btdagg.evaluation.scores import Scores
from btdagg.evaluation.summary import (
    average,
    averages,
    lines,
    lines_of,
    name_of_average,
    record,
    spread,
)
from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.wording import (
    LABEL_NAMES,
    MISSING,
    NEW_ITEMS_NOTE,
    SPLITS_NOTE,
    fixed,
    not_evaluated,
    pvalue,
    votes_of,
    with_error,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation import Comparison
    from btdagg.evaluation.parts import Key
    from btdagg.evaluation.summary import Line

LOWER_IS_BETTER = "Mean absolute error, lower is better"


def where(by: Sequence[str], key: Sequence[str]) -> dict[str, str]:
    """Values of the columns that votes are grouped by, by their names."""
    return dict(zip(by, key, strict=True))


def splits_of(several: Sequence[int]) -> str:
    """Say over how many splits means are."""
    low, high = min(several), max(several)
    return f"{low} random splits" if low == high else f"{low} to {high} random splits"


def evaluated_on(several: Sequence[Comparison]) -> str:
    """Say on what items scores are: of a cross-validation, or over how many splits."""
    if all(found.methods[0].of_new_items is not None for found in several):
        return "the folds of a cross-validation by group"
    return splits_of([found.n_splits for found in several])


def interval_note(several: Sequence[Comparison]) -> str:
    """Say what stands behind the ± of a score."""
    cross_fitted = all(found.methods[0].of_new_items is not None for found in several)
    return NEW_ITEMS_NOTE if cross_fitted else SPLITS_NOTE


def best_lines(lines: Sequence[Line], score: Literal["mae", "accuracy"] = "mae") -> list[Line]:
    """Lines of the best mean; several where it is equal."""
    means = [getattr(line, score).mean for line in lines]
    best = min(means) if score == "mae" else max(means)
    return [line for line, mean in zip(lines, means, strict=True) if mean == best]


def scored_on(scores: Scores) -> str:
    """Say on what items the cells of an evaluation are scored."""
    return evaluated_on([cell.comparison for cell in scores.cells])


def interval_note_of(scores: Scores) -> str:
    """Say what stands behind the ± of an evaluation's scores."""
    return interval_note([cell.comparison for cell in scores.cells])


Score = Literal["mae", "accuracy"]
Ranks: TypeAlias = "Callable[[Comparison, Score], NDArray[np.int_]]"
"""Rank clusters of the methods of a comparison, by a score; 1 is the best."""

_TITLES = {"mae": "Mean absolute error", "accuracy": "Pairwise accuracy"}


def score_tables(scores: Scores, ranks: Ranks | None = None) -> tuple[ReportTable, ReportTable]:
    """Tabulate MAE and pairwise accuracy: tasks in columns, methods in rows by judge and votes.

    Parameters
    ----------
    scores : Scores
        What goes in columns is the task, where votes are grouped by it, or else the first column
        that they are grouped by. Where there is more than one, their mean is the last column, split
        by split, all counting alike.
    ranks : callable, optional
        Gives the rank cluster of each method of a comparison. Those of rank 1 are bold; without
        it, the best mean. In the last column it is always the best mean.

    Returns
    -------
    tuple of ReportTable
        ``mae`` and ``accuracy``.
    """
    return _score_table(scores, "mae", ranks), _score_table(scores, "accuracy", ranks)


def comparison_table(found: Comparison) -> ReportTable:
    """Tabulate error and accuracy of the methods of one comparison, with their ranks."""
    shown = lines_of(Cell((), found))

    def cells() -> Iterator[PivotCell]:
        lowest = min(line.mae.mean for line in shown)
        for line in shown:
            label = (line.method,)
            names = ("n_items", "method", "mae", "accuracy", "rank", "mae_less_majority")
            best = line.mae.mean == lowest
            yield PivotCell(label, "MAE", with_error(line.mae), best, line.fields(*names))
            yield PivotCell(label, "accuracy", with_error(line.accuracy))
            if found.new_items is not None:
                less = with_error(line.mae_less_majority, signed=True)
                yield PivotCell(label, "less majority", less)
            if line.rank is not None:
                yield PivotCell(label, "rank", str(line.rank))

    one = Scores((), (Cell((), found),))
    ranked = " Methods of one rank cannot be told apart." if found.tested is not None else ""
    return ReportTable.pivot(
        "comparison",
        f"Methods on {found.n_items:,} labelled items",
        interval_note_of(one).rstrip(".") + "." + ranked,
        ("method",),
        cells(),
    )


def _score_table(scores: Scores, score: Score, ranks: Ranks | None) -> ReportTable:
    place = scores.by.index("task") if "task" in scores.by else 0

    def parted(key: Key) -> tuple[str, Key]:
        """Part a key into its column of the table and the rest."""
        return key[place] if key else "all items", (*key[:place], *key[place + 1 :])

    # Skipped keys have a column too, so that a reader sees what is missing.
    keys = [*(cell.key for cell in scores.cells), *(key for key, _ in scores.skipped)]
    columns = tuple(dict.fromkeys(parted(key)[0] for key in keys))
    means = (name_of_average(columns),) if len(columns) > 1 else ()
    blocks: dict[Key, dict[int | None, dict[str, Cell]]] = {}
    for cell in scores.cells:
        column, block = parted(cell.key)
        blocks.setdefault(block, {}).setdefault(cell.n_votes, {})[column] = cell
    name, others = parted(scores.by)

    def cells() -> Iterator[PivotCell]:
        rows = ((b, n, row) for b, by_votes in blocks.items() for n, row in by_votes.items())
        for block, n_votes, row in rows:
            shown = {column: _shown(cell, score, ranks) for column, cell in row.items()}
            methods = [method.name for method in next(iter(row.values())).comparison.methods]
            for mean in means:
                shown[mean] = _averaged(list(row.values()), score, whole=len(row) == len(columns))
            for number, method in enumerate(methods):
                for column in (*columns, *means):
                    if column in shown:
                        interval, bold, fields = shown[column][number]
                        own = {name: column} if scores.by else {}
                        yield PivotCell(
                            (*block, votes_of(n_votes), method),
                            column,
                            with_error(interval),
                            bold,
                            record(
                                {**own, **where(others, block)},
                                {"n_votes": n_votes, "method": method, **fields},
                            ),
                            number,
                        )

    better, best = ("lower", "lowest") if score == "mae" else ("higher", "highest")
    bold = f"the {best} mean"
    if ranks is not None:
        beside = f" (in the column of averages, {bold})" if means else ""
        bold = (
            f"rank 1, which the test does not tell apart from the best, whatever the means{beside}"
        )
    return ReportTable.pivot(
        score,
        _TITLES[score],
        f"Means over {scored_on(scores)}, {better} is better; {interval_note_of(scores)}. "
        f"Bold: {bold}." + not_evaluated(key for key, _ in scores.skipped),
        (*others, "votes", "method"),
        cells(),
        (*columns, *means),
    )


Shown: TypeAlias = tuple[Interval | None, bool, dict[str, object]]
"""A mean with its interval, whether it is bold, and what its record has besides."""


def _shown(cell: Cell, score: Score, ranks: Ranks | None) -> list[Shown]:
    """What is shown of each method of a cell."""
    lines = lines_of(cell)
    more: list[dict[str, object]] = [{} for _ in lines]
    if ranks is None:
        first = best_lines(lines, score)
    else:
        rank = np.asarray(ranks(cell.comparison, score)).tolist()
        first = [line for line, of_line in zip(lines, rank, strict=True) if of_line == 1]
        more = [{"rank": of_line} for of_line in rank]
    names = (score, "n_items", "n_calibration", "n_splits")
    return [
        (getattr(line, score), line in first, {**line.fields(*names), **of_line})
        for line, of_line in zip(lines, more, strict=True)
    ]


def _averaged(cells: Sequence[Cell], score: Score, *, whole: bool) -> list[Shown]:
    """What is shown of each method on average; nothing of a row that lacks some columns.

    Other rows have all columns, and a mean over fewer would look comparable with theirs.
    """
    lines = average(cells, ())
    if not whole:
        return [(None, False, spread(score, None)) for _ in lines]
    best = best_lines(lines, score)
    return [(getattr(line, score), line in best, line.fields(score)) for line in lines]


def pvalue_table(scores: Scores) -> ReportTable:
    """Tabulate the p-values of every two methods in every cell, of MAE and of accuracy."""

    def cells() -> Iterator[PivotCell]:
        for cell in scores.cells:
            found = cell.comparison
            names = [method.name for method in found.methods]
            for number, (one, other) in enumerate(combinations(range(len(names)), 2)):
                mae = float(found.mae_ranking.pvalues[one, other])
                accuracy = float(found.accuracy_ranking.pvalues[one, other])
                label = (*cell.key, votes_of(cell.n_votes), names[one], names[other])
                fields = {
                    "n_votes": cell.n_votes,
                    "method": names[one],
                    "other": names[other],
                    "mae_pvalue": mae,
                    "accuracy_pvalue": accuracy,
                }
                whole, tau = record(where(scores.by, cell.key), fields), found.test.tau
                yield PivotCell(label, "p (MAE)", pvalue(mae), mae < tau, whole, number)
                yield PivotCell(
                    label, "p (accuracy)", pvalue(accuracy), accuracy < tau, None, number
                )

    test = scores.cells[0].comparison.test.words
    return ReportTable.pivot(
        "pvalues",
        "P-values of every two methods",
        f"{test[0].upper()}{test[1:]}. Bold: below that level.",
        (*scores.by, "votes", "method", "other"),
        cells(),
        ("p (MAE)", "p (accuracy)"),
    )


def vote_sweep_table(found: Scores) -> ReportTable:
    """Tabulate MAE by the number of votes; the records have accuracy too."""
    return _sweep_table(found, "votes", "n_votes", "Error by the number of votes", "")


def calibration_sweep_table(found: Scores) -> ReportTable:
    """Tabulate MAE by the number of labels calibrated on; the records have accuracy too."""
    return _sweep_table(
        found,
        "calibration",
        "n_labels",
        "Error by the number of labels calibrated on",
        " The items evaluated on are the same for every number.",
    )


def _sweep_table(found: Scores, name: str, point_name: str, title: str, more: str) -> ReportTable:
    if not found.cells:
        raise InputError("there is no sweep: nothing could be evaluated")
    names = (point_name, "method", "mae", "accuracy", "n_items", "n_calibration", "n_evaluation")

    def cells() -> Iterator[PivotCell]:
        for key, of_key in found.by_key().items():
            at = [lines_of(cell) for cell in of_key]
            best = [best_lines(lines) if len(lines) > 1 else [] for lines in at]
            for number, of_method in enumerate(zip(*at, strict=True)):
                for line, bold in zip(of_method, best, strict=True):
                    fields = line.fields(*names, "n_splits")
                    yield PivotCell(
                        (*key, line.method),
                        str(fields[point_name]),
                        with_error(line.mae),
                        line in bold,
                        record(where(found.by, key), fields),
                        number,
                    )

    points = sorted({point for sweep in found.sweeps for point in sweep.points})
    return ReportTable.pivot(
        f"sweep-{name}",
        title,
        f"{LOWER_IS_BETTER}: means over {scored_on(found)}; {interval_note_of(found)}.{more} "
        "Bold: the lowest of the methods." + not_evaluated(key for key, _ in found.skipped),
        (*found.by, "method"),
        cells(),
        map(str, points),
    )


# A fall of the error that is worth twice the votes; and one that is not worth a word.
_WORTH, _NOTHING = 0.01, 0.003

# Half-width of an interval from which more labels are the first thing to want.
_WIDE = 0.05


def answers_table(scores: Scores) -> ReportTable:
    """Say in a row for each part what to use, how good it is, and what would improve it.

    A part is decided by the model that is written, the first that is calibrated, or by majority
    vote, whichever has the lower mean absolute error at the largest number of votes; by another
    method where that is significantly better; or by a constant answer where none is better.

    Parameters
    ----------
    scores : Scores
        Of `btdagg.evaluate`.
    """

    def cells() -> Iterator[PivotCell]:
        for key, of_key in scores.by_key().items():
            cell = max(of_key, key=lambda one: one.n_votes or 0)
            best = _best(cell)
            answer, error = cell.comparison.best_constant
            constant = LABEL_NAMES[answer]
            use = best.method if best.mae.mean < error else f"always {constant}"
            advice = _advice(of_key, cell, best, beaten=best.mae.mean >= error)
            whole = record(
                where(scores.by, key),
                {
                    **best.fields("n_votes", "n_items", "n_calibration", "method", "mae"),
                    **best.fields("accuracy"),
                    "use": use,
                    "constant": constant,
                    "mae_of_constant": error,
                    "advice": advice,
                },
            )
            label = key or ("all items",)
            yield PivotCell(label, "use", use, True, whole)
            answered = use == best.method
            yield PivotCell(label, "MAE", with_error(best.mae) if answered else fixed(error))
            less = best.mae_less_majority if answered else None
            yield PivotCell(label, "less majority", with_error(less, signed=True))
            yield PivotCell(label, "labels", f"{cell.comparison.n_items:,}")
            yield PivotCell(label, "votes", votes_of(cell.n_votes))
            yield PivotCell(label, "what would improve it", advice)

    return ReportTable.pivot(
        "answers",
        "What to use",
        f"{_scored(scores)} Always A, tie or B: that constant answer is no worse. Less "
        "majority: the difference to the error of majority vote."
        + not_evaluated(k for k, _ in scores.skipped),
        scores.by or ("items",),
        cells(),
    )


def methods_table(scores: Scores) -> ReportTable:
    """Tabulate the error of each method by the number of votes, averaged over all parts."""
    shown = averages(scores) or lines(scores)
    parts = len(scores.by_key())

    def cells() -> Iterator[PivotCell]:
        for line in shown:
            rivals = [one.mae.mean for one in shown if one.n_votes == line.n_votes]
            yield PivotCell(
                (line.method,),
                f"{votes_of(line.n_votes)} votes",
                with_error(line.mae),
                line.mae.mean == min(rivals),
                line.fields("n_votes", "method", "mae", "accuracy"),
            )

    over = f", averaged over {parts} rows of the table above" if parts > 1 else ""
    return ReportTable.pivot(
        "methods",
        "Error by method and number of votes",
        f"Mean absolute error{over}; lower is better. {_plus_minus(scores)} Bold: the lowest of "
        "the column.",
        ("method",),
        cells(),
    )


def _best(cell: Cell) -> Line:
    """The model that is written or majority vote; a peer only where it is known to be better."""
    found, compared = lines_of(cell), cell.comparison
    lowest = min(found, key=lambda line: line.mae.mean)
    usable = [
        found[place] for place in (compared.calibrated, compared.baseline) if place is not None
    ]
    if not usable:
        return lowest
    best = min(usable, key=lambda line: line.mae.mean)
    return best if best.tied is not False else lowest


def _advice(of_key: Sequence[Cell], cell: Cell, best: Line, *, beaten: bool) -> str:
    """What would lower the error, or narrow its interval."""
    if beaten:
        return "another judge or prompt: these votes add nothing to a constant answer"
    found = []
    fewer = [one for one in of_key if (one.n_votes or 0) < (cell.n_votes or 0)]
    if fewer:
        before = max(fewer, key=lambda one: one.n_votes or 0)
        (same,) = (line for line in lines_of(before) if line.method == best.method)
        gain = same.mae.mean - best.mae.mean
        if gain >= _WORTH:
            found.append(
                f"more votes: {cell.n_votes} instead of {before.n_votes} took {gain:.3f} off the "
                "error"
            )
        elif gain <= _NOTHING:
            found.append(f"not more votes: {cell.n_votes} and {before.n_votes} err about alike")
    half = (best.mae.high - best.mae.low) / 2
    if cell.comparison.new_items is not None and half > _WIDE:
        found.append(f"more labels: four times as many would halve the ±{half:.3f}")
    return "; ".join(found) or MISSING


def _scored(scores: Scores) -> str:
    """How the rows were scored."""
    compared = scores.cells[0].comparison
    if compared.new_items is not None:
        how = "Mean absolute error (MAE) on new items of a model calibrated on these labels"
    else:
        how = (
            f"Mean absolute error (MAE) of models calibrated on {scores.n_calibration} labels, "
            f"over {compared.n_splits} random splits"
        )
    return f"{how}, at the largest number of votes. {_plus_minus(scores)}"


def _plus_minus(scores: Scores) -> str:
    cross_fitted = scores.cells[0].comparison.new_items is not None
    note = NEW_ITEMS_NOTE if cross_fitted else SPLITS_NOTE
    return f"{note[0].upper()}{note[1:]}."
