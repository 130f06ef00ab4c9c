"""Aggregators fitted to mean votes: a threshold, an isotonic regression, and a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg.methods.base import OnScale, fitted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Threshold(OnScale):
    """The side of the mean vote where it is beyond a threshold, else a tie.

    The threshold, a share of the way from a tie to a side, has the least absolute error on the
    calibration set, of those midway between absolute mean votes and at the ends (the middle one of
    several). Swapping A and B mirrors every label. `fit` sets `threshold`.
    """

    name: str = "threshold"
    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scale.require_sides(f"{self.name}, which uses the same cut on both sides")

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, 3) counts and (n,) labels and return itself."""
        means, gold = self._labelled(counts, labels)
        means, gold = self.scale.leaning(means), self.label_scale.leaning(gold)
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

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,)."""
        threshold = fitted(self.threshold, self.name)
        means = self.scale.leaning(self._means(counts))
        side = np.where(np.abs(means) > threshold, np.sign(means), 0).astype(np.intp)
        return np.asarray(self.label_scale.labels[side + 1])


@dataclass(frozen=True, eq=False)
class Isotonic(OnScale):
    """Expected label as a monotone function of the mean vote, rounded to the nearest label.

    The isotonic regression of labels on mean votes, straight between these and flat beyond them. Of
    a scale with two sides the mirror image is added, so swapping A and B mirrors every label. Half
    way (within 1e-9) is rounded to the middle. `fit` sets `points`.

    References
    ----------
    AtC in the paper (Xie et al., 2026) calibrates scores so; Zadrozny and Elkan (2002).
    """

    name: str = "isotonic"
    points: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, J) counts and (n,) labels and return itself."""
        from scipy.optimize import isotonic_regression

        means, gold = self._labelled(counts, labels)
        if self.scale.mirrored:
            means = np.concatenate([means, self.scale.turned(means)])
            gold = np.concatenate([gold, self.label_scale.turned(gold)])
        values, place, number = np.unique(means, return_inverse=True, return_counts=True)
        expected = np.bincount(place.reshape(-1), gold) / number
        fitted = isotonic_regression(expected, weights=number.astype(np.float64)).x
        object.__setattr__(self, "points", (values, fitted))
        return self

    def expected(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Return the expected label of each item, (n,)."""
        points = fitted(self.points, self.name)
        means = self._means(counts)
        expected = np.interp(means, *points)
        if self.scale.mirrored:  # to the last bit, which the regression is up to rounding
            other = np.interp(self.scale.turned(means), *points)
            expected = (expected + self.label_scale.turned(other)) / 2
        return np.asarray(expected)

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,): the one nearest to the expected label."""
        return self._nearest(self.expected(counts))


@dataclass(frozen=True)
class Constant(OnScale):
    """The label of least absolute error on the calibration set; `fit` sets `label`."""

    name: str = "constant"
    label: float | None = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, J) counts and (n,) labels and return itself."""
        _, gold = self._labelled(counts, labels)
        median = np.median(gold, keepdims=True)
        object.__setattr__(self, "label", self._nearest(median)[0])
        return self

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,)."""
        label = fitted(self.label, self.name)
        return np.full(len(self.scale.counts(counts)), label)
