"""Simulated votes and labels, for demos and tests."""

from btdagg.datasets.regimes import REGIMES, Regime
from btdagg.datasets.simulation import SimulatedVotes, simulate
from btdagg.datasets.sums import simulated_pairs
from btdagg.datasets.thurstone import Thurstone

__all__ = [
    "REGIMES",
    "Regime",
    "SimulatedVotes",
    "Thurstone",
    "simulate",
    "simulated_pairs",
]
