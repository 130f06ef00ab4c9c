"""How good methods are on labelled items: protocols, scores, and views of them."""

from btdagg.evaluation.bias import PositionalBias, positional_bias
from btdagg.evaluation.cells import Cell, Comparison, MethodScores
from btdagg.evaluation.comparison import compare, evaluate, label_distributions
from btdagg.evaluation.conditions import OrderComparison, OrderComparisons, ablate, compare_orders
from btdagg.evaluation.curves import Curve, Sweep
from btdagg.evaluation.intervals import (
    Interval,
    bootstrap_interval,
    difference_interval,
    mean_interval,
    proportion_interval,
    share_interval,
)
from btdagg.evaluation.items import LabelledItems
from btdagg.evaluation.new_items import NewItems
from btdagg.evaluation.panel import PanelScores, evaluate_panel
from btdagg.evaluation.parameters import (
    CorrectionRegime,
    FittedParameters,
    Spread,
    fitted_parameters,
    regime_of,
)
from btdagg.evaluation.parts import labelled_tasks
from btdagg.evaluation.protocol import CROSS_FITTED, Protocol
from btdagg.evaluation.ranking import PAPER_TEST, GroupTest, Ranking, SplitTest
from btdagg.evaluation.raters import JudgeScores, LeaveOneOut, RaterScores, leave_one_rater_out
from btdagg.evaluation.scores import Scores
from btdagg.evaluation.splitters import CrossFit, RandomSplits, Split, Splitter, random_splits
from btdagg.evaluation.sweeps import calibration_curves, sweep_calibration, sweep_votes
from btdagg.evaluation.ties import TieRates, tie_rates
from btdagg.evaluation.transfer import Transfer, transfer_matrix

__all__ = [
    "CROSS_FITTED",
    "PAPER_TEST",
    "Cell",
    "Comparison",
    "CorrectionRegime",
    "CrossFit",
    "Curve",
    "FittedParameters",
    "GroupTest",
    "Interval",
    "JudgeScores",
    "LabelledItems",
    "LeaveOneOut",
    "MethodScores",
    "NewItems",
    "OrderComparison",
    "OrderComparisons",
    "PanelScores",
    "PositionalBias",
    "Protocol",
    "RandomSplits",
    "Ranking",
    "RaterScores",
    "Scores",
    "Split",
    "SplitTest",
    "Splitter",
    "Spread",
    "Sweep",
    "TieRates",
    "Transfer",
    "ablate",
    "bootstrap_interval",
    "calibration_curves",
    "compare",
    "compare_orders",
    "difference_interval",
    "evaluate",
    "evaluate_panel",
    "fitted_parameters",
    "label_distributions",
    "labelled_tasks",
    "leave_one_rater_out",
    "mean_interval",
    "positional_bias",
    "proportion_interval",
    "random_splits",
    "regime_of",
    "share_interval",
    "sweep_calibration",
    "sweep_votes",
    "tie_rates",
    "transfer_matrix",
]
