"""Simulated judges and gold labels that are not drawn from the Davidson model."""
# Judge and gold label see a difference in quality with errors, and call it a tie if it looks small
# (Thurstone 1927; with ties, Glenn and David 1960).

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.datasets.regimes import Regime

_NODES = 64  # of the quadrature over the difficulty of items


@dataclass(frozen=True)
class Thurstone:
    """Errors of a judge and of gold labels, for :func:`simulate`.

    All but `difficulty` are in standard deviations of the true differences over items. If they are
    0, all votes of an item are the same. The defaults are round numbers, not fitted to anything.

    Attributes
    ----------
    item_bias : float
        Error of the judge about an item, shared by its votes: more of them do not average it out.
    vote_noise : float
        Error of a single vote, on an item of average difficulty.
    difficulty : float
        How much the noise of votes differs between items: the standard deviation of its logarithm.
    position_bias : float
        Advantage of the response shown first; negative for an advantage of the second.
    gold_noise : float
        Error of the gold label about an item.

    References
    ----------
    Thurstone (1927), *A law of comparative judgment*; Glenn and David (1960), *Ties in
    paired-comparison experiments using a modified Thurstone-Mosteller model*.
    """

    item_bias: float = 0.5
    vote_noise: float = 0.5
    difficulty: float = 0.5
    position_bias: float = 0.1
    gold_noise: float = 0.3

    def draw(
        self, regime: Regime, n_items: int, n_votes: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Draw votes (n_items, n_votes) and labels (n_items,) of a task.

        Gold labels have the frequencies of the task, and ties among votes its `judge_tie_rate`; its
        beta, nu and gamma are not used.
        """
        mean, gold_tie = self._gold(regime)
        truth = rng.normal(mean, 1.0, n_items)
        labels = _called(truth + self.gold_noise * rng.standard_normal(n_items), gold_tie)
        seen = truth + self.item_bias * rng.standard_normal(n_items)
        noise = self.vote_noise * np.exp(self.difficulty * rng.standard_normal(n_items))
        shift = self.position_bias * np.resize([1, -1], n_votes)  # AB, BA, AB ...
        # Vote by vote, so that further votes change nothing that is drawn before them.
        errors = noise[:, None] * rng.standard_normal((n_votes, n_items)).T
        return _called(seen[:, None] + shift + errors, self._judge_tie(regime, mean)), labels

    def _gold(self, regime: Regime) -> tuple[float, float]:
        """Mean of the true differences, and the largest difference that gold calls a tie."""
        from scipy.special import ndtri

        minus, _, plus = regime.gold_shares
        spread = np.hypot(1.0, self.gold_noise)
        below, above = spread * ndtri(minus), -spread * ndtri(plus)
        return float(-(below + above) / 2), float((above - below) / 2)

    def _judge_tie(self, regime: Regime, mean: float) -> float:
        from scipy.optimize import brentq
        from scipy.special import ndtr

        rate = regime.judge_tie_rate
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        noise = self.vote_noise * np.exp(self.difficulty * nodes)
        spread = np.sqrt(1 + self.item_bias**2 + noise**2)
        means = mean + self.position_bias * np.array([[1.0], [-1.0]])

        def excess(tie: float) -> float:
            inside = ndtr((tie - means) / spread) - ndtr((-tie - means) / spread)
            return float(inside.mean(axis=0) @ weights / weights.sum() - rate)

        most = 1.0
        while excess(most) < 0:
            most *= 2
        return float(brentq(excess, 0.0, most))


def _called(difference: NDArray[np.float64], tie: float) -> NDArray[np.int8]:
    return np.where(np.abs(difference) <= tie, 0, np.sign(difference)).astype(np.int8)
