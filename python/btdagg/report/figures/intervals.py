"""Means with intervals, by row: positional bias, estimates and systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    FAINT,
    WIDTH,
    abridged,
    legend_columns,
    series_styles,
    without_frame,
    wrapped,
)
from btdagg.report.wording import key_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from btdagg.estimates import Estimates, SystemEstimates
    from btdagg.estimates.quantities import MeanEstimate
    from btdagg.evaluation import Interval
    from btdagg.evaluation.bias import PositionalBias

Points = Mapping[str, Mapping[str, "Interval | None"]]
"""Means with intervals, by row and by series."""

_IN_ROW = 26  # letters of a name beside a row
_IN_LEGEND = 24
_APART = 0.13  # inches between series in a row


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
        If there is none, or none has a vote that is no tie.

    References
    ----------
    The paper's table of positional bias.
    """
    points: dict[str, dict[str, Interval | None]] = {}
    for one in found:
        points.setdefault(key_of(one.key), {})[one.setting or ""] = one.interval
    if not any(interval for row in points.values() for interval in row.values()):
        raise InputError("no bias has an interval: votes that are no ties are wanted on two items")
    settings = list(dict.fromkeys(one.setting or "" for one in found))
    return ReportFigure(
        "positional-bias",
        "Positional bias",
        "(first - second) / (first + second) of the votes for the response that is shown first and "
        "second, with 95% intervals over items." + shortened(points, settings),
        partial(
            draw_intervals,
            points,
            settings,
            setting,
            "bias in percent",
            ("second shown favoured", "first shown favoured"),
        ),
    )


def shortened(points: Points, series: Sequence[str]) -> str:
    """Say which names `draw_intervals` abridges, as the end of a note."""
    return abridged(points, _IN_ROW) + abridged(series, _IN_LEGEND, 1)


def draw_intervals(
    points: Points,
    series: Sequence[str],
    series_title: str,
    label: str,
    sides: tuple[str, str] | None,
) -> Figure:
    """Draw one row of points per name; with `sides` around zero, else of shares."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    several = len(series) > 1
    row = max(0.3, _APART * (len(series) + 1))
    figure = Figure(figsize=(WIDTH, 0.9 + row * len(points) + 0.2 * several), layout="constrained")
    axis = figure.subplots()
    styles = series_styles(series)
    for place, own in enumerate(points.values()):
        if place % 2 == 0:
            axis.axhspan(place - 0.5, place + 0.5, color="#F4F4F4", linewidth=0, zorder=0)
        known = [(name, found) for name in series if (found := own.get(name)) is not None]
        for number, (name, interval) in enumerate(known):
            mean, low, high = (100 * value for value in interval)
            if sides is None:  # a share
                low, high = max(low, 0.0), min(high, 100.0)
            height = place + (number - (len(known) - 1) / 2) * _APART / row
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
    rows = wrapped(points, _IN_ROW)
    axis.set_yticks(range(len(points)), list(rows.values()))
    axis.set_ylim(len(points) - 0.5, -0.5)
    axis.set_xlabel(label)
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.5)
    axis.set_axisbelow(True)
    without_frame(axis)
    if sides is None:
        axis.set_xlim(left=0)  # a share is to look as large as it is
    else:
        limit = max(abs(end) for end in axis.get_xlim())
        axis.set_xlim(-limit, limit)
        axis.axvline(0, color=FAINT, linewidth=1)
        for text, x, side in ((f"← {sides[0]}", 0.0, "left"), (f"{sides[1]} →", 1.0, "right")):
            axis.text(x, 1.01, text, ha=side, va="bottom", transform=axis.transAxes)
    if several:
        names = list(wrapped(series, _IN_LEGEND, 1).values())
        figure.legend(
            [
                Line2D([], [], color=s.colour, marker=s.marker, markersize=5.5)
                for s in styles.values()
            ],
            names,
            title=series_title,
            loc="outside lower center",
            ncols=min(len(series), legend_columns(names)),
        )
    return figure


_BESIDE_ROW = 24  # letters of a name beside a row
_HEIGHT = 0.36  # inches
_WITH, _ALONE = "#0b5c8a", "#8a8a8a"
_MOST = 60  # rows of a figure


def estimates_figure(found: Estimates, by: str | None = None) -> ReportFigure:
    """Draw intervals with the judge, and from labels alone.

    Parameters
    ----------
    found : Estimates
        Shares and win rates; with values of a column, the net win rate of each instead.
    by : str, optional
        Name of the column.
    """
    rows: Mapping[str, MeanEstimate] = found.estimates
    what = "Shares of labels and win rates"
    left_out = ""
    if found.by:
        name = "net win rate"
        rows = {"all items": found.estimates[name]}
        rows |= {str(value): one[name] for value, one in list(found.by.items())[:_MOST]}
        what = f"Net win rate by {by or 'value'}"
        if len(found.by) > _MOST:
            left_out = f" The first {_MOST} values of {len(found.by)}."
    return ReportFigure(
        "estimates",
        what,
        f"{100 * found.level:.3g}% intervals for new items: with the judge's votes, and from the "
        f"{found.n_labels:,} labels alone.{left_out}" + abridged(rows, _BESIDE_ROW),
        partial(_draw_estimates, rows, signed=bool(found.by)),
    )


def systems_figure(found: SystemEstimates) -> ReportFigure:
    """Draw the win rates of systems from the strongest to the weakest, with the judge and without.

    Parameters
    ----------
    found : SystemEstimates
    """
    rates = {str(name): one.win_rate for name, one in found.systems.items()}
    rows = {
        name: rate for name, rate in rates.items() if rate is not None and rate.value == rate.value
    }
    shown = dict(list(rows.items())[:_MOST])
    left_out = f" The strongest {_MOST} of {len(rows)}." if len(rows) > _MOST else ""
    against = "" if found.baseline is None else f" against {found.baseline}"
    return ReportFigure(
        "systems",
        f"Win rates{against}",
        f"{100 * found.level:.3g}% intervals of win rates, ties as half: with the judge's votes, "
        f"and from labels alone.{left_out}" + abridged(shown, _BESIDE_ROW),
        partial(_draw_estimates, shown, signed=False),
    )


def _draw_estimates(rows: Mapping[str, MeanEstimate], *, signed: bool) -> Figure:
    from matplotlib.figure import Figure

    width = min(WIDTH, 6.3)
    figure = Figure(figsize=(width, 0.9 + _HEIGHT * len(rows)), layout="constrained")
    axis = figure.subplots()
    places = np.arange(len(rows))
    for place, one in zip(places, rows.values(), strict=True):
        alone = one.labels_only
        series = [(-0.13, one, _WITH, "o", "with the judge")]
        if alone is not None:
            series.append((0.13, alone, _ALONE, "s", "labels alone"))
        for shift, shown, colour, marker, name in series:
            axis.hlines(place + shift, shown.low, shown.high, color=colour, linewidth=1.8)
            axis.plot(
                shown.value,
                place + shift,
                marker=marker,
                markersize=4.5,
                color=colour,
                linestyle="",
                label=name if place == 0 else None,
            )
    if signed or any(one.low < 0 for one in rows.values()):
        axis.axvline(0, color="#888888", linewidth=0.8, zorder=0)
    beside = wrapped(rows, _BESIDE_ROW)
    axis.set_yticks(places, [beside[name] for name in rows])
    axis.invert_yaxis()
    axis.grid(axis="x", linewidth=0.4, color="#dddddd")
    axis.set_axisbelow(True)
    without_frame(axis)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure
