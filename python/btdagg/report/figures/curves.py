"""Scores against votes and labels: as measured, and as a plan expects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from btdagg._core import InputError
from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    IN_LEGEND,
    WIDTH,
    MethodStyle,
    abridged,
    draw_legend,
    grid_of,
    method_styles,
    series_styles,
    wrapped,
)
from btdagg.report.wording import basis_of, key_of, not_evaluated, stem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from btdagg.evaluation import Scores
    from btdagg.evaluation.cells import Sweep
    from btdagg.online import Forecast, Plan

Key = tuple[str, ...]
Score = Literal["mae", "accuracy"]

_NAMES = {"mae": "mean absolute error", "accuracy": "pairwise accuracy"}
_IN_TITLE = 30
_ROWS = 6  # of panels in a figure
_BESIDE = 3
_LEAST = 0.05  # of an axis of scores from end to end


def vote_figures(found: Scores) -> tuple[ReportFigure, ...]:
    """Draw MAE and accuracy against the number of votes: one figure, a row of panels per task.

    Parameters
    ----------
    found : Scores
        From `evaluate` at several numbers of votes. Where it goes by more than the task there is
        a figure for each of the other values.

    Raises
    ------
    InputError
        If there is no sweep.
    """
    return _figures(found, "votes", "the number of votes", "", _draw_votes, _ROWS)


def calibration_figures(found: Scores) -> tuple[ReportFigure, ...]:
    """Draw MAE against the number of labels calibrated on, with a panel for each task.

    Parameters
    ----------
    found : Scores
        From `sweep_calibration`. Where it goes by more than the task there is a figure for each of
        the other values.

    Raises
    ------
    InputError
        If there is no sweep.
    """
    more = " The items evaluated on are the same for every number."
    most = _ROWS * _BESIDE
    points = "the number of labels calibrated on"
    return _figures(found, "calibration", points, more, _draw_calibration, most)


def _figures(
    found: Scores,
    name: str,
    points: str,
    more: str,
    draw: Callable[[Sequence[str], Sequence[Sweep]], Figure],
    most: int,
) -> tuple[ReportFigure, ...]:
    """Make a figure for each value of what is no task, with at most so many sweeps."""
    if not found.cells:
        raise InputError("there is no sweep: nothing could be evaluated")
    place = found.by.index("task") if "task" in found.by else len(found.by)
    groups: dict[Key, list[Sweep]] = {}
    for sweep in found.sweeps:
        groups.setdefault((*sweep.key[:place], *sweep.key[place + 1 :]), []).append(sweep)
    figures = []
    for key, of_key in groups.items():
        for first in range(0, len(of_key), most):
            sweeps = of_key[first : first + most]
            page = (f"page {first // most + 1}",) if len(of_key) > most else ()
            several = len(groups) > 1 or len(of_key) > most
            compared = [cell.comparison for s in sweeps for cell in s.cells]
            cross_fitted = compared[0].methods[0].of_new_items is not None
            whose = "for new items" if cross_fitted else "of the mean"
            figure = ReportFigure(
                stem(name, *key, *page),
                ", ".join((f"Error against {points}", *key, *page)),
                f"Means over {basis_of(compared).over} with 95% intervals {whose}.{more}"
                + abridged(_methods(sweeps), IN_LEGEND, 1)
                + not_evaluated(key for key, _ in found.skipped),
                partial(draw, found.by, sweeps),
                family=name if several else "",
                choice=", ".join((*key, *page)),
            )
            figures.append(figure)
    return tuple(figures)


def _methods(sweeps: Sequence[Sweep]) -> list[str]:
    return list(dict.fromkeys(curve.name for sweep in sweeps for curve in sweep.curves))


def _panel_titles(by: Sequence[str], sweeps: Sequence[Sweep]) -> list[str]:
    """The task, where there is one; else all of the key."""
    place = by.index("task") if "task" in by else None
    names = [key_of(s.key) if place is None else s.key[place] for s in sweeps]
    shown = wrapped(names, _IN_TITLE)
    return [shown[name] if by else "" for name in names]


def _draw_votes(by: Sequence[str], sweeps: Sequence[Sweep]) -> Figure:
    from matplotlib.figure import Figure

    styles = method_styles(_methods(sweeps))
    height = 2.5 if len(sweeps) == 1 else 1.75 * len(sweeps)
    size = (WIDTH, height + 0.25 * -(-len(styles) // 4))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(sweeps), 2, squeeze=False, sharex=True)
    for (left, right), sweep, title in zip(panels, sweeps, _panel_titles(by, sweeps), strict=True):
        for axis, score in ((left, "mae"), (right, "accuracy")):
            _lines(axis, sweep, score, styles)
            axis.set_ylabel(_NAMES[score])
            axis.set_xticks(_some(sweep.points))
        left.set_title(title, loc="left")
    for axis in panels[-1]:
        axis.set_xlabel("votes per item")
    draw_legend(figure, styles)
    return figure


def _draw_calibration(by: Sequence[str], sweeps: Sequence[Sweep]) -> Figure:
    from matplotlib.figure import Figure

    styles = method_styles(_methods(sweeps))
    n_rows, beside = grid_of(len(sweeps), _BESIDE)
    size = (WIDTH if beside > 1 else WIDTH / 2, 0.3 + 1.9 * n_rows)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(n_rows, beside, squeeze=False).ravel()
    titles = _panel_titles(by, sweeps)
    for place, (axis, sweep, title) in enumerate(zip(panels, sweeps, titles, strict=False)):
        _lines(axis, sweep, "mae", styles)
        axis.set_title(title)
        axis.set_xticks(_some(sweep.points, 5))
        if place % beside == 0:
            axis.set_ylabel(_NAMES["mae"])
        if place + beside >= len(sweeps):
            axis.set_xlabel("labels calibrated on")
    for axis in panels[len(sweeps) :]:
        axis.set_visible(False)
    draw_legend(figure, styles)
    return figure


def _lines(axis: Axes, sweep: Sweep, score: str, styles: Mapping[str, MethodStyle]) -> None:
    for place, curve in enumerate(sweep.curves):
        style = styles[curve.name]
        # Where markers coincide those below show around those above.
        size = 6.5 - 2.5 * place / max(1, len(sweep.curves) - 1)
        means, low, high = zip(*getattr(curve, f"{score}_intervals"), strict=True)
        axis.plot(
            sweep.points,
            means,
            color=style.colour,
            marker=style.marker,
            linestyle=style.line,
            markersize=size,
            markeredgecolor="white",
            markeredgewidth=0.4,
        )
        axis.fill_between(sweep.points, low, high, color=style.colour, alpha=0.18, linewidth=0)
    axis.grid(axis="y", color="#E5E5E5", linewidth=0.5)
    axis.set_axisbelow(True)
    axis.margins(x=0.04)
    bottom, top = axis.get_ylim()
    if top - bottom < _LEAST:  # a difference that means nothing is not to look like much
        middle = (bottom + top) / 2
        axis.set_ylim(middle - _LEAST / 2, middle + _LEAST / 2)
    axis.locator_params(axis="y", nbins=5)


def _some(points: Sequence[int], most: int = 8) -> list[int]:
    """Evenly spaced ticks, the last point among them."""
    step = -(-len(points) // most)
    return list(points[::-1][::step][::-1])


Points = Sequence[tuple[float, float]]
"""Votes per item, and the error expected."""


def plan_figure(found: Plan) -> ReportFigure:
    """Draw the expected error of a job against the votes that its items get, by rule."""
    rules = list(dict.fromkeys(row.rule for row in found.budgets))
    lines = {
        rule: [(row.votes, row.mae) for row in found.budgets if row.rule == rule] for rule in rules
    }
    return ReportFigure(
        "plan",
        "Expected error by votes",
        "Expected mean absolute error against votes of an item on average. The points of a rule "
        "are numbers of votes at most, which rise along its line.",
        partial(_draw_plan, lines),
    )


def forecast_figure(found: Forecast) -> ReportFigure:
    """Draw the forecast error of a new task against its votes, by number of labels."""
    sizes = list(dict.fromkeys(row.n_labels for row in found.rows))
    lines = {
        f"{size} labels": [(row.n, row.mae) for row in found.rows if row.n_labels == size]
        for size in sizes
    }
    return ReportFigure(
        "forecast",
        "Error of a new task by votes and labels",
        "Mean over tasks of the mean absolute error, against votes per item.",
        partial(_draw_plan, lines),
    )


def _draw_plan(lines: Mapping[str, Points]) -> Figure:
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
