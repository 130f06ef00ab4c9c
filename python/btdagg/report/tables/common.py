"""What several builders of tables share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from btdagg.report.table import Entry

if TYPE_CHECKING:
    from btdagg.evaluation import Interval

Record = dict[str, object]
Key = tuple[str, ...]


def plain(*texts: str) -> tuple[Entry, ...]:
    """Cells that do not stand out."""
    return tuple(Entry(text) for text in texts)


def spread(name: str, interval: Interval | None) -> Record:
    """Fields of a record for a mean and its interval."""
    low, mean, high = (
        (None, None, None)
        if interval is None
        else (
            interval.low,
            interval.mean,
            interval.high,
        )
    )
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def where(by: Sequence[str], key: Sequence[str]) -> dict[str, str]:
    """Values of the columns that a result goes by, by their names."""
    return dict(zip(by, key, strict=True))


def least(values: Mapping[str, float]) -> set[str]:
    """Names of the lowest of some values; several where they are equal."""
    lowest = min(values.values())
    return {name for name, value in values.items() if value == lowest}


def splits_of(several: Sequence[int]) -> str:
    """Say over how many splits means are."""
    low, high = min(several), max(several)
    return f"{low} random splits" if low == high else f"{low} to {high} random splits"
