"""What a report says first: what to use for each judge and task, and the error by votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from btdagg.evaluation.summary import averages, lines, lines_of, record
from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.tables.common import where
from btdagg.report.wording import (
    LABEL_NAMES,
    MISSING,
    NEW_ITEMS_NOTE,
    SPLITS_NOTE,
    fixed,
    not_evaluated,
    votes_of,
    with_error,
)

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.evaluation.cells import Cell
    from btdagg.evaluation.summary import Line

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
