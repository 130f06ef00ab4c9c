"""What several builders of tables share."""

from __future__ import annotations

from collections.abc import Sequence


def where(by: Sequence[str], key: Sequence[str]) -> dict[str, str]:
    """Values of the columns that votes are grouped by, by their names."""
    return dict(zip(by, key, strict=True))


def splits_of(several: Sequence[int]) -> str:
    """Say over how many splits means are."""
    low, high = min(several), max(several)
    return f"{low} random splits" if low == high else f"{low} to {high} random splits"
