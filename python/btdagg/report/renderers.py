"""Which tables and which figure each result shows itself by, in notebooks and by `plot`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import singledispatch
from typing import Any

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg.estimates import Estimates, SystemEstimates
from btdagg.evaluation.cells import Cell, Comparison
from btdagg.evaluation.scores import Scores
from btdagg.methods import MajorityVote
from btdagg.model import Bootstrap
from btdagg.model.absolute_error import MaeCalibration
from btdagg.model.calibration import Calibration
from btdagg.model.davidson import DavidsonModel
from btdagg.model.panel import PanelCalibration, PanelModel
from btdagg.online import Forecast, Plan, StoppingRule
from btdagg.report import figures, tables
from btdagg.report.figure import ReportFigure
from btdagg.report.markup import escaped
from btdagg.report.table import ReportTable

Parts = Iterator[ReportTable | str]
"""Tables, and what a reader has to know besides."""

_USUAL_VOTES = 8  # of a map of a model that does not know how many it was fitted for
_MOST_VOTES = 50  # of a map unless asked for more: with 400 it takes minutes


def as_html(result: object) -> str | None:
    """Return the tables of a result as HTML; None if jinja2 is missing or it has no tables.

    All text is escaped. There is no script and no style but what the notebook has.
    """
    parts = [_as_html(part) for part in parts_of(result)]
    return None if not parts or None in parts else "\n".join(map(str, parts))


def figure_of(result: object, *options: Any) -> ReportFigure:
    """Return the figure of a result.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If there is nothing to draw, or an option is out of range.
    """
    with needs("report", "drawing figures"):
        import matplotlib  # noqa: F401
    return draw(result, *options)


@singledispatch
def parts_of(result: object) -> Parts:
    """Yield the tables and remarks of a result; none of what is not registered."""
    yield from ()


@singledispatch
def draw(result: object, *options: Any) -> ReportFigure:
    """Draw the figure of a result."""
    raise InputError(f"there is no figure of a {type(result).__name__}")


def _as_html(part: ReportTable | str) -> str | None:
    return f"<p>{escaped(part)}</p>" if isinstance(part, str) else part._repr_html_()


@parts_of.register
def _calibration(result: Calibration) -> Parts:
    note = f"Calibrated on {result.n_labels:,} labels of items with up to {result.max_votes} votes."
    if result.n_labels:
        note += f" DRPS {result.drps:.4f}."
    intervals = None if result.posterior is None else result.posterior.intervals()
    yield tables.model_table(result.model, intervals, note)
    if not result.converged:
        yield "The fit did not converge."
    yield from result.warnings


@parts_of.register
def _by_error(result: MaeCalibration) -> Parts:
    note = f"Calibrated on {result.n_labels:,} labels by absolute error: MAE {result.mae:.3f}."
    yield tables.model_table(result.model, note=note)


@parts_of.register
def _panel_calibration(result: PanelCalibration) -> Parts:
    yield tables.panel_table(
        result.model, f"Calibrated on {result.n_labels:,} labels. DRPS {result.drps:.4f}."
    )
    yield from result.warnings


@parts_of.register
def _with_intervals(result: Bootstrap) -> Parts:
    intervals = {name: getattr(result, name) for name in ("beta", "nu", "gamma")}
    note = f"{100 * result.level:.3g}% intervals."
    yield tables.model_table(result.calibration.model, intervals, note)


@parts_of.register
def _scores(result: Scores) -> Parts:
    yield tables.answers_table(result)
    yield tables.methods_table(result)
    yield from result.remarks


@parts_of.register
def _comparison(result: Comparison) -> Parts:
    scores = Scores((), (Cell((), result),))
    yield tables.answers_table(scores)
    yield from tables.score_tables(scores, ranked=result.tested is not None)


@parts_of.register
def _estimates(result: Estimates) -> Parts:
    yield tables.estimates_table(result)
    if result.by and (differences := tables.differences_table(result, "value")) is not None:
        yield differences
    yield from result.remarks


@parts_of.register
def _systems(result: SystemEstimates) -> Parts:
    yield tables.systems_table(result)
    yield from result.remarks


parts_of.register(DavidsonModel, lambda result: iter([tables.model_table(result)]))
parts_of.register(PanelModel, lambda result: iter([tables.panel_table(result)]))
parts_of.register(StoppingRule, lambda result: iter([tables.rule_table(result)]))
parts_of.register(Plan, lambda result: iter([tables.plan_table(result)]))
parts_of.register(Forecast, lambda result: iter([tables.forecast_table(result)]))


@draw.register
def _map(model: DavidsonModel, n_votes: int | None) -> ReportFigure:
    known = None if model.provenance is None else model.provenance.n_votes
    return _drawn({"calibrated": model}, n_votes, known)


@draw.register
def _maps(result: Calibration, n_votes: int | None) -> ReportFigure:
    return _drawn(
        {"calibrated": result.model, "majority vote": MajorityVote()}, n_votes, result.max_votes
    )


def _drawn(deciders: Mapping[str, Any], n_votes: int | None, known: int | None) -> ReportFigure:
    """Draw maps of what decides by counts; a model does, as aggregators do."""
    fitted = known or _USUAL_VOTES
    figure = figures.behaviour_figure(
        deciders, min(fitted, _MOST_VOTES) if n_votes is None else n_votes
    )
    if n_votes is None and fitted > _MOST_VOTES:
        more = f" Items have up to {fitted:,} votes; plot(n_votes={fitted}) draws those, slowly."
        figure = replace(figure, note=figure.note + more)
    return figure


@draw.register
def _curves(result: Scores, choice: str | None) -> ReportFigure:
    """Draw a sweep; labels by part where there is one number of votes."""
    if all(len(cells) == 1 for cells in result.by_key().values()):
        by = {
            " ".join(key) or "items": cell.comparison
            for key, cell in result.at_most_votes().items()
        }
        return figures.condition_figure(", ".join(result.by) or "all", by)
    drawn = figures.sweep_figures(result)
    by_choice = {figure.choice: figure for figure in drawn}
    if len(drawn) == 1 and choice is None:
        return drawn[0]
    if choice not in by_choice:
        raise InputError(f"choice is {choice!r}, expected one of {', '.join(map(repr, by_choice))}")
    return by_choice[choice]


draw.register(Comparison, lambda result: figures.confusion_figure("all items", result))
draw.register(Estimates, lambda result: figures.estimates_figure(result))
draw.register(SystemEstimates, lambda result: figures.systems_figure(result))
draw.register(Plan, lambda result: figures.plan_figure(result))
