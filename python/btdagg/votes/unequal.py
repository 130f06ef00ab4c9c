"""How many votes items have, and a remark where one model cannot serve all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.wording import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.votes.items import Items

# Numbers of votes that differ from the usual one by less than a third are nearly equal.
_NEAR = 4 / 3
_FEW = 0.05  # share of the items that may have other numbers of votes
_LISTED = 6


class UnequalVotes(str):
    """A remark on items with unequal numbers of votes; nearly all have `n_votes` or more."""

    __slots__ = ("n_votes",)

    n_votes: int

    @classmethod
    def of(cls, counts: Any, weights: ArrayLike | None = None) -> UnequalVotes | None:
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
        n_votes = int(values[np.searchsorted(below, _FEW, side="right")])
        remark = cls(
            f"items have unequal numbers of votes: {_listed(values, np.bincount(place))}. A model "
            "serves one number of votes, and errs more where it has to serve several: with "
            f"n_votes={n_votes} no item counts more than its first {counted(n_votes, 'vote')}"
        )
        remark.n_votes = n_votes
        return remark

    @classmethod
    def among(cls, items: Items) -> tuple[UnequalVotes, ...]:
        """Return the remark on items, if there is one."""
        remark = None if items.judges else cls.of(items.votes)
        return () if remark is None else (remark,)

    def within(self, where: str) -> UnequalVotes:
        """Return the remark on a part."""
        remark = type(self)(where + self)
        remark.n_votes = self.n_votes
        return remark

    @property
    def in_options(self) -> str:
        """The remark as a command words it."""
        return self.replace("n_votes=", "-n ")


def _listed(values: NDArray[np.int64], numbers: NDArray[np.int64]) -> str:
    if len(values) > _LISTED:
        usual = numbers.argmax()
        return (
            f"{values[0]:,} to {values[-1]:,}, most often {values[usual]:,} "
            f"({numbers[usual]:,} of {numbers.sum():,} items)"
        )
    first, *rest = zip(values.tolist(), numbers.tolist(), strict=True)
    texts = [f"{first[1]:,} {'item has' if first[1] == 1 else 'items have'} {first[0]:,}"]
    return ", ".join([*texts, *(f"{number:,} have {value:,}" for value, number in rest)])
