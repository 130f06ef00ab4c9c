"""Figures of the paper that no report of a user has: transfer between tasks, and tie rates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from btdagg.report.figure import ReportFigure
from btdagg.report.figures.intervals import draw_intervals, shortened
from btdagg.report.style import WIDTH, abridged, without_frame, wrapped
from btdagg.report.tables.scores import splits_of
from btdagg.report.wording import fixed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from btdagg.paper.ties import TieRates
    from btdagg.paper.transfer import Transfer

_CELL = 0.56  # inches of width that a number takes
_LETTER = 0.072  # and a letter
_BESIDE = 1.5  # and what is at the sides
_BAR = 0.7  # and the scale of colours
_LINES = 3  # of a task's name over a column
_IN_ROW = 18  # letters of a task's name beside a row


def transfer_limit(several: Iterable[Transfer]) -> float:
    """Change in MAE at the ends of the scale that several heat maps share."""
    # A change of less than 0.01 is not to look like much.
    return max(0.01, *(float(np.abs(found.change).max()) for found in several))


def transfer_figure(found: Transfer, limit: float | None = None) -> ReportFigure:
    """Draw the change in MAE against each target's own calibration as a heat map.

    Parameters
    ----------
    found : Transfer
    limit : float, optional
        Change at the ends of the scale, where several maps share one; see `transfer_limit`.

    References
    ----------
    The paper's heat map of transferability.
    """
    return ReportFigure(
        "transfer",
        "Transfer of a calibration between tasks",
        "Change in MAE on the task of the column where the calibration is that of the task of the "
        f"row instead of its own (the diagonal): mean over {_over(found)}. "
        "Blue, below 0: better; red: worse." + abridged(found.tasks, _IN_ROW),
        partial(_draw, found, transfer_limit([found]) if limit is None else limit),
    )


def _over(found: Transfer) -> str:
    if found.new_items is not None:
        return "the folds of a cross-validation by group"
    return splits_of([found.mae.shape[2]])


def _draw(found: Transfer, limit: float) -> Figure:
    from matplotlib.figure import Figure

    n = len(found.tasks)
    change = found.change
    letters = max(len(word) for task in found.tasks for word in task.split() or [""])
    over = wrapped(found.tasks, letters, _LINES)
    cell = max(_CELL, _LETTER * (letters + 1))
    # Names that are too long to stand side by side are turned.
    turned = _BESIDE + cell * n > WIDTH or any("…" in name for name in over.values())
    if turned:
        over, cell = wrapped(found.tasks, _IN_ROW), _CELL
    figure = Figure(
        figsize=(max(3.4, _BESIDE + cell * n + _BAR), (2.2 if turned else 1.1) + 0.34 * n),
        layout="constrained",
    )
    axis = figure.subplots()
    mesh = axis.pcolormesh(
        change, cmap="RdBu_r", vmin=-limit, vmax=limit, edgecolor="white", linewidth=1
    )
    bar = figure.colorbar(mesh, ax=axis, label="change in MAE", shrink=0.9)
    bar.outline.set_visible(False)
    assert bar.solids is not None
    bar.solids.set(rasterized=False, edgecolor="face")  # shapes, and not a picture in the SVG
    for row in range(n):
        for column in range(n):
            own = row == column
            axis.text(
                column + 0.5,
                row + 0.5,
                "0" if own else fixed(change[row, column], signed=True),
                ha="center",
                va="center",
                color="white" if abs(change[row, column]) > 0.62 * limit else "black",
            )
    beside = wrapped(found.tasks, _IN_ROW)
    axis.set_xticks(
        np.arange(n) + 0.5, [over[task] for task in found.tasks], rotation=90 if turned else 0
    )
    axis.set_yticks(np.arange(n) + 0.5, [beside[task] for task in found.tasks])
    axis.xaxis.tick_top()
    axis.xaxis.set_label_position("top")
    axis.set_xlabel("evaluated on", labelpad=7)
    axis.set_ylabel("calibrated on")
    axis.invert_yaxis()
    without_frame(axis)
    return figure


def tie_rate_figure(
    found: TieRates, rows: str = "judge", columns: str = "template"
) -> ReportFigure:
    """Draw the share of ties by two columns, with 95% intervals.

    References
    ----------
    The paper's table of tie rates.
    """
    points = {
        row: dict(zip(found.column_names, cells, strict=True))
        for row, cells in zip(found.row_names, found.cells, strict=True)
    }
    return ReportFigure(
        "tie-rates",
        f"Tie rates by {rows} and {columns}",
        "Share of votes that are ties, with 95% intervals, which go by the number of items."
        + shortened(points, found.column_names),
        partial(
            draw_intervals,
            points,
            found.column_names,
            columns,
            "ties in percent of votes",
            None,
        ),
    )
