"""The distribution of an item's votes, learned from the calibration items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from btdagg import _core
from btdagg._util.validation import as_integer, as_number, require_rows
from btdagg.votes.by_id import counts_and_sides

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.votes.scale import Scale

# Where the fitted parameters may lie: vaguer and sharper ones cannot be told apart by a few dozen
# items, and the kernels take 0.001 to 1000.
_LOG_BOUNDS = (float(np.log(0.05)), float(np.log(100.0)))

# A normal prior of the log parameters with this precision (a standard deviation of about 3): next
# to nothing where there are items, and 1 where a label has none.
_PRECISION = 0.1


@dataclass(frozen=True)
class VoteDistribution:
    """A mirror-symmetric mixture of Dirichlet-multinomials for the votes of an item.

    A component is a kind of item: votes have probabilities drawn from a Dirichlet distribution.
    Half of its weight is its mirror image, so that swapping A and B mirrors all probabilities.

    Parameters
    ----------
    components : sequence of (weight, (minus, tie, plus))
        Weights above 0, scaled to sum to 1, and Dirichlet parameters from 0.001 to 1000.

    Examples
    --------
    >>> VoteDistribution([(1, (1, 1, 1))]).next_vote(0, 0, 1)  # Laplace's rule of succession
    (0.25, 0.25, 0.5)
    """

    components: tuple[tuple[float, tuple[float, float, float]], ...]

    def __init__(self, components: Sequence[tuple[float, Sequence[float]]]) -> None:
        checked = []
        for row, (weight, alpha) in enumerate(components):
            minus, tie, plus = (as_number(x, "components", row=row) for x in alpha)
            checked.append((as_number(weight, "components", row=row), (minus, tie, plus)))
        _core.Predictive(checked)
        # Weights that sum to 1 up to rounding stay as they are, so that a copy is equal.
        largest = max(weight for weight, _ in checked)
        total = math.fsum(weight / largest for weight, _ in checked)
        if not math.isclose(total * largest, 1, rel_tol=1e-12):
            checked = [(weight / largest / total, alpha) for weight, alpha in checked]
        scaled = tuple(checked)
        object.__setattr__(self, "components", scaled)

    @cached_property
    def _kernel(self) -> _core.Predictive:
        return _core.Predictive(list(self.components))

    def __reduce__(self) -> tuple[type[VoteDistribution], tuple[object, ...]]:
        return type(self), (self.components,)

    def next_vote(self, minus: int, tie: int, plus: int) -> tuple[float, float, float]:
        """Probabilities that the next vote is -1, 0, +1 after these votes."""
        counts = {"minus": minus, "tie": tie, "plus": plus}
        return self._kernel.next(*(as_integer(count, name, 0) for name, count in counts.items()))

    def draw(self, n_items: int, n_votes: int, *, seed: int) -> NDArray[np.int8]:
        """Draw votes of items, (n_items, n_votes) of -1, 0, +1 in order."""
        rng = np.random.default_rng(as_integer(seed, "seed", 0))
        shape = (as_integer(n_items, "n_items", 0), as_integer(n_votes, "n_votes", 0))
        weights = [weight for weight, _ in self.components]
        kinds = rng.choice(len(weights), size=shape[0], p=np.array(weights) / sum(weights))
        chances = np.empty((shape[0], 3))
        for number, (_, alpha) in enumerate(self.components):
            of_kind = kinds == number
            chances[of_kind] = rng.dirichlet(alpha, size=np.count_nonzero(of_kind))
        mirrored = rng.random(shape[0]) < 0.5
        chances[mirrored] = chances[mirrored][:, ::-1]
        uniform = rng.random(shape)
        not_minus = uniform >= chances[:, :1]
        plus = uniform >= chances[:, :2].sum(axis=1, keepdims=True)
        votes: NDArray[np.int8] = np.add(not_minus, plus, dtype=np.int8) - np.int8(1)
        return votes


def fit_votes(
    counts: ArrayLike,
    labels: ArrayLike,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
) -> VoteDistribution:
    """Fit the distribution of votes to the items that a model is calibrated on.

    There is one symmetric kind of item for gold ties, and one for gold wins, mirrored for losses.
    Dirichlet parameters maximize the likelihood with a weak normal prior on their logarithms;
    weights are the shares of the labels, with one item of each added. `counts` (n, 3) may differ in
    their number of votes. Counts of votes with strength, which are not whole, are refused: of the
    rules they have the lossless one, which needs no distribution. `scale` and `label_scale` are as
    for `btdagg.calibrate`.
    """
    checked, gold = counts_and_sides(counts, labels, scale, label_scale)
    expected = (
        "whole votes; votes with strength have the lossless rule, which needs no distribution"
    )
    require_rows(checked % 1 == 0, checked, "counts", expected)
    whole = checked.astype(np.float64)
    # Either side first, so that swapping A and B changes no bit.
    tied = whole[gold == 0]
    tied[:, ::2] = np.sort(tied[:, ::2], axis=1)
    won = np.concatenate([whole[gold == 1], whole[gold == -1][:, ::-1]])
    share = (len(tied) + 1) / (len(gold) + 3)
    return VoteDistribution(
        [
            (share, _fit_dirichlet(tied, np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))),
            (1 - share, _fit_dirichlet(won, np.eye(3))),
        ]
    )


def _fit_dirichlet(counts: NDArray[np.float64], design: NDArray[np.float64]) -> list[float]:
    """Dirichlet parameters whose logarithms are combinations of the rows of `design`."""
    from scipy.optimize import minimize
    from scipy.special import digamma

    rows, weights = np.unique(counts, axis=0, return_counts=True)
    totals = rows.sum(axis=1)

    def objective(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        alpha = np.exp(x @ design)
        total = alpha.sum()
        slope = digamma(total) - digamma(total + totals)
        by_alpha = slope[:, None] + digamma(alpha + rows) - digamma(alpha)
        value = -float(weights @ _log_chances(rows, alpha)) + _PRECISION / 2 * float(x @ x)
        return value, -design @ ((weights @ by_alpha) * alpha) + _PRECISION * x

    start = np.zeros(len(design))
    bounds = [_LOG_BOUNDS] * len(design)
    optimum = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return [float(a) for a in np.exp(optimum.x @ design)]


def _log_chances(counts: NDArray[np.float64], alpha: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import gammaln

    totals, total = counts.sum(axis=1), alpha.sum()
    ways = gammaln(totals + 1) - gammaln(counts + 1).sum(axis=1)
    rising = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)
    return np.asarray(ways + rising - (gammaln(total + totals) - gammaln(total)))
