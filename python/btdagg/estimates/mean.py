"""Means of labels over all items, from a few labels and a proxy of every item; their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.readable import readable
from btdagg.evaluation.metrics import wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray

Quantities = Mapping[str, tuple[float, ...]]
"""What is estimated: means over items of a value for each label, in label order."""

QUANTITIES: Quantities = MappingProxyType(
    {
        "A": (0.0, 0.0, 1.0),
        "tie": (0.0, 1.0, 0.0),
        "B": (1.0, 0.0, 0.0),
        "net win rate": (-1.0, 0.0, 1.0),
        "win rate": (0.0, 0.5, 1.0),
    }
)
"""Those of three-way labels: values of the labels B, tie and A."""


def is_share(values: Sequence[float]) -> bool:
    """Whether a quantity is the share of some labels."""
    return set(values) == {0.0, 1.0}


class Ends(NamedTuple):
    """The least and the greatest value that a mean can have."""

    least: float
    greatest: float


@readable
@dataclass(frozen=True)
class MeanEstimate:
    """A mean over all items, with its interval.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Its interval.
    standard_error : float
        0 where all labelled groups have the same mean. Then it is unknown how groups vary, and the
        interval is as if each group were one label.
    effective_labels : float
        How many labels would be worth as much without the judge; NaN where a standard error is 0.
    weight : float
        Weight of the judge's probabilities, from 0 (labels alone) to 1.
    labels_only : MeanEstimate or None
        The same from labels alone.
    """

    value: float
    low: float
    high: float
    standard_error: float
    effective_labels: float
    weight: float = 0.0
    labels_only: MeanEstimate | None = None

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def effective_number(value: float, variance: float, ends: Ends) -> float:
    """Return how many independent labels, each one of two ends, would have a variance above 0.

    Where the mean is nearer to an end than one standard error, it is taken to be that far from it:
    a mean that is corrected can come to lie anywhere there by chance.
    """
    span = ends.greatest - ends.least
    error = min(variance**0.5 / span, 0.5)
    p = min(max((value - ends.least) / span, error), 1 - error)
    return float(p * (1 - p) / error**2)


def limits_of(
    value: Any, n: NDArray[np.float64], quantile: Any, ends: Ends
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high ends of Wilson's interval of a mean, at (k,) effective numbers of labels.

    Korn and Graubard (1998); Franco, Little, Louis and Slud (2019) compare such intervals.
    """
    span = ends.greatest - ends.least
    low, high = wilson(np.clip((value - ends.least) / span, 0.0, 1.0), n, quantile)
    return ends.least + span * low, ends.least + span * high


class IntervalParts(NamedTuple):
    """What the interval of a mean is made of, at any quantile; or of several, in (k,) arrays.

    Attributes
    ----------
    value : float
    n : float
        Effective number of labels of Wilson's interval.
    error : float
        Standard error of a normal interval; NaN where Wilson's is meant.
    ends : Ends
    """

    value: Any
    n: Any
    error: Any
    ends: Ends

    @classmethod
    def stacked(cls, bounds: Sequence[IntervalParts], places: NDArray[np.int64]) -> IntervalParts:
        """Put those of means with the same ends, by their places, side by side."""
        value, n, error = np.array([own[:3] for own in bounds])[places].T
        return cls(value, n, error, bounds[0].ends)

    def at(self, quantile: Any) -> tuple[Any, Any]:
        """Low and high ends at a quantile."""
        low, high = limits_of(self.value, np.asarray(self.n), quantile, self.ends)
        half, is_normal = quantile * self.error, ~np.isnan(self.error)
        return (
            np.where(is_normal, self.value - half, low),
            np.where(is_normal, self.value + half, high),
        )


@readable
@dataclass(frozen=True, eq=False)
class LabelledSample:
    """Labelled items of one domain.

    Attributes
    ----------
    weights : (n,) array
        Share of each labelled item in the sample; they sum to 1.
    groups : (n,) array of int
        Group of each, as a number from 0.
    names : (G,) array of int
        Numbers of these groups among those of all items.
    """

    weights: NDArray[np.float64]
    groups: NDArray[np.int64]
    names: NDArray[np.int64]

    @property
    def n_groups(self) -> int:
        """Number of groups with a label."""
        return len(self.names)

    @property
    def stand_in(self) -> NDArray[np.float64]:
        """Weights by which labelled items stand for those that a proxy is averaged over, (n,)."""
        return self.weights

    @property
    def loads(self) -> NDArray[np.float64]:
        """What one unit of each labelled item's value adds to the error of the mean, (n,)."""
        return self.weights

    @property
    def is_whole(self) -> bool:
        """Whether all items of a finite population have a label."""
        return False

    @property
    def is_equal(self) -> bool:
        """Whether all items have one weight."""
        return bool((self.loads == self.loads[:1]).all())

    @property
    def n_effective(self) -> float:
        """How many labels of a simple sample of new items would vary as little (Kish, 1965)."""
        return len(self.loads) if self.is_equal else 1 / float(self.loads @ self.loads)

    @property
    def n_alike(self) -> float:
        """How many labels to count where all have one value, and how they vary is not seen."""
        return float(self.n_groups if self.is_equal else min(self.n_groups, self.n_effective))

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted sums by group of values of the labelled items, (G,)."""
        return self._by_group(self.weights * values)

    def moved(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums by group of values with the weights of `stand_in`, (G,)."""
        return self._by_group(self.stand_in * values)

    def deviations(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums by group of what values differ from their mean by, (G,)."""
        return self.sums(values - self.weights @ values)

    @property
    def degrees_of_freedom(self) -> float:
        """Of Student's t: those of as many equal groups as would vary as much."""
        share = self.sums(np.ones(len(self.weights)))
        return max(1 / float(share @ share) - 1, 1.0) if len(share) else 1.0

    def jackknifed(self, errors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale errors by group so that the sum of their squares is the jackknife's variance."""
        n = self.n_groups
        rest = 1 - self.sums(np.ones(len(self.weights)))
        scaled: NDArray[np.float64] = errors / np.maximum(rest, 1 / n**2) * np.sqrt((n - 1) / n)
        return scaled

    def least_variance(self, residuals: NDArray[np.float64]) -> float:
        """Return the variance where (n,) residuals do not depend on the weights.

        A sample that has none of the rare items of great weight varies too little by itself.
        """
        if self.is_equal:
            return 0.0
        away = residuals - self.weights @ residuals
        return float(self.weights @ away**2 * (self.loads @ self.loads))

    def _by_group(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.groups, values, self.n_groups).astype(np.float64)


@readable
@dataclass(frozen=True, eq=False)
class FiniteSample(LabelledSample):
    """Labelled items of a finite population, whose mean is that of all its items and no more.

    Groups are the units that were drawn: items, or whole groups.

    Attributes
    ----------
    left : float
        Share of the population's items that have no label.
    beyond : (n,) array
        What each labelled item counts for besides itself; they sum to `left`.
    strata : (n,) array of int
        Stratum of each labelled item, as a number from 0, of which units were drawn.
    is_stratified : bool
        Whether units are a simple sample of each stratum; otherwise they were drawn independently.

    Notes
    -----
    A labelled item counts once for itself, and with `stand_in` for those without a label. That is
    its inverse probability less one, times a number so that all add up to the items without a
    label. So the sample varies as little as its size allows (Hájek), and items that were certain to
    be drawn stand for no others. If e is what values differ from their mean by, the variance is
    ``sum w (w - 1) e**2`` for units drawn independently, and of n units of N it is the usual one,
    ``(1 - n / N) / n``.
    """

    left: float
    beyond: NDArray[np.float64]
    strata: NDArray[np.int64]
    is_stratified: bool

    @classmethod
    def of(
        cls,
        inverse: NDArray[np.float64],
        groups: NDArray[np.int64],
        names: NDArray[np.int64],
        n_items: int,
        strata: NDArray[np.int64] | None,
    ) -> FiniteSample:
        """Return the sample, by one over the probability of each labelled item, (n,)."""
        n = len(inverse)
        beyond = inverse - 1
        if not beyond.any():  # whoever has no label was certain to get one: it was not given
            beyond = np.ones(n)
        left = (n_items - n) / n_items
        beyond = beyond * (left / max(beyond.sum(), 1e-300))
        codes = np.zeros(n, dtype=np.int64) if strata is None else strata
        own = 1 / n_items + beyond, groups, names
        return cls(*own, left, beyond, codes, strata is not None)

    @property
    def stand_in(self) -> NDArray[np.float64]:
        """Weights by which labelled items stand for those without a label, (n,)."""
        return self.beyond

    @cached_property
    def loads(self) -> NDArray[np.float64]:
        """What one unit of each labelled item's value adds to the error of the mean, (n,)."""
        return np.sqrt(self.weights * self.stand_in)

    @property
    def is_whole(self) -> bool:
        """Whether all items have a label."""
        return self.left == 0

    @property
    def n_effective(self) -> float:
        """How many labels of a simple sample of new items would vary as little."""
        return np.inf if self.is_whole else 1 / float(self.loads @ self.loads)

    @property
    def n_alike(self) -> float:
        """How many labels to count where all have one value, and how they vary is not seen."""
        return min(self.n_groups / self.left, self.n_effective)

    def deviations(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums by unit of what values differ from the mean of their stratum by, (G,)."""
        mean = self.stand_in @ values / max(self.left, 1e-300)
        centre = self._of_stratum(self.stand_in * values) / self._in_stratum
        centre = np.where(self._n_units > 1, centre, mean)  # one unit says nothing of its stratum
        return self._by_group(self.loads * (values - centre[self.strata]))

    @property
    def degrees_of_freedom(self) -> float:
        """Of Student's t: those of as many equal units as would vary as much."""
        if self.is_whole:
            return np.inf
        share = self._by_group(self.loads) / self.loads.sum()
        return max(1 / float(share @ share) - 1, 1.0)

    def jackknifed(self, errors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale errors by unit so that the sum of their squares is the jackknife's variance."""
        of_unit = self._stratum_of_units
        n = self._n_units[of_unit]
        rest = 1 - self._by_group(self.stand_in) / self._in_stratum[of_unit]
        scale = np.sqrt((n - 1) / n) / np.maximum(rest, 1 / n**2)
        return np.asarray(errors * np.where(n > 1, scale, 1.0))

    def least_variance(self, residuals: NDArray[np.float64]) -> float:
        """Return the variance where residuals do not depend on the weights; 0 in strata."""
        return 0.0 if self.is_stratified else super().least_variance(residuals)

    @cached_property
    def _stratum_of_units(self) -> NDArray[np.int64]:
        of_unit = np.zeros(self.n_groups, dtype=np.int64)
        of_unit[self.groups] = self.strata
        return of_unit

    @cached_property
    def _n_units(self) -> NDArray[np.float64]:
        return np.bincount(self._stratum_of_units).astype(np.float64)

    @cached_property
    def _in_stratum(self) -> NDArray[np.float64]:
        return np.maximum(self._of_stratum(self.stand_in), 1e-300)

    def _of_stratum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.strata, values).astype(np.float64)


@readable
@dataclass(frozen=True, eq=False)
class Proxies:
    """Proxies of the labelled items, and of those that stand for all.

    Proxies that are probabilities of labels have a last axis for the labels, and a `spread` with
    two; `of` makes proxies of a mean of them.

    Attributes
    ----------
    labelled : (n,) array
        Proxy of each labelled item, by a model that did not see its group.
    means : (n,) array
        Mean of the same model's proxies over the items that stand for all.
    shared, rest : (G,) and (k,) arrays
        What the other items of each group of the sample, and groups without a label, add to the
        mean of all proxies: the sum of their deviations from it, over the number of items.
    names : (k,) array of int
        Numbers of the groups without a label among those of all items.
    spread : float, optional
        Variance of the difference of the mean proxies of labelled and other items, where models are
        fixed, items independent and labels a simple sample: the estimator is PPI++ as published.
    """

    labelled: NDArray[np.float64]
    means: NDArray[np.float64]
    shared: NDArray[np.float64]
    rest: NDArray[np.float64]
    names: NDArray[np.int64]
    spread: Any = None

    def of(self, values: tuple[float, ...]) -> Proxies:
        """Return the proxies of the mean of some values of the labels."""
        v = np.array(values)
        spread = None if self.spread is None else float(v @ self.spread @ v)
        return Proxies(
            self.labelled @ v, self.means @ v, self.shared @ v, self.rest @ v, self.names, spread
        )


@readable
class Mean(NamedTuple):
    """A mean, its variance, and what that is made of.

    Attributes
    ----------
    value, variance : float
    weight : float
        Weight of the proxy, from 0 to 1.
    of_labels : float
        Part of the variance that labels make smaller.
    errors : (G,) array
        What each group of the sample adds to the error; the sum of their squares is `of_labels`.
    """

    value: float
    variance: float
    weight: float
    of_labels: float
    errors: NDArray[np.float64]


def labelled_mean(values: NDArray[np.float64], sample: LabelledSample) -> Mean:
    """Return the mean of labelled items, (n,) values, from labels alone."""
    errors = _raised(sample.jackknifed(_deviations_of(values, sample)), values, sample)
    variance = float(errors @ errors)
    return Mean(float(sample.weights @ values), variance, 0.0, variance, errors)


def unknown_mean(values: NDArray[np.float64]) -> Mean:
    """Return the mean of items of one group or none, which says nothing of its own error."""
    value = float(values.mean()) if len(values) else np.nan
    return Mean(value, np.nan, 0.0, np.nan, np.empty(0))


def corrected_mean(values: NDArray[np.float64], proxies: Proxies, sample: LabelledSample) -> Mean:
    """Return the prediction-powered mean of all items, from (n,) values of the labelled ones.

    Notes
    -----
    The mean is ``sum w (y - weight (f - F))``, with F the mean of the proxy f over the items that
    stand for all. It is right whatever the proxy is worth, and varies least where the weight is
    the regression of labels on proxies by group. With few labels a regression overfits. So the
    weight that a group gets is found without that group, which leaves the mean without bias and its
    residuals honest. And it is shrunk by ``1 - 1 / t**2``, t being the statistic of the regression,
    and is 0 for t below 1, so that a proxy of pure noise costs next to nothing.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, PPI++ (2023); Zrnic and Candès, Cross-prediction-powered
    inference (2024); James and Stein (1961) for the shrinkage; Efron (1982) for the jackknife.
    """
    of_values, of_proxies = _deviations_of(values, sample), sample.deviations(proxies.labelled)
    of_rest = float(proxies.rest @ proxies.rest)
    if proxies.spread is not None:
        together = float(of_values @ of_proxies)
        weight = min(max(together / proxies.spread, 0.0), 1.0) if proxies.spread > 0 else 0.0
        weights = np.full(sample.n_groups, weight)
        errors = of_values - weight * of_proxies
    else:
        of_proxies = of_proxies - proxies.shared
        products = of_values * of_proxies
        weight, weights = tuned_weights(products, of_proxies**2, of_rest)
        errors = sample.jackknifed(of_values - weights * of_proxies)
        residuals = values - weights[sample.groups] * (proxies.labelled - proxies.means)
        errors = _raised(errors, residuals, sample)
    moved = sample.moved(proxies.labelled - proxies.means)
    value = float(sample.weights @ values - weights @ moved)
    of_labels = float(errors @ errors)
    return Mean(value, of_labels + weight**2 * of_rest, weight, of_labels, errors)


def _raised(
    errors: NDArray[np.float64], residuals: NDArray[np.float64], sample: LabelledSample
) -> NDArray[np.float64]:
    """Raise errors by group to the least variance that weights allow for."""
    variance, least = float(errors @ errors), sample.least_variance(residuals)
    return errors * np.sqrt(least / variance) if 0 < variance < least else errors


def _deviations_of(values: NDArray[np.float64], sample: LabelledSample) -> NDArray[np.float64]:
    """Deviations by group, 0 where they are nothing but rounding."""
    deviations = sample.deviations(values)
    return np.where(np.abs(deviations) < 1e-14, 0.0, deviations)


def tuned_weights(
    yf: NDArray[np.float64], ff: NDArray[np.float64], of_rest: float
) -> tuple[float, NDArray[np.float64]]:
    """Return the shrunk regression weight of all groups, and for each that of the others.

    `yf` and `ff`, (G,), are for each group the product of the deviations of labels and proxies, and
    the square of that of proxies (inner products of vectors); `of_rest` is the sum of the squares
    of the groups that have no label.
    """
    products = np.stack([yf, ff, yf**2, yf * ff, ff**2])
    whole = products.sum(axis=1, keepdims=True)
    # Of all groups first, then without each.
    yf, ff, yyff, yfff, ffff = np.concatenate([whole, whole - products], axis=1)
    ff = ff + of_rest
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = yf / ff
        variance = np.maximum(yyff - 2 * slope * yfff + slope**2 * ffff, 0.0) / ff**2
        shrunk = slope * (1 - variance / slope**2)
    weights = np.where((ff > 0) & (slope > 0), np.clip(shrunk, 0.0, 1.0), 0.0)
    return float(weights[0]), weights[1:]
