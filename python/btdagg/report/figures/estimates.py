"""Estimates with and without the judge."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from btdagg.report.figure import ReportFigure
from btdagg.report.style import WIDTH, abridged, without_frame, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from btdagg.estimates import Estimates, SystemEstimates
    from btdagg.estimates.quantities import MeanEstimate

_IN_ROW = 24  # letters of a name beside a row
_ROW = 0.36  # inches
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
        f"{found.n_labels:,} labels alone.{left_out}" + abridged(rows, _IN_ROW),
        partial(_draw, rows, signed=bool(found.by)),
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
        f"and from labels alone.{left_out}" + abridged(shown, _IN_ROW),
        partial(_draw, shown, signed=False),
    )


def _draw(rows: Mapping[str, MeanEstimate], *, signed: bool) -> Figure:
    from matplotlib.figure import Figure

    width = min(WIDTH, 6.3)
    figure = Figure(figsize=(width, 0.9 + _ROW * len(rows)), layout="constrained")
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
    beside = wrapped(rows, _IN_ROW)
    axis.set_yticks(places, [beside[name] for name in rows])
    axis.invert_yaxis()
    axis.grid(axis="x", linewidth=0.4, color="#dddddd")
    axis.set_axisbelow(True)
    without_frame(axis)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure
