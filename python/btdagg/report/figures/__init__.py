"""Figures of results."""

from btdagg.report.figures.behaviour import behaviour_figure as behaviour_figure
from btdagg.report.figures.behaviour import grades_figure as grades_figure
from btdagg.report.figures.bias import judge_bias_figure as judge_bias_figure
from btdagg.report.figures.curves import certificate_figure as certificate_figure
from btdagg.report.figures.curves import plan_figure as plan_figure
from btdagg.report.figures.curves import sweep_figures as sweep_figures
from btdagg.report.figures.intervals import change_figure as change_figure
from btdagg.report.figures.intervals import draw_intervals as draw_intervals
from btdagg.report.figures.intervals import estimates_figure as estimates_figure
from btdagg.report.figures.intervals import positional_bias_figure as positional_bias_figure
from btdagg.report.figures.intervals import systems_figure as systems_figure
from btdagg.report.figures.labels import condition_figure as condition_figure
from btdagg.report.figures.labels import confusion_figure as confusion_figure
from btdagg.report.figures.labels import distribution_figure as distribution_figure
