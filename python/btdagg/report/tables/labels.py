"""Gold against predicted labels, and how much judges favour the response shown first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg.evaluation.scores import record, spread
from btdagg.report.table import Entry, ReportTable, Row
from btdagg.report.tables.scores import where
from btdagg.report.wording import (
    LABEL_NAMES,
    MISSING,
    basis_of,
    key_of,
    percent,
    percent_with_error,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation import MethodComparison
    from btdagg.evaluation.bias import PositionalBias


def distribution_table(comparisons: Mapping[str, MethodComparison]) -> ReportTable:
    """Tabulate, for each task, how often each label is gold, and how often methods give it."""

    def rows() -> Iterator[Row]:
        for task, comparison in comparisons.items():
            methods = comparison.methods
            # Of the same items, so that counts of all methods have one total.
            sources = [("gold", comparison.gold, methods[0].counts.sum(axis=1))]
            sources += [(m.name, m.predicted, m.counts.sum(axis=0)) for m in methods]
            for number, (source, shares, counts) in enumerate(sources):
                own = {
                    "task": task,
                    "source": "method" if number else "gold",
                    "method": source if number else None,
                    "n_splits": comparison.n_splits,
                }
                yield Row((task, source), *_by_label(counts, shares, own))

    over = basis_of(comparisons.values()).over
    return ReportTable.of_rows(
        "labels",
        "Label distributions",
        f"Items of the evaluation set by label: means over {over}.",
        ("task", "labels"),
        rows(),
    )


def _by_label(
    counts: NDArray[Any], shares: NDArray[np.float64], own: Mapping[str, object]
) -> tuple[dict[str, str], list[dict[str, object]]]:
    """Cells of counts and percentages by label, and their records."""
    cells = {name: f"{count:,.0f}" for name, count in zip(LABEL_NAMES, counts, strict=True)}
    for name, share in zip(LABEL_NAMES, shares, strict=True):
        cells[f"{name} (%)"] = percent(share)
    numbers = zip((-1, 0, 1), counts.tolist(), shares.tolist(), strict=True)
    return cells, [
        {**own, "label": label, "count": count, "share": share} for label, count, share in numbers
    ]


# Share of the votes of the other order below which a positional bias is worth a word of caution.
_EVEN = 0.5


def positional_bias_table(
    biases: Sequence[PositionalBias], by: Sequence[str] = ("judge",), setting: str = "setting"
) -> ReportTable:
    """Tabulate votes for the response that is shown first, for the second, and the bias.

    Parameters
    ----------
    biases : sequence of PositionalBias
    by : sequence of str
        Names of the columns that votes are grouped by.
    setting : str
        Name of the column that tells forced choice from ties allowed, if there was one.
    """
    with_setting = any(bias.setting is not None for bias in biases)
    columns = (*by, *([setting] if with_setting else []))

    def rows() -> Iterator[Row]:
        for bias in biases:
            key = (*bias.key, *([bias.setting or MISSING] if with_setting else []))
            interval = bias.interval
            text = percent_with_error(interval, signed=True)
            if interval is None and bias.bias is not None:
                text = percent(bias.bias, signed=True)
            clear = interval is not None and not interval.low <= 0 <= interval.high
            names = ("first", "second", "tie", "n_missing", "n_ab", "n_ba", "n_items")
            fields = {name: getattr(bias, name) for name in names}
            fields |= {**spread("bias", interval), "bias": bias.bias}
            own = {setting: bias.setting} if with_setting else {}
            cells: dict[str, str | Entry] = {
                name.removeprefix("n_"): f"{fields[name]:,}"
                for name in ("first", "second", "tie", "n_items")
            }
            yield Row(
                key or ("all",),
                {**cells, "bias": Entry(text, clear)},
                [record({**where(by, bias.key), **own}, fields)],
            )

    return ReportTable.of_rows(
        "positional-bias",
        "Positional bias",
        "Votes for the response shown first, for the one shown second, and ties. Bias: (first - "
        "second) / (first + second), above 0 where the first is favoured; ± is half of its 95% "
        "interval over items. Bold: the interval does not hold 0." + _lopsided(biases, setting),
        columns or ("votes",),
        rows(),
    )


def _lopsided(biases: Sequence[PositionalBias], setting: str) -> str:
    """Say where the bias is mixed with how much better a response is, as the end of a note."""
    listed = "; ".join(
        f"{key_of((*bias.key, *([] if bias.setting is None else [f'{setting} {bias.setting}'])))}: "
        f"{bias.n_ab:,} with A first, {bias.n_ba:,} with B first"
        for bias in biases
        if min(bias.n_ab, bias.n_ba) < _EVEN * max(bias.n_ab, bias.n_ba)
    )
    if not listed:
        return ""
    return (
        " Where most votes or all are of one order, the bias cannot be told from how much better "
        f"that response is ({listed})."
    )
