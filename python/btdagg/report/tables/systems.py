"""Systems by their strengths."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.tables.estimates import fields_of
from btdagg.report.wording import MISSING, counted, fixed

if TYPE_CHECKING:
    from btdagg.estimates import SystemEstimates
    from btdagg.estimates.systems import SystemEstimate
    from btdagg.model.intervals import ParameterInterval


def systems_table(found: SystemEstimates) -> ReportTable:
    """Tabulate systems from the strongest to the weakest.

    Parameters
    ----------
    found : SystemEstimates
    """

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
