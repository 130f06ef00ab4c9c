"""Scores of methods: what to use, and how they do by task, votes and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from btdagg._util.wording import MISSING, fixed, pvalue
from btdagg.evaluation.scores import most_voted
from btdagg.report.table import Entry, ReportTable, Row
from btdagg.report.wording import basis_of, not_evaluated, swept_over, votes_of, with_error

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.evaluation.cells import Cell

Line = Mapping[str, Any]
"""What a table has of a method in a cell, by name; see `Cell.lines`."""

LOWER_IS_BETTER = "Mean absolute error, lower is better"


def best_lines(lines: Sequence[Line]) -> list[Line]:
    """Lines of the lowest mean MAE; several where it is equal."""
    lowest = min(line["mae"].mean for line in lines)
    return [line for line in lines if line["mae"].mean == lowest]


def scores_table(scores: Scores) -> ReportTable:
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
            "±: half of the 95% interval for new items, or new groups of items"
        )
    if is_ranked:
        how = f"rank: clusters by MAE; {cell.tested.words}; {how}"
    return ReportTable.of_rows(
        "scores",
        "Error and accuracy of each method",
        how,
        (*scores.by, "votes", "items", "method"),
        rows(),
        columns,
    )


def pvalue_table(scores: Scores) -> ReportTable:
    """Tabulate the p-values of every two methods in every cell, of MAE and of accuracy."""
    titles, test = {"mae": "p (MAE)", "accuracy": "p (accuracy)"}, scores.cells[0].tested

    def rows() -> Iterator[Row]:
        for cell in scores.cells:
            for pair in combinations(range(len(cell.methods)), 2):
                p = {name: float(of.pvalues[pair]) for name, of in cell.rankings.items()}
                method, other = (cell.methods[place].name for place in pair)
                line: dict[str, Any] = {"n_votes": cell.n_votes, "method": method, "other": other}
                line |= {f"{name}_pvalue": of for name, of in p.items()}
                yield Row(
                    (*cell.key, votes_of(cell.n_votes), method, other),
                    {titles[name]: Entry(pvalue(of), of < test.tau) for name, of in p.items()},
                    [scores.record({"key": cell.key, **line}, list(line))],
                )

    return ReportTable.of_rows(
        "pvalues",
        "P-values of all pairs of methods",
        f"{_sentence(test.words)} Bold: below that level.",
        (*scores.by, "votes", "method", "other"),
        rows(),
        titles.values(),
    )


def sweep_table(scores: Scores) -> ReportTable:
    """Tabulate MAE by the number of votes, or of labels; records have accuracy too."""
    swept = swept_over(scores)
    names = (swept.field, "method", "mae", "accuracy", "n_items", "n_calibration", "n_evaluation")

    def rows() -> Iterator[Row]:
        for key, cells in scores.by_key().items():
            best = [best_lines(cell.lines) if len(cell.methods) > 1 else [] for cell in cells]
            for of_method in zip(*(cell.lines for cell in cells), strict=True):
                entries = {
                    str(line[swept.field]): Entry(with_error(line["mae"]), line in lowest)
                    for line, lowest in zip(of_method, best, strict=True)
                }
                records = [scores.record(line, (*names, "n_splits")) for line in of_method]
                yield Row((*key, of_method[0]["method"]), entries, records)

    points = sorted({cell.point for cell in scores.cells if cell.point is not None})
    over, error = basis_of(scores.cells)
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
    return ReportTable.of_rows(
        "answers",
        "What to use",
        f"Mean absolute error (MAE) {how}, at the largest number of votes. "
        f"{_sentence(basis_of(scores.cells).error)} {difference_column}: the difference of the "
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


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
