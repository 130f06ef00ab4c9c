"""Shares and win rates over all items; systems by their strengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.wording import MISSING, counted, fixed, pvalue

if TYPE_CHECKING:
    from btdagg.estimates import Estimates, SystemEstimates
    from btdagg.estimates.differences import Difference
    from btdagg.estimates.quantities import MeanEstimate
    from btdagg.estimates.systems import SystemEstimate
    from btdagg.model.intervals import ParameterInterval

_ALL = "all items"


def estimates_table(found: Estimates, by: str | None = None) -> ReportTable:
    """Tabulate estimates of all items, and of those with each value of a column.

    Parameters
    ----------
    found : Estimates
    by : str, optional
        Name of the column.
    """
    title, note = "Shares of labels and win rates", _note(found)
    if found.by:
        every = {_ALL: found.estimates, **{str(value): one for value, one in found.by.items()}}
        by = by or "value"
        return ReportTable.pivot("estimates", title, note, (by,), _by_value(every, by))

    def cells() -> Iterator[PivotCell]:
        for quantity, one in found.estimates.items():
            label, alone = (quantity,), one.labels_only
            record = {"quantity": quantity, **fields_of(one)}
            yield PivotCell(label, "estimate", _number(one.value), True, record)
            yield PivotCell(label, "interval", interval_of(one))
            if alone is not None:
                yield PivotCell(label, "labels alone", _number(alone.value))
                yield PivotCell(label, "their interval", interval_of(alone))
            yield PivotCell(label, "worth in labels", _worth(one))

    return ReportTable.pivot("estimates", title, note, ("of",), cells())


def _by_value(every: Mapping[str, Mapping[str, MeanEstimate]], by: str) -> Iterator[PivotCell]:
    for value, estimates in every.items():
        for quantity, one in estimates.items():
            if quantity == "win rate":  # that is half of one more than the net win rate
                continue
            record = {by: value, "quantity": quantity, **fields_of(one)}
            text = f"{_number(one.value)} ({interval_of(one)})"
            yield PivotCell((value,), quantity, text, record=record)
        yield PivotCell((value,), "worth in labels", _worth(estimates["net win rate"]))


def _note(found: Estimates) -> str:
    groups = "" if found.n_groups == found.n_labels else f" in {counted(found.n_groups, 'group')}"
    of_net = " (of the net win rate)" if found.by else ""
    return (
        f"{counted(found.n_items, 'item')}, {found.n_labels:,} of them with a label{groups}. "
        f"{100 * found.level:.3g}% intervals for new items of the kind, whatever the judge is "
        "worth. Net win rate: A less B; win rate: ties as half. Worth in labels: how many labels "
        f"alone would give an interval as narrow{of_net}."
    )


def differences_table(found: Estimates, by: str) -> ReportTable | None:
    """Tabulate differences of net win rates; None where no two values have enough labels."""
    if not found.differences:
        return None

    def cells() -> Iterator[PivotCell]:
        for (first, second), of in found.differences.items():
            label = (str(first), str(second))
            one = of["net win rate"]
            record = {by: first, f"less_{by}": second, **difference_fields(one)}
            yield PivotCell(label, "difference", fixed(one.value, signed=True), True, record)
            shown = f"{fixed(one.low, signed=True)} to {fixed(one.high, signed=True)}"
            yield PivotCell(label, "interval", shown)
            p = MISSING if math.isnan(one.pvalue) else pvalue(one.pvalue)
            yield PivotCell(label, "p", p)

    return ReportTable.pivot(
        "differences",
        f"Differences of net win rates by {by}",
        f"Of every two values of {by}. The {100 * found.level:.3g}% intervals hold together, and p "
        "is corrected for the number of pairs (Holm).",
        (by, "less"),
        cells(),
    )


def fields_of(one: MeanEstimate) -> dict[str, object]:
    """Return the numbers of an estimate in full precision; what is not known is None."""
    found = _known(one, "value", "low", "high", "standard_error", "effective_labels")
    if one.labels_only is None:
        return found
    alone = fields_of(one.labels_only)
    return {
        **found,
        "weight": one.weight,
        **{f"labels_only_{name}": value for name, value in alone.items()},
    }


def difference_fields(one: Difference) -> dict[str, object]:
    """Return the numbers of a difference in full precision; what is not known is None."""
    return _known(one, "value", "low", "high", "standard_error", "pvalue")


def _known(one: object, *names: str) -> dict[str, object]:
    values = {name: getattr(one, name) for name in names}
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def interval_of(one: MeanEstimate) -> str:
    """Return both ends of an interval as text."""
    return f"{fixed(one.low)} to {fixed(one.high)}"


def _number(value: float) -> str:
    return MISSING if math.isnan(value) else fixed(value)


def _worth(one: MeanEstimate) -> str:
    return MISSING if math.isnan(one.effective_labels) else f"{one.effective_labels:,.0f}"


def systems_table(found: SystemEstimates) -> ReportTable:
    """Tabulate systems from the strongest to the weakest."""

    def cells() -> Iterator[PivotCell]:
        for name, one in found.systems.items():
            label, rate = (str(name),), one.win_rate
            yield PivotCell(label, "rank", str(one.rank), record=system_fields(str(name), one))
            yield PivotCell(label, "items", f"{one.n_items:,}")
            yield PivotCell(label, "labels", f"{one.n_labels:,}")
            shown = MISSING if rate is None or math.isnan(rate.value) else str(rate)
            yield PivotCell(label, "win rate", shown)
            yield PivotCell(label, "strength", _interval(one.strength))

    against = "" if found.baseline is None else f" against {found.baseline}"
    return ReportTable.pivot(
        "systems",
        "Systems by strength",
        f"{counted(found.n_items, 'item')}, {found.n_labels:,} of them with a label. Win rate"
        f"{against}: ties as half, over the items of the system. Strength: log odds of a win by "
        "the Davidson model, which allows for opponents; tie parameter "
        f"{fixed(found.tie_parameter.estimate)}. Systems of one rank cannot be told apart. "
        f"{100 * found.level:.3g}% intervals.",
        ("system",),
        cells(),
    )


def system_fields(name: str, one: SystemEstimate) -> dict[str, Any]:
    """Return the numbers of a system in full precision; what is not known is None."""
    low, high = (None if math.isnan(end) else end for end in (one.strength.low, one.strength.high))
    rate = {} if one.win_rate is None else fields_of(one.win_rate)
    return {
        "system": name,
        "rank": one.rank,
        "is_tied": one.is_tied,
        "n_items": one.n_items,
        "n_labels": one.n_labels,
        "strength": one.strength.estimate,
        "strength_low": low,
        "strength_high": high,
        **{f"win_rate_{field}": value for field, value in rate.items()},
    }


def _interval(one: ParameterInterval) -> str:
    if math.isnan(one.low) or one.low == one.high:
        return fixed(one.estimate, signed=True)
    ends = f"{fixed(one.low, signed=True)} to {fixed(one.high, signed=True)}"
    return f"{fixed(one.estimate, signed=True)} ({ends})"
