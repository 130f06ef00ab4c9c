"""Figures of the paper that no report of a user has: transfer between tasks, and tie rates."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.wording import fixed, wrapped
from btdagg.evaluation import basis_of
from btdagg.report import ReportFigure, draw_intervals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from btdagg.paper.ties import TieRates
    from btdagg.paper.transfer import Transfer

_CELL = 0.56  # inches of width that a number takes
_IN_ROW = 18  # letters of a task's name on a line


def transfer_limit(transfers: Iterable[Transfer]) -> float:
    """Change in MAE at the ends of the scale that several heat maps share."""
    # A change of less than 0.01 is not to look like much.
    return max(0.01, *(float(np.abs(transfer.change).max()) for transfer in transfers))


def transfer_figure(transfer: Transfer, limit: float | None = None) -> ReportFigure:
    """Draw the change in MAE against each target's own calibration: the paper's heat map."""
    over = basis_of(chain(*transfer.compared)).over
    return ReportFigure(
        "transfer",
        "Transfer of a calibration between tasks",
        "Change in MAE on the task of the column if the model is calibrated on the task of the "
        f"row instead of the same task (the diagonal): mean over {over}. Blue, below 0: better; "
        "red: worse.",
        partial(_draw, transfer, transfer_limit([transfer]) if limit is None else limit),
    )


def _draw(transfer: Transfer, limit: float) -> Figure:
    from matplotlib.figure import Figure

    change, n = transfer.change, len(transfer.tasks)
    figure = Figure(figsize=(max(3.4, 2.2 + _CELL * n), 2.2 + 0.34 * n), layout="constrained")
    axis = figure.subplots()
    mesh = axis.pcolormesh(
        change, cmap="RdBu_r", vmin=-limit, vmax=limit, edgecolor="white", linewidth=1
    )
    bar = figure.colorbar(mesh, ax=axis, label="change in MAE", shrink=0.9)
    bar.outline.set_visible(False)
    assert bar.solids is not None
    bar.solids.set(rasterized=False, edgecolor="face")  # shapes, and not a picture in the SVG
    for (row, column), value in np.ndenumerate(change):
        axis.text(
            column + 0.5,
            row + 0.5,
            "0" if row == column else fixed(value, signed=True),
            ha="center",
            va="center",
            color="white" if abs(value) > 0.62 * limit else "black",
        )
    names = list(wrapped(transfer.tasks, _IN_ROW).values())
    axis.set_xticks(np.arange(n) + 0.5, names, rotation=90)
    axis.set_yticks(np.arange(n) + 0.5, names)
    axis.xaxis.tick_top()
    axis.xaxis.set_label_position("top")
    axis.set_xlabel("evaluated on", labelpad=7)
    axis.set_ylabel("calibrated on")
    axis.invert_yaxis()
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    return figure


def tie_rate_figure(
    rates: TieRates, rows: str = "judge", columns: str = "template"
) -> ReportFigure:
    """Draw the share of ties by two columns, with 95% intervals, as in the paper's table."""
    names = rates.column_names
    points = {
        row: {column: rates.rate(i, j) for j, column in enumerate(names)}
        for i, row in enumerate(rates.row_names)
    }
    return ReportFigure(
        "tie-rates",
        f"Tie rates by {rows} and {columns}",
        "Share of votes that are ties, with 95% intervals based on the number of items.",
        partial(draw_intervals, points, names, columns, "ties in percent of votes", None),
    )
