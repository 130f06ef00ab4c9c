"""How good methods are on labelled items: protocols, scores, and views of them."""

from btdagg.evaluation.bias import PositionalBias, positional_bias
from btdagg.evaluation.cells import Cell, Comparison, MethodScores
from btdagg.evaluation.comparison import compare, evaluate, label_distributions
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
from btdagg.evaluation.parts import labelled_tasks
from btdagg.evaluation.protocol import CROSS_FITTED, Protocol
from btdagg.evaluation.ranking import PAPER_TEST, GroupTest, Ranking, SplitTest
from btdagg.evaluation.scores import Scores
from btdagg.evaluation.splitters import CrossFit, RandomSplits, Split, Splitter, random_splits
from btdagg.evaluation.sweeps import calibration_curves, sweep_calibration, sweep_votes

__all__ = [
    "CROSS_FITTED",
    "PAPER_TEST",
    "Cell",
    "Comparison",
    "CrossFit",
    "Curve",
    "GroupTest",
    "Interval",
    "LabelledItems",
    "MethodScores",
    "NewItems",
    "PanelScores",
    "PositionalBias",
    "Protocol",
    "RandomSplits",
    "Ranking",
    "Scores",
    "Split",
    "SplitTest",
    "Splitter",
    "Sweep",
    "bootstrap_interval",
    "calibration_curves",
    "compare",
    "difference_interval",
    "evaluate",
    "evaluate_panel",
    "label_distributions",
    "labelled_tasks",
    "mean_interval",
    "positional_bias",
    "proportion_interval",
    "random_splits",
    "share_interval",
    "sweep_calibration",
    "sweep_votes",
]
