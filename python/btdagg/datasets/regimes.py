"""The paper's tasks: how the gold labels of each relate to the votes of its judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Family = Literal["High-Correction", "Low-Correction", "Mismatched"]


@dataclass(frozen=True)
class Regime:
    """A task of the paper: how its gold labels relate to its judge's votes.

    Attributes
    ----------
    name : str
        Key in `REGIMES`; also the stem of item ids.
    family : str
        The paper's name for the correction that the judge needs.
    beta, nu, gamma : float
        Davidson parameters from which labels are drawn, at alpha = kappa = 1; nu = exp(eta0).
    gold_counts : (int, int, int)
        Gold labels of the paper's data set in label order: minus (B is better), tie, plus.
    judge_tie_rate : float
        Share of items whose majority over twelve votes is a tie, or evenly split at the top.
    clear : (float, float, float)
        Dirichlet parameters of an item that is clear towards A, in label order; mirrored for B.
    contested : (float, float)
        Dirichlet parameters of a contested item: of either side, and of a tie.
    """

    name: str
    family: Family
    beta: float
    nu: float
    gamma: float
    gold_counts: tuple[int, int, int]
    judge_tie_rate: float
    clear: tuple[float, float, float]
    contested: tuple[float, float]

    @property
    def gold_shares(self) -> NDArray[np.float64]:
        """Shares of the gold labels, (3,) in label order."""
        return np.array(self.gold_counts) / np.float64(sum(self.gold_counts))


# beta, nu, gamma: the means of the paper's table of fitted parameters, but for two tasks, where the
# gold shares are out of reach with them (a test holds these numbers):
# - wmt-zh-en, means 0.87, 0.47, 0.56: a gold tie has probability 0.19 where all votes are ties and
#   less elsewhere; 18.3% are. Taken are the upper quartile of nu and the lower one of gamma.
# - rb2-factuality, mean nu 412.7 with quartiles 8.7 and 1000: a gold tie has probability 0.81 at
#   twelve votes for one side and more elsewhere; 53.3% are. Taken is the 33 of the paper's text.
# Gold: the paper's table of the ground truth distribution.
# Ties: the paper says that self-consistency predicts ~49% on wmt-zh-en and ~6% on rb2-factuality.
# The other rates are assumptions; low where the paper calls the judge overconfident, and high on
# rb2-ties, where 71.6% of gold labels are ties and majority vote agrees with 84%.
# Clear and contested: assumptions, chosen so that majority vote and the calibrated model compare as
# in the paper's MAE table. The clear items of the overconfident judges are all but unanimous, since
# with their nu and gamma one tie vote in twelve already makes a gold tie the likeliest label.
# fmt: off
_HIGH: Family = "High-Correction"
_LOW: Family = "Low-Correction"
_ALL = (  # beta, nu, gamma; gold; ties; clear; contested
    Regime("wmt-en-de", _LOW, 0.62, 1.40, 0.50,
           (214, 121, 175), 0.25, (0.05, 0.25, 40.0), (10.0, 6.0)),
    Regime("wmt-zh-en", _LOW, 0.87, 0.64, 0.22,
           (739, 336, 760), 0.49, (0.5, 4.0, 10.0), (3.0, 3.0)),
    Regime("rb2-precise-if", _LOW, 1.19, 14.3, 0.52,
           (268, 480, 212), 0.04, (0.1, 0.1, 40.0), (3.0, 0.3)),
    Regime("rb2-factuality", "Mismatched", 1.07, 33.0, 1.22,
           (233, 533, 234), 0.06, (2.0, 3.0, 18.0), (3.0, 0.2)),
    Regime("rb2-math", _HIGH, 2.07, 653.6, 1.63,
           (247, 498, 255), 0.03, (0.05, 0.05, 40.0), (3.0, 0.2)),
    Regime("rb2-focus", _HIGH, 1.74, 766.2, 1.82,
           (261, 495, 244), 0.03, (0.05, 0.05, 40.0), (3.0, 0.2)),
    Regime("rb2-safety", _HIGH, 1.41, 686.7, 1.94,
           (269, 498, 233), 0.03, (0.05, 0.05, 40.0), (3.0, 0.2)),
    Regime("rb2-ties", _HIGH, 2.85, 960.5, 2.20,
           (149, 716, 135), 0.58, (0.05, 0.3, 5.0), (3.0, 1.0)),
)
# fmt: on

REGIMES: Mapping[str, Regime] = MappingProxyType({regime.name: regime for regime in _ALL})
"""The paper's tasks by name."""
