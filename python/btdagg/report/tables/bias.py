"""Biases of judges: the response shown first, a covariate, a system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from btdagg._util.wording import percent, pvalue
from btdagg.evaluation.scores import record, spread
from btdagg.report.table import Entry, ReportTable, Row
from btdagg.report.wording import key_of, with_error

if TYPE_CHECKING:
    from btdagg.estimates.judge_bias import JudgeBias
    from btdagg.evaluation.bias import PositionalBias


# Share of the votes of the other order below which a positional bias is worth a word of caution.
_EVEN = 0.5


def positional_bias_table(
    biases: Sequence[PositionalBias], by: Sequence[str] = ("judge",)
) -> ReportTable:
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

    return ReportTable.of_rows(
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


def judge_bias_table(found: JudgeBias) -> ReportTable:
    """Tabulate what people and the judge give for covariates and systems."""

    def rows() -> Iterator[Row]:
        for bias in (*found.covariates, *found.systems):
            step = f"a response {bias.step}" if bias.step else bias.of
            numbers = {name: getattr(bias, name) for name in ("people", "judge", "difference")}
            cells: dict[str, str | Entry] = {
                name: found.said(slope, signed=bool(bias.step) or name == "difference")
                for name, slope in numbers.items()
            }
            cells["difference"] = Entry(str(cells["difference"]), bias.finding != "not told")
            cells |= {"p": pvalue(bias.pvalue), "finding": bias.finding}
            yield Row((step,), cells, [bias.as_dict()])

    together = " together" if max(len(found.covariates), len(found.systems)) > 1 else ""
    note = (
        f"In {found.units}: for a covariate the slope, for a system the score of its responses, "
        f"on {found.n_labels:,} labelled items. {100 * found.level:.3g}% intervals{together}; "
        "bold: the interval of the difference excludes 0. More or less strongly: the same "
        "direction as people, as with any judge that is merely more or less decisive."
    )
    return ReportTable.of_rows("bias", "The judge compared with people", note, ("of",), rows())
