"""Tables of evaluations beside the scores: p-values, sweeps and positional bias."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from btdagg._util.errors import forbid
from btdagg._util.wording import percent, pvalue
from btdagg.evaluation.scores import best_lines
from btdagg.evaluation.wording import (
    basis_of,
    capitalised,
    key_of,
    not_evaluated,
    record,
    spread,
    votes_of,
    with_error,
)
from btdagg.result import Entry, ResultTable, Row

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.evaluation.bias import PositionalBias

LOWER_IS_BETTER = "Mean absolute error, lower is better"


def pvalue_table(scores: Scores) -> ResultTable:
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

    return ResultTable.of_rows(
        "pvalues",
        "P-values of all pairs of methods",
        f"{capitalised(test.words)} Bold: below that level.",
        (*scores.by, "votes", "method", "other"),
        rows(),
        titles.values(),
    )


def sweep_table(scores: Scores) -> ResultTable:
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
    return ResultTable.of_rows(
        f"sweep-{swept.name}",
        f"Error by the number of {swept.words}",
        f"{LOWER_IS_BETTER}: means over {over}; {error}.{swept.note} Bold: the lowest of the "
        "methods." + not_evaluated(key for key, _ in scores.skipped),
        (*scores.by, "method"),
        rows(),
        map(str, points),
    )


# Share of the votes of the other order below which a positional bias is worth a word of caution.
_EVEN = 0.5


def positional_bias_table(
    biases: Sequence[PositionalBias], by: Sequence[str] = ("judge",)
) -> ResultTable:
    """Tabulate votes for the first and second response shown, and the bias, per value of `by`."""

    def rows() -> Iterator[Row]:
        for bias in biases:
            interval = bias.interval
            text = with_error(interval, signed=True, in_percent=True)
            if interval is None and bias.bias is not None:
                text = percent(bias.bias, signed=True)
            clear = interval is not None and not interval.low <= 0 <= interval.high
            names = ("first", "second", "tie", "n_missing", "n_ab", "n_ba", "n_items")
            fields = {name: getattr(bias, name) for name in names}
            fields |= {**spread("bias", interval), "bias": bias.bias}
            cells: dict[str, str | Entry] = {
                name.removeprefix("n_"): f"{fields[name]:,}"
                for name in ("first", "second", "tie", "n_items")
            }
            yield Row(
                bias.key or ("all",),
                {**cells, "bias": Entry(text, clear)},
                [record(dict(zip(by, bias.key, strict=True)), fields)],
            )

    return ResultTable.of_rows(
        "positional-bias",
        "Positional bias",
        "Votes for the response shown first, for the one shown second, and ties. Bias: (first - "
        "second) / (first + second), above 0 if the first is favoured; ± is half of its 95% "
        "interval over items. Bold: the interval excludes 0." + _lopsided(biases),
        tuple(by) or ("votes",),
        rows(),
    )


def _lopsided(biases: Sequence[PositionalBias]) -> str:
    """Say where the bias is mixed with how much better a response is, as the end of a note."""
    listed = "; ".join(
        f"{key_of(bias.key)}: {bias.n_ab:,} with A first, {bias.n_ba:,} with B first"
        for bias in biases
        if min(bias.n_ab, bias.n_ba) < _EVEN * max(bias.n_ab, bias.n_ba)
    )
    if not listed:
        return ""
    return (
        " If all or most votes are in one order, the bias cannot be told apart from the quality "
        f"of the responses shown first ({listed})."
    )


class SweptOver(NamedTuple):
    """The quantity of a sweep: its stem, its field, in words, on an axis, and what to add."""

    name: str
    field: str
    words: str
    axis: str
    note: str


def swept_over(scores: Scores) -> SweptOver:
    """Say what a sweep goes over: the number of votes, or of labels."""
    forbid(not scores.cells, "there is no sweep: nothing could be evaluated")
    if scores.cells[0].n_labels is None:
        return SweptOver("votes", "n_votes", "votes", "votes per item", "")
    same = " Every number is evaluated on the same items."
    what = "labels calibrated on"
    return SweptOver("calibration", "n_labels", what, what, same)
