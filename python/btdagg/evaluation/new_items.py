"""How methods do on new items: cross-fitted losses, with intervals and a test by group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from btdagg._util.readable import readable
from btdagg.evaluation.intervals import Interval
from btdagg.evaluation.significance import ROUNDING, t_pvalues

if TYPE_CHECKING:
    from numpy.typing import NDArray

Score: TypeAlias = Literal["mae", "accuracy"]

_LEVEL = 0.95
_WORST = {"mae": 2.0, "accuracy": 1.0}


@readable
@dataclass(frozen=True, eq=False)
class NewItems:
    """What cross-fitting says of the models that would be written, on new groups of items.

    Attributes
    ----------
    errors : (m, n) array
        Absolute error of each of m methods on each of n items, averaged over the repetitions. The
        models that decide an item were fitted without its group.
    wrong : (m, n) array
        Share of the repetitions in which the item got a wrong label.
    refit_errors, refit_wrong : (m, n_refits) arrays
        Means over all items for models fitted to resampled groups.
    groups : (n,) array
        Group of each item, as a number from 0.
    own_errors, own_wrong : (m, n) arrays, optional
        Losses of the models that are fitted to all items, which are the ones that are written.

    Notes
    -----
    The variance of a mean loss has two parts. One is that of the groups' losses, as of a ratio
    estimator. The other is that of the model: a model fitted to other groups would have had another
    error, which all items share. It is the variance, over models fitted to resampled groups, of the
    error on one and the same set of items. Quantiles are of Student's t, with one degree of freedom
    less than there are groups. A difference that is the same in all g groups has no such variance:
    its p-value is that of their signs, ``2**(1 - g)``, and its interval lets as many groups differ
    otherwise, by as much as they can, as Wilson's interval of a share allows where none is seen.

    Items of one or two votes have few different counts, and a fit decides all items with the same
    counts alike. A few labels more or less then flip the decisions of a whole class of items, and
    cross-fitted models, of which some do and some do not, are of another kind than the one that is
    written. But there are few ways to decide, so that the losses of the written model on its own
    labels are hardly better than its losses on new items. The interval of a difference therefore
    reaches from the lower to the upper end of two: that of cross-fitted losses, and that of the
    written models' own losses, without the part of the variance that refits have. Where there are
    many counts, the written model does better on its own labels than on new items, and where there
    are few, cross-fitting misjudges what has been written; the truth has to be outside of both to
    be missed. A difference is significant where both say so, to the same side. Models that decide
    every item alike do not differ.

    References
    ----------
    Cochran, Sampling Techniques (1977), for ratios; Bates, Hastie and Tibshirani, Cross-validation:
    what does it estimate and how well does it do it? (2024), for why the first part is not enough;
    Laber and Murphy, Adaptive confidence intervals for the test error in classification (2011), for
    decisions that jump.
    """

    errors: NDArray[np.float64]
    wrong: NDArray[np.float64]
    refit_errors: NDArray[np.float64]
    refit_wrong: NDArray[np.float64]
    groups: NDArray[np.int64]
    own_errors: NDArray[np.float64] | None = None
    own_wrong: NDArray[np.float64] | None = None

    @cached_property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.groups.max()) + 1

    def interval(self, method: int, score: Score = "mae") -> Interval:
        """Mean absolute error or accuracy of a method, by its number, with its 95% interval."""
        losses, refits = self._losses(score)
        mean, error = self._standard_error(losses[method], refits[method])
        low, high = max(mean - self._t * error, 0.0), min(mean + self._t * error, _WORST[score])
        return (
            Interval(1 - mean, 1 - high, 1 - low)
            if score == "accuracy"
            else Interval(mean, low, high)
        )

    def difference(self, method: int, other: int, score: Score = "mae") -> Interval:
        """Score of a method less that of another, with its 95% interval."""
        mean, low, high = self._difference(method, other, score, self._t)
        return Interval(-mean, -high, -low) if score == "accuracy" else Interval(mean, low, high)

    def beside(self, other: NewItems) -> NewItems:
        """Return these methods and others, of which each has losses of the same items."""
        return NewItems(
            np.concatenate([self.errors, other.errors]),
            np.concatenate([self.wrong, other.wrong]),
            np.concatenate([self.refit_errors, other.refit_errors]),
            np.concatenate([self.refit_wrong, other.refit_wrong]),
            self.groups,
        )

    def to_best(self, score: Score = "mae") -> list[Interval]:
        """Score of each method less the best of the others, with intervals that hold together.

        They allow for the best having been chosen by the same items: with 95% probability all of
        them hold. A method whose interval does not go above 0 (below, of accuracy) is the best.

        References
        ----------
        Hsu, Constrained simultaneous confidence intervals for multiple comparisons with the best,
        Annals of Statistics 12 (1984); one-sided quantiles after Bonferroni, since the differences
        depend on each other in any way.
        """
        from scipy import stats

        m = len(self.errors)
        if m < 2:
            return [Interval(0.0, 0.0, 0.0)] * m
        quantile = float(stats.t.ppf(1 - (1 - _LEVEL) / (m - 1), self.n_groups - 1))
        found = []
        for one in range(m):
            others = [other for other in range(m) if other != one]
            several = [self._difference(one, other, score, quantile) for other in others]
            mean, low, high = np.max(several, axis=0).tolist()
            low, high = min(low, 0.0), max(high, 0.0)
            found.append(
                Interval(-mean, -high, -low) if score == "accuracy" else Interval(mean, low, high)
            )
        return found

    def pvalues(self, score: Score = "mae") -> NDArray[np.float64]:
        """P-values of every two methods, (m, m): the test that the intervals of differences are."""
        m = len(self.errors)
        found = np.ones((m, m))
        for one in range(m):
            for other in range(one):
                means, errors = np.transpose(self._means_and_errors(one, other, score))
                half = t_pvalues(means, errors, self.n_groups - 1) / 2
                above = np.where(means > 0, half, 1 - half)  # of the difference being above 0
                p = 2 * min(above.max(), (1 - above).max())
                found[one, other] = found[other, one] = min(p, 1.0)
        return found

    @cached_property
    def _t(self) -> float:
        from scipy import stats

        return float(stats.t.ppf((1 + _LEVEL) / 2, self.n_groups - 1))

    def _losses(self, score: Score) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if score == "mae":
            return self.errors, self.refit_errors
        return self.wrong, self.refit_wrong

    def _means_and_errors(self, method: int, other: int, score: Score) -> list[tuple[float, float]]:
        """Mean difference and its standard error: of cross-fitted losses, and of the own ones."""
        losses, refits = self._losses(score)
        found = [
            self._standard_error(losses[method] - losses[other], refits[method] - refits[other])
        ]
        own = self.own_errors if score == "mae" else self.own_wrong
        if own is not None:
            found.append(self._standard_error(own[method] - own[other], np.zeros(2)))
        return found

    def _difference(
        self, method: int, other: int, score: Score, quantile: float
    ) -> tuple[float, float, float]:
        """Mean difference of cross-fitted losses, and the ends of its interval."""
        several = self._means_and_errors(method, other, score)
        lows, highs = zip(*(self._ends(*each, quantile, score) for each in several), strict=True)
        return several[0][0], min(lows), max(highs)

    def _ends(
        self, mean: float, error: float, quantile: float, score: Score
    ) -> tuple[float, float]:
        if error > 0 or mean == 0:
            return mean - quantile * error, mean + quantile * error
        # All groups differ alike. Wilson's interval says how many others may do otherwise.
        unlike, worst = quantile**2 / (self.n_groups + quantile**2), _WORST[score]
        return mean - unlike * (worst + mean), mean + unlike * (worst - mean)

    def _standard_error(
        self, losses: NDArray[np.float64], refits: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Mean over items, and its standard error; both are 0 where they are but rounding."""
        mean, n = losses.mean(), len(losses)
        by_group = np.bincount(self.groups, weights=losses - mean)
        of_groups = (by_group**2).sum() * self.n_groups / (self.n_groups - 1) / n**2
        found = float(mean), float(np.sqrt(of_groups + refits.var(ddof=1)))
        return found[0] if abs(found[0]) > ROUNDING else 0.0, found[1] if found[
            1
        ] > ROUNDING else 0.0
