"""Figures of people's and a judge's response to a covariate, or a system."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from btdagg.estimates.judge_bias import TWICE
from btdagg.evaluation.metrics import Interval
from btdagg.report.figure import ReportFigure
from btdagg.report.figures.intervals import draw_intervals
from btdagg.report.style import FAINT, WIDTH, draw_legend, series_styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from btdagg.estimates.judge_bias import Bias, JudgeBias

_BESIDE = 3
_LABELS = {"win": "wins in percent", "pass": "passes in percent", "point": "points"}


def judge_bias_figure(found: JudgeBias) -> ReportFigure:
    """Draw lines of people and the judge over each covariate; without any, the systems."""
    name, level = "bias", f"{100 * found.level:.3g}%"
    unit = 1 if found.unit == "point" else 100
    if not found.covariates:
        points = {
            bias.of: {who: Interval(*getattr(bias, who)) for who in ("people", "judge")}
            for bias in found.systems
        }
        note = f"Scores of each system by people and by the judge, with {level} intervals."
        label = _LABELS[found.unit]
        draw = partial(draw_intervals, points, ("people", "judge"), "", label, None, unit)
        return ReportFigure(name, "Scores of systems by people and by the judge", note, draw)
    note = f"Least-squares lines with {level} bands, at fixed values of the other covariates."
    draw = partial(_draw, found.covariates, unit, _LABELS[found.unit])
    return ReportFigure(name, "Slopes of people and of the judge", note, draw)


def _draw(covariates: Sequence[Bias], unit: int, label: str) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    styles = series_styles(("people", "judge"))
    for style in styles.values():
        style.pop("marker")
    n_columns = min(len(covariates), _BESIDE)
    n_rows = -(-len(covariates) // n_columns)
    width = WIDTH * (0.6 if n_columns == 1 else 1)
    figure = Figure(figsize=(width, 2.4 * n_rows + 0.3), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    for panel, bias in zip(panels, covariates, strict=False):
        for who, style in styles.items():
            x, middle, low, high = bias.lines[who].T
            panel.plot(x, unit * middle, **style)
            panel.fill_between(x, unit * low, unit * high, color=style["color"], alpha=0.18, lw=0)
        panel.set_xlabel(bias.of)
        if bias.step == TWICE:
            panel.set_xlabel("times as long" if x[0] < 0 else "characters")
            panel.xaxis.set_major_formatter(lambda at, _: f"{float(f'{math.exp(at):.2g}'):,.12g}")
        panel.xaxis.set_major_locator(MaxNLocator(5))
        panel.grid(color="#E5E5E5", linewidth=0.5)
        if x[0] < 0 < x[-1]:
            panel.axvline(0, color=FAINT, linewidth=0.8)
    for panel in panels[len(covariates) :]:
        panel.set_visible(False)
    panels[0].set_ylabel(label)
    if unit != 1:  # bands of a line go on, shares do not
        bottom, top = panels[0].get_ylim()
        panels[0].set_ylim(max(bottom, 0), min(top, unit))
    draw_legend(figure, styles)
    return figure
