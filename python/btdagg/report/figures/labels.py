"""Gold against predicted labels: distributions and confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    BESIDE,
    INK,
    LABEL_COLOURS,
    LABEL_INK,
    WIDTH,
    abridged,
    grid_of,
    square_panels,
    without_frame,
    wrapped,
)
from btdagg.report.wording import LABEL_NAMES, MISSING, basis_of, fixed, stem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from btdagg.evaluation import Comparison, LabelledItems
    from btdagg.evaluation.cells import MethodScores

Shares = tuple[str, "NDArray[np.float64]"]
"""Name of a bar, and the shares of the labels in it."""

_IN_ROW = 24  # letters of a name beside a bar
_IN_TITLE = 20
_NARROW = 0.04  # share from which its number fits into a bar


def distribution_figure(task: str, found: Comparison) -> ReportFigure:
    """Draw how often each label is gold, and how often each method gives it.

    Parameters
    ----------
    task : str
        What the labels are of.
    found : Comparison
    """
    rows = [("gold", found.gold), *found.predicted.items()]
    return ReportFigure(
        stem("labels", task),
        f"Label distributions: {task}",
        f"Labels in percent of the evaluation set: means over {basis_of([found]).over}. Dashed: "
        "where the gold labels change." + abridged(found.predicted, _IN_ROW),
        partial(_draw_bars, {"": rows}, first_is_gold=True),
        family="labels",
        choice=task,
    )


def condition_figure(column: str, found: Mapping[str, Comparison]) -> ReportFigure:
    """Draw gold and predicted labels under each value of a column, such as the prompt template.

    Parameters
    ----------
    column : str
        What is varied.
    found : mapping of str to Comparison
        By its value.
    """
    panels = {
        f"{column} {value}": [("gold", one.gold), *one.predicted.items()]
        for value, one in found.items()
    }
    names = [name for one in found.values() for name in one.predicted]
    return ReportFigure(
        stem("labels-by", column),
        f"Label distributions by {column}",
        "Labels in percent of the evaluation set: means over "
        f"{basis_of(found.values()).over}. Dashed: "
        "where the gold labels change." + abridged(names, _IN_ROW),
        partial(_draw_bars, panels, first_is_gold=True),
    )


def gold_figure(tasks: Mapping[str, LabelledItems]) -> ReportFigure:
    """Draw the gold labels of every task.

    Parameters
    ----------
    tasks : mapping of str to LabelledItems
        See `btdagg.evaluation.labelled_tasks`.
    """
    rows = [
        (name, np.bincount(items.labels + 1, minlength=3) / len(items))
        for name, items in tasks.items()
    ]
    return ReportFigure(
        "gold-labels",
        "Gold labels",
        "Gold labels in percent of the labelled items that have votes." + abridged(tasks, _IN_ROW),
        partial(_draw_bars, {"": rows}, first_is_gold=False),
    )


def confusion_figure(task: str, found: Comparison) -> ReportFigure:
    """Draw the confusion matrix of each method, with counts and percentages of the gold label.

    Parameters
    ----------
    task : str
        What the labels are of.
    found : Comparison
    """
    return ReportFigure(
        stem("confusion", task),
        f"Confusion matrices: {task}",
        "Items of the evaluation set with the gold label of the row that are given the label of "
        f"the column: mean over {basis_of([found]).over}, and percent of the row."
        + abridged((method.name for method in found.methods), _IN_TITLE),
        partial(_draw_confusions, found.methods),
        family="confusion",
        choice=task,
    )


def _draw_bars(panels: Mapping[str, Sequence[Shares]], *, first_is_gold: bool) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    n_rows = [len(rows) for rows in panels.values()]
    titled = [title for title in panels if title]
    figure = Figure(
        figsize=(WIDTH, 0.75 + 0.27 * sum(n_rows) + 0.3 * len(titled)), layout="constrained"
    )
    axes = figure.subplots(
        len(panels), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": n_rows}
    ).ravel()
    shown = wrapped((name for rows in panels.values() for name, _ in rows), _IN_ROW)
    titles = wrapped(panels, 70, 1)
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        _bars(axis, [(shown[name], shares) for name, shares in rows], first_is_gold)
        axis.set_title(titles[title], loc="left")
    axes[-1].set_xlabel("percent of items")
    swatches = [Patch(color=colour) for colour in LABEL_COLOURS]
    figure.legend(swatches, LABEL_NAMES, loc="outside upper right", ncols=3)
    return figure


def _bars(axis: Axes, rows: Sequence[Shares], first_is_gold: bool) -> None:
    """Draw one bar of three parts per row, from the top."""
    for place, (_, shares) in enumerate(rows):
        ends = np.cumsum(shares)
        for label, (share, end) in enumerate(zip(shares, ends, strict=True)):
            axis.barh(
                place,
                100 * share,
                left=100 * (end - share),
                height=0.78,
                color=LABEL_COLOURS[label],
                edgecolor="white",
                linewidth=0.6,
            )
            if share >= _NARROW:
                axis.text(
                    100 * (end - share / 2),
                    place,
                    fixed(100 * share, 1),
                    ha="center",
                    va="center",
                    color=LABEL_INK[label],
                    # So that the line of the gold labels does not cross a number.
                    bbox={"facecolor": LABEL_COLOURS[label], "edgecolor": "none", "pad": 1},
                )
    if first_is_gold:
        for end in np.cumsum(rows[0][1])[:2]:
            axis.plot([100 * end] * 2, [0.4, len(rows) - 0.6], color="black", ls=(0, (3, 2)), lw=1)
    axis.set_yticks(range(len(rows)), [name for name, _ in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlim(0, 100)
    without_frame(axis)


def _draw_confusions(methods: Sequence[MethodScores]) -> Figure:
    titles = wrapped((method.name for method in methods), _IN_TITLE)
    figure, axes = square_panels((titles[method.name] for method in methods), 0.3)
    _, beside = grid_of(len(methods), BESIDE)
    for place, (axis, method) in enumerate(zip(axes, methods, strict=True)):
        _confusion(axis, method)
        if place % beside:
            axis.set_yticklabels([])
    figure.supxlabel("predicted", fontsize="medium")
    figure.supylabel("gold", fontsize="medium")
    return figure


def _confusion(axis: Axes, method: MethodScores) -> None:
    counts, percentages = method.counts, method.percentages
    axis.pcolormesh(percentages, cmap="cividis", vmin=0, vmax=100, edgecolor="white", linewidth=1)
    for gold in range(3):
        for predicted in range(3):
            percentage = percentages[gold, predicted]
            known = np.isfinite(percentage)
            axis.text(
                predicted + 0.5,
                gold + 0.5,
                f"{counts[gold, predicted]:,.0f}\n{fixed(percentage, 0)}%" if known else MISSING,
                ha="center",
                va="center",
                color="white" if known and percentage < 55 else "black",
            )
    ticks = np.arange(3) + 0.5
    axis.set_xticks(ticks, LABEL_NAMES)
    axis.set_yticks(ticks, LABEL_NAMES)
    axis.invert_yaxis()
    axis.set_aspect("equal")
    without_frame(axis)
    axis.tick_params(colors=INK)
