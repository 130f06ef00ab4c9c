"""Data sets of votes and labels: simulated, or public ones from their original source."""

from btdagg.datasets.rewardbench2 import Pairs, load_rewardbench2
from btdagg.datasets.simulation import REGIMES, Regime, SimulatedVotes, simulate
from btdagg.datasets.thurstone import Thurstone
from btdagg.datasets.wmt23 import load_wmt23

__all__ = [
    "REGIMES",
    "Pairs",
    "Regime",
    "SimulatedVotes",
    "Thurstone",
    "load_rewardbench2",
    "load_wmt23",
    "simulate",
]
