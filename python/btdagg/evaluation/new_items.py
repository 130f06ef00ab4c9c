"""How methods do on new items: cross-fitted losses, with intervals and a test by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.readable import Readable, readable
from btdagg.evaluation.protocol import Score
from btdagg.inference.intervals import ROUNDING, t_pvalues, t_quantile
from btdagg.result import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray


_LEAST_ERROR = 1e-300  # of what is known
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
    and that over models fitted to resampled groups, since all items share one model. Quantiles are
    of Student's t, with one degree of freedom less than groups. If a difference is equal in all
    groups, its variance is 0: the interval then assumes that as many groups could differ as the
    upper end of Wilson's interval for none of n, and the p-value is 1 minus the level at which this
    interval ends at 0.

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
        mean, error = self._standard_error(losses.of_items[method], losses.of_refits[method])
        half = t_quantile(level, self.n_groups - 1) * error
        interval = Interval(mean, max(mean - half, losses.least), min(mean + half, losses.worst))
        # All groups err alike; only kappa of a constant, 0 by its definition, is known then.
        if error == 0 and (score != "kappa" or mean == losses.least):
            away = mean - losses.least
            low, high = self._ends(away, error, self._worst(score), level, is_loss=True)
            interval = Interval(mean, losses.least + low, losses.least + high)
        return Interval(*(1 - end for end in _turned(interval))) if score in _RISING else interval

    def intervals(self, method: int) -> dict[Score, Interval]:
        """Every score of a method with its 95% interval."""
        return {score: self.interval(method, score) for score in self.losses}

    def difference(
        self, method: int, other: int, score: Score = "mae", level: float = 0.95
    ) -> Interval:
        """Score of a method less that of another, with its interval."""
        pairs = self._means_and_errors(method, other, score)
        worst = self._worst(score)
        lows, highs = zip(*(self._ends(*pair, worst, level) for pair in pairs), strict=True)
        of_losses = Interval(pairs[0][0], min(lows), max(highs))
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
        for method in range(m):
            for other in range(method):
                means, errors = np.transpose(self._means_and_errors(method, other, score))
                error_if_alike = np.sqrt(
                    np.abs(means) * self._worst(score) * self.left / self.n_groups
                )
                errors = np.where(errors > 0, errors, np.maximum(error_if_alike, _LEAST_ERROR))
                half = t_pvalues(means, errors, self.n_groups - 1) / 2
                above = np.where(means > 0, half, 1 - half)  # of the difference being above 0
                below = np.where(means > 0, 1 - half, half)
                p = 2 * min(above.max(), below.max())
                pvalues[method, other] = pvalues[other, method] = min(p, 1.0)
        return pvalues

    def _worst(self, score: Score) -> float:
        return self.losses[score].worst - self.losses[score].least

    def _means_and_errors(self, method: int, other: int, score: Score) -> list[tuple[float, float]]:
        """Mean difference and its standard error: of cross-fitted losses, and of the own ones."""
        of_items, of_refits, written, *_ = self.losses[score]
        refits = of_refits[method] - of_refits[other]
        pairs = [self._standard_error(of_items[method] - of_items[other], refits)]
        if written is not None:
            pairs.append(self._standard_error(written[method] - written[other], np.zeros(2)))
        return pairs

    def _ends(
        self, mean: float, error: float, worst: float, level: float, *, is_loss: bool = False
    ) -> tuple[float, float]:
        t = t_quantile(level, self.n_groups - 1)
        if error > 0 or (mean == 0 and not is_loss):
            return mean - t * error, mean + t * error
        # All groups are alike. Wilson's interval says how many others may not be: down to the
        # least loss, or to a difference of the worst the other way round.
        unlike = self.left * t**2 / (self.n_groups + self.left * t**2)
        least = 0.0 if is_loss else -worst
        return mean - unlike * (mean - least), mean + unlike * (worst - mean)

    def _standard_error(
        self, losses: NDArray[np.float64], refits: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Mean over items, and its standard error; both are 0 where they are but rounding."""
        mean, n = losses.mean(), len(losses)
        by_group = np.bincount(self.groups, weights=losses - mean)
        of_groups = (by_group**2).sum() * self.n_groups / (self.n_groups - 1) / n**2
        error = float(np.sqrt(self.left * (of_groups + refits.var(ddof=1))))
        return (
            float(mean) if abs(mean) > ROUNDING else 0.0,
            error if error > ROUNDING else 0.0,
        )


def _turned(interval: Interval) -> Interval:
    return Interval(interval.mean, interval.high, interval.low)
