"""From counts to labels: every aggregator behind one protocol."""

from btdagg.aggregators.base import Aggregator, Needs, decisions_of, is_written, needs_of
from btdagg.aggregators.behaviour import voting_behaviour
from btdagg.aggregators.davidson import Davidson
from btdagg.aggregators.davidson_mae import DavidsonMAE
from btdagg.aggregators.decided import Decided
from btdagg.aggregators.isotonic import Isotonic
from btdagg.aggregators.majority import MajorityVote, majority_vote
from btdagg.aggregators.median import RoundedMedian, rounded_median
from btdagg.aggregators.neighbours import Neighbours
from btdagg.aggregators.panel import OneJudge, Panel
from btdagg.aggregators.registry import AGGREGATORS, aggregators_or_usual, by_name
from btdagg.aggregators.soft import SoftSelfConsistency, soft_self_consistency
from btdagg.aggregators.threshold import Threshold
from btdagg.aggregators.weighted import ConfidenceWeightedVote, confidence_weighted_vote

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "ConfidenceWeightedVote",
    "Davidson",
    "DavidsonMAE",
    "Decided",
    "Isotonic",
    "MajorityVote",
    "Needs",
    "Neighbours",
    "OneJudge",
    "Panel",
    "RoundedMedian",
    "SoftSelfConsistency",
    "Threshold",
    "aggregators_or_usual",
    "by_name",
    "confidence_weighted_vote",
    "decisions_of",
    "is_written",
    "majority_vote",
    "needs_of",
    "rounded_median",
    "soft_self_consistency",
    "voting_behaviour",
]
