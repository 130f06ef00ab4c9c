"""What error a plan expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from btdagg.report.figure import ReportFigure
from btdagg.report.style import WIDTH, series_styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from btdagg.online import Forecast, Plan

Points = Sequence[tuple[float, float]]
"""Votes per item, and the error expected."""


def plan_figure(found: Plan) -> ReportFigure:
    """Draw the expected error of a job against the votes that its items get, by rule.

    Parameters
    ----------
    found : Plan
    """
    rules = list(dict.fromkeys(row.rule for row in found.budgets))
    lines = {
        rule: [(row.votes, row.mae) for row in found.budgets if row.rule == rule] for rule in rules
    }
    return ReportFigure(
        "plan",
        "Expected error by votes",
        "Expected mean absolute error against votes of an item on average. The points of a rule "
        "are numbers of votes at most, which rise along its line.",
        partial(_draw, lines),
    )


def forecast_figure(found: Forecast) -> ReportFigure:
    """Draw the forecast error of a new task against its votes, by number of labels.

    Parameters
    ----------
    found : Forecast
    """
    sizes = list(dict.fromkeys(row.n_labels for row in found.rows))
    lines = {
        f"{size} labels": [(row.n, row.mae) for row in found.rows if row.n_labels == size]
        for size in sizes
    }
    return ReportFigure(
        "forecast",
        "Error of a new task by votes and labels",
        "Mean over tasks of the mean absolute error, against votes per item.",
        partial(_draw, lines),
    )


def _draw(lines: Mapping[str, Points]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(min(WIDTH, 4.6), 2.8), layout="constrained")
    axis = figure.subplots()
    for name, style in series_styles(list(lines)).items():
        votes, errors = zip(*lines[name], strict=True)
        axis.plot(votes, errors, label=name, color=style.colour, marker=style.marker, ls=style.line)
    axis.set_xlabel("votes per item")
    axis.set_ylabel("mean absolute error")
    figure.legend(loc="outside upper center", ncols=2)
    return figure
