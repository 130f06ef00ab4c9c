"""Draw the figure of docs/online.md from simulated judges: `make figures`."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch

import btdagg
from btdagg.datasets import REGIMES, simulate
from btdagg.online import StoppingRule, fit_votes
from btdagg.report.figure import ReportFigure
from btdagg.report.style import FAINT, INK, LABEL_COLOURS

HERE = Path(__file__).parent
N_VOTES = 12
COLOURS = [*LABEL_COLOURS, "#F4F4F4"]  # B, tie, A, open
BUDGETS = (1, 2, 3, 4, 5, 6, 8, 10)
PRICES = (0.04, 0.02, 0.015, 0.01, 0.006, 0.003, 0.001)
LABELLED = 200


def main() -> None:
    svg = ReportFigure("online", "When votes are enough", "", draw).svg()
    (HERE / "online.svg").write_text(svg, encoding="utf-8")


def draw() -> Figure:
    figure = Figure(figsize=(9.0, 3.0), layout="constrained")
    maps, curve = figure.subfigures(1, 2, width_ratios=[1.45, 1])
    draw_maps(maps)
    draw_curve(curve.subplots())
    return figure


def draw_maps(figure: SubFigure) -> None:
    """Which items of eight votes are settled."""
    judge = simulate("wmt-en-de", 20_000, N_VOTES, seed=0)
    model = btdagg.calibrate(judge.counts, judge.labels, prior=None).model
    votes = fit_votes(judge.counts, judge.labels)
    rules = {
        "lossless": StoppingRule.lossless(model, N_VOTES),
        "risk-bounded, 5%": StoppingRule.risk_bounded(model, N_VOTES, votes, epsilon=0.05),
    }
    total = 8
    a, b = np.meshgrid(np.arange(total + 1), np.arange(total + 1))
    possible = a + b <= total
    counts = np.stack([b, total - a - b, a], axis=-1)[possible]
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (title, rule) in zip(axes, rules.items(), strict=True):
        shade = np.full(a.shape, np.nan)
        shade[possible] = np.where(rule.stops(counts), rule.decide(counts), 2)
        axis.pcolormesh(shade, cmap=ListedColormap(COLOURS), vmin=-1, vmax=2, edgecolor="white")
        axis.set(title=title, xlabel="votes for A", aspect="equal")
        axis.set(xticks=np.arange(0, 9, 2) + 0.5, xticklabels=range(0, 9, 2))
        axis.set(yticks=np.arange(0, 9, 2) + 0.5, yticklabels=range(0, 9, 2))
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
    axes[0].set_ylabel("votes for B")
    swatches = [Patch(facecolor=colour, edgecolor=FAINT) for colour in COLOURS]
    axes[1].legend(
        [swatches[i] for i in (2, 1, 0, 3)],
        ["settled: A", "settled: tie", "settled: B", "goes on"],
        loc="upper right",
    )
    axes[0].text(9, 8.3, "after 8 of 12 votes", ha="right", va="top")


def draw_curve(axis: Axes) -> None:
    """Mean error over the simulated tasks against the votes that items get on average."""
    points: dict[str, list[tuple[float, float]]] = {
        "n votes each": [],
        "cost-optimal, by price": [],
    }
    marks: dict[str, tuple[float, float]] = {}
    judges = [simulate(name, 4000, N_VOTES, seed=0) for name in REGIMES]
    known, rest = slice(0, LABELLED), slice(LABELLED, None)
    for n in (*BUDGETS, N_VOTES):
        errors = []
        for judge in judges:
            counts = judge.first(n)
            model = btdagg.calibrate(counts[known], judge.labels[known], prior=None).model
            errors.append(np.abs(model.decide(counts[rest]) - judge.labels[rest]).mean())
        points["n votes each"].append((n, float(np.mean(errors))))

    def follow(make: object) -> tuple[float, float]:
        found = []
        for judge in judges:
            model = btdagg.calibrate(judge.counts[known], judge.labels[known], prior=None).model
            votes = fit_votes(judge.counts[known], judge.labels[known])
            n_votes, labels = make(model, votes).follow(judge.votes[rest])
            found.append((n_votes.mean(), np.abs(labels - judge.labels[rest]).mean()))
        used, error = np.mean(found, axis=0)
        return float(used), float(error)

    points["cost-optimal, by price"] = [
        follow(lambda m, v, p=p: StoppingRule.cost_optimal(m, N_VOTES, v, price=p)) for p in PRICES
    ]
    marks["lossless"] = follow(lambda m, v: StoppingRule.lossless(m, N_VOTES))
    marks["risk-bounded, 5%"] = follow(lambda m, v: StoppingRule.risk_bounded(m, N_VOTES, v))
    for (label, line), colour, marker in zip(points.items(), COLOURS[2::-2], "so", strict=True):
        axis.plot(*zip(*line, strict=True), marker + "-", color=colour, markersize=4, label=label)
    for (label, point), marker in zip(marks.items(), "D^", strict=True):
        axis.plot(*point, marker, color=INK, markersize=6, label=label)
    axis.legend()
    axis.set(xlabel="votes per item on average", ylabel="mean absolute error")
    axis.set_title("eight simulated tasks, 200 labels each")


if __name__ == "__main__":
    warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
    main()
