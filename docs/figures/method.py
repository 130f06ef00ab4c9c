"""Draw the figure of docs/method.md: `make figures`. Its errors are exact sums, not samples."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import multinomial

import btdagg
from btdagg.report.figure import ReportFigure
from btdagg.report.style import FAINT, INK, series_styles

HERE = Path(__file__).parent
BUDGETS = (1, 2, 4, 6, 8, 12, 16, 24, 32)
# How a judge votes (B, tie, A) on an item that is a tie and on one that A wins. Half of the items
# are ties; the others, and the leanings on ties, are A's and B's alike.
SHY = ((0.30, 0.15, 0.55), (0.10, 0.10, 0.80))
CANDID = ((0.20, 0.60, 0.20), (0.05, 0.20, 0.75))


def main() -> None:
    svg = ReportFigure("method", "Where the label changes, and errors", "", draw).svg()
    (HERE / "method.svg").write_text(svg, encoding="utf-8")


def draw() -> Figure:
    figure = Figure(figsize=(9.0, 2.9), layout="constrained")
    axes = figure.subplots(1, 3)
    draw_probabilities(axes[0])
    draw_errors(axes[1], SHY, "a judge that calls few ties")
    draw_errors(axes[2], CANDID, "a judge that calls them")
    return figure


def draw_probabilities(axis: Axes) -> None:
    """Probabilities of the three labels against u, at one eta, and where the label changes."""
    u, eta = np.linspace(-3, 3, 301), 1.0
    weights = np.exp(np.stack([-u, np.full_like(u, eta), u]))
    names, colours = ("B", "tie", "A"), ("#E69F00", "#777777", "#0072B2")
    for name, p, colour, place in zip(
        names, weights / weights.sum(axis=0), colours, (-2.6, 0, 2.6), strict=True
    ):
        axis.plot(u, p, color=colour)
        axis.text(place, np.interp(place, u, p) + 0.03, name, color=colour, ha="center")
    change = np.arcsinh(np.exp(eta) / 2)
    for side in (-1, 1):
        axis.axvline(side * change, color=FAINT, linestyle=":")
    axis.axhline(0.5, color=FAINT, linestyle=":")
    axis.set(xlabel="u", ylabel="probability of the label", ylim=(0, 1.08))
    axis.set_title("η = 1: the label changes where 2 sinh|u| = exp η", color=INK)


def draw_errors(axis: Axes, judge: tuple[tuple[float, ...], ...], title: str) -> None:
    """Expected error of majority vote and of the model fitted to infinitely many labels."""
    found = np.array([errors(judge, n) for n in BUDGETS]).T
    calibrated, majority = series_styles(("calibrated", "majority vote")).values()
    labels = ("majority vote", "calibrated")
    for line, label, style in zip(found, labels, (majority, calibrated), strict=True):
        axis.plot(BUDGETS, line, **style, label=label)
    axis.set(xlabel="votes per item", ylabel="expected absolute error", ylim=(0, 0.75))
    axis.set_xticks([1, 4, 8, 16, 24, 32])
    axis.set_title(title)
    axis.legend(loc="upper right")


def errors(judge: tuple[tuple[float, ...], ...], n: int) -> tuple[float, float]:
    """Expected errors of majority vote and of the calibrated model at n votes."""
    counts = np.array([(m, t, n - m - t) for m in range(n + 1) for t in range(n + 1 - m)])
    on_tie, on_win = (multinomial.pmf(counts, n, votes) for votes in judge)
    tie_b, win_b = (multinomial.pmf(counts, n, votes[::-1]) for votes in judge)
    chances = np.stack([win_b / 4, (on_tie + tie_b) / 4, on_win / 4])  # of counts, by label
    labels = np.array([-1, 0, 1])
    model = btdagg.calibrate(
        np.tile(counts, (3, 1)), labels.repeat(len(counts)), weights=chances.ravel(), prior=None
    ).model

    def error(decided: np.ndarray) -> float:
        return float((chances * np.abs(decided - labels[:, None])).sum())

    return error(btdagg.majority_vote(counts)), error(model.decide(counts))


if __name__ == "__main__":
    warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
    for judge in (SHY, CANDID):
        for n in BUDGETS:
            print(n, *(f"{error:.3f}" for error in errors(judge, n)))
    main()
