"""How notebooks and `plot` show results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

from btdagg._util.errors import InputError
from btdagg._util.extras import needs
from btdagg.evaluation.cells import Cell
from btdagg.evaluation.scores import Scores
from btdagg.methods import MajorityVote
from btdagg.model.calibration import Calibration
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grades import GradeModel
from btdagg.report import figures
from btdagg.report.figure import ReportFigure
from btdagg.report.markup import escaped
from btdagg.report.table import ReportTable
from btdagg.result import Result

_USUAL_VOTES = 8  # of a map of a model that does not know how many it was fitted for
_MOST_VOTES = 50  # of a map unless asked for more: with 400 it takes minutes


def as_html(result: Any) -> str | None:
    """Return sentence, tables and remarks of a result as escaped HTML; None without jinja2."""
    if isinstance(result, Cell):
        result = Scores((), (replace(result, key=()),))
    tables = [ReportTable.of(table)._repr_html_() for table in result.tables()]
    if None in tables:
        return None
    sentence = [f"{result.sentence()}."] if isinstance(result, Result) else []
    texts = [[f"<p>{escaped(text)}</p>" for text in of] for of in (sentence, _remarks_of(result))]
    return "\n".join([*texts[0], *map(str, tables), *texts[1]])


def _remarks_of(result: Any) -> Sequence[str]:
    return getattr(result, "remarks", ())


def figure_of(result: object, *options: Any) -> ReportFigure:
    """Return the figure of a result; a `MissingExtraError` if matplotlib is not installed."""
    with needs("report", "drawing figures"):
        import matplotlib  # noqa: F401
    return draw(result, *options)


@singledispatch
def draw(result: Any, *options: Any) -> ReportFigure:
    """Draw the figure of a result."""
    figure = result.figure() if isinstance(result, Result) else None
    if figure is None:
        raise InputError(f"there is no figure of a {type(result).__name__}")
    return figures.drawn(figure)


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
