"""Shares and win rates over all items, with intervals that hold, from a few labels."""

from btdagg.estimates.quantities import QUANTITIES, MeanEstimate

__all__ = ["QUANTITIES", "MeanEstimate"]
