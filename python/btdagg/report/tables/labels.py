"""Gold against predicted labels, and how much judges favour the response shown first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from btdagg.evaluation.summary import record, spread
from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.tables.scores import evaluated_on, where
from btdagg.report.wording import (
    LABEL_NAMES,
    MISSING,
    fixed,
    key_of,
    percent,
    percent_with_error,
)

if TYPE_CHECKING:
    from btdagg.evaluation import Comparison, LabelledItems
    from btdagg.evaluation.bias import PositionalBias


def confusion_table(found: Mapping[str, Comparison]) -> ReportTable:
    """Tabulate, for each task, method and gold label, how often each label is predicted."""

    def cells() -> Iterator[PivotCell]:
        for task, comparison in found.items():
            for number, method in enumerate(comparison.methods):
                counts, percentages = method.counts.tolist(), method.percentages.tolist()
                for gold, predicted in product(range(3), repeat=2):
                    label = (task, method.name, LABEL_NAMES[gold])
                    count, share = counts[gold][predicted], percentages[gold][predicted]
                    record = {
                        "task": task,
                        "method": method.name,
                        "gold": gold - 1,
                        "predicted": predicted - 1,
                        "count": count,
                        "percent_of_gold": share,
                        "n_splits": comparison.n_splits,
                    }
                    text = f"{count:,.0f} ({fixed(share, 1)}%)" if math.isfinite(share) else MISSING
                    column = f"predicted {LABEL_NAMES[predicted]}"
                    yield PivotCell(label, column, text, gold == predicted, record, number)
                    if predicted == 2:
                        yield PivotCell(label, "items", f"{sum(counts[gold]):,.0f}", place=number)

    return ReportTable.pivot(
        "confusion",
        "Confusion matrices",
        "Items of the evaluation set with the gold label of the row that are given the label of "
        f"the column: mean over {evaluated_on([*found.values()])}, and percent of the row. Bold: "
        "correct.",
        ("task", "method", "gold"),
        cells(),
    )


def distribution_table(found: Mapping[str, Comparison]) -> ReportTable:
    """Tabulate, for each task, how often each label is gold, and how often methods give it."""

    def cells() -> Iterator[PivotCell]:
        for task, comparison in found.items():
            methods = comparison.methods
            # Of the same items, so that counts of all methods have one total.
            sources = [("gold", comparison.gold, methods[0].counts.sum(axis=1))]
            sources += [(m.name, m.predicted, m.counts.sum(axis=0)) for m in methods]
            for number, (source, shares, counts) in enumerate(sources):
                for label, (name, count) in enumerate(
                    zip(LABEL_NAMES, counts.tolist(), strict=True)
                ):
                    record = {
                        "task": task,
                        "source": "method" if number else "gold",
                        "method": source if number else None,
                        "label": label - 1,
                        "count": count,
                        "share": float(shares[label]),
                        "n_splits": comparison.n_splits,
                    }
                    yield PivotCell((task, source), name, f"{count:,.0f}", False, record, number)
                yield from _percentages((task, source), shares.tolist(), number)

    return ReportTable.pivot(
        "labels",
        "Label distributions",
        f"Items of the evaluation set by label: means over {evaluated_on([*found.values()])}.",
        ("task", "labels"),
        cells(),
    )


def gold_table(tasks: Mapping[str, LabelledItems]) -> ReportTable:
    """Tabulate the gold labels of every task."""

    def cells() -> Iterator[PivotCell]:
        for task, items in tasks.items():
            counts = np.bincount(items.labels + 1, minlength=3).tolist()
            shares = [count / len(items) for count in counts]
            yield PivotCell((task,), "items", str(len(items)))
            for label, name in enumerate(LABEL_NAMES):
                own = {"label": label - 1, "count": counts[label], "share": shares[label]}
                yield PivotCell((task,), name, str(counts[label]), False, {"task": task, **own})
            yield from _percentages((task,), shares)

    return ReportTable.pivot(
        "gold-labels",
        "Gold labels",
        "Labelled items that have votes, by gold label.",
        ("task",),
        cells(),
    )


def _percentages(
    label: tuple[str, ...], shares: list[float], place: int = 0
) -> Iterator[PivotCell]:
    for name, share in zip(LABEL_NAMES, shares, strict=True):
        yield PivotCell(label, f"{name} (%)", percent(share), place=place)


# Share of the votes of the other order below which a positional bias is worth a word of caution.
_EVEN = 0.5


def positional_bias_table(
    found: Sequence[PositionalBias], by: Sequence[str] = ("judge",), setting: str = "setting"
) -> ReportTable:
    """Tabulate votes for the response that is shown first, for the second, and the bias.

    Parameters
    ----------
    found : sequence of PositionalBias
    by : sequence of str
        Names of the columns that were gone by.
    setting : str
        Name of the column that tells forced choice from ties allowed, if there was one.
    """
    with_setting = any(one.setting is not None for one in found)
    columns = (*by, *([setting] if with_setting else []))

    def cells() -> Iterator[PivotCell]:
        for place, one in enumerate(found):
            key = (*one.key, *([one.setting or MISSING] if with_setting else []))
            bias = percent_with_error(one.interval, signed=True)
            if one.interval is None and one.bias is not None:
                bias = percent(one.bias, signed=True)
            clear = one.interval is not None and not one.interval.low <= 0 <= one.interval.high
            names = ("first", "second", "tie", "n_missing", "n_ab", "n_ba", "n_items")
            fields = {name: getattr(one, name) for name in names}
            fields |= {**spread("bias", one.interval), "bias": one.bias}
            own = {setting: one.setting} if with_setting else {}
            for name in ("first", "second", "tie", "n_items"):
                column = "items" if name == "n_items" else name
                yield PivotCell(key or ("all",), column, f"{fields[name]:,}", place=place)
            whole = record({**where(by, one.key), **own}, fields)
            yield PivotCell(key or ("all",), "bias", bias, clear, whole, place)

    return ReportTable.pivot(
        "positional-bias",
        "Positional bias",
        "Votes for the response shown first, for the one shown second, and ties. Bias: (first - "
        "second) / (first + second), above 0 where the first is favoured; ± is half of its 95% "
        "interval over items. Bold: the interval does not hold 0." + _lopsided(found, setting),
        columns or ("votes",),
        cells(),
    )


def _lopsided(found: Sequence[PositionalBias], setting: str) -> str:
    """Say where the bias is mixed with how much better a response is, as the end of a note."""
    uneven = [one for one in found if min(one.n_ab, one.n_ba) < _EVEN * max(one.n_ab, one.n_ba)]
    if not uneven:
        return ""
    listed = "; ".join(
        f"{key_of((*one.key, *([] if one.setting is None else [f'{setting} {one.setting}'])))}: "
        f"{one.n_ab:,} with A first, {one.n_ba:,} with B first"
        for one in uneven
    )
    return (
        " Where most votes or all are of one order, the bias cannot be told from how much better "
        f"that response is ({listed})."
    )
