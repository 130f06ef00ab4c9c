"""How methods do on new items: cross-fitted losses, with intervals and a test by group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from btdagg.evaluation.intervals import Interval
from btdagg.readable import readable

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

    Notes
    -----
    The variance of a mean loss has two parts. One is that of the groups' losses, as of a ratio
    estimator. The other is that of the model: a model fitted to other groups would have had another
    error, which all items share. It is the variance, over models fitted to resampled groups, of the
    error on one and the same set of items. Quantiles are of Student's t, with one degree of freedom
    less than there are groups.

    References
    ----------
    Cochran, Sampling Techniques (1977), for ratios; Bates, Hastie and Tibshirani, Cross-validation:
    what does it estimate and how well does it do it? (2024), for why the first part is not enough.
    """

    errors: NDArray[np.float64]
    wrong: NDArray[np.float64]
    refit_errors: NDArray[np.float64]
    refit_wrong: NDArray[np.float64]
    groups: NDArray[np.int64]

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
        losses, refits = self._losses(score)
        mean, error = self._standard_error(
            losses[method] - losses[other], refits[method] - refits[other]
        )
        found = Interval(mean, mean - self._t * error, mean + self._t * error)
        return Interval(-mean, -found.high, -found.low) if score == "accuracy" else found

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

        losses, refits = self._losses(score)
        m = len(losses)
        if m < 2:
            return [Interval(0.0, 0.0, 0.0)] * m
        quantile = float(stats.t.ppf(1 - (1 - _LEVEL) / (m - 1), self.n_groups - 1))
        found = []
        for one in range(m):
            differences = np.array(
                [
                    self._standard_error(losses[one] - losses[other], refits[one] - refits[other])
                    for other in range(m)
                    if other != one
                ]
            )
            means, half = differences[:, 0], quantile * differences[:, 1]
            low, high = min((means - half).max(), 0.0), max((means + half).max(), 0.0)
            mean = float(means.max())
            found.append(
                Interval(-mean, -high, -low) if score == "accuracy" else Interval(mean, low, high)
            )
        return found

    def pvalues(self, score: Score = "mae") -> NDArray[np.float64]:
        """P-values of every two methods, (m, m): the test that the intervals of differences are."""
        from scipy import stats

        losses, refits = self._losses(score)
        found = np.ones((len(losses), len(losses)))
        for one in range(len(losses)):
            for other in range(one):
                mean, error = self._standard_error(
                    losses[one] - losses[other], refits[one] - refits[other]
                )
                p = 2 * stats.t.sf(abs(mean) / error, self.n_groups - 1) if error > 0 else 1.0
                found[one, other] = found[other, one] = p
        return found

    @cached_property
    def _t(self) -> float:
        from scipy import stats

        return float(stats.t.ppf((1 + _LEVEL) / 2, self.n_groups - 1))

    def _losses(self, score: Score) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if score == "mae":
            return self.errors, self.refit_errors
        return self.wrong, self.refit_wrong

    def _standard_error(
        self, losses: NDArray[np.float64], refits: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Mean over items, and its standard error."""
        mean, n = losses.mean(), len(losses)
        by_group = np.bincount(self.groups, weights=losses - mean)
        of_groups = (by_group**2).sum() * self.n_groups / (self.n_groups - 1) / n**2
        return float(mean), float(np.sqrt(of_groups + refits.var(ddof=1)))
