"""Gold against predicted labels: distributions and confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.wording import MISSING, fixed, stem, wrapped
from btdagg.evaluation.wording import basis_of
from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    INK,
    WIDTH,
    colours_of_labels,
    square_panels,
    without_frame,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from btdagg.evaluation.cells import Cell, MethodScores

Shares = Mapping[str, "NDArray[np.float64]"]
"""Shares of the labels by name of a bar; the gold ones come first."""

_IN_ROW = 24  # letters of a name beside a bar
_IN_TITLE = 20
_NARROW = 4  # percent from which its number fits into a bar


def distribution_figure(task: str, cell: Cell) -> ReportFigure:
    """Draw how often each label is gold, and how often each method gives it."""
    title = f"Label distributions: {task}"
    return _distributions(stem("labels", task), title, {"": cell})


def condition_figure(column: str, cells: Mapping[str, Cell]) -> ReportFigure:
    """Draw gold and predicted labels under each value of a column, such as the prompt template."""
    panels = {f"{column} {value}": cell for value, cell in cells.items()}
    title = f"Label distributions by {column}"
    return _distributions(stem("labels-by", column), title, panels)


def _distributions(name: str, title: str, cells: Mapping[str, Cell]) -> ReportFigure:
    panels = {
        panel: {"gold": cell.gold, **{method.name: method.predicted for method in cell.methods}}
        for panel, cell in cells.items()
    }
    over, (first, *_) = basis_of(cells.values()).over, cells.values()
    return ReportFigure(
        name,
        title,
        f"Labels in percent of the held-out items: means over {over}. Dashed: boundaries of the "
        "gold labels.",
        partial(_draw_bars, panels, first.label_scale.names),
    )


def confusion_figure(task: str, cell: Cell) -> ReportFigure:
    """Draw the confusion matrix of each method, with counts and percentages of the gold label."""
    return ReportFigure(
        stem("confusion", task),
        f"Confusion matrices: {task}",
        "Held-out items by gold label (row) and predicted label (column): mean over "
        f"{basis_of([cell]).over}, and percent of the row.",
        partial(_draw_confusions, cell.methods, cell.label_scale.names),
    )


def _draw_bars(panels: Mapping[str, Shares], labels: Sequence[str]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    n_rows = [len(bars) for bars in panels.values()]
    n_titles = sum(map(bool, panels))
    size = (WIDTH, 0.75 + 0.27 * sum(n_rows) + 0.3 * n_titles)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(
        len(panels), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": n_rows}
    ).ravel()
    titles = wrapped(panels, 70, 1)
    for axis, (title, bars) in zip(axes, panels.items(), strict=True):
        _bars(axis, bars)
        axis.set_title(titles[title], loc="left")
    axes[-1].set_xlabel("percent of items")
    swatches = [Patch(color=colour) for colour, _ in colours_of_labels(len(labels))]
    figure.legend(swatches, labels, loc="outside upper right", ncols=len(labels))
    return figure


def _bars(axis: Axes, bars: Shares) -> None:
    shares = 100 * np.stack([*bars.values()])
    ends = np.cumsum(shares, axis=1)
    for label, (colour, ink) in enumerate(colours_of_labels(shares.shape[1])):
        width = shares[:, label]
        drawn = axis.barh(
            range(len(bars)),
            width,
            left=ends[:, label] - width,
            height=0.78,
            color=colour,
            edgecolor="white",
            linewidth=0.6,
        )
        axis.bar_label(
            drawn,
            [fixed(share, 1) if share >= _NARROW else "" for share in width],
            label_type="center",
            color=ink,
            # So that the line of the gold labels does not cross a number.
            bbox={"facecolor": colour, "edgecolor": "none", "pad": 1},
        )
    for end in ends[0, :-1]:
        axis.plot([end] * 2, [0.4, len(bars) - 0.6], color="black", ls=(0, (3, 2)), lw=1)
    axis.set_yticks(range(len(bars)), list(wrapped(bars, _IN_ROW).values()))
    axis.set_ylim(len(bars) - 0.5, -0.5)
    axis.set_xlim(0, 100)
    without_frame(axis)


def _draw_confusions(methods: Sequence[MethodScores], labels: Sequence[str]) -> Figure:
    titles = wrapped((method.name for method in methods), _IN_TITLE)
    figure, axes = square_panels((titles[method.name] for method in methods), 0.3)
    for axis, method in zip(axes, methods, strict=True):
        _confusion(axis, method, labels)
    figure.supxlabel("predicted", fontsize="medium")
    figure.supylabel("gold", fontsize="medium")
    return figure


def _confusion(axis: Axes, method: MethodScores, labels: Sequence[str]) -> None:
    counts, percentages = method.counts, method.percentages
    axis.pcolormesh(percentages, cmap="cividis", vmin=0, vmax=100, edgecolor="white", linewidth=1)
    is_small = len(labels) > 5
    text = "{0:,.0f}" if is_small else "{0:,.0f}\n{1}%"
    for (gold, predicted), share in np.ndenumerate(percentages):
        is_number = np.isfinite(share)
        axis.text(
            predicted + 0.5,
            gold + 0.5,
            (text.format(counts[gold, predicted], fixed(share, 0)) if is_number else MISSING),
            ha="center",
            va="center",
            fontsize="x-small" if is_small else None,
            color="white" if is_number and share < 55 else "black",
        )
    ticks = np.arange(len(labels)) + 0.5
    axis.set_xticks(ticks, labels)
    axis.set_yticks(ticks, labels)
    axis.set_ylim(len(labels), 0)
    axis.set_aspect("equal")
    without_frame(axis)
    axis.tick_params(colors=INK)
