"""Figures of the results of `btdagg.evaluation`."""

from btdagg.report.figures.behaviour import behaviour_figure
from btdagg.report.figures.curves import calibration_figures, vote_figures
from btdagg.report.figures.estimates import estimates_figure, systems_figure
from btdagg.report.figures.judges import positional_bias_figure
from btdagg.report.figures.labels import (
    condition_figure,
    confusion_figure,
    distribution_figure,
    gold_figure,
)
from btdagg.report.figures.plans import forecast_figure, plan_figure

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
    "vote_figures",
]
