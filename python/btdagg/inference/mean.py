"""Means of labels over all items, from a few labels and a proxy of every item; their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from btdagg._util.readable import Readable, readable
from btdagg.inference.disagreement import NO_DISAGREEMENT, Disagreement
from btdagg.inference.intervals import (
    Ends,
    effective_number,
    limits_of,
    t_pvalues,
    t_quantile,
    t_tail,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

Population = Literal["new", "finite"]
"""What an estimate is of: new items of the kind, or these items and no others."""

"""The least and the greatest value that a mean can have."""

_FARTHEST = 60.0  # powers of 2 of a quantile, beyond which no interval ends
_N_HALVINGS = 64
_ROUNDING = 1e-14  # of deviations


@dataclass(frozen=True)
class MeanEstimate(Readable):
    """A mean over all items, with its interval.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Its interval.
    standard_error : float
        0 where all labelled groups have one mean; the interval then counts each group as one label.
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

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers, and those of labels alone, by name; NaN as None."""
        fields = numbers_of(self, "value", "low", "high", "standard_error", "effective_labels")
        if self.labels_only is not None:
            alone = self.labels_only.as_dict().items()
            fields |= {"weight": self.weight, **{f"labels_only_{name}": of for name, of in alone}}
        return fields

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def numbers_of(result: object, *names: str) -> dict[str, Any]:
    """Return attributes by name, NaN as None."""
    values = {name: getattr(result, name) for name in names}
    return {name: None if np.isnan(value) else value for name, value in values.items()}


class IntervalParts(NamedTuple):
    """Parts of the intervals of means, for any quantile: numbers, or (k,) arrays.

    Attributes
    ----------
    value : float
    n : float
        Effective number of labels of Wilson's interval.
    error : float
        Standard error of a normal interval; NaN where Wilson's is meant.
    least, greatest : float
        The ends that a mean can have.
    freedom : float
        Degrees of freedom of the quantile.
    alone, n_alone : float
        Value and effective number of labels of the mean of labels alone.
    disagreement : Disagreement
        Allowance for labels that differ from the calls of a model.
    """

    value: Any
    n: Any
    error: Any
    least: Any
    greatest: Any
    freedom: Any
    alone: Any
    n_alone: Any
    disagreement: Disagreement

    @classmethod
    def stack(cls, parts: Sequence[IntervalParts]) -> IntervalParts:
        """Return the parts of k intervals as arrays."""
        *numbers, disagreement = zip(*parts, strict=True)
        arrays: list[Any] = [np.array(values) for values in numbers]
        arrays.append(Disagreement.stack(disagreement))
        return cls(*arrays)

    def at(self, quantile: Any) -> tuple[Any, Any]:
        """Low and high ends at a quantile."""
        ends = self.least, self.greatest
        low, high = limits_of(self.value, np.asarray(self.n), quantile, ends)
        half, is_normal = quantile * self.error, ~np.isnan(self.error)
        low = np.where(is_normal, self.value - half, low)
        high = np.where(is_normal, self.value + half, high)
        tail = t_tail(quantile, self.freedom)
        without = limits_of(self.alone, np.asarray(self.n_alone), quantile, ends)
        low, high = self.disagreement.widened(self.value, low, high, without, tail)
        return (
            np.where(is_normal, low, np.maximum(low, self.least)),
            np.where(is_normal, high, np.minimum(high, self.greatest)),
        )


def _difference_limits(means: Sequence[tuple[Any, Any, Any]], r: Any) -> tuple[Floats, Floats]:
    """Ends of differences of two correlated means, not symmetric (MOVER: Zou and Donner, 2008)."""
    (a, low_a, high_a), (b, low_b, high_b) = means

    def half(width_a: Any, width_b: Any) -> Floats:
        square = width_a**2 + width_b**2 - 2 * r * width_a * width_b
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    return a - b - half(a - low_a, high_b - b), a - b + half(high_a - a, b - low_b)


def ending_at_0(limits: Callable[[Floats], tuple[Floats, Floats]], quantile: Floats) -> Floats:
    """Quantile at which each interval just reaches 0: the p-value of the difference follows."""

    def is_beyond(quantile: Floats) -> NDArray[np.bool_]:
        low, high = limits(quantile)
        return np.asarray((low > 0) | (high < 0))

    side = is_beyond(quantile)
    near, far = np.zeros(len(side)), np.where(side, _FARTHEST, -_FARTHEST)
    for _ in range(_N_HALVINGS):
        middle = (near + far) / 2
        same = is_beyond(quantile * 2**middle) == side
        near, far = np.where(same, middle, near), np.where(same, far, middle)
    return np.asarray(quantile * 2**near)


@dataclass(frozen=True, eq=False)
class LabelledSample(Readable):
    """Labelled items of one domain: a sample of new items, or of a finite population.

    Attributes
    ----------
    weights : (n,) array
        Share of each labelled item in the mean; they sum to 1.
    stand_in : (n,) array
        Weights by which labelled items stand for those that a proxy is averaged over. In a finite
        population they sum to `left`; of new items they are `weights`.
    groups : (n,) array of int
        Group of each, from 0; of a finite population the unit drawn, an item or a whole group.
    names : (G,) array of int
        Numbers of these groups among those of all items.
    left : float
        Share of the population that has no label: 1 of new items.
    strata : (n,) array of int, or None
        Stratum of each labelled item, from 0, where units are a simple sample of each; None where
        they were drawn independently.

    Notes
    -----
    In a finite population a labelled item counts for itself and, by its inverse probability less
    one, for items without a label, scaled to add up to these (Hájek). With e the deviations from
    the mean the variance is ``sum w (w - 1) e**2`` for units drawn independently, and for n units
    of N the usual one, ``(1 - n / N) / n``.
    """

    weights: Floats
    stand_in: Floats
    groups: NDArray[np.int64]
    names: NDArray[np.int64]
    left: float = 1.0
    strata: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        inverse: Floats,
        units: NDArray[np.int64],
        n_items: int,
        population: Population,
        strata: NDArray[np.int64] | None,
    ) -> LabelledSample:
        """Return the sample from the inverse probability of each labelled item, (n,)."""
        names, groups = np.unique(units, return_inverse=True)
        groups = groups.reshape(-1)
        if population == "new":
            weights = inverse / max(inverse.sum(), 1e-300)
            return cls(weights, weights, groups, names)
        n, beyond = len(inverse), inverse - 1
        if not beyond.any():  # whoever has no label was certain to get one: it was not given
            beyond = np.ones(n)
        left = (n_items - n) / n_items
        beyond = beyond * (left / max(beyond.sum(), 1e-300))
        return cls(1 / n_items + beyond, beyond, groups, names, left, strata)

    @property
    def n_groups(self) -> int:
        """Number of groups with a label."""
        return len(self.names)

    @cached_property
    def loads(self) -> Floats:
        """Error of the mean per unit of each labelled item's value, (n,)."""
        return np.sqrt(self.weights * self.stand_in)

    @property
    def is_finite(self) -> bool:
        """Whether the mean is that of a finite population."""
        return self.left < 1

    @property
    def is_whole(self) -> bool:
        """Whether all items of a finite population have a label."""
        return self.left == 0

    @property
    def has_spread(self) -> bool:
        """Whether labels of two groups, or of all items, tell how far off a mean is."""
        return self.n_groups > 1 or self.is_whole

    @property
    def is_equal(self) -> bool:
        """Whether all items have one weight."""
        return bool((self.loads == self.loads[:1]).all())

    @property
    def n_effective(self) -> float:
        """Kish's (1965) effective sample size; infinite where every item has a label."""
        return np.inf if self.is_whole else 1 / float(self.loads @ self.loads)

    @property
    def n_alike(self) -> float:
        """How many labels to count where all have one value, and how they vary is not seen."""
        return min(self.n_groups / self.left, self.n_effective)

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of Student's t: of as many equal groups as would vary as much."""
        if self.is_whole:
            return np.inf
        share = self.by_group(self.loads) / self.loads.sum()
        return max(1 / float(share @ share) - 1, 1.0)

    def by_group(self, values: Floats) -> Floats:
        """Sums by group of values of the labelled items, (G,)."""
        return np.bincount(self.groups, values, self.n_groups).astype(np.float64)

    def deviations(self, values: Floats) -> Floats:
        """Sums by group of what values differ from the mean of their stratum by, (G,)."""
        codes, _, n = self._strata
        mean = self.stand_in @ values / max(self.left, 1e-300)
        centre = np.bincount(codes, self.stand_in * values) / self._in_stratum
        centre = np.where(n > 1, centre, mean)  # one unit says nothing of its stratum
        deviations = self.by_group(self.loads * (values - centre[codes]))
        return np.where(np.abs(deviations) < _ROUNDING, 0.0, deviations)

    def jackknifed(self, errors: Floats) -> Floats:
        """Scale errors by group so that the sum of their squares is the jackknife's variance."""
        _, of_groups, n_units = self._strata
        n = n_units[of_groups]
        rest = 1 - self.by_group(self.stand_in) / self._in_stratum[of_groups]
        scale = np.sqrt((n - 1) / n) / np.maximum(rest, 1 / n**2)
        return np.asarray(errors * np.where(n > 1, scale, 1.0))

    def least_variance(self, residuals: Floats) -> float:
        """Return the variance where (n,) residuals do not depend on the weights.

        A sample without any rare item of great weight varies too little by itself, unless in
        strata.
        """
        if self.is_equal or self.strata is not None:
            return 0.0
        away = residuals - self.weights @ residuals
        return float(self.weights @ away**2 * (self.loads @ self.loads))

    @cached_property
    def _strata(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        codes = np.zeros_like(self.groups) if self.strata is None else self.strata
        of_groups = np.zeros(self.n_groups, dtype=np.int64)
        of_groups[self.groups] = codes
        return codes, of_groups, np.bincount(of_groups).astype(np.float64)

    @cached_property
    def _in_stratum(self) -> Floats:
        return np.maximum(np.bincount(self._strata[0], self.stand_in), 1e-300)


@readable
class Proxies(NamedTuple):
    """Proxies of labelled items, by models that did not see them, and of those for all."""

    # `means` average the same models' proxies over the items that stand for all. `shared` and
    # `rest` are, for the sample's groups and the groups without a label (`names`), the sums of the
    # deviations of their other items from the mean of all proxies, over the number of items.
    # `spread` is the variance of the difference of mean proxies with models fixed, items
    # independent and labels a simple sample: PPI++ as published. Probabilities of labels have a
    # last axis, `spread` two.

    labelled: Floats
    means: Floats
    shared: Floats
    rest: Floats
    names: NDArray[np.int64]
    spread: Any = None

    def of(self, v: Floats) -> Proxies:
        """Return the proxies of the mean of some values of the labels."""
        spread = None if self.spread is None else float(v @ self.spread @ v)
        labelled, means, shared, rest = (part @ v for part in self[:4])
        return Proxies(labelled, means, shared, rest, self.names, spread)


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
    errors : (k,) array
        Error added by each group.
    names : (k,) array of int
        Numbers of these groups.
    """

    value: float
    variance: float
    weight: float
    of_labels: float
    errors: Floats
    names: NDArray[np.int64]


def labelled_mean(values: Floats, sample: LabelledSample) -> Mean:
    """Return the mean of (n,) values from labels alone; its error needs two groups."""
    if not sample.has_spread:
        value = float(values.mean()) if len(values) else np.nan
        return Mean(value, np.nan, 0.0, np.nan, np.empty(0), sample.names[:0])
    errors = _raised(sample.jackknifed(sample.deviations(values)), values, sample)
    variance = float(errors @ errors)
    return Mean(float(sample.weights @ values), variance, 0.0, variance, errors, sample.names)


def corrected_mean(values: Floats, proxies: Proxies, sample: LabelledSample) -> Mean:
    """Return the prediction-powered mean of all items, from (n,) values of the labelled ones.

    Notes
    -----
    The mean is ``sum w (y - weight (f - F))``, F the mean of the proxy f over the items that stand
    for all: right whatever the proxy is worth. The weight is the regression of labels on proxies by
    group, for each group without that group, so that its fit adds no bias; it is shrunk by
    ``1 - 1 / t**2`` and 0 for t below 1, t being its statistic, so that noise costs next to
    nothing.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, PPI++ (2023); Zrnic and Candès, Cross-prediction-powered
    inference (2024); James and Stein (1961) for the shrinkage; Efron (1982) for the jackknife.
    """
    of_values, of_proxies = sample.deviations(values), sample.deviations(proxies.labelled)
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
    moved = sample.by_group(sample.stand_in * (proxies.labelled - proxies.means))
    value = float(sample.weights @ values - weights @ moved)
    of_labels = float(errors @ errors)
    variance = of_labels + weight**2 * of_rest
    errors = np.append(errors, weight * proxies.rest[: len(proxies.names)])
    names = np.append(sample.names, proxies.names)
    return Mean(value, variance, weight, of_labels, errors, names)


def _raised(errors: Floats, residuals: Floats, sample: LabelledSample) -> Floats:
    variance, least = float(errors @ errors), sample.least_variance(residuals)
    return errors * np.sqrt(least / variance) if 0 < variance < least else errors


def tuned_weights(yf: Floats, ff: Floats, of_rest: float) -> tuple[float, Floats]:
    """Return the shrunk regression weight of all groups, and for each that of the others."""
    # `yf` and `ff`, (G,): by group, products of deviations of labels and proxies, and squares of
    # those of proxies; `of_rest` sums the squares of groups without a label.
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


@dataclass(frozen=True, eq=False)
class DomainMean(Readable):
    """The mean of a quantity over a domain, with the judge and from labels alone.

    Attributes
    ----------
    mean, alone : Mean
        One and the same where no items stand for all.
    sample : LabelledSample
    n_items : int
    ends : tuple
    is_published : bool
        Whether the estimator is PPI++ as published.
    raters_worth : float or None
        Of a share, how many labels of one rater a label is worth: above 1 where raters disagree.
    disagreement : Disagreement
        Disagreement of labels with the model's calls, for the interval of `mean`.
    alone_disagreement : Disagreement
        That of labels with a constant call, for the interval of `alone`.
    """

    mean: Mean
    alone: Mean
    sample: LabelledSample
    n_items: int
    ends: Ends
    is_published: bool = False
    raters_worth: float | None = None
    disagreement: Disagreement = NO_DISAGREEMENT
    alone_disagreement: Disagreement = NO_DISAGREEMENT

    @property
    def n_labels(self) -> int:
        """Number of labelled items."""
        return len(self.sample.weights)

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of Student's t; infinite for the normal distribution."""
        return np.inf if self.is_published else self.sample.degrees_of_freedom

    def bounds(self, level: float, mean: Mean | None = None) -> IntervalParts:
        """Return what an interval is made of; the level tells if it is normal or Wilson's."""
        mean = self.mean if mean is None else mean
        (least, greatest), error = self.ends, np.nan
        if self.is_published and mean.variance > 0:
            half = t_quantile(level, np.inf) * float(np.sqrt(mean.variance))
            if mean.value - half >= least and mean.value + half <= greatest:
                error = float(np.sqrt(mean.variance))
        if self.sample.is_whole:
            error = 0.0
        value = min(max(mean.value, least), greatest)
        disagreement = self.disagreement if mean is self.mean else self.alone_disagreement
        alone = min(max(self.alone.value, least), greatest), self._effective(self.alone)
        limits = error, least, greatest, self.degrees_of_freedom
        return IntervalParts(value, self._effective(mean), *limits, *alone, disagreement)

    def _effective(self, mean: Mean) -> float:
        alone, sample = self.alone, self.sample
        if sample.is_whole:
            return np.inf
        if mean.variance == 0:
            return sample.n_alike
        n = effective_number(mean.value, mean.variance, self.ends)
        if self.raters_worth is not None and alone.variance > 0:
            # Groups that are alike by design are no reason to trust a share more than that.
            of_labels = effective_number(alone.value, alone.variance, self.ends)
            n *= min(sample.n_effective * self.raters_worth / of_labels, 1.0)
        return n

    def estimate(self, level: float) -> MeanEstimate:
        """Return the estimate with its interval."""
        both, worth = self.mean.variance > 0 and self.alone.variance > 0, np.nan
        if both:
            worth = self.n_labels * self.alone.variance / self.mean.variance
        if both and self.sample.is_finite:
            # Of these items the variance falls as 1 / n - 1 / N, down to nothing.
            worth /= self.n_items - self.n_labels
            worth = self.n_items * worth / (1 + worth)
        alone = self._estimate(self.alone, level, self.n_labels)
        return self._estimate(self.mean, level, worth, alone)

    def _estimate(
        self, mean: Mean, level: float, worth: float, labels_only: MeanEstimate | None = None
    ) -> MeanEstimate:
        value = min(max(mean.value, self.ends[0]), self.ends[1])
        low, high, error = *self.ends, np.nan
        if self.sample.has_spread:
            quantile = t_quantile(level, self.degrees_of_freedom)
            low, high = map(float, self.bounds(level, mean).at(quantile))
            error = float(np.sqrt(mean.variance))
        return MeanEstimate(value, low, high, error, worth, mean.weight, labels_only)

    def limits_at(self, quantile: float, numbers: NDArray[Any]) -> tuple[Any, Floats, Floats]:
        """Return the value, low and high ends with other numbers of labels, (k,) each."""
        mean, n, n_items = self.mean, self.n_labels, self.n_items
        numbers = np.clip(numbers, 1, n_items)
        left, grown = np.maximum(n_items - numbers, 1e-9), numbers / max(n, 1)
        if self.sample.is_whole:  # with fewer it is not known
            effective = effective_alone = np.where(numbers < n, 1e-9, np.inf)
        elif self.sample.is_finite:
            effective, effective_alone = (
                self._effective(one) * grown * (n_items - n) / left for one in (mean, self.alone)
            )
        else:
            effective = effective_alone = self._effective(self.alone) * grown
            if mean.variance > 0:
                of_rest = mean.variance - mean.of_labels
                variances = mean.of_labels * n / numbers + of_rest * (n_items - n) / left
                with_judge = self._effective(mean) * mean.variance / variances
                effective = np.maximum(effective, with_judge)
        value = np.clip(mean.value, *self.ends)
        low, high = limits_of(value, effective, quantile, self.ends)
        of_left = left / max(n_items - n, 1e-9) if self.sample.is_finite else np.ones(len(left))
        disagreement = self.disagreement.with_labels(grown, of_left)
        tail = t_tail(quantile, self.degrees_of_freedom)
        without = limits_of(self.alone.value, effective_alone, quantile, self.ends)
        low, high = disagreement.widened(value, low, high, without, tail)
        return value, np.maximum(low, self.ends[0]), np.minimum(high, self.ends[1])


_NONE, _NO_GROUP = np.empty(0), np.empty(0, dtype=np.int64)
_ZERO = Mean(0.0, 0.0, 0.0, 0.0, _NONE, _NO_GROUP)
NOTHING = DomainMean(
    _ZERO, _ZERO, LabelledSample(_NONE, _NONE, _NO_GROUP, _NO_GROUP, left=0.0), 0, (0.0, 0.0)
)
"""The number 0, which a quantity of pairs, of A less B, is compared with."""


def differences_of(
    first: NDArray[np.int64], second: NDArray[np.int64], means: Sequence[DomainMean], level: float
) -> tuple[Floats, ...]:
    """Compare means by their places: value, low, high, standard error and p-value of each pair."""
    # Intervals join those of the two means and allow for correlation; the p-value is one less the
    # level at which an interval ends at 0.
    variance, covariance, r, freedom = (of[first, second] for of in _together(means))
    error = np.sqrt(np.maximum(variance - 2 * covariance, 0.0))
    quantile = np.array([t_quantile(level, degrees) for degrees in freedom.tolist()])
    interval, other = (
        IntervalParts.stack([means[i].bounds(level) for i in place]) for place in (first, second)
    )

    def limits(quantile: Floats) -> tuple[Floats, Floats]:
        ends = [(of.value, *of.at(quantile)) for of in (interval, other)]
        return _difference_limits(ends, r)

    p = t_pvalues(ending_at_0(limits, quantile), 1.0, freedom)
    return (interval.value - other.value, *limits(quantile), error, p)


def limits_at(
    means: Sequence[DomainMean], level: float, numbers: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Ends of the interval of a mean, or of the difference of two, with so many labels in all."""
    *_, r, freedom = _together(means)
    quantile = t_quantile(level, means[0].degrees_of_freedom)
    if len(means) == 2:
        quantile = t_quantile(level, float(freedom[0, 1]))
    n_labels = sum(mean.n_labels for mean in means)
    ends = [mean.limits_at(quantile, mean.n_labels / n_labels * numbers) for mean in means]
    return ends[0][1:] if len(ends) == 1 else _difference_limits(ends, r[0, 1])


def _together(means: Sequence[DomainMean]) -> tuple[Floats, Floats, Floats, Floats]:
    """For every two means, (k, k): sums of variances, covariances, correlations, freedom."""
    from scipy.sparse import csr_array

    variance = np.array([mean.mean.variance for mean in means])
    degrees = np.array([mean.degrees_of_freedom for mean in means])
    of_groups = np.array([mean.sample.degrees_of_freedom for mean in means])
    column = np.concatenate([mean.mean.names for mean in means])
    row = np.repeat(np.arange(len(means)), [len(mean.mean.names) for mean in means])
    errors = np.concatenate([mean.mean.errors for mean in means])
    shape = len(means), int(column.max(initial=0)) + 1
    matrix = csr_array((errors, (row, column)), shape=shape)
    covariance = (matrix @ matrix.T).toarray()
    both, product = np.add.outer(variance, variance), np.sqrt(np.outer(variance, variance))
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.clip(np.where(product > 0, covariance / product, 0.0), -1.0, 1.0)
        terms = variance**2 / degrees
        spread = np.add.outer(terms, terms)
        freedom = np.where(spread > 0, both**2 / spread, np.inf)
    # Without any spread the groups of the smaller domain are all there is.
    freedom = np.where(both > 0, freedom, np.minimum.outer(of_groups, of_groups))
    return both, covariance, r, freedom
