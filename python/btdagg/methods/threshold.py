"""A threshold on the absolute mean vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from btdagg._core import InputError
from btdagg.methods.means import labelled_means, mean_votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Threshold:
    """The side of the mean vote where it is beyond a threshold, else a tie.

    The threshold has the least absolute error on the calibration set, among those midway between
    neighbouring absolute mean votes and at the ends; of several it is the middle one. Swapping A
    and B mirrors every label. The name is frozen; `fit` sets `threshold`.
    """

    name: str = "threshold"
    threshold: float | None = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, 3) counts and (n,) labels and return itself.

        Raises
        ------
        InputError
            If shapes disagree, there are no items, or a value is out of range.
        """
        means, gold = labelled_means(counts, labels)
        # From a threshold to the next, items in between become ties: one pass in their order.
        sizes, place = np.unique(np.append(np.abs(means), [0.0, 1.0]), return_inverse=True)
        as_tie, as_side = np.abs(gold), np.abs(gold - np.sign(means))
        gained = np.bincount(place[:-2], weights=as_tie - as_side, minlength=len(sizes))
        errors = np.cumsum(gained)  # of calling ties all that are no larger, up to a constant
        (best,) = np.nonzero(errors == errors.min())
        number = int(best[len(best) // 2])
        above = sizes[number + 1] if number + 1 < len(sizes) else sizes[number]
        object.__setattr__(self, "threshold", float(sizes[number] + above) / 2)
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,).

        Raises
        ------
        InputError
            If it is not fitted, or a count is not a non-negative integer.
        """
        if self.threshold is None:
            raise InputError("threshold is not fitted: call fit with labelled counts first")
        means = mean_votes(counts)
        return np.where(np.abs(means) > self.threshold, np.sign(means), 0).astype(np.int8)
