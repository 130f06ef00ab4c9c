"""Scores of methods: what to use, and how they do by task, votes and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from btdagg.evaluation.scores import (
    averages,
    lines,
    lines_of,
    record,
)
from btdagg.report.table import Entry, ReportTable, Row
from btdagg.report.wording import (
    MISSING,
    basis_of_scores,
    fixed,
    not_evaluated,
    pvalue,
    swept_over,
    votes_of,
    with_error,
)

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.evaluation.cells import Cell, MethodComparison
    from btdagg.evaluation.scores import Line

LOWER_IS_BETTER = "Mean absolute error, lower is better"


def where(by: Sequence[str], key: Sequence[str]) -> dict[str, str]:
    """Values of the columns that votes are grouped by, by their names."""
    return dict(zip(by, key, strict=True))


def best_lines(lines: Sequence[Line]) -> list[Line]:
    """Lines of the lowest mean MAE; several where it is equal."""
    lowest = min(line.mae.mean for line in lines)
    return [line for line in lines if line.mae.mean == lowest]


def scores_table(scores: Scores) -> ReportTable:
    """Tabulate MAE, accuracy and rank of each method, by part and number of votes, and averages."""
    compared = scores.cells[0].comparison
    is_ranked = compared.tested is not None and len(compared.methods) > 1
    has_majority = compared.new_items is not None and compared.baseline is not None
    is_graded = not compared.scale.mirrored
    plain = f"less {_plain(compared)[0]}"
    less, more = [plain] if has_majority else [], ["kappa", "bias"] if is_graded else []
    columns = ("MAE", *less, "accuracy", *more, *(["rank"] if is_ranked else []))

    def rows() -> Iterator[Row]:
        for line in (*lines(scores), *averages(scores)):
            is_best, difference = is_ranked and line.rank == 1, line.mae_less_majority
            size = "" if line.n_items is None else str(line.n_items)
            cells: dict[str, str | Entry] = {
                "MAE": Entry(with_error(line.mae), is_best),
                plain: "" if difference is None else with_error(difference, signed=True),
                "accuracy": with_error(line.accuracy),
                "kappa": with_error(line.kappa),
                "bias": with_error(line.bias, signed=True),
                "rank": Entry("" if line.rank is None else str(line.rank), is_best),
            }
            yield Row(
                (*line.key, votes_of(line.n_votes), size, line.method),
                {column: cells[column] for column in columns},
                [line.as_dict(scores.by)],
            )

    labels = "label" if scores.n_calibration == "1" else "labels"
    how = (
        f"models calibrated on {scores.n_calibration} {labels} in each of {compared.n_splits} "
        "random splits; ±: half of the 95% interval of the mean over splits, not one for new items"
    )
    if compared.new_items is not None:
        how = (
            f"each item decided by models calibrated on {scores.n_calibration} other {labels}; "
            "±: half of the 95% interval for new items, or new groups of items"
        )
    ranked = f"rank: clusters by MAE; {compared.test.words}; " if is_ranked else ""
    return ReportTable.of_rows(
        "scores",
        "Error and accuracy of each method",
        ranked + how,
        (*scores.by, "votes", "items", "method"),
        rows(),
        columns,
    )


def pvalue_table(scores: Scores) -> ReportTable:
    """Tabulate the p-values of every two methods in every cell, of MAE and of accuracy."""

    def rows() -> Iterator[Row]:
        for cell in scores.cells:
            compared, tau = cell.comparison, cell.comparison.test.tau
            names = [method.name for method in compared.methods]
            for pair in combinations(range(len(names)), 2):
                mae, accuracy = (
                    float(ranking.pvalues[pair])
                    for ranking in (compared.mae_ranking, compared.accuracy_ranking)
                )
                method, other = (names[place] for place in pair)
                fields = {
                    "n_votes": cell.n_votes,
                    "method": method,
                    "other": other,
                    "mae_pvalue": mae,
                    "accuracy_pvalue": accuracy,
                }
                yield Row(
                    (*cell.key, votes_of(cell.n_votes), method, other),
                    {
                        "p (MAE)": Entry(pvalue(mae), mae < tau),
                        "p (accuracy)": Entry(pvalue(accuracy), accuracy < tau),
                    },
                    [record(where(scores.by, cell.key), fields)],
                )

    return ReportTable.of_rows(
        "pvalues",
        "P-values of every two methods",
        f"{_sentence(scores.cells[0].comparison.test.words)} Bold: below that level.",
        (*scores.by, "votes", "method", "other"),
        rows(),
        ("p (MAE)", "p (accuracy)"),
    )


def sweep_table(scores: Scores) -> ReportTable:
    """Tabulate MAE by the number of votes, or of labels calibrated on; records have accuracy too.

    Parameters
    ----------
    scores : Scores
        From `evaluate` at several numbers of votes, or from `sweep_calibration`.
    """
    swept = swept_over(scores)
    names = (swept.field, "method", "mae", "accuracy", "n_items", "n_calibration", "n_evaluation")

    def rows() -> Iterator[Row]:
        for key, cells in scores.by_key().items():
            by_point = [lines_of(cell) for cell in cells]
            best = [best_lines(lines) if len(lines) > 1 else [] for lines in by_point]
            for of_method in zip(*by_point, strict=True):
                fields = [line.fields(*names, "n_splits") for line in of_method]
                entries = {
                    str(of[swept.field]): Entry(with_error(line.mae), line in lowest)
                    for of, line, lowest in zip(fields, of_method, best, strict=True)
                }
                records = [record(where(scores.by, key), of) for of in fields]
                yield Row((*key, of_method[0].method), entries, records)

    points = sorted({point for sweep in scores.sweeps for point in sweep.points})
    over, error = basis_of_scores(scores)
    return ReportTable.of_rows(
        f"sweep-{swept.name}",
        f"Error by the number of {swept.words}",
        f"{LOWER_IS_BETTER}: means over {over}; {error}.{swept.note} Bold: the lowest of the "
        "methods." + not_evaluated(key for key, _ in scores.skipped),
        (*scores.by, "method"),
        rows(),
        map(str, points),
    )


# Of labels from -1 to 1, or as much of another scale: a fall of the error that is worth twice the
# votes; one that is not worth a word; and the half-width of an interval from which more labels are
# the first thing to get.
_WORTH, _NOTHING, _WIDE = 0.01, 0.003, 0.05


def answers_table(scores: Scores) -> ReportTable:
    """Say in a row for each part what to use, how good it is, and what would improve it.

    A part is decided by the model that is written, the first that is calibrated, or by majority
    vote, whichever has the lower mean absolute error at the largest number of votes; by another
    method where that is significantly better; or by a constant answer where none is better.
    """
    compared = scores.cells[0].comparison
    plain, vote, constants = _plain(compared)
    is_graded = not compared.scale.mirrored

    def rows() -> Iterator[Row]:
        parts = [(key, cells, _best(_most_voted(cells))) for key, cells in scores.by_key().items()]
        if is_graded:
            errors = {
                key: min(best.mae.mean, _most_voted(cells).comparison.best_constant[1])
                for key, cells, best in parts
            }
            parts.sort(key=lambda part: -errors[part[0]])
        for key, cells, best in parts:
            cell = _most_voted(cells)
            answer, error = cell.comparison.best_constant
            constant, beaten = cell.comparison.label_names[answer], best.mae.mean >= error
            use = f"always {constant}" if beaten else best.method
            advice = _advice(cells, cell, best, beaten=beaten)
            less = None if beaten else best.mae_less_majority
            fields = {
                **best.fields("n_votes", "n_items", "n_calibration", "method", "mae", "accuracy"),
                **best.fields(*(("kappa", "bias") if is_graded else ())),
                "use": use,
                "constant": constant,
                "mae_of_constant": error,
                "advice": advice,
            }
            yield Row(
                key or ("all items",),
                {
                    "use": Entry(use, True),
                    "MAE": fixed(error) if beaten else with_error(best.mae),
                    f"less {plain}": with_error(less, signed=True),
                    **({"kappa": with_error(best.kappa)} if is_graded else {}),
                    "labels": f"{cell.comparison.n_items:,}",
                    "votes": votes_of(cell.n_votes),
                    "what would improve it": advice,
                },
                [record(where(scores.by, key), fields)],
            )

    how = "on new items of a model calibrated on these labels"
    if compared.new_items is None:
        how = (
            f"of models calibrated on {scores.n_calibration} labels, over {compared.n_splits} "
            "random splits"
        )
    return ReportTable.of_rows(
        "answers",
        "What to use",
        f"Mean absolute error (MAE) {how}, at the largest number of votes. "
        f"{_sentence(basis_of_scores(scores).error)} Always {constants}: that constant answer is "
        f"no worse. Less {plain}: the difference to the error of {vote}."
        + (" Kappa is quadratic-weighted. The worst come first." if is_graded else "")
        + not_evaluated(key for key, _ in scores.skipped),
        scores.by or ("items",),
        rows(),
    )


def _plain(compared: MethodComparison) -> tuple[str, str, str]:
    """Return what the plain vote is called, short and long, and what constants are."""
    if compared.scale.mirrored:
        return "majority", "majority vote", "A, tie or B"
    return "mode", "the mode", "a grade"


def _most_voted(cells: Sequence[Cell]) -> Cell:
    return max(cells, key=lambda cell: cell.n_votes or 0)


def _best(cell: Cell) -> Line:
    """The model that is written or majority vote; a peer only where it is surely better."""
    lines, compared = lines_of(cell), cell.comparison
    lowest = min(lines, key=lambda line: line.mae.mean)
    usable = [
        lines[place] for place in (compared.calibrated, compared.baseline) if place is not None
    ]
    if not usable:
        return lowest
    best = min(usable, key=lambda line: line.mae.mean)
    return best if best.tied is not False else lowest


def _advice(cells: Sequence[Cell], cell: Cell, best: Line, *, beaten: bool) -> str:
    """What would lower the error, or narrow its interval."""
    if beaten:
        return "another judge or prompt: these votes add nothing to a constant answer"
    advice, labels = [], cell.comparison.methods[0].labels
    unit = (labels[-1] - labels[0]) / 2
    fewer = [other for other in cells if (other.n_votes or 0) < (cell.n_votes or 0)]
    if fewer:
        before = _most_voted(fewer)
        (same,) = (line for line in lines_of(before) if line.method == best.method)
        gain = same.mae.mean - best.mae.mean
        if gain >= _WORTH * unit:
            advice.append(
                f"more votes: {cell.n_votes} instead of {before.n_votes} took {gain:.3f} off the "
                "error"
            )
        elif gain <= _NOTHING * unit:
            advice.append(f"not more votes: {cell.n_votes} and {before.n_votes} err about alike")
    half = (best.mae.high - best.mae.low) / 2
    if cell.comparison.new_items is not None and half > _WIDE * unit:
        advice.append(f"more labels: four times as many would halve the ±{half:.3f}")
    return "; ".join(advice) or MISSING


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
