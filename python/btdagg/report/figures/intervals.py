"""Means with intervals, by row: positional bias, estimates and systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.evaluation.intervals import Interval
from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    FAINT,
    IN_LEGEND,
    WIDTH,
    abridged,
    draw_legend,
    series_styles,
    without_frame,
    wrapped,
)
from btdagg.report.wording import key_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from btdagg.estimates import Estimates, SystemEstimates
    from btdagg.estimates.mean import MeanEstimate
    from btdagg.evaluation.bias import PositionalBias

Points = Mapping[str, Mapping[str, "Interval | None"]]
"""Means with intervals, by row and by series."""

_IN_ROW = 26  # letters of a name beside a row
_APART = 0.13  # inches between series in a row
_MOST = 60  # rows of a figure of estimates


def positional_bias_figure(
    found: Sequence[PositionalBias], setting: str = "setting"
) -> ReportFigure:
    """Draw how much the response shown first is favoured, with 95% intervals.

    Parameters
    ----------
    found : sequence of PositionalBias
    setting : str
        Name of the column that tells forced choice from ties allowed, if there was one.

    Raises
    ------
    InputError
        If none has a vote that is no tie.
    """
    points: dict[str, dict[str, Interval | None]] = {}
    for bias in found:
        points.setdefault(key_of(bias.key), {})[bias.setting or ""] = bias.interval
    if not any(interval for row in points.values() for interval in row.values()):
        raise InputError("no bias has an interval: votes that are no ties are needed on two items")
    settings = list(dict.fromkeys(bias.setting or "" for bias in found))
    sides = ("second shown favoured", "first shown favoured")
    return ReportFigure(
        "positional-bias",
        "Positional bias",
        "(first - second) / (first + second) of the votes for the response that is shown first and "
        "second, with 95% intervals over items." + shortened(points, settings),
        partial(draw_intervals, points, settings, setting, "bias in percent", sides),
    )


def estimates_figure(found: Estimates, by: str | None = None) -> ReportFigure:
    """Draw intervals with the judge, and from labels alone.

    Shares and win rates; with values of a column, named `by`, the net win rate of each instead.
    """
    rows: Mapping[str, MeanEstimate] = found.estimates
    title = "Shares of labels and win rates"
    if found.by:
        name = "net win rate"
        rows = {"all items": rows[name]} | {str(value): of[name] for value, of in found.by.items()}
        title = f"Net win rate by {by or 'value'}"
    note = (
        f"{100 * found.level:.3g}% intervals for new items: with the judge's votes, and from the "
        f"{found.n_labels:,} labels alone."
    )
    label = "net win rate" if found.by else "share or win rate"
    return _estimates("estimates", title, note, rows, label, signed=bool(found.by))


def systems_figure(found: SystemEstimates) -> ReportFigure:
    """Draw the win rates of systems from the strongest, with the judge and without."""
    rates = {str(name): system.win_rate for name, system in found.systems.items()}
    rows = {
        name: rate for name, rate in rates.items() if rate is not None and rate.value == rate.value
    }
    against = "" if found.baseline is None else f" against {found.baseline}"
    note = (
        f"{100 * found.level:.3g}% intervals of win rates, ties as half: with the judge's votes, "
        "and from labels alone."
    )
    return _estimates("systems", f"Win rates{against}", note, rows, "win rate", signed=False)


def _estimates(
    name: str, title: str, note: str, rows: Mapping[str, MeanEstimate], label: str, *, signed: bool
) -> ReportFigure:
    """Draw estimates with the judge and, where there are such, from labels alone."""
    if len(rows) > _MOST:
        note += f" The first {_MOST} of {len(rows)}."
    points = {row: _points_of(estimate) for row, estimate in islice(rows.items(), _MOST)}
    sides = ("B wins more", "A wins more") if signed else None
    series = ("with the judge", "labels alone")
    draw = partial(draw_intervals, points, series, "", f"{label} in percent", sides)
    return ReportFigure(name, title, note + abridged(points, _IN_ROW), draw)


def _points_of(estimate: MeanEstimate) -> dict[str, Interval | None]:
    alone = estimate.labels_only
    return {
        "with the judge": Interval(estimate.value, estimate.low, estimate.high),
        "labels alone": None if alone is None else Interval(alone.value, alone.low, alone.high),
    }


def shortened(points: Points, series: Sequence[str]) -> str:
    """Say which names `draw_intervals` abridges, as the end of a note."""
    return abridged(points, _IN_ROW) + abridged(series, IN_LEGEND, 1)


def draw_intervals(
    points: Points,
    series: Sequence[str],
    series_title: str,
    label: str,
    sides: tuple[str, str] | None,
) -> Figure:
    """Draw one row of points per name, in percent; with `sides` around zero, else of shares."""
    from matplotlib.figure import Figure

    several = len(series) > 1
    row = max(0.3, _APART * (len(series) + 1))
    size = (WIDTH, 0.9 + row * len(points) + 0.2 * several)
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    styles = {name: style._replace(line="-") for name, style in series_styles(series).items()}
    for place, own in enumerate(points.values()):
        if place % 2 == 0:
            axis.axhspan(place - 0.5, place + 0.5, color="#F4F4F4", linewidth=0, zorder=0)
        intervals = [(name, of) for name in series if (of := own.get(name)) is not None]
        for number, (name, interval) in enumerate(intervals):
            mean, low, high = (100 * value for value in interval)
            height = place + (number - (len(intervals) - 1) / 2) * _APART / row
            style = styles[name]
            axis.plot([low, high], [height] * 2, color=style.colour, linewidth=1.2)
            axis.plot(
                [mean],
                [height],
                color=style.colour,
                marker=style.marker,
                markeredgecolor="white",
                markeredgewidth=0.4,
                markersize=5.5,
                linestyle="none",
            )
    axis.set_yticks(range(len(points)), list(wrapped(points, _IN_ROW).values()))
    axis.set_ylim(len(points) - 0.5, -0.5)
    axis.set_xlabel(label)
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.5)
    axis.set_axisbelow(True)
    without_frame(axis)
    ends = [interval.low for own in points.values() for interval in own.values() if interval]
    if sides is None and min(ends, default=0) >= 0:
        axis.set_xlim(left=0)  # a share is to look as large as it is
    else:
        axis.axvline(0, color=FAINT, linewidth=1)
    if sides is not None:
        limit = max(abs(end) for end in axis.get_xlim())
        axis.set_xlim(-limit, limit)
        for text, x, side in ((f"← {sides[0]}", 0.0, "left"), (f"{sides[1]} →", 1.0, "right")):
            axis.text(x, 1.01, text, ha=side, va="bottom", transform=axis.transAxes)
    if several:
        draw_legend(figure, styles, series_title)
    return figure
