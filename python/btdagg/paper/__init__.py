"""What serves the paper's tables alone: its data sets, and its views of votes and labels."""

from btdagg.paper.conditions import OrderComparison, OrderComparisons, ablate, compare_orders
from btdagg.paper.parameters import (
    CorrectionRegime,
    FittedParameters,
    Spread,
    fitted_parameters,
    regime_of,
)
from btdagg.paper.raters import JudgeScores, LeaveOneOut, RaterScores, leave_one_rater_out
from btdagg.paper.ratings import Ratings, read_ratings
from btdagg.paper.rewardbench2 import LabelledPairs, load_rewardbench2
from btdagg.paper.ties import TieRates, tie_rates
from btdagg.paper.transfer import Transfer, transfer_matrix
from btdagg.paper.wmt23 import load_wmt23

__all__ = [
    "CorrectionRegime",
    "FittedParameters",
    "JudgeScores",
    "LabelledPairs",
    "LeaveOneOut",
    "OrderComparison",
    "OrderComparisons",
    "RaterScores",
    "Ratings",
    "Spread",
    "TieRates",
    "Transfer",
    "ablate",
    "compare_orders",
    "fitted_parameters",
    "leave_one_rater_out",
    "load_rewardbench2",
    "load_wmt23",
    "read_ratings",
    "regime_of",
    "tie_rates",
    "transfer_matrix",
]
