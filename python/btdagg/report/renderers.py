"""Which tables and which figure each result shows itself by, in notebooks and by `plot`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import singledispatch
from typing import Any

from btdagg._util.errors import InputError
from btdagg._util.extras import needs
from btdagg.estimates import Certificate
from btdagg.estimates.judge_bias import JudgeBias
from btdagg.estimates.prediction_powered import Estimates
from btdagg.estimates.systems import SystemEstimates
from btdagg.evaluation.cells import Cell
from btdagg.evaluation.scores import Scores
from btdagg.methods import MajorityVote
from btdagg.model.calibration_set import Calibration
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grades import GradeModel
from btdagg.model.panel import PanelModel
from btdagg.model.refits import Bootstrap
from btdagg.online.plans import Plan
from btdagg.report import figures, tables
from btdagg.report.figure import ReportFigure
from btdagg.report.markup import escaped
from btdagg.report.table import ReportTable

Parts = Iterator[ReportTable | str]
"""Tables, and what a reader has to know besides."""

_USUAL_VOTES = 8  # of a map of a model that does not know how many it was fitted for
_MOST_VOTES = 50  # of a map unless asked for more: with 400 it takes minutes


def as_html(result: object) -> str | None:
    """Return the tables of a result as escaped HTML; None without jinja2 or tables."""
    parts = [
        f"<p>{escaped(part)}</p>" if isinstance(part, str) else part._repr_html_()
        for part in parts_of(result)
    ]
    return None if not parts or None in parts else "\n".join(map(str, parts))


def figure_of(result: object, *options: Any) -> ReportFigure:
    """Return the figure of a result; a `MissingExtraError` if matplotlib is not installed."""
    with needs("report", "drawing figures"):
        import matplotlib  # noqa: F401
    return draw(result, *options)


@singledispatch
def parts_of(result: object, note: str = "", intervals: Any = None) -> Parts:
    """Yield the tables and remarks of a result; none of what is not registered."""
    yield from ()


@singledispatch
def draw(result: object, *options: Any) -> ReportFigure:
    """Draw the figure of a result."""
    raise InputError(f"there is no figure of a {type(result).__name__}")


@parts_of.register
def _model(result: DavidsonModel, note: str = "", intervals: Any = None) -> Parts:
    origin = "" if result.provenance is None else f"Fitted to: {result.provenance}."
    ends = None if intervals is None else {"calibrated": intervals}
    yield tables.parameters_table({"calibrated": result}, ends, note=f"{note} {origin}".strip())


@parts_of.register
def _calibration(result: Calibration) -> Parts:
    losses = (f" {name[0].upper()}{name[1:]} {value:.4f}." for name, value in result.losses.items())
    note = "".join([f"Calibrated on {result.n_labels:,} labels.", *losses])
    posterior = result.posterior
    yield from parts_of(result.model, note, posterior and posterior.intervals())
    yield from result.warnings


@parts_of.register
def _grades(result: GradeModel, note: str = "", _: None = None) -> Parts:
    origin = "" if result.provenance is None else f"Fitted to: {result.provenance}."
    yield tables.grades_table({"calibrated": result}, note=f"{note} {origin}".strip())


@parts_of.register
def _panel(result: PanelModel, note: str = "", _: None = None) -> Parts:
    judges = {
        judge: DavidsonModel(beta, result.eta0, gamma, result.alpha, result.kappa)
        for judge, beta, gamma in zip(result.judges, result.beta, result.gamma, strict=True)
    }
    if result.unheard:
        note += (
            f" Ignored, since they have no vote on the labelled items: {', '.join(result.unheard)}."
        )
    if result.provenance is not None:
        note += f" Fitted to: {result.provenance}."
    yield tables.parameters_table(judges, label="judge", note=note.strip())


@parts_of.register
def _bootstrap(result: Bootstrap) -> Parts:
    intervals = {name: getattr(result, name) for name in ("beta", "nu", "gamma")}
    yield from _model(result.calibration.model, f"{100 * result.level:.3g}% intervals.", intervals)


@parts_of.register
def _scores(result: Scores | Cell) -> Parts:
    scores = result if isinstance(result, Scores) else Scores((), (replace(result, key=()),))
    yield tables.answers_table(scores)
    yield tables.scores_table(scores)
    yield from scores.remarks


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


@parts_of.register
def _judge_bias(result: JudgeBias) -> Parts:
    yield tables.judge_bias_table(result)
    yield from result.remarks


@parts_of.register
def _certificate(result: Certificate) -> Parts:
    yield tables.certificate_table(result)
    yield from result.remarks


parts_of.register(Plan, lambda result: iter([tables.plan_table(result)]))


@draw.register
def _map(result: DavidsonModel | Calibration, n_votes: int | None) -> ReportFigure:
    if isinstance(result, Calibration) and not isinstance(result.model, DavidsonModel):
        return draw(result.model)
    if isinstance(result, Calibration):
        deciders: dict[str, Any] = {"calibrated": result.model, "majority vote": MajorityVote()}
        fitted = result.max_votes
    else:
        deciders = {"calibrated": result}
        fitted = 0 if result.provenance is None else result.provenance.n_votes or 0
    usual = min(fitted or _USUAL_VOTES, _MOST_VOTES)
    return figures.behaviour_figure(deciders, usual if n_votes is None else n_votes)


@draw.register
def _sweep(result: Scores, choice: str | None) -> ReportFigure:
    """Draw a sweep; labels by part where there is one number of votes."""
    most = result.at_most_votes()
    if len(most) == len(result.cells):
        by = {" ".join(key) or "items": cell for key, cell in most.items()}
        return figures.condition_figure(", ".join(result.by) or "all", by)
    by_choice = figures.sweep_figures(result)
    if len(by_choice) == 1 and choice is None:
        return next(iter(by_choice.values()))
    if choice not in by_choice:
        names = ", ".join(map(repr, by_choice))
        raise InputError(argument="choice", got=choice, expected=f"one of {names}")
    return by_choice[choice]


draw.register(GradeModel, lambda result, *_: figures.grades_figure(result))
draw.register(Cell, lambda result: figures.confusion_figure("all items", result))
draw.register(Estimates, lambda result: figures.estimates_figure(result))
draw.register(SystemEstimates, lambda result: figures.systems_figure(result))
draw.register(JudgeBias, lambda result: figures.judge_bias_figure(result))
draw.register(Certificate, lambda result: figures.certificate_figure(result))
draw.register(Plan, lambda result: figures.plan_figure(result))
