"""The interval of a paired difference that agrees with the permutation test: its inversion."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from btdagg.inference.significance import Method, paired_permutation_test

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

Side: TypeAlias = Literal["two-sided", "less", "greater"]

_WIDTH = 20.0  # standard deviations of a lattice: all but 1e-22 of the probability
_MOST_CELLS, _MOST_WORK = 4_000_000, 60_000_000
_NEAR = 1e-9  # of integers
_LEAST = 1e-15  # of probabilities that are added up
_STEPS, _CLOSE = 60, 1e-3  # of a search, and standard errors of Monte Carlo
_ROUNDING, _BEYOND = 1e-12, 1e-6  # of the range of differences


class SignFlips:
    """P-values of paired differences for any mean difference, and the ends they leave in.

    Taking a number from each difference, the test is that of Fisher: of all sign patterns, each as
    likely, the share whose sum is as far out. A pattern whose flipped units sum to at most their
    share of the number counts, so that the p-value is a distribution function of the means of all
    subsets of units (Hartigan's typical values). Differences that are integers have it exactly, by
    the joint distribution of sums and numbers of items; for others signs are drawn.

    References
    ----------
    Fisher (1935); Hartigan, Using subsample values as typical values (1969).
    """

    def __init__(
        self,
        first: Floats,
        second: Floats,
        groups: NDArray[np.int64],
        method: Method = "auto",
        n_resamples: int = 10_000,
        seed: int = 0,
    ) -> None:
        self.first, self.second, self.groups = first, second, groups
        self.sizes = np.bincount(groups).astype(np.float64)
        self.sums = np.bincount(groups, first - second)
        self._how = {"n_resamples": n_resamples, "seed": seed}
        self._method = method
        self.mean = float(self.sums.sum() / self.sizes.sum())
        self.at_zero = self._test(0.0, "two-sided", method)

    @property
    def is_exact(self) -> bool:
        """Whether p-values are exact for any mean."""
        return self._lattice is not None

    def pvalue(self, mean: float, side: Side) -> float:
        """P-value of a mean difference, against another, a lower or a higher one."""
        if mean == 0.0:
            found = self.at_zero
            return (found if side == "two-sided" else self._test(0.0, side, self._method))[0]
        if self._lattice is None:
            return self._test(mean, side, "monte-carlo")[0]
        tails = [self._lattice(mean, is_below) for is_below in (True, False)]
        p = {"greater": tails[0], "less": tails[1]}.get(side, 2 * min(tails))
        return float(np.clip(p, max(2.0 ** -len(self.sums), _LEAST), 1.0))

    def end(self, error: float, side: Side, *, is_low: bool) -> float:
        """Lowest, or highest, mean whose p-value is above an error; infinite where all are."""
        away = -1.0 if is_low else 1.0
        of_units = self.sums / self.sizes
        far = float(of_units.min() if is_low else of_units.max())
        near = self.mean
        size = float(np.ptp(of_units)) or max(abs(far), float(self.is_exact))
        beyond = far + away * _BEYOND * size
        if self.pvalue(beyond, side) > error:
            return away * np.inf
        if far == near:
            return near
        from scipy.special import ndtri

        spread = float(np.sqrt(((self.sums - self.mean * self.sizes) ** 2).sum()))
        close = _ROUNDING * abs(far - near)
        if not self.is_exact:
            close = max(close, _CLOSE * spread / self.sizes.sum())
        aim, far = float(ndtri(error)), beyond
        at_near, at_far = float(ndtri(min(self.pvalue(near, side), 1 - 1e-9))), -np.inf
        for step in range(_STEPS):
            if abs(far - near) <= close:
                break
            middle = (near + far) / 2  # normal scores are nearly straight
            if step % 3 and np.isfinite(at_far) and not self.is_exact and at_near > at_far:
                middle = near + (far - near) * (at_near - aim) / (at_near - at_far)
            p = self.pvalue(middle, side)
            if p > error:
                near, at_near = middle, float(ndtri(min(p, 1 - 1e-9)))
            else:
                far, at_far = middle, float(ndtri(p))
        return near

    def _test(self, mean: float, side: Side, method: Method) -> tuple[float, str]:
        first = self.first - mean if mean else self.first
        found = paired_permutation_test(
            first, self.second, side, method, groups=self.groups, **self._how
        )
        return found.pvalue, found.method

    @cached_property
    def _lattice(self) -> Callable[[float, bool], float] | None:
        """Share of the subsets of units whose mean is at most, or at least, a number."""
        values = np.round(self.sums)
        is_whole = bool((np.abs(self.sums - values) == 0).all())
        if not is_whole or self._method == "monte-carlo" or self.at_zero[1] != "exact":
            return None
        distinct, number = np.unique(np.stack([self.sizes, values]), axis=1, return_counts=True)
        periods = [_period(unit, number) for unit in distinct]
        cells = periods[0] * periods[1]
        if cells > _MOST_CELLS or cells * len(number) > _MOST_WORK:
            return None
        return _subsets(distinct, number, periods)


def _period(units: Floats, number: NDArray[np.int64]) -> int:
    """How many neighbouring sums hold all of the probability but for rounding."""
    spread = float(np.sqrt((number * units**2).sum())) / 2
    return int(min((number * np.abs(units)).sum() + 1, np.ceil(_WIDTH * spread) + 4))


def _subsets(
    distinct: Floats, number: NDArray[np.int64], periods: list[int]
) -> Callable[[float, bool], float]:
    """Joint distribution of numbers of items and sums of a random subset, by its transform."""
    angles = [2 * np.pi * np.arange(period) / period for period in periods]
    transform = np.ones((periods[0], periods[1]), dtype=np.complex128)
    for size, value, n in zip(*distinct, number.tolist(), strict=True):
        half = (size * angles[0][:, None] + value * angles[1]) / 2
        transform *= np.cos(half) ** n * np.exp(1j * n * half)
    shares = np.maximum(np.fft.fft2(transform).real / transform.size, 0.0)
    items, sums = (
        np.arange(period)
        + period * np.round((float(units @ number) / 2 - np.arange(period)) / period)
        for period, units in zip(periods, distinct, strict=True)
    )
    order = np.argsort(items), np.argsort(sums)
    items, sums = items[order[0]], sums[order[1]]
    below = np.zeros((len(items), len(sums) + 1))
    np.cumsum(shares[np.ix_(*order)], axis=1, out=below[:, 1:])
    rows = np.arange(len(items))

    def share(mean: float, is_below: bool) -> float:
        at = mean * items
        place = np.floor(at + _NEAR) + 1 if is_below else np.ceil(at - _NEAR)
        part = below[rows, np.clip(place - sums[0], 0, len(sums)).astype(np.intp)]
        return float(part.sum() if is_below else (below[:, -1] - part).sum())

    return share
