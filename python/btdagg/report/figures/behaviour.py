"""How aggregators decide every way in which n votes can fall."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import InputError, forbid
from btdagg._util.numbers import as_integer
from btdagg._util.wording import wrapped
from btdagg.methods.base import voting_behaviour
from btdagg.report.figure import ReportFigure
from btdagg.report.style import (
    LABEL_COLOURS,
    colours_of_labels,
    small_axis,
    square_panels,
    without_frame,
)
from btdagg.votes.scale import PAIRS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from btdagg.methods import Aggregator
    from btdagg.model.grades import GradeModel

Map = np.ma.MaskedArray[Any, Any]

_LETTERS = 20  # of a title, on a line


def behaviour_figure(aggregators: Mapping[str, Aggregator], n_votes: int) -> ReportFigure:
    """Draw how each aggregator, by its title, decides n votes, by those for A and for B."""
    # Those that cannot decide by counts alone are left out; `InputError` if none can.
    as_integer(n_votes, "n_votes", 0)
    maps: dict[str, Map] = {}
    left_out: dict[str, str] = {}
    for title, aggregator in aggregators.items():
        try:
            maps[title] = voting_behaviour(aggregator, n_votes)
        except InputError as error:
            left_out[title] = str(error)
    forbid(not maps, "; ".join(left_out.values()) or "aggregators is empty, expected at least one")
    note = (
        f"Decision for every split of {n_votes} votes; votes that are neither for A nor for B are "
        "ties."
    )
    if left_out:
        note += f" Not drawn: {'; '.join(f'{name} ({why})' for name, why in left_out.items())}."
    return ReportFigure(
        "voting-behaviour",
        f"Decisions for {n_votes} votes",
        note,
        partial(_draw, maps),
    )


def grades_figure(model: GradeModel) -> ReportFigure:
    """Draw how likely people give each grade by the mean vote, and where the decision changes."""
    return ReportFigure(
        "grades",
        "People's grades by the mean vote",
        f"Probability of each grade. Dashed: mean votes at which the decision changes. {model}",
        partial(_draw_grades, model),
    )


def _draw_grades(model: GradeModel) -> Figure:
    from matplotlib.patches import Patch

    scale = model.scale
    low, *_, high = scale.points
    means = np.linspace(low, high, 201)
    # Votes of the lowest and the highest point alone can have any mean.
    counts = np.zeros((len(means), len(scale.points)))
    counts[:, -1] = (means - low) / (high - low)
    counts[:, 0] = 1 - counts[:, -1]
    colours = [colour for colour, _ in colours_of_labels(len(model.label_scale.points))]
    figure, axis = small_axis()
    axis.stackplot(means, 100 * model.predict_proba(counts).T, colors=colours)
    for start in [*model.reachable.values()][1:]:
        axis.axvline(start, color="white", lw=2)
        axis.axvline(start, color="black", ls=(0, (3, 2)), lw=1)
    axis.set_xlim(low, high)
    axis.set_ylim(0, 100)
    axis.set_xlabel("mean vote")
    axis.set_ylabel("percent of people")
    shown = np.unique(np.linspace(0, len(colours) - 1, 10).round().astype(int))
    swatches = [Patch(color=colours[place]) for place in shown]
    names = [str(model.label_scale.points[place]) for place in shown]
    figure.legend(
        swatches,
        names,
        loc="outside upper center",
        ncols=len(names),
        handlelength=1,
        handletextpad=0.4,
        columnspacing=0.9,
    )
    return figure


def _draw(maps: Mapping[str, Map]) -> Figure:
    from matplotlib.patches import Patch

    figure, axes = square_panels(wrapped(maps, _LETTERS).values(), 0.6)
    for axis, decided in zip(axes, maps.values(), strict=True):
        draw_map(axis, decided)
    figure.supxlabel("votes for A", fontsize="medium")
    figure.supylabel("votes for B", fontsize="medium")
    swatches = [Patch(color=colour) for colour in LABEL_COLOURS]
    names = [f"decided {name}" for name in PAIRS.names]
    figure.legend(swatches, names, loc="outside upper center", ncols=3)
    return figure


def draw_map(axis: Axes, decided: Map) -> None:
    """Draw one map of `voting_behaviour`."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    n = len(decided) - 1
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    for label, colour in zip((-1, 0, 1), LABEL_COLOURS, strict=True):
        cells = np.argwhere(decided.filled(9) == label)
        if not len(cells):
            continue
        # One path for all cells: a file with one for each is ten times as large.
        squares = Path.make_compound_path(*(Path(square + cell) for cell in cells))
        axis.add_patch(PathPatch(squares, facecolor=colour, edgecolor="white", linewidth=0.3))
    axis.set_xlim(0, n + 1)
    axis.set_ylim(0, n + 1)
    places = sorted({0, n // 2, n})
    ticks, names = [place + 0.5 for place in places], [str(place) for place in places]
    axis.set_xticks(ticks, names)
    axis.set_yticks(ticks, names)
    axis.set_aspect("equal")
    without_frame(axis)
