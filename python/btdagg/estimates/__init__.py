"""Shares and win rates over all items, with intervals that hold, from a few labels."""

from btdagg.estimates.differences import Difference
from btdagg.estimates.prediction_powered import Estimates, estimate
from btdagg.estimates.quantities import QUANTITIES, MeanEstimate

__all__ = ["QUANTITIES", "Difference", "Estimates", "MeanEstimate", "estimate"]
