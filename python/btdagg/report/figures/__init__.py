"""Figures of results."""

from btdagg.report.figure import ReportFigure
from btdagg.report.figures.behaviour import behaviour_figure as behaviour_figure
from btdagg.report.figures.behaviour import grades_figure as grades_figure
from btdagg.report.figures.curves import curves_figure as curves_figure
from btdagg.report.figures.curves import sweep_figures as sweep_figures
from btdagg.report.figures.intervals import draw_intervals as draw_intervals
from btdagg.report.figures.intervals import intervals_figure as intervals_figure
from btdagg.report.figures.intervals import positional_bias_figure as positional_bias_figure
from btdagg.report.figures.labels import condition_figure as condition_figure
from btdagg.report.figures.labels import confusion_figure as confusion_figure
from btdagg.report.figures.labels import distribution_figure as distribution_figure
from btdagg.result import CurveFigure, Exhibit, IntervalFigure


def drawn(data: Exhibit) -> ReportFigure:
    """Return the figure of a result's data."""
    if isinstance(data, IntervalFigure):
        return intervals_figure(data)
    assert isinstance(data, CurveFigure)
    return curves_figure(data)
