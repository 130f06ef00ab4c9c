"""A remark where one model cannot serve the numbers of votes of all items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import remarks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from btdagg.remarks import Remark
    from btdagg.votes.items import Items

# Numbers of votes that differ from the usual one by less than a third are nearly equal.
_NEAR = 4 / 3
_FEW = 0.05  # share of the items that may have other numbers of votes


def unequal_votes(counts: Any, weights: ArrayLike | None = None) -> Remark | None:
    """Return the remark on (n, J) counts, or None where nearly all items have as many votes.

    A panel has a model for each judge, and no remark.
    """
    counts = np.asarray(counts)
    if counts.ndim != 2:
        return None
    numbers = np.rint(counts.sum(axis=1)).astype(np.int64)
    worth = np.ones(len(numbers))
    if weights is not None:
        worth = np.asarray(weights, dtype=np.float64).reshape(len(numbers), -1).sum(axis=1)
    numbers, worth = numbers[numbers > 0], worth[numbers > 0]
    values, place = np.unique(numbers, return_inverse=True)
    shares = np.bincount(place, worth) / max(worth.sum(), 1e-300)
    if len(values) < 2 or not worth.any():
        return None
    below = shares.cumsum()
    usual = values[np.searchsorted(below, 0.5)]
    is_near = (values * _NEAR > usual) & (values < _NEAR * usual)
    if shares[~is_near].sum() <= _FEW:
        return None
    items = dict(zip(values.tolist(), np.bincount(place).tolist(), strict=True))
    return remarks.unequal_votes(items, int(values[np.searchsorted(below, _FEW, side="right")]))


def unequal_votes_of(items: Items) -> tuple[Remark, ...]:
    """Return the remark on items, if there is one."""
    remark = None if items.judges else unequal_votes(items.votes)
    return () if remark is None else (remark,)
