"""Means with intervals, by row: positional bias, estimates and systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from btdagg._util.wording import wrapped
from btdagg.evaluation.metrics import Interval
from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    FAINT,
    INK,
    WIDTH,
    draw_legend,
    series_styles,
    without_frame,
)
from btdagg.report.wording import key_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from btdagg.estimates.change import Change
    from btdagg.estimates.mean import MeanEstimate
    from btdagg.estimates.prediction_powered import Estimates
    from btdagg.estimates.systems import SystemEstimates
    from btdagg.evaluation.bias import PositionalBias

Points = Mapping[str, Mapping[str, "Interval | None"]]
"""Means with intervals, by row and by series."""

_IN_ROW = 26  # letters of a name beside a row
_APART = 0.13  # inches between series in a row
_MOST = 60  # rows of a figure of estimates


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


def change_figure(found: Change) -> ReportFigure:
    """Draw what people and the judge say of two periods."""
    points = {
        name: {
            "people": Interval(people.value, people.low, people.high),
            "votes": Interval(*3 * [v]),
        }
        for name, (people, v) in found.means.items()
    }
    note = f"People, with {100 * found.level:.3g}% intervals, and votes alone, by period."
    is_net = found.ends[0] < 0
    sides = ("B is better", "A is better") if is_net else None
    how = found.quantity, sides, 1, None if is_net else found.ends
    draw = partial(draw_intervals, points, ("people", "votes"), "", *how)
    return ReportFigure("change", "Before and after the change", note, draw)


def estimates_figure(estimates: Estimates, by: str | None = None) -> ReportFigure:
    """Draw shares and win rates with and without the judge, or the main one by values of `by`."""
    named, a, b = estimates.sides.named, *estimates.sides
    title, label, sides, unit = "Shares of all items", "share", None, 100
    # The win rate says what the net win rate says, on the scale of the shares.
    rows = {named(name): of for name, of in estimates.estimates.items() if name != estimates.main}
    wins = "win rate" in rows
    if wins:
        title, label = f"Shares of items on which {a} or {b} is better", "share or win rate"
        rows[f"win rate of {a}"] = rows.pop("win rate")
    if estimates.by:
        label = estimates.main
        sides, unit = ((f"{b} wins more", f"{a} wins more"), 100) if wins else (None, 1)
        rows = {"all items": estimates.estimates[label]}
        rows |= {str(value): part[label] for value, part in estimates.by.items()}
        title = f"{label.capitalize()} by {by or 'value'}"
    ends = None if unit == 100 else estimates.ends
    return _estimates("estimates", title, rows, label, estimates.level, sides, unit, ends)


def systems_figure(systems: SystemEstimates) -> ReportFigure:
    """Draw the means of systems from the best, with the judge and without."""
    means = {str(name): system.mean for name, system in systems.systems.items()}
    rows = {
        name: mean for name, mean in means.items() if mean is not None and mean.value == mean.value
    }
    against = "" if systems.baseline is None else f" against {systems.baseline}"
    of = systems.quantity
    title, unit = f"{of.capitalize()}s{against}", 100 if _is_rate(of) else 1
    ends = None if unit == 100 else systems.ends
    return _estimates("systems", title, rows, of, systems.level, unit=unit, ends=ends)


def _estimates(
    name: str,
    title: str,
    rows: Mapping[str, MeanEstimate],
    label: str,
    level: float,
    sides: tuple[str, str] | None = None,
    unit: int = 100,
    ends: tuple[float, float] | None = None,
) -> ReportFigure:
    note = f"{100 * level:.3g}% intervals for new items: with the judge's votes, and from labels"
    note += " alone."
    if any(map(_is_rate, (label, *rows))):
        note += " Dashed: no difference."
    if len(rows) > _MOST:
        note += f" Shown are the first {_MOST} of {len(rows)}."
    series = ("with the judge", "labels alone")
    points = {
        row: {
            name: None if of is None else Interval(of.value, of.low, of.high)
            for name, of in zip(series, (estimate, estimate.labels_only), strict=True)
        }
        for row, estimate in islice(rows.items(), _MOST)
    }
    label = f"{label} in percent" if unit == 100 else label
    draw = partial(draw_intervals, points, series, "", label, sides, unit, ends)
    return ReportFigure(name, title, note, draw)


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
        axis.set_xlim(*limits)
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
