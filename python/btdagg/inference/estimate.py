"""An estimate: a number, and what each group of items adds to its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from btdagg._util.readable import Readable
from btdagg.inference.disagreement import Disagreement
from btdagg.inference.intervals import Ends, effective_number, limits_of, t_quantile, t_tail
from btdagg.result import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_FARTHEST = 14.0  # logarithm of the standard errors beyond which no interval ends
_FEW_STEPS, _SMOOTH, _MOST_STEPS = 4, 10, 100  # to where an interval ends
_CLOSE = 1e-10  # logarithms
_ROUNDING = 1e-12  # of a standard error
_N_DRAWS, _AT_ONCE = 20_000, 2_000  # of multipliers
_LEAST_REST = 1e-6  # of a standard error
_LIKE = 1e-9  # of what a group adds at most


def _no_influence() -> Floats:
    return np.empty(0)


def _no_groups() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Estimate(Readable):
    """A number with its error; differences and functions of estimates are estimates again.

    Attributes
    ----------
    value : float
    variance : float
        Squared standard error; 0 where all groups are alike, NaN where only one has a label. Of a
        forecast a (k,) array.
    influence : (G,) array
        Error that each group adds; squares sum to the variance but for parts of no group.
    groups : (G,) array of int
        Numbers of these groups, among those of all items.
    ends : tuple of two float
        The least and the greatest value that there can be.
    freedom : float
        Degrees of freedom of Student's t; infinite for the normal distribution.
    n_alike : float
        Number of labels to count where all groups are alike; of a difference or function infinite
        where they are not.
    is_symmetric : bool
        Whether the interval is that of the normal distribution where it is within the ends.
    unseen : Disagreement or None
        Allowance for errors of a judge that no label shows.
    alone : Estimate or None
        The same from labels alone; no allowance makes the interval wider than that one.
    terms : tuple of (float, Estimate)
        Of a difference or function, its slopes and the estimates that it is made of.
    signed : (k, k) array
        Correlations of the k terms, times the signs of their slopes.
    weight : float
        Weight of a judge's probabilities in it, from 0 to 1.
    forecast : LabelForecast or None
        How the variance falls as labels are added.

    Notes
    -----
    Without ends the interval is Student's t. With ends it is Wilson's on the effective number of
    labels: of as many labels, each one of the ends, the mean would vary as much. Where all groups
    are alike, a share of others may be at either end: the upper end of Wilson's interval for none
    of `n_alike`. The interval of a difference or function joins those of its terms, as correlated
    as their influence (MOVER); where errors cancel, it is no narrower than the normal one, and
    where labels are alike in all groups that terms share, than for a mean of such labels. The
    p-value is 1 less the level at which the interval reaches a number, so that they agree.

    References
    ----------
    Wilson (1927); Korn and Graubard (1998); Franco, Little, Louis and Slud (2019); Zou and Donner
    (2008).
    """

    value: float
    variance: Any
    influence: Floats = field(default_factory=_no_influence)
    groups: NDArray[np.int64] = field(default_factory=_no_groups)
    ends: Ends = (-np.inf, np.inf)
    freedom: float = np.inf
    n_alike: Any = np.inf
    is_symmetric: bool = False
    unseen: Disagreement | None = None
    alone: Estimate | None = None
    terms: tuple[tuple[float, Estimate], ...] = ()
    signed: Floats = field(default_factory=_no_influence)
    weight: float = 0.0
    forecast: LabelForecast | None = None

    @classmethod
    def known(cls, value: float) -> Estimate:
        """Return a number without any error."""
        return cls(value, 0.0, ends=(value, value))

    @property
    def error(self) -> float:
        """Standard error."""
        return float(np.sqrt(self.variance))

    def __sub__(self, other: Estimate) -> Estimate:
        return combined([(1.0, self), (-1.0, other)])

    def within(self, ends: Ends) -> Estimate:
        """Return the estimate of a number with other ends."""
        alone = None if self.alone is None else self.alone.within(ends)
        return replace(self, ends=ends, alone=alone)

    def inflated(self, factor: float) -> Estimate:
        """Return the estimate with so many times the variance."""
        if factor == 1:
            return self
        influence, variance = np.sqrt(factor) * self.influence, factor * self.variance
        forecast = None if self.forecast is None else self.forecast.inflated(factor)
        terms = tuple((slope, of.inflated(factor)) for slope, of in self.terms)
        inflated = {"influence": influence, "forecast": forecast, "terms": terms}
        return replace(self, variance=variance, **inflated)

    def interval(self, level: float = 0.95) -> Interval:
        """Return the value, within its ends, with its interval."""
        low, high = self.limits(t_quantile(level, self.freedom))
        return Interval(self._within_ends, float(low), float(high))

    def pvalue(self, null: float = 0.0) -> float:
        """Two-sided p-value of a number; at least the smallest float above 0."""
        if np.isnan(self._within_ends):
            return np.nan
        if self._within_ends == null:
            return 1.0
        if self.variance == 0 and np.isinf(self.ends).any() and not self.terms:
            p = 2.0**-self.freedom  # of as many groups with one sign
        else:
            p = float(2 * t_tail(self._quantile_to(null), self.freedom))
        return float(np.clip(p, np.finfo(np.float64).tiny, 1.0))

    def _quantile_to(self, null: float) -> float:
        """Quantile at which the interval reaches a number that is not the value."""
        value, (least, greatest) = self._within_ends, self.ends
        away, span = abs(value - null), greatest - least
        is_finite = np.isfinite(span)
        has_others = is_finite and self.variance > 0 and not self.influence.any()  # besides groups
        if self.terms or self.unseen is not None or self.is_symmetric or has_others:
            return self._reaching(null, away)
        if not is_finite:
            return float(away / self.error)
        if self.variance == 0:
            room = abs(value - (least if null < value else greatest))
            return float(np.sqrt(self.n_alike * away / (room - away))) if room > away else np.inf
        p = (null - least) / span
        n = float(effective_number(value, self.variance, self.ends))
        return float(away / span * np.sqrt(n / (p * (1 - p)))) if 0 < p < 1 else np.inf

    def _reaching(self, null: float, away: float) -> float:
        """Find the quantile whose interval reaches a number: a root of logarithms, by secants."""

        def excess(log_quantile: float) -> float:
            low, high = self.limits(float(np.exp(log_quantile)))
            half = self._within_ends - low if null < self._within_ends else high - self._within_ends
            return float(np.log(max(half, 1e-300) / away))

        near, far = -_FARTHEST, _FARTHEST
        point = float(np.log(away / self.error)) if self.error > 0 else 0.0
        slope, last = 1.0, (np.nan, np.nan)
        for step in range(_MOST_STEPS):
            if step == _FEW_STEPS and excess(_FARTHEST) < 0:
                return np.inf
            value = excess(point)
            near, far = (point, far) if value < 0 else (near, point)
            if abs(value) < _CLOSE or far - near < _CLOSE:
                break
            if point != last[0] and (value - last[1]) / (point - last[0]) > 0:
                slope = (value - last[1]) / (point - last[0])
            last, point = (point, value), point - value / slope
            has_steps = step > _SMOOTH and step % 2 == 1  # as bounds of whole items have
            if has_steps or not near < point < far:
                point = (near + far) / 2
        return float(np.exp(point if abs(value) < _CLOSE else near))

    def limits(self, quantile: float) -> tuple[Any, Any]:
        """Low and high ends of the interval, so many standard errors away if it were normal."""
        value, (least, greatest) = self._within_ends, self.ends
        if self.terms:
            halves = [of._halves(quantile, slope) for slope, of in self.terms]
            below, above = zip(*halves, strict=True)
            low = value - np.sqrt(_quadratic(below, self.signed))
            high = value + np.sqrt(_quadratic(above, self.signed))
            if (self.signed < 0).any():  # ends of unlike halves would cancel more than errors do
                half = quantile * np.sqrt(self.variance)
                low, high = np.minimum(low, value - half), np.maximum(high, value + half)
            if np.isfinite(greatest - least):
                low, high = self._as_of_alike(low, high, quantile)
        else:
            low, high = self._limits(quantile)
            if self.unseen is not None and not self.is_symmetric:
                widest = (low, high) if self.alone is None else self.alone._limits(quantile)
                tail = t_tail(quantile, self.freedom)
                low, high = self.unseen.widened(value, low, high, widest, tail)
        if np.isnan(value) and np.isfinite(greatest - least):
            return least, greatest
        return np.maximum(low, least), np.minimum(high, greatest)

    def with_labels(self, numbers: NDArray[Any]) -> Estimate:
        """Return what (k,) other numbers of labels in all would make of it, if the value stays."""
        if not self.terms:
            return self if self.forecast is None else self.forecast.of(self, numbers)
        n_labels = max(self.n_labels, 1)
        terms = [
            (slope, of.with_labels(of.n_labels / n_labels * numbers)) for slope, of in self.terms
        ]
        errors = [abs(slope) * np.sqrt(of.variance) for slope, of in terms]
        variance, n_alike = _quadratic(errors, self.signed), self.n_alike
        if np.isfinite(n_alike):
            n_alike = np.min(np.broadcast_arrays(*(of.n_alike for _, of in terms)), axis=0)
        return replace(self, variance=variance, n_alike=n_alike, terms=tuple(terms))

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        own = 0 if self.forecast is None else self.forecast.n_labels
        return own + sum(of.n_labels for _, of in self.terms)

    @property
    def n_groups(self) -> int:
        """Number of groups with a label."""
        own = 0 if self.forecast is None else self.forecast.n_groups
        return own + sum(of.n_groups for _, of in self.terms)

    @property
    def has_spread(self) -> bool:
        """Whether labels of two groups, or of all items, tell how far off it is."""
        return bool(np.all(~np.isnan(self.variance)))

    @property
    def is_known(self) -> bool:
        """Whether there is one value that it can have."""
        is_seen = np.isfinite(self.ends).all() and np.isinf(self.n_alike) and not self.terms
        return bool(self.ends[0] == self.ends[1] or (is_seen and np.all(self.variance == 0)))

    @property
    def shows_error(self) -> bool:
        """Whether groups differ, in it and in each of its terms."""
        terms = all(of.is_known or of.shows_error for _, of in self.terms)
        return bool(np.all(self.variance > 0)) and terms

    @property
    def n_items(self) -> int:
        """Number of items that it is of, with a label or without."""
        own = 0 if self.forecast is None else self.forecast.n_items
        return own + sum(of.n_items for _, of in self.terms)

    def _halves(self, quantile: float, slope: float) -> tuple[Any, Any]:
        """How far the interval of it, times a slope, reaches down and up."""
        low, high = self.limits(quantile)
        halves = abs(slope) * (self._within_ends - low), abs(slope) * (high - self._within_ends)
        return halves if slope > 0 else halves[::-1]

    @property
    def _within_ends(self) -> float:
        return float(min(max(self.value, self.ends[0]), self.ends[1]))

    def _limits(self, quantile: float) -> tuple[Any, Any]:
        """Ends without any allowance."""
        value, (least, greatest) = self._within_ends, self.ends
        variance, half = np.asarray(self.variance), quantile * np.sqrt(self.variance)
        if not np.isfinite(greatest - least):
            return value - half, value + half
        if greatest == least:
            return value, value
        n = effective_number(value, np.where(variance > 0, variance, 1.0), self.ends)
        low, high = limits_of(value, n, quantile, self.ends)
        if self.is_symmetric:
            fits = (value - half >= least) & (value + half <= greatest)
            below, above = np.maximum(value - half, least), np.minimum(value + half, greatest)
            low = np.where(fits, below, np.minimum(low, below))
            high = np.where(fits, above, np.maximum(high, above))
        low, high = (np.where(variance > 0, end, value) for end in (low, high))
        return self._as_of_alike(low, high, quantile)

    def _as_of_alike(self, low: Any, high: Any, quantile: float) -> tuple[Any, Any]:
        """Widen the ends to those of a mean of labels that are alike, where these are."""
        value, (least, greatest), variance = self._within_ends, self.ends, np.asarray(self.variance)
        is_alike = bool(self.terms) or not self.influence.any() or variance == 0
        if np.all(np.isinf(self.n_alike) | np.logical_not(is_alike)) and self.has_spread:
            return low, high
        n = np.where(is_alike, self.n_alike, np.inf)
        unlike = np.where(np.isnan(variance), 1.0, quantile**2 / (n + quantile**2))
        low = np.minimum(low, value - unlike * (value - least))
        return low, np.maximum(high, value + unlike * (greatest - value))


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
        0 where all labelled groups have one mean, NaN where only one group has a label.
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

    @classmethod
    def of(cls, estimate: Estimate, level: float) -> MeanEstimate:
        """Return an estimate with its interval at a level."""
        alone, forecast = estimate.alone, estimate.forecast
        interval = estimate.interval(level)
        if alone is None or forecast is None:
            return cls(*interval, estimate.error, float(estimate.n_labels))
        worth, n, n_items = np.nan, forecast.n_labels, forecast.n_items
        if estimate.variance > 0 and alone.variance > 0:
            worth = n * float(alone.variance / estimate.variance)
            if forecast.is_finite:  # the variance falls as 1 / n - 1 / N, down to nothing
                worth /= n_items - n
                worth = n_items * worth / (1 + worth)
        labels_only = cls(*alone.interval(level), alone.error, float(n))
        return cls(*interval, estimate.error, worth, estimate.weight, labels_only)

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


def combined(
    terms: Sequence[tuple[float, Estimate]], value: float | None = None, ends: Ends | None = None
) -> Estimate:
    """Return a function of estimates that has these slopes, by the delta method.

    By default it is their sum, times the slopes. Groups that they share are allowed for.
    """
    slopes, estimates = zip(*terms, strict=True)
    if value is None:
        value = sum(slope * of._within_ends for slope, of in terms)
    if ends is None:
        both = [sorted(slope * end for end in of.ends) for slope, of in terms]
        ends = sum(low for low, _ in both), sum(high for _, high in both)
    errors = [abs(slope) * np.sqrt(of.variance) for slope, of in terms]
    names, is_shared, influence = joint_influence(estimates)
    freedom = min(of.freedom for of in estimates)
    if not is_shared.any() and any(error != 0 for error in errors):  # by Welch and Satterthwaite
        squares = np.square(errors)
        spread = float(sum(squares**2 / [of.freedom for of in estimates]))
        freedom = float(squares.sum()) ** 2 / spread if spread > 0 else np.inf
    r = correlations(influence, np.array([of.error for of in estimates]))
    signed = r * np.outer(np.sign(slopes), np.sign(slopes))
    is_alike = _cancels(slopes, influence[:, is_shared])
    if not is_alike and any(of.alone is not None for of in estimates):
        _, is_shared, of_labels = joint_influence([of.alone or of for of in estimates])
        is_alike = _cancels(slopes, of_labels[:, is_shared])
    return Estimate(
        float(value),
        _quadratic(errors, signed),
        np.asarray(slopes) @ influence,
        names,
        ends,
        freedom,
        min(of.n_alike for of in estimates) if is_alike else np.inf,
        terms=tuple(terms),
        signed=signed,
    )


def _cancels(slopes: Any, influence: Floats) -> bool:
    """Tell if all groups that terms share, (k, G), add the same to a sum, and not to its terms."""
    sizes, sums = np.abs(slopes) @ np.abs(influence), slopes @ influence
    if not sizes.any() or (len(sums) == 1 and sums.any()):
        return False
    return bool(np.ptp(sums) <= _LIKE * sizes.max())


def _quadratic(values: Sequence[Any], matrix: Floats) -> Any:
    n = range(len(values))
    return np.maximum(sum(matrix[i, j] * values[i] * values[j] for i in n for j in n), 0.0)


def correlations(influence: Floats, errors: Floats) -> Floats:
    """Correlation of every two of k estimates by the (k, G) influence of all groups, (k, k)."""
    product, covariance = np.outer(errors, errors), influence @ influence.T
    r = np.divide(covariance, product, out=np.zeros_like(product), where=product > 0)
    np.fill_diagonal(r, 1.0)
    return np.clip(r, -1.0, 1.0)


def joint_influence(
    estimates: Sequence[Estimate],
) -> tuple[NDArray[np.int64], NDArray[np.bool_], Floats]:
    """Numbers of all groups, whether estimates share them, and what each adds to each, (k, G)."""
    numbers, place, n_times = np.unique(
        np.concatenate([of.groups for of in estimates]), return_inverse=True, return_counts=True
    )
    row = np.repeat(np.arange(len(estimates)), [len(of.groups) for of in estimates])
    influence = np.zeros((len(estimates), len(numbers)))
    np.add.at(influence, (row, place.reshape(-1)), np.concatenate([e.influence for e in estimates]))
    return numbers, n_times > 1, influence


@dataclass(frozen=True)
class LabelForecast:
    """How the error of a mean falls as labels are added.

    `of_labels` and `of_rest` are the parts of the variance of labels and of the items that stand
    for all; the second grows as fewer items are left.
    """

    n_labels: int
    n_groups: int
    n_items: int
    of_labels: float
    of_rest: float
    is_finite: bool

    def inflated(self, factor: float) -> LabelForecast:
        """Return the forecast of an error with so many times the variance."""
        return replace(self, of_labels=factor * self.of_labels, of_rest=factor * self.of_rest)

    def of(self, estimate: Estimate, numbers: NDArray[Any]) -> Estimate:
        """Return an estimate as (k,) numbers of labels would make it."""
        numbers = np.clip(numbers, 1, self.n_items)
        grown, n_left = numbers / max(self.n_labels, 1), self.n_items - self.n_labels
        left = np.maximum(self.n_items - numbers, 1e-9) / max(n_left, 1e-9)
        fall = (left if self.is_finite else 1.0) / grown
        span = estimate.ends[1] - estimate.ends[0]
        if n_left == 0 and self.is_finite:  # with fewer labels it is not known
            variance = np.where(numbers < self.n_labels, span**2, 0.0)
        else:
            of_rest = self.of_rest * (fall if self.is_finite else 1 / left)
            variance = self.of_labels * fall + of_rest
        alone = estimate.alone
        if alone is not None:
            alone = replace(alone, variance=alone.variance * fall, n_alike=alone.n_alike / fall)
            if estimate.variance > 0 and not self.is_finite and np.all(alone.variance > 0):
                variance = np.minimum(variance, alone.variance)
        unseen = None if estimate.unseen is None else estimate.unseen.with_labels(grown, left)
        return replace(
            estimate,
            variance=variance,
            n_alike=estimate.n_alike / fall,
            alone=alone,
            unseen=unseen,
        )


def jackknifed(
    function: Callable[[Floats], Floats], sums: Floats, sizes: Floats, ends: Ends
) -> Estimate:
    """Estimate a function of sums over items, by leaving out each group in turn.

    Parameters
    ----------
    function : callable
        Takes (k, m) sums and returns (k,) values, NaN where there is none.
    sums : (G, m) array
        Sums over the items of each group.
    sizes : (G,) array
        Number of items of each group that count; groups without any are left out.
    ends : tuple of two float
        The least and the greatest value that there can be.

    References
    ----------
    Efron, The Jackknife, the Bootstrap and Other Resampling Plans (1982).
    """
    groups = np.flatnonzero(sizes > 0)
    sums, sizes, n = sums[groups], sizes[groups], len(groups)
    whole = sums.sum(axis=0)
    value = float(function(whole[None])[0]) if n else np.nan
    if n < 2:
        return Estimate(value, np.nan, ends=ends)
    influence = np.sqrt((n - 1) / n) * (value - function(whole - sums))
    n_equal = float(sizes.sum() ** 2 / (sizes @ sizes))
    influence = influence if influence @ influence > _ROUNDING**2 else 0.0 * influence
    variance = float(influence @ influence)
    return Estimate(value, variance, influence, groups, ends, max(n_equal - 1, 1.0), n_equal)


class Together:
    """Estimates whose intervals hold together, and whose p-values allow for their number.

    Each group's influence is multiplied by a normal number (the multiplier bootstrap); the greatest
    of all estimates in standard errors then says at which level each interval has to hold. It is
    narrower than Bonferroni's where estimates share their errors, and never wider.

    References
    ----------
    Chernozhukov, Chetverikov and Kato, Gaussian approximations and multiplier bootstrap for maxima
    (2013); Westfall and Young (1993) for p-values.
    """

    def __init__(self, estimates: Sequence[Estimate], seed: int = 0) -> None:
        unknown = [of for of in estimates if of.has_spread and not of.is_known]
        self._n = len(unknown)
        if not unknown:
            return
        influence = joint_influence(unknown)[-1]
        variance = np.array([float(of.variance) for of in unknown])
        # Where groups are alike, they do not tell what estimates share.
        shows = np.array([of.shows_error for of in unknown])
        influence, variance = shows[:, None] * influence, np.where(shows, variance, 1.0)
        rest = np.sqrt(np.maximum(variance - (influence**2).sum(axis=1), 0.0) / variance)
        shares = influence / np.sqrt(variance)[:, None]
        # Groups together have as many dimensions as there are estimates, at most.
        values, vectors = np.linalg.eigh(shares @ shares.T)
        kept, varying = values > _ROUNDING * len(values), np.flatnonzero(rest > _LEAST_REST)
        shares = vectors[:, kept] * np.sqrt(values[kept])
        rng = np.random.default_rng(seed)
        self._greatest = np.zeros(_N_DRAWS)
        for start in range(0, _N_DRAWS, _AT_ONCE):
            drawn = rng.normal(size=(_AT_ONCE, shares.shape[1])) @ shares.T
            drawn[:, varying] += rest[varying] * rng.normal(size=(_AT_ONCE, len(varying)))
            self._greatest[start : start + _AT_ONCE] = np.abs(drawn).max(axis=1)
        self._greatest.sort()

    def level(self, level: float) -> float:
        """Level of each interval at which all hold together at another one."""
        if self._n < 2:
            return level
        beyond = 1 - level
        most = int(np.ceil(beyond * (_N_DRAWS + 1) - 1)) - 1  # greater ones that are significant
        of_draws = (
            float(2 * t_tail(self._greatest[_N_DRAWS - most - 1], np.inf)) if most >= 0 else 0.0
        )
        return max(1 - max(of_draws, beyond / self._n), level)

    def pvalue(self, pvalue: float) -> float:
        """Probability that any of them has such a p-value if there is nothing to be found."""
        if self._n < 2 or pvalue >= 1:
            return pvalue
        from scipy.special import ndtri

        n_greater = _N_DRAWS - np.searchsorted(self._greatest, -ndtri(pvalue / 2))
        return float(max(min((n_greater + 1) / (_N_DRAWS + 1), self._n * pvalue), pvalue))
