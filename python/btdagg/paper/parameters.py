"""Fitted parameters over splits, and the regime that they say a judge and a task are in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from btdagg import Protocol, majority_vote
from btdagg._util.readable import Readable, readable
from btdagg.evaluation import RandomSplits, cross_scores
from btdagg.methods import Calibrated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg import Calibration
    from btdagg.methods import Aggregator
    from btdagg.votes import Items

FEW_SPLITS = Protocol(RandomSplits(n_splits=20))
"""The paper's 20 splits for fitted parameters and confusion matrices."""

# In the paper's table the tasks that its text calls High-Correction have lower quartiles of nu of
# 217 and more, those it calls Low-Correction upper quartiles of 9.2 and less.
_HIGH = 100.0
_LOW = 10.0

_NAMES = ("beta", "nu", "gamma")


@readable
class Spread(NamedTuple):
    """Mean and quartiles, by linear interpolation."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class FittedParameters(Readable):
    """Parameters of the fits to the calibration sets of random splits.

    Attributes
    ----------
    beta, nu, gamma : (n_splits,) arrays
    at_bounds : (n_splits, 3) array of bool
        Whether they are at a bound, in that order.
    gold_tie_share : float
        Share of gold labels that are ties.
    judge_tie_share : float
        Share of items whose majority vote is a tie.
    """

    beta: NDArray[np.float64]
    nu: NDArray[np.float64]
    gamma: NDArray[np.float64]
    at_bounds: NDArray[np.bool_]
    gold_tie_share: float
    judge_tie_share: float

    @property
    def spreads(self) -> dict[str, Spread]:
        """Mean and quartiles of beta, nu and gamma over splits, by name."""
        values = {name: getattr(self, name) for name in _NAMES}
        return {
            name: Spread(float(of.mean()), *np.quantile(of, [0.25, 0.75]).tolist())
            for name, of in values.items()
        }

    @property
    def regime(self) -> str:
        """The regime, by the quartiles of nu over splits.

        High-Correction where three quarters of the fits have a nu of 100 or more; Low-Correction
        where three quarters have one of 10 or less; else Mismatched.

        Notes
        -----
        The paper gives no rule. This one puts its eight tasks where its text has them, by the
        quartiles in its table; means would not do (the outlier's mean nu is 412.7, its text has
        33).
        """
        _, low, high = self.spreads["nu"]
        if low >= _HIGH:
            return "High-Correction"
        return "Low-Correction" if high <= _LOW else "Mismatched"


def fitted_parameters(
    items: Items,
    aggregator: Aggregator | None = None,
    *,
    protocol: Protocol = FEW_SPLITS,
) -> FittedParameters:
    """Fit the model to the calibration set of each of several random splits.

    Parameters
    ----------
    items : Items
        Counts and labels of n items.
    aggregator : Calibrated, optional
        Smoothing constants and bounds of the fit.
    protocol : Protocol
        At least two splits, by default the paper's 20.

    The paper's appendix on fitted parameters and its table of them.
    """
    protocol.require_intervals()
    fits: list[Calibration] = []

    def observe(fitted: Sequence[Aggregator]) -> None:
        fits.append(cast("Calibration", cast("Calibrated", fitted[0]).calibration))

    method = Calibrated(prior=None) if aggregator is None else aggregator
    cross_scores([items], [method], protocol.untested, observe=observe)
    values = np.array([[getattr(fit.model, name) for name in _NAMES] for fit in fits])
    beta, nu, gamma = values.T
    return FittedParameters(
        beta,
        nu,
        gamma,
        at_bounds=np.array([[name in fit.at_bounds for name in _NAMES] for fit in fits]),
        gold_tie_share=float(np.mean(items.label == 0)),
        judge_tie_share=float(np.mean(majority_vote(items.pooled) == 0)),
    )
