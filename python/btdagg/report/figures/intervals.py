"""Means with intervals, by row: positional bias, estimates and systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from btdagg._util.wording import wrapped
from btdagg.evaluation.wording import key_of
from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    FAINT,
    INK,
    WIDTH,
    draw_legend,
    series_styles,
    without_frame,
)
from btdagg.result import Interval, IntervalFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from btdagg.evaluation.bias import PositionalBias

Points = Mapping[str, Mapping[str, "Interval | None"]]
"""Means with intervals, by row and by series."""

_IN_ROW = 26  # letters of a name beside a row
_APART = 0.13  # inches between series in a row


def positional_bias_figure(biases: Sequence[PositionalBias]) -> ReportFigure:
    """Draw how much the response shown first is favoured, with 95% intervals."""
    points = {key_of(bias.key): {"": bias.interval} for bias in biases}
    sides = ("second shown favoured", "first shown favoured")
    return ReportFigure(
        "positional-bias",
        "Positional bias with intervals",
        "(first - second) / (first + second) of the votes for the response that is shown first and "
        "second, with 95% intervals over items.",
        partial(draw_intervals, points, [""], "", "bias in percent", sides),
    )


def intervals_figure(data: IntervalFigure) -> ReportFigure:
    """Draw means with intervals, a row for each name."""
    fields = data.points, data.series, "", data.label, data.sides, data.unit, data.limits
    return ReportFigure(data.name, data.title, data.note, partial(draw_intervals, *fields))


def _is_rate(name: str) -> bool:
    return name.startswith("win rate")


def draw_intervals(
    points: Points,
    series: Sequence[str],
    series_title: str,
    label: str,
    sides: tuple[str, str] | None,
    unit: int = 100,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draw a row of points per name: in percent around zero (`sides`), shares, or grades."""
    from matplotlib.figure import Figure

    row = max(0.3, _APART * (len(series) + 1))
    size = (WIDTH, 0.9 + row * len(points) + 0.2 * (len(series) > 1))
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    styles = {name: {**style, "linestyle": "-"} for name, style in series_styles(series).items()}
    for place, by_series in enumerate(points.values()):
        if place % 2 == 0:
            axis.axhspan(place - 0.5, place + 0.5, color="#F4F4F4", linewidth=0, zorder=0)
        intervals = [(name, of) for name in series if (of := by_series.get(name)) is not None]
        for number, (name, interval) in enumerate(intervals):
            mean, low, high = (unit * value for value in interval)
            height = place + (number - (len(intervals) - 1) / 2) * _APART / row
            axis.plot(
                [low, mean, high],
                [height] * 3,
                **styles[name],
                linewidth=1.2,
                markevery=[1],
                markersize=5.5,
                markeredgecolor="white",
                markeredgewidth=0.4,
            )
    for place, name in enumerate(points):
        if sides is None and (_is_rate(name) or _is_rate(label)):
            axis.plot([unit / 2] * 2, [place - 0.5, place + 0.5], color=INK, ls=(0, (3, 2)), lw=1)
    axis.set_yticks(range(len(points)), list(wrapped(points, _IN_ROW).values()))
    axis.set_ylim(len(points) - 0.5, -0.5)
    axis.set_xlabel(label)
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.5)
    axis.set_axisbelow(True)
    without_frame(axis)
    ends = [
        interval.low for by_series in points.values() for interval in by_series.values() if interval
    ]
    if limits is not None:
        axis.set_xlim(*(unit * end for end in limits))
    elif sides is None and min(ends, default=0) >= 0:
        axis.set_xlim(left=0)  # a share is to look as large as it is
    else:
        axis.axvline(0, color=FAINT, linewidth=1)
    if sides is not None:
        limit = max(abs(end) for end in axis.get_xlim())
        axis.set_xlim(-limit, limit)
        for text, x, side in ((f"← {sides[0]}", 0.0, "left"), (f"{sides[1]} →", 1.0, "right")):
            axis.text(x, 1.01, text, ha=side, va="bottom", transform=axis.transAxes)
    if len(series) > 1:
        draw_legend(figure, styles, series_title)
    return figure
