"""How results look in Jupyter and other notebooks: which tables and which figure each has.

A result asks for these by itself, in `_repr_html_` and in `plot`. Without the extra `report` a
notebook shows its repr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from btdagg._core import InputError
from btdagg.aggregators import MajorityVote
from btdagg.evaluation.scores import Scores
from btdagg.evaluation.summary import remarks
from btdagg.extras import needs
from btdagg.report import figures, tables
from btdagg.report.markup import escaped
from btdagg.report.table import ReportTable

if TYPE_CHECKING:
    from btdagg.estimates import Estimates, SystemEstimates
    from btdagg.fit.absolute_error import MaeCalibration
    from btdagg.fit.calibrate import Calibration
    from btdagg.fit.panel import PanelCalibration
    from btdagg.model import DavidsonModel
    from btdagg.report import ReportFigure
    from btdagg.uncertainty import Bootstrap, Sandwich

Parts = Iterator[ReportTable | str]
"""Tables, and what a reader has to know besides."""

_USUAL_VOTES = 8  # of a map of a model that does not know how many it was fitted for
_MOST_VOTES = 50  # of a map unless asked for more: with 400 it takes minutes


def as_html(found: object) -> str | None:
    """Return the tables of a result as HTML; None if jinja2 is missing or nothing is known of it.

    All text is escaped. There is no script and no style but what the notebook has.
    """
    shown = _of_class(_PARTS, found)
    parts = [] if shown is None else [_as_html(part) for part in shown(found)]
    return None if not parts or None in parts else "\n".join(map(str, parts))


def figure_of(found: object, *options: Any) -> ReportFigure:
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
    draw = _of_class(_FIGURES, found)
    if draw is None:
        raise InputError(f"there is no figure of a {type(found).__name__}")
    figure: ReportFigure = draw(found, *options)
    return figure


def _of_class(known: Mapping[str, Callable[..., Any]], found: object) -> Callable[..., Any] | None:
    # By the names of classes, which are unique: importing them all would take a second.
    names = (kind.__name__ for kind in type(found).__mro__)
    return next((known[name] for name in names if name in known), None)


def _as_html(part: ReportTable | str) -> str | None:
    return f"<p>{escaped(part)}</p>" if isinstance(part, str) else part._repr_html_()


def _calibration(found: Calibration) -> Parts:
    note = f"Calibrated on {found.n_labels:,} labels of items with up to {found.max_votes} votes."
    if found.n_labels:
        note += f" DRPS {found.drps:.4f}."
    intervals = None if found.posterior is None else found.posterior.intervals()
    yield tables.model_table(found.model, intervals, note)
    if not found.converged:
        yield "The fit did not converge."
    yield from found.warnings


def _by_error(found: MaeCalibration) -> Parts:
    note = f"Calibrated on {found.n_labels:,} labels by absolute error: MAE {found.mae:.3f}."
    yield tables.model_table(found.model, note=note)


def _panel_calibration(found: PanelCalibration) -> Parts:
    yield tables.panel_table(
        found.model, f"Calibrated on {found.n_labels:,} labels. DRPS {found.drps:.4f}."
    )
    yield from found.warnings


def _with_intervals(found: Bootstrap | Sandwich) -> Parts:
    intervals = {name: getattr(found, name) for name in ("beta", "nu", "gamma")}
    note = f"{100 * found.level:.3g}% intervals."
    yield tables.model_table(found.calibration.model, intervals, note)


def _scores(found: Scores) -> Parts:
    yield tables.answers_table(found)
    yield tables.methods_table(found)
    yield from remarks(found)


def _estimates(found: Estimates) -> Parts:
    yield tables.estimates_table(found)
    if found.by and (differences := tables.differences_table(found, "value")) is not None:
        yield differences
    yield from found.remarks


def _systems(found: SystemEstimates) -> Parts:
    yield tables.systems_table(found)
    yield from found.remarks


_PARTS: dict[str, Callable[[Any], Parts]] = {
    "DavidsonModel": lambda found: iter([tables.model_table(found)]),
    "PanelModel": lambda found: iter([tables.panel_table(found)]),
    "Calibration": _calibration,
    "MaeCalibration": _by_error,
    "PanelCalibration": _panel_calibration,
    "Bootstrap": _with_intervals,
    "Sandwich": _with_intervals,
    "Comparison": lambda found: iter([tables.comparison_table(found)]),
    "Scores": _scores,
    "Estimates": _estimates,
    "SystemEstimates": _systems,
    "StoppingRule": lambda found: iter([tables.rule_table(found)]),
    "Plan": lambda found: iter([tables.plan_table(found)]),
    "Forecast": lambda found: iter([tables.forecast_table(found)]),
}


def _map(model: DavidsonModel, n_votes: int | None) -> ReportFigure:
    known = None if model.provenance is None else model.provenance.n_votes
    return _drawn({"calibrated": model}, n_votes, known)


def _maps(found: Calibration, n_votes: int | None) -> ReportFigure:
    return _drawn(
        {"calibrated": found.model, "majority vote": MajorityVote()}, n_votes, found.max_votes
    )


def _drawn(several: Mapping[str, Any], n_votes: int | None, known: int | None) -> ReportFigure:
    """Draw maps of what decides by counts; a model does, as aggregators do."""
    fitted = known or _USUAL_VOTES
    figure = figures.behaviour_figure(
        several, min(fitted, _MOST_VOTES) if n_votes is None else n_votes
    )
    if n_votes is None and fitted > _MOST_VOTES:
        more = f" Items have up to {fitted:,} votes; plot(n_votes={fitted}) draws those, slowly."
        figure = replace(figure, note=figure.note + more)
    return figure


def _curves(found: Scores, choice: str | None) -> ReportFigure:
    """Draw a sweep; labels by part where there is one number of votes."""
    if all(len(cells) == 1 for cells in found.by_key().values()):
        by = {
            " ".join(key) or "items": cell.comparison for key, cell in found.at_most_votes().items()
        }
        return figures.condition_figure(", ".join(found.by) or "all", by)
    swept = any(cell.n_labels is not None for cell in found.cells)
    drawn = (figures.calibration_figures if swept else figures.vote_figures)(found)
    by_choice = {figure.choice: figure for figure in drawn}
    if len(drawn) == 1 and choice is None:
        return drawn[0]
    if choice not in by_choice:
        raise InputError(f"choice is {choice!r}, want one of {', '.join(map(repr, by_choice))}")
    return by_choice[choice]


_FIGURES: dict[str, Callable[..., ReportFigure]] = {
    "DavidsonModel": _map,
    "Calibration": _maps,
    "Comparison": lambda found: figures.confusion_figure("all items", found),
    "Scores": _curves,
    "Estimates": lambda found: figures.estimates_figure(found),
    "SystemEstimates": lambda found: figures.systems_figure(found),
    "Plan": lambda found: figures.plan_figure(found),
    "Forecast": lambda found: figures.forecast_figure(found),
}
