"""Scores against votes and labels: as measured, and as a plan expects them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from btdagg._util.wording import stem, wrapped
from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    WIDTH,
    draw_legend,
    series_styles,
    small_axis,
)
from btdagg.report.wording import basis_of, key_of, not_evaluated, swept_over

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from btdagg.estimates import Certificate
    from btdagg.evaluation import Scores
    from btdagg.evaluation.cells import Cell
    from btdagg.online.plans import Plan

Key = tuple[str, ...]

_SCORES = {"mae": "mean absolute error", "accuracy": "accuracy"}
_IN_TITLE = 30
_TICKS = 8
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


def plan_figure(plan: Plan) -> ReportFigure:
    """Draw the expected error of a job against the votes that its items get, by rule."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in plan.budgets:
        lines.setdefault(row.rule, []).append((row.votes, row.mae))
    return ReportFigure(
        "plan",
        "Expected error by votes",
        "Expected mean absolute error against the average votes per item. Each point of a rule is "
        "a maximum number of votes, which rises along the line.",
        partial(_draw_plan, lines),
    )


def _draw_plan(lines: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    figure, axis = small_axis()
    for name, style in series_styles(list(lines)).items():
        votes, errors = zip(*lines[name], strict=True)
        axis.plot(votes, errors, label=name, **style)
    axis.set_xlabel("votes per item")
    axis.set_ylabel("mean absolute error")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def certificate_figure(certificate: Certificate) -> ReportFigure:
    """Draw the agreement with people of the surest items against their share of all."""
    return ReportFigure(
        "certificate",
        "Agreement by coverage",
        "Agreement with people of the most certain labels, by their share of all items, with "
        f"{100 * certificate.confidence:.4g}% lower bounds. The bounds are pointwise: each is "
        "valid for a point chosen in advance, not for one picked from this figure.",
        partial(_draw_certificate, certificate),
    )


def _draw_certificate(certificate: Certificate) -> Figure:
    figure, axis = small_axis()
    coverage, agreement, low, *_ = zip(*certificate.curve, strict=True)
    (style,) = series_styles(["labelled items"]).values()
    x, y, bound = ([100 * value for value in values] for values in (coverage, agreement, low))
    axis.plot(x, y, **style, label="labelled items")
    axis.fill_between(x, y, bound, color=style["color"], alpha=0.18, linewidth=0, label="bound")
    axis.axhline(100 * certificate.agreement, color="#888888", linewidth=0.8)
    if certificate.coverage:
        axis.axvline(100 * certificate.coverage, color="#888888", linewidth=0.8, linestyle=":")
    axis.set_xlabel("share of items in percent, most certain first")
    axis.set_ylabel("agreement in percent")
    figure.legend(loc="outside upper center", ncols=2)
    return figure
