"""Shares and win rates over all items, with intervals that hold, from a few labels."""

from btdagg.estimates.differences import Difference
from btdagg.estimates.prediction_powered import Estimates, estimate
from btdagg.estimates.quantities import QUANTITIES, MeanEstimate
from btdagg.estimates.systems import SystemEstimate, SystemEstimates, estimate_systems

__all__ = [
    "QUANTITIES",
    "Difference",
    "Estimates",
    "MeanEstimate",
    "SystemEstimate",
    "SystemEstimates",
    "estimate",
    "estimate_systems",
]
