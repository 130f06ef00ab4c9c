"""The mean vote, cut by a threshold or calibrated by isotonic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from btdagg._util.validation import as_checked_counts
from btdagg.methods.base import not_fitted
from btdagg.votes.join import labelled_items

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike, NDArray

# Block means that should be one half may miss it by a rounding error.
_ROUNDING = 1e-9


def _mean_votes(counts: ArrayLike) -> NDArray[np.float64]:
    """Return the mean vote of each item, (n,); 0 of one without votes."""
    minus, tie, plus = as_checked_counts(counts).T.astype(np.float64)
    total = minus + tie + plus
    return np.asarray((plus - minus) / np.where(total > 0, total, 1))


def isotonic_points(
    means: NDArray[np.float64], labels: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return distinct mean votes, and the isotonic regression of labels on them."""
    from scipy.optimize import isotonic_regression

    values, place, number = np.unique(means, return_inverse=True, return_counts=True)
    expected = np.bincount(place.reshape(-1), labels) / number
    return values, isotonic_regression(expected, weights=number.astype(np.float64)).x


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
        """Fit to (n, 3) counts and (n,) labels and return itself."""
        items, gold = labelled_items(counts, labels)
        means = _mean_votes(items)
        # From a threshold to the next, items in between become ties: one pass in their order.
        sizes, place = np.unique(np.append(np.abs(means), [0.0, 1.0]), return_inverse=True)
        as_tie, as_side = np.abs(gold), np.abs(gold - np.sign(means))
        gained = np.bincount(place[:-2], weights=as_tie - as_side, minlength=len(sizes))
        errors = np.cumsum(gained)  # of calling ties all that are no larger, up to a constant
        (best,) = np.nonzero(errors == errors.min())
        number = int(best[len(best) // 2])
        above = sizes[min(number + 1, len(sizes) - 1)]
        object.__setattr__(self, "threshold", float(sizes[number] + above) / 2)
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,)."""
        if self.threshold is None:
            raise not_fitted(self.name)
        means = _mean_votes(counts)
        return np.where(np.abs(means) > self.threshold, np.sign(means), 0).astype(np.int8)


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Expected label as a monotone function of the mean vote, rounded to the nearest label.

    The function is the isotonic regression of the labels on the mean votes of the calibration set
    and of its mirror image, straight between those means and flat beyond them; it is odd, so
    swapping A and B mirrors every label. An expected label of one half (within 1e-9) is rounded to
    a tie. An item without votes has mean 0 and is a tie. The name is frozen; `fit` sets `points`.

    References
    ----------
    The related work that the paper calls AtC (Xie et al., 2026) calibrates continuous scores by
    isotonic regression; this is that for three-way votes. Zadrozny and Elkan (2002).
    """

    name: str = "isotonic"
    points: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, 3) counts and (n,) labels and return itself."""
        items, gold = labelled_items(counts, labels)
        means = _mean_votes(items)
        both = np.concatenate([means, -means]), np.concatenate([gold, -gold])
        object.__setattr__(self, "points", isotonic_points(*both))
        return self

    def expected(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Return the expected label of each item, (n,), from -1 to 1."""
        if self.points is None:
            raise not_fitted(self.name)
        means = _mean_votes(counts)
        # Odd to the last bit, which the regression is up to rounding.
        return np.asarray(np.interp(means, *self.points) - np.interp(-means, *self.points)) / 2

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,): the one nearest to the expected label; a half gives a tie."""
        expected = self.expected(counts)
        return np.where(np.abs(expected) > 0.5 + _ROUNDING, np.sign(expected), 0).astype(np.int8)
