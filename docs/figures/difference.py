"""Draw the figure of docs/difference.md from simulated labels of pairs: `make figures`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import btdagg
from btdagg.report.figure import ReportFigure
from btdagg.report.style import FAINT, INK, series_styles

HERE = Path(__file__).parent
N, N_STREAMS, FIRST = 600, 400, 20
SHARES = {"a real difference": (0.28, 0.3, 0.42), "none": (0.35, 0.3, 0.35)}


def main() -> None:
    svg = ReportFigure("difference", "A difference looked at after every item", "", draw).svg()
    (HERE / "difference.svg").write_text(svg, encoding="utf-8")


def draw() -> Figure:
    figure = Figure(figsize=(9.0, 3.1), layout="constrained")
    sequence, level = figure.subplots(1, 2, width_ratios=[1.25, 1])
    draw_sequence(sequence)
    draw_errors(level)
    return figure


def stream(name: str, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice([-1, 0, 1], N, p=SHARES[name])


def pointwise(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means, and half the widths of 95% intervals that are each for one look."""
    n = np.arange(1, len(values) + 1)
    mean = np.cumsum(values) / n
    return mean, 1.96 * np.sqrt(np.maximum(np.cumsum(values**2) / n - mean**2, 1e-9) / n)


def draw_sequence(axis: Axes) -> None:
    """One stream: its mean, intervals of one look, and the confidence sequence."""
    values = stream("a real difference", 4)
    path = btdagg.ConfidenceSequence((-1, 1)).add(values).path
    mean, half = pointwise(values)
    one, every = series_styles(("each for one look", "for all looks together")).values()
    shown = slice(FIRST, None)
    axis.plot(path.n_items[shown], mean[shown], color=INK, linewidth=1)
    for sign in (-1, 1):
        axis.plot(path.n_items[shown], (mean + sign * half)[shown], color=one["color"], linewidth=1)
    axis.fill_between(
        path.n_items[shown],
        path.low[shown],
        path.high[shown],
        color=every["color"],
        alpha=0.25,
        linewidth=0,
    )
    decided = int(path.n_items[np.flatnonzero(path.low > 0)[0]])
    axis.axhline(0, color=FAINT, linestyle=":")
    axis.axvline(decided, color=FAINT, linestyle=":")
    axis.text(decided + 6, -0.27, f"shown after {decided} items", color=INK)
    axis.text(N, mean[-1] + 0.012, "mean", color=INK, ha="right")
    axis.text(190, 0.46, "band: holds at all looks together", color=every["color"])
    axis.text(190, 0.53, "lines: each for one look", color=one["color"])
    axis.set(xlabel="items", ylabel="difference", ylim=(-0.32, 0.6), xlim=(0, N))
    axis.set_title("one stream, looked at after every item", color=INK)


def draw_errors(axis: Axes) -> None:
    """Share of streams without a difference in which one was ever shown, by number of items."""
    shares = []
    for name in ("each for one look", "for all looks together"):
        ever = np.zeros(N)
        for seed in range(N_STREAMS):
            values = stream("none", 1000 + seed)
            if name == "each for one look":
                mean, half = pointwise(values)
                is_out = np.abs(mean) > half
                is_out[:FIRST] = False
            else:
                path = btdagg.ConfidenceSequence((-1, 1)).add(values).path
                is_out = (path.low > 0) | (path.high < 0)
            ever += np.maximum.accumulate(is_out)
        shares.append(100 * ever / N_STREAMS)
    for (name, style), share in zip(
        series_styles(("each for one look", "for all looks together")).items(), shares, strict=True
    ):
        axis.plot(np.arange(1, N + 1), share, color=style["color"])
        place = 590, (share[-1] + 2 if name.startswith("each") else 9.5)
        axis.text(*place, name, color=style["color"], ha="right")
    axis.axhline(5, color=FAINT, linestyle=":")
    axis.text(596, 5.8, "5%", color=INK, ha="right")
    axis.set(xlabel="items, a look after each", ylabel="ever wrong (%)", xlim=(0, N), ylim=(0, 60))
    axis.set_title("no difference: how often one is shown", color=INK)


if __name__ == "__main__":
    main()
