"""Data sets of votes and labels: simulated, or public ones from their original source."""

from btdagg.datasets.regimes import REGIMES, Regime
from btdagg.datasets.rewardbench2 import LabelledPairs, load_rewardbench2
from btdagg.datasets.simulation import SimulatedVotes, simulate
from btdagg.datasets.sums import simulated_pairs
from btdagg.datasets.thurstone import Thurstone
from btdagg.datasets.wmt23 import load_wmt23

__all__ = [
    "REGIMES",
    "LabelledPairs",
    "Regime",
    "SimulatedVotes",
    "Thurstone",
    "load_rewardbench2",
    "load_wmt23",
    "simulate",
    "simulated_pairs",
]
