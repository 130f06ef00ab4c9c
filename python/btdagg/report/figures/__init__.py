"""Every figure of the paper, from the results of `btdagg.evaluation`."""

from btdagg.report.figures.behaviour import behaviour_figure
from btdagg.report.figures.curves import calibration_figures, vote_figures
from btdagg.report.figures.estimates import estimates_figure, systems_figure
from btdagg.report.figures.judges import positional_bias_figure, tie_rate_figure
from btdagg.report.figures.labels import (
    condition_figure,
    confusion_figure,
    distribution_figure,
    gold_figure,
)
from btdagg.report.figures.plans import forecast_figure, plan_figure
from btdagg.report.figures.transfer import transfer_figure, transfer_limit

__all__ = [
    "behaviour_figure",
    "calibration_figures",
    "condition_figure",
    "confusion_figure",
    "distribution_figure",
    "estimates_figure",
    "forecast_figure",
    "gold_figure",
    "plan_figure",
    "positional_bias_figure",
    "systems_figure",
    "tie_rate_figure",
    "transfer_figure",
    "transfer_limit",
    "vote_figures",
]
