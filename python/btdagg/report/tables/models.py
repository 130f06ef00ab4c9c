"""Parameters of models, and what stopping rules and plans expect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.wording import MISSING, counted, fixed, percent

if TYPE_CHECKING:
    from btdagg.model.calibration import Calibration
    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.intervals import ParameterInterval
    from btdagg.model.panel import PanelModel
    from btdagg.online import Forecast, Plan, PlannedBudget, StoppingRule
    from btdagg.online.plans import ForecastRow

PARAMETER_DIGITS = {"beta": 2, "nu": 1, "gamma": 2}


def calibrations_table(fitted: Mapping[str, Calibration]) -> ReportTable:
    """Tabulate beta, nu and gamma of calibrations to all labels, with intervals if there are any.

    Parameters
    ----------
    fitted : mapping of str to Calibration
        By task, or whatever they were fitted to.
    """

    def cells() -> Iterator[PivotCell]:
        for task, found in fitted.items():
            posterior, model = found.posterior, found.model
            intervals = {} if posterior is None else posterior.intervals()
            label = (task or "all items",)
            for name, digits in PARAMETER_DIGITS.items():
                value, ends = getattr(model, name), intervals.get(name)
                whole = {"task": task, "parameter": name, "value": value}
                if ends is not None:
                    whole |= {"low": ends.low, "high": ends.high, "note": ends.note}
                yield PivotCell(label, name, shortest(value, digits), True, whole)
                if ends is not None:
                    low, high = (shortest(end, digits) for end in (ends.low, ends.high))
                    yield PivotCell(label, f"{name}: 95%", f"[{low}, {high}]")
            yield PivotCell(label, "labels", f"{found.n_labels:,}")
            yield PivotCell(label, "at a bound", ", ".join(found.at_bounds) or MISSING)

    return ReportTable.pivot(
        "parameters",
        "Fitted parameters",
        "Of the model fitted to all labels, with 95% intervals by the profile of the loss where it "
        "has a prior. beta: sensitivity to the margin; nu: how strongly ties are preferred from "
        "the start; gamma: sensitivity to the share of ties.",
        ("task",),
        cells(),
    )


def shortest(value: float, digits: int) -> str:
    """Fewer decimals for large numbers: three or four digits say it."""
    return fixed(value, 0 if abs(value) >= 100 else digits)


_MEANING = {
    "beta": "sensitivity to the margin of votes",
    "nu": "how strongly ties are preferred from the start",
    "gamma": "sensitivity to the share of ties among the votes",
    "alpha": "smoothing of the margin",
    "kappa": "smoothing of the share of ties",
}


def model_table(
    model: DavidsonModel, intervals: Mapping[str, ParameterInterval] | None = None, note: str = ""
) -> ReportTable:
    """Tabulate the parameters of a model.

    Parameters
    ----------
    model : DavidsonModel
    intervals : mapping of str to ParameterInterval, optional
        Of beta, nu and gamma.
    note : str
        The caption; what the model was fitted to is added if it is known.
    """

    def cells() -> Iterator[PivotCell]:
        for name, meaning in _MEANING.items():
            value = getattr(model, name)
            record: dict[str, object] = {"parameter": name, "value": value}
            one = (intervals or {}).get(name)
            if one is not None:
                record |= {"low": _known(one.low), "high": _known(one.high), "note": one.note}
            label = (f"{name}, {meaning}",)
            yield PivotCell(label, "value", f"{value:.4g}", True, record)
            if intervals is not None:
                yield PivotCell(label, "interval", MISSING if one is None else _ends(one))

    return ReportTable.pivot(
        "model", "Davidson model", _with_provenance(model, note), ("parameter",), cells()
    )


def panel_table(model: PanelModel, note: str = "") -> ReportTable:
    """Tabulate the parameters of the judges of a panel.

    Parameters
    ----------
    model : PanelModel
    note : str
        The caption, to which is added what all judges share.
    """
    nu = math.exp(model.eta0) if model.eta0 < 700 else math.inf
    shared = (
        f"nu {nu:.4g}, alpha {model.alpha:g} and kappa {model.kappa:g} are those of all judges."
    )
    if model.unheard:
        shared += f" Without a vote in the calibration, and ignored: {', '.join(model.unheard)}."

    def cells() -> Iterator[PivotCell]:
        for judge, beta, gamma in zip(model.judges, model.beta, model.gamma, strict=True):
            record = {"judge": judge, "beta": beta, "gamma": gamma}
            yield PivotCell((judge,), "beta", f"{beta:.4g}", record=record)
            yield PivotCell((judge,), "gamma", f"{gamma:.4g}")

    note = _with_provenance(model, f"{note} {shared}".strip())
    return ReportTable.pivot("panel", "Panel of judges", note, ("judge",), cells())


def rule_table(rule: StoppingRule) -> ReportTable:
    """Tabulate what a stopping rule is, and what it expects if it knows how votes fall."""
    rows = {"votes per item, at most": str(rule.n)}
    if rule.step != 1:
        rows["votes that come together"] = str(rule.step)
    if rule.epsilon is not None:
        rows["chance of another label, at most"] = f"{rule.epsilon:g}"
    if rule.price is not None:
        rows["price of a vote in absolute error"] = f"{rule.price:.4g}"
    if rule.votes is not None:
        rows |= {
            "votes per item, expected": fixed(rule.expected_votes, 2),
            "labels that differ from those of all votes": percent(rule.change_rate),
            "mean absolute error, expected": fixed(rule.expected_mae),
        }
    cells = [PivotCell((name,), "value", value) for name, value in rows.items()]
    model = ", ".join(f"{name} {getattr(rule.model, name):.4g}" for name in list(_MEANING)[:3])
    return ReportTable.pivot(
        "rule", f"Stopping rule: {rule.kind}", f"By {model}.", ("rule",), cells
    )


def plan_table(found: Plan) -> ReportTable:
    """Tabulate the forecast of a job by number of votes and rule."""
    labels = "; ".join(f"{size} labels {excess:.4f}" for size, excess in found.labels)
    note = "Changed: labels that differ from those of all votes."
    if labels:
        note += f" Error above that of a model of many labels: {labels}."

    def cells() -> Iterator[PivotCell]:
        for row in found.budgets:
            label = (str(row.n), row.rule)
            yield PivotCell(label, "votes", fixed(row.votes, 2), record=dict(vars(row)))
            yield PivotCell(label, "MAE", fixed(row.mae, 4), True)
            yield PivotCell(label, "changed", percent(row.change_rate))
            yield PivotCell(label, "calls", f"{row.calls:,.0f}")
            yield from _price(label, row)

    return ReportTable.pivot("plan", "Plan of a job", note, ("at most", "rule"), cells())


def forecast_table(found: Forecast) -> ReportTable:
    """Tabulate the forecast of a new task by number of votes and labels."""

    def cells() -> Iterator[PivotCell]:
        for row in found.rows:
            label = (str(row.n), str(row.n_labels))
            yield PivotCell(label, "MAE", fixed(row.mae, 4), True, record=dict(vars(row)))
            yield PivotCell(label, "of a task", f"{fixed(row.low)} to {fixed(row.high)}")
            yield PivotCell(label, "votes", fixed(row.votes, 2))
            yield PivotCell(label, "calls", f"{row.calls:,.0f}")
            yield from _price(label, row)

    return ReportTable.pivot(
        "forecast",
        "Forecast before the first label",
        f"As seen on {counted(len(found.neighbours), 'task')}, each with the others as prior: the "
        "mean error, and the least and the most of a task. Votes and calls: of the lossless rule.",
        ("votes per item", "labels"),
        cells(),
    )


def _price(label: tuple[str, str], row: PlannedBudget | ForecastRow) -> Iterator[PivotCell]:
    if row.price not in (0, row.calls):  # a vote has a price
        yield PivotCell(label, "price", f"{row.price:,.2f}")


def _with_provenance(model: DavidsonModel | PanelModel, note: str) -> str:
    known = model.provenance
    return note if known is None else f"{note} Fitted to: {known}.".strip()


def _ends(one: ParameterInterval) -> str:
    if math.isnan(one.low):
        return f"none: {one.note}"
    return f"{one.low:.4g} to {one.high:.4g}" + (f" ({one.note})" if one.note else "")


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
