"""How methods do on new items: cross-fitted losses, with intervals and a test by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.readable import Readable, readable
from btdagg.evaluation.protocol import Score
from btdagg.inference.estimate import Estimate
from btdagg.inference.intervals import ROUNDING, Ends
from btdagg.result import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray


_RISING = ("accuracy", "kappa")  # scores that are 1 less a mean loss


@readable
class Losses(NamedTuple):
    """Losses behind one score.

    Attributes
    ----------
    of_items : (m, n) array
        Loss of each of m methods on each of n items by models fitted without its group, averaged
        over the repetitions.
    of_refits : (m, n_refits) array
        Means over all items for models fitted to resampled groups.
    written : (m, n) array, optional
        Losses of the models fitted to all items, which are written.
    worst, least : float
        The largest and the smallest loss that there can be.
    """

    of_items: NDArray[np.float64]
    of_refits: NDArray[np.float64]
    written: NDArray[np.float64] | None = None
    worst: float = 1.0
    least: float = 0.0


def disagreement(
    gold: NDArray[Any], predicted: NDArray[np.float64], squares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return losses, (..., n), whose mean is one less the quadratic-weighted kappa."""
    # Each is kappa's with what the item adds to its error to first order, so that the mean varies
    # as kappa does (Fleiss, Cohen and Everitt, 1969). `squares` are those of `predicted`, or their
    # means.
    mean, of_gold = predicted.mean(axis=-1, keepdims=True), gold.mean()
    squared = squares - 2 * predicted * gold + gold**2
    by_chance = squares - 2 * (predicted * of_gold + gold * mean - mean * of_gold) + gold**2
    away, chance = (values.mean(axis=-1, keepdims=True) for values in (squared, by_chance))
    with np.errstate(divide="ignore", invalid="ignore"):  # kappa is undefined where chance is 0
        losses = squared / chance - away / chance**2 * (by_chance - chance)
    # Where labels of one side are all alike, each is 1 but for rounding.
    is_alike = (np.ptp(predicted, axis=-1, keepdims=True) == 0) | (np.ptp(gold) == 0)
    return np.where(is_alike & (chance > 0), 1.0, losses)


@dataclass(frozen=True, eq=False)
class NewItems(Readable):
    """Cross-fitted losses of the models that would be written, for new groups of items.

    Attributes
    ----------
    losses : mapping of str to Losses
        Losses behind ``"mae"``, ``"accuracy"``, ``"kappa"`` (quadratic-weighted) and ``"bias"``.
    groups : (n,) array
        Group of each item, as a number from 0.
    raters : NewItems or None
        Where several people labelled items: distances of each method's label, and last of another
        rater's, from a rater's.
    left : float
        Unlabelled share of a finite population, which scales its variances; 1 for new items.
    alpha : float or None
        Alpha of these raters; see `btdagg.evaluation.krippendorff_alpha`.

    Notes
    -----
    The variance of a mean loss has two parts: that of the groups' losses, as of a ratio estimator,
    and that over models fitted to resampled groups, since all items share one model. Intervals are
    those of `btdagg.inference.estimate.Estimate`, with one degree of freedom less than groups.

    Where items have one or two votes, few labels flip whole classes of them, and cross-fitted
    models differ in kind from the written one. The interval of a difference therefore covers a
    second one: of the written models' own losses, without the part of the refits. It is significant
    if both say so.

    References
    ----------
    Cochran, Sampling Techniques (1977), for ratios; Bates, Hastie and Tibshirani, Cross-validation:
    what does it estimate and how well does it do it? (2024), for why the first part is not enough;
    Laber and Murphy, Adaptive confidence intervals for the test error in classification (2011), for
    decisions that jump.
    """

    losses: Mapping[Score, Losses]
    groups: NDArray[np.int64]
    raters: NewItems | None = None
    alpha: float | None = None
    left: float = 1.0

    @cached_property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.groups.max()) + 1

    def interval(self, method: int, score: Score = "mae", level: float = 0.95) -> Interval:
        """Score of a method, by its number, with its interval."""
        losses = self.losses[score]
        ends = losses.least, losses.worst
        mean = self._mean(losses.of_items[method], losses.of_refits[method], ends)
        interval = mean.interval(level)
        if score == "kappa" and mean.variance == 0 and mean.value > losses.least:
            interval = Interval(mean.value, mean.value, mean.value)  # of a constant, by definition
        return Interval(*(1 - end for end in _turned(interval))) if score in _RISING else interval

    def intervals(self, method: int) -> dict[Score, Interval]:
        """Every score of a method with its 95% interval."""
        return {score: self.interval(method, score) for score in self.losses}

    def difference(
        self, method: int, other: int, score: Score = "mae", level: float = 0.95
    ) -> Interval:
        """Score of a method less that of another, with its interval."""
        intervals = [less.interval(level) for less in self._differences(method, other, score)]
        _, lows, highs = zip(*intervals, strict=True)
        of_losses = Interval(intervals[0].mean, min(lows), max(highs))
        return Interval(*(-end for end in _turned(of_losses))) if score in _RISING else of_losses

    def joined(self, other: NewItems, *, with_written: bool = False) -> NewItems:
        """Return these methods and others on the same items, if asked with losses `written`."""
        both: dict[Score, Losses] = {}
        for score, losses in self.losses.items():
            other_losses = other.losses[score]
            of_items = np.concatenate([losses.of_items, other_losses.of_items])
            of_refits = np.concatenate([losses.of_refits, other_losses.of_refits])
            pair = (losses.written, other_losses.written) if with_written else ()
            of_models = [part for part in pair if part is not None]
            written = np.concatenate(of_models) if of_models else None
            both[score] = Losses(of_items, of_refits, written, *losses[3:])
        return NewItems(both, self.groups)

    def pvalues(self, score: Score = "mae") -> NDArray[np.float64]:
        """P-values of each pair of methods, (m, m), by the test behind intervals of differences."""
        m = len(self.losses[score].of_items)
        pvalues = np.ones((m, m))
        for method, other in combinations(range(m), 2):
            halves = [
                (less.pvalue() / 2, less.value > 0)
                for less in self._differences(method, other, score)
            ]
            above = max(half if is_above else 1 - half for half, is_above in halves)
            below = max(1 - half if is_above else half for half, is_above in halves)
            pvalues[method, other] = pvalues[other, method] = min(2 * min(above, below), 1.0)
        return pvalues

    def _differences(self, method: int, other: int, score: Score) -> list[Estimate]:
        """Mean difference of cross-fitted losses, and that of the losses of written models."""
        of_items, of_refits, written, worst, least = self.losses[score]
        ends, refits = (least - worst, worst - least), of_refits[method] - of_refits[other]
        means = [self._mean(of_items[method] - of_items[other], refits, ends)]
        if written is not None:
            means.append(self._mean(written[method] - written[other], np.zeros(2), ends))
        return means

    def _mean(
        self, losses: NDArray[np.float64], refits: NDArray[np.float64], ends: Ends
    ) -> Estimate:
        mean, n, g = float(losses.mean()), len(losses), self.n_groups
        away = np.where(np.abs(losses - mean) > ROUNDING, losses - mean, 0.0)
        influence = np.bincount(self.groups, away) / n * np.sqrt(self.left * g / (g - 1))
        variance = float(influence @ influence + self.left * refits.var(ddof=1))
        mean = mean if abs(mean) > ROUNDING else 0.0
        variance = variance if variance > ROUNDING**2 else 0.0
        groups, n_alike = np.arange(g), g / self.left if self.left else np.inf
        return Estimate(mean, variance, influence, groups, ends, g - 1.0, n_alike)


def _turned(interval: Interval) -> Interval:
    return Interval(interval.mean, interval.high, interval.low)
