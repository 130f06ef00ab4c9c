"""Draw the figure of the README from simulated judges: `make figures`."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch

import btdagg
from btdagg import evaluate
from btdagg.datasets import REGIMES, Thurstone, simulate
from btdagg.methods import Calibrated, MajorityVote, voting_behaviour
from btdagg.report.figure import ReportFigure
from btdagg.report.figures.behaviour import draw_map
from btdagg.report.style import LABEL_COLOURS, series_styles

HERE = Path(__file__).parent
N_VOTES = 12
BUDGETS = (2, 4, 6, 8, 10, 12)


def main() -> None:
    svg = ReportFigure("overview", "How btdagg decides, and how well", "", draw).svg()
    (HERE / "overview.svg").write_text(svg, encoding="utf-8")


def draw() -> Figure:
    figure = Figure(figsize=(9.0, 2.9), layout="constrained")
    maps, curve = figure.subfigures(1, 2, width_ratios=[2.1, 1])
    draw_maps(maps)
    draw_curve(curve.subplots())
    return figure


def draw_maps(figure: SubFigure) -> None:
    """How twelve votes are decided by majority and by two calibrated models."""
    panels = {"majority vote": voting_behaviour(MajorityVote(), N_VOTES)}
    for name in ("wmt-zh-en", "rb2-factuality"):
        judge = simulate(name, 20_000, N_VOTES, seed=0)
        fitted = Calibrated(prior=None).fit(judge.counts, judge.labels)
        panels[f"calibrated on {name}"] = voting_behaviour(fitted, N_VOTES)
    axes = figure.subplots(1, 3, sharey=True)
    for axis, (title, decided) in zip(axes, panels.items(), strict=True):
        draw_map(axis, decided)
        axis.set(title=title, xlabel="votes for A")
    axes[0].set_ylabel("votes for B")
    swatches = [Patch(color=colour) for colour in LABEL_COLOURS]
    axes[0].legend(
        swatches[::-1], ["decided A", "decided tie", "decided B"], loc="upper right", frameon=False
    )
    axes[2].text(13, 11, "the rest of the\n12 votes are ties", ha="right", va="top")


def draw_curve(axis: Axes) -> None:
    """Mean error over eight tasks against the votes per item; neither is drawn from the model."""
    errors = np.zeros((2, len(BUDGETS)))
    for name in REGIMES:
        judge = simulate(name, 1000, max(BUDGETS), seed=0, truth=Thurstone())
        for place, budget in enumerate(BUDGETS):
            methods = [MajorityVote(), Calibrated(prior=None)]
            scores = evaluate(judge.first(budget), judge.labels, aggregators=methods)
            of_methods = scores.cells[0].methods
            errors[:, place] += [method.mae.mean() / len(REGIMES) for method in of_methods]
    labels = ("majority vote", "calibrated on 50 labels")
    calibrated, majority = series_styles(("calibrated", "majority vote")).values()
    for line, label, style in zip(errors, labels, (majority, calibrated), strict=True):
        axis.plot(BUDGETS, line, **style)
        axis.annotate(
            label,
            (BUDGETS[-1], line[2:].max()),
            xytext=(0, 9),
            textcoords="offset points",
            ha="right",
            color=style["color"],
        )
    axis.set(xlabel="votes per item", ylabel="mean absolute error", xticks=BUDGETS)
    axis.set_title("eight simulated tasks")
    axis.set_ylim(errors.min() - 0.01, errors.max() + 0.03)


if __name__ == "__main__":
    warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
    main()
