"""The table of positional bias."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.evaluation.summary import record, spread
from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.tables.common import where
from btdagg.report.wording import (
    MISSING,
    key_of,
    percent,
    percent_with_error,
)

if TYPE_CHECKING:
    from btdagg.evaluation.bias import PositionalBias

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

    Raises
    ------
    InputError
        If there are none, or keys have another length than `by`.

    References
    ----------
    The paper's table of positional bias.
    """
    if not found:
        raise InputError("found is empty, expected at least one")
    for one in found:
        if len(one.key) != len(by):
            raise InputError(f"by is {list(by)}, and a key has {len(one.key)}: {one.key}")
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
