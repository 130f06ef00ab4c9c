"""Curves: scores against votes and labels, and those of any result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from btdagg._util.wording import stem, wrapped
from btdagg.evaluation.tables import swept_over
from btdagg.evaluation.wording import basis_of, key_of, not_evaluated
from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    FAINT,
    WIDTH,
    draw_legend,
    series_styles,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from btdagg.evaluation import Scores
    from btdagg.evaluation.cells import Cell
    from btdagg.result import CurveFigure, Panel

Key = tuple[str, ...]

_SCORES = {"mae": "mean absolute error", "accuracy": "accuracy"}
_IN_TITLE = 30
_TICKS = 8
_BESIDE = 3  # panels in a row
_MARKED = 20  # points of a curve that are marked
_LEAST = 0.05  # of an axis of scores from end to end


def sweep_figures(scores: Scores) -> dict[str, ReportFigure]:
    """Draw MAE and accuracy against the number of votes, or of labels: a row of panels per task.

    Parameters
    ----------
    scores : Scores
        From `evaluate` at several numbers of votes, or of labels. Besides the task, each value,
        such as the judge, has its figure.

    Returns
    -------
    dict of str to ReportFigure
        By those values.
    """
    over = swept_over(scores)
    place = scores.by.index("task") if "task" in scores.by else len(scores.by)
    groups: dict[Key, dict[str, Sequence[Cell]]] = {}
    for key, cells in scores.by_key().items():
        group, panel = (*key[:place], *key[place + 1 :]), key[place : place + 1]
        groups.setdefault(group, {})[panel[0] if panel else key_of(key)] = cells
    return {
        ", ".join(key): ReportFigure(
            stem(over.name, *key),
            ", ".join((f"Error against the number of {over.words}", *key)),
            _note(sweeps) + over.note + not_evaluated(key for key, _ in scores.skipped),
            partial(_draw, sweeps, over.axis),
        )
        for key, sweeps in groups.items()
    }


def _note(sweeps: Mapping[str, Sequence[Cell]]) -> str:
    cells = [cell for of_part in sweeps.values() for cell in of_part]
    whose = "of the mean" if cells[0].new_items is None else "for new items"
    return f"Means over {basis_of(cells).over} with 95% intervals {whose}."


def _draw(sweeps: Mapping[str, Sequence[Cell]], label: str) -> Figure:
    from matplotlib.figure import Figure

    methods = (method for cells in sweeps.values() for method in cells[0].methods)
    styles = series_styles(method.name for method in methods)
    height = 2.5 if len(sweeps) == 1 else 1.75 * len(sweeps)
    size = (WIDTH, height + 0.25 * -(-len(styles) // 4))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(sweeps), 2, squeeze=False, sharex=True)
    titles = wrapped(sweeps, _IN_TITLE)
    for axes, (name, cells) in zip(panels, sweeps.items(), strict=True):
        points = [cell.point for cell in cells]
        for axis, (score, written) in zip(axes, _SCORES.items(), strict=True):
            _lines(axis, cells, score, styles)
            axis.set_ylabel(written)
            step = -(-len(points) // _TICKS)
            axis.set_xticks(points[::-1][::step])
        axes[0].set_title(titles[name], loc="left")
    for axis in panels[-1]:
        axis.set_xlabel(label)
    draw_legend(figure, styles)
    return figure


def _lines(
    axis: Axes, cells: Sequence[Cell], score: Any, styles: Mapping[str, Mapping[str, Any]]
) -> None:
    points: Any = [cell.point for cell in cells]
    for place, curve in enumerate(zip(*(cell.methods for cell in cells), strict=True)):
        style = styles[curve[0].name]
        # Where markers coincide those below show around those above.
        size = 6.5 - 2.5 * place / max(1, len(cells[0].methods) - 1)
        means, low, high = zip(*(method.interval(score) for method in curve), strict=True)
        axis.plot(
            points,
            means,
            **style,
            markersize=size,
            markeredgecolor="white",
            markeredgewidth=0.4,
        )
        axis.fill_between(points, low, high, color=style["color"], alpha=0.18, linewidth=0)
    axis.grid(axis="y", color="#E5E5E5", linewidth=0.5)
    axis.set_axisbelow(True)
    axis.margins(x=0.04)
    bottom, top = axis.get_ylim()
    if top - bottom < _LEAST:  # a difference that means nothing is not to look like much
        middle = (bottom + top) / 2
        axis.set_ylim(middle - _LEAST / 2, middle + _LEAST / 2)
    axis.locator_params(axis="y", nbins=5)


def curves_figure(data: CurveFigure) -> ReportFigure:
    """Draw curves, in one panel or several."""
    return ReportFigure(data.name, data.title, data.note, partial(_draw_curves, data))


def _draw_curves(data: CurveFigure) -> Figure:
    from matplotlib.figure import Figure

    panels = data.panels
    n_columns = min(len(panels), _BESIDE)
    n_rows = -(-len(panels) // n_columns)
    width = WIDTH * (0.6 if n_columns == 1 else 1)
    figure = Figure(figsize=(width, 2.4 * n_rows + 0.3), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    styles = series_styles(name for panel in panels for name in panel.curves)
    if any(len(curve.x) > _MARKED for panel in panels for curve in panel.curves.values()):
        for style in styles.values():
            style.pop("marker")
    for axis, panel in zip(axes, panels, strict=False):
        _draw_panel(axis, panel, styles)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    axes[0].set_ylabel(panels[0].y_label)
    if data.limits is not None:
        bottom, top = axes[0].get_ylim()
        axes[0].set_ylim(max(bottom, data.limits[0]), min(top, data.limits[1]))
    draw_legend(figure, styles)
    return figure


def _draw_panel(axis: Axes, panel: Panel, styles: Mapping[str, Mapping[str, Any]]) -> None:
    from matplotlib.ticker import MaxNLocator

    for name, curve in panel.curves.items():
        axis.plot(curve.x, curve.y, **styles[name])
        if curve.low is not None:
            high = curve.y if curve.high is None else curve.high
            axis.fill_between(
                curve.x, curve.low, high, color=styles[name]["color"], alpha=0.18, lw=0
            )
    axis.set_xlabel(panel.x_label)
    if panel.in_logs:
        axis.xaxis.set_major_formatter(lambda at, _: f"{float(f'{math.exp(at):.2g}'):,.12g}")
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.grid(color="#E5E5E5", linewidth=0.5)
    if panel.x_line is not None:
        axis.axvline(panel.x_line, color=FAINT, linewidth=0.8)
    if panel.y_line is not None:
        axis.axhline(panel.y_line, color=FAINT, linewidth=0.8)
