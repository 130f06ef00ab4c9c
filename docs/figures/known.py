"""Draw the figure of docs/known.md from simulated pairs of five systems: `make figures`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import btdagg
from btdagg.report.figure import ReportFigure
from btdagg.report.style import FAINT, LABEL_COLOURS, series_styles

HERE = Path(__file__).parent
N, N_DRAWS = 600, 20
LABELLED = (10, 20, 50, 100, 200)
QUALITY = np.array([1.6, 0.8, 0.0, -0.8, -1.6])
VOTES = {"two votes for A": [0, 0, 2], "one for each": [1, 0, 1], "two votes for B": [2, 0, 0]}


def main() -> None:
    svg = ReportFigure("known", "What else is known of the items", "", draw).svg()
    (HERE / "known.svg").write_text(svg, encoding="utf-8")


def draw() -> Figure:
    figure = Figure(figsize=(9.0, 3.1), layout="constrained")
    curve, chances = figure.subplots(1, 2)
    draw_errors(curve)
    draw_chances(chances)
    return figure


def simulated(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Two votes an item, people's labels, and covariates, as on the page."""
    rng = np.random.default_rng(seed)
    first, second = np.array([rng.choice(5, 2, replace=False) for _ in range(N)]).T
    logs = np.log1p(rng.lognormal(6, 0.5, (N, 2)).astype(int))
    length = logs[:, 0] - logs[:, 1]
    lead = QUALITY[first] - QUALITY[second] + 0.5 * length / np.log(2) + rng.normal(0, 0.7, N)
    votes = np.sign(np.round((lead[:, None] + rng.normal(0, 2.5, (N, 2))) / 1.2))
    counts = (votes[:, :, None] == [-1, 0, 1]).sum(axis=1)
    labels = np.sign(np.round(lead + rng.normal(0, 0.5, N)))
    known = {"standing": btdagg.standing(counts, first, second), "length": length}
    return counts, labels, known


def draw_errors(axis: Axes) -> None:
    """Mean absolute error on items without a label against the number of labels."""
    errors = np.zeros((2, len(LABELLED)))
    for seed in range(N_DRAWS):
        counts, labels, known = simulated(seed)
        for place, n in enumerate(LABELLED):
            gold = np.where(np.arange(N) < n, labels, np.nan)
            alone = btdagg.calibrate(counts[:n], labels[:n]).model.decide(counts)
            model = btdagg.calibrate(counts, gold, covariates=known).model
            for row, decided in enumerate((alone, model.decide(counts, covariates=known))):
                errors[row, place] += np.abs(decided - labels)[n:].mean() / N_DRAWS
    styles = series_styles(("with standing and length", "votes alone"))
    for line, (name, style) in zip(errors[::-1], styles.items(), strict=True):
        axis.plot(LABELLED, line, label=name, **style)
    axis.set(xlabel="labels", ylabel="mean absolute error", ylim=(0, None), xscale="log")
    axis.set_xticks(LABELLED, map(str, LABELLED))
    axis.minorticks_off()
    axis.legend(loc="lower left")
    axis.set_title("the error, two votes an item")


def draw_chances(axis: Axes) -> None:
    """Probability that A is better against the standing, for three results of two votes."""
    counts, labels, known = simulated(0)
    gold = np.where(np.arange(N) < 100, labels, np.nan)
    model = btdagg.calibrate(counts, gold, covariates=known).model
    standing = np.linspace(-1, 1, 101)
    colours = (LABEL_COLOURS[2], "#777777", LABEL_COLOURS[0])
    for (name, votes), colour in zip(VOTES.items(), colours, strict=True):
        rows = np.tile(votes, (101, 1))
        of_rows = {"standing": standing, "length": np.zeros(101)}
        chances = model.predict_proba(rows, covariates=of_rows)[:, 2]
        axis.plot(standing, chances, color=colour, label=name)
    axis.axhline(0.5, color=FAINT, linestyle=":")
    axis.set(xlabel="standing of A minus that of B", ylabel="probability that A is better")
    axis.set(ylim=(0, 1))
    axis.legend(loc="upper left")
    axis.set_title("what a standing says beside two votes")


if __name__ == "__main__":
    warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
    main()
