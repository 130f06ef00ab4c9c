"""Fewer votes for the same labels: stopping rules, plans, running tallies, drift.

>>> from btdagg import DavidsonModel
>>> from btdagg.online import StoppingRule
>>> rule = StoppingRule.lossless(DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8), n=12)
>>> rule.stops_one(minus=0, tie=1, plus=9), rule.decide_one(minus=0, tie=1, plus=9)
(True, 1)
"""

from btdagg.online.drift import DriftMonitor, DriftReport, Facet
from btdagg.online.forecast import Forecast, ForecastRow, forecast
from btdagg.online.planner import (
    Plan,
    PlannedBudget,
    excess_by_labels,
    plan,
    plan_model,
    plan_rule,
)
from btdagg.online.predictive import VoteDistribution, fit_votes
from btdagg.online.rule import StoppedVotes, StoppingRule
from btdagg.online.tally import Conflict, OnlineTally, Settled

__all__ = [
    "Conflict",
    "DriftMonitor",
    "DriftReport",
    "Facet",
    "Forecast",
    "ForecastRow",
    "OnlineTally",
    "Plan",
    "PlannedBudget",
    "Settled",
    "StoppedVotes",
    "StoppingRule",
    "VoteDistribution",
    "excess_by_labels",
    "fit_votes",
    "forecast",
    "plan",
    "plan_model",
    "plan_rule",
]
