"""Parameters of models, and what plans expect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from btdagg.report.table import Entry, ReportTable, Row
from btdagg.report.wording import MISSING, fixed, percent

if TYPE_CHECKING:
    from btdagg.model.calibration import Calibration
    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.intervals import ParameterInterval
    from btdagg.model.panel import PanelModel
    from btdagg.online import Plan

PARAMETER_DIGITS = {"beta": 2, "nu": 1, "gamma": 2}


def calibrations_table(calibrations: Mapping[str, Calibration]) -> ReportTable:
    """Tabulate beta, nu and gamma of calibrations to all labels, with intervals if there are any.

    Parameters
    ----------
    calibrations : mapping of str to Calibration
        By task, or whatever they were fitted to.
    """

    def rows() -> Iterator[Row]:
        for task, calibration in calibrations.items():
            posterior = calibration.posterior
            intervals = {} if posterior is None else posterior.intervals()
            cells: dict[str, str | Entry] = {}
            records = []
            for name, digits in PARAMETER_DIGITS.items():
                value, ends = getattr(calibration.model, name), intervals.get(name)
                fields = {"task": task, "parameter": name, "value": value}
                cells[name] = Entry(shortest(value, digits), True)
                if ends is not None:
                    fields |= {"low": ends.low, "high": ends.high, "note": ends.note}
                    low, high = (shortest(end, digits) for end in (ends.low, ends.high))
                    cells[f"{name}: 95%"] = f"[{low}, {high}]"
                records.append(fields)
            cells["labels"] = f"{calibration.n_labels:,}"
            cells["at a bound"] = ", ".join(calibration.at_bounds) or MISSING
            yield Row((task or "all items",), cells, records)

    return ReportTable.of_rows(
        "parameters",
        "Fitted parameters",
        "Of the model fitted to all labels, with 95% intervals by the profile of the loss where it "
        "has a prior. beta: sensitivity to the margin; nu: how strongly ties are preferred from "
        "the start; gamma: sensitivity to the share of ties.",
        ("task",),
        rows(),
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

    def rows() -> Iterator[Row]:
        for name, meaning in _MEANING.items():
            value = getattr(model, name)
            fields: dict[str, object] = {"parameter": name, "value": value}
            cells: dict[str, str | Entry] = {"value": Entry(f"{value:.4g}", True)}
            if intervals is not None:
                ends = intervals.get(name)
                cells["interval"] = MISSING if ends is None else _ends(ends)
                if ends is not None:
                    low, high = (None if math.isnan(end) else end for end in (ends.low, ends.high))
                    fields |= {"low": low, "high": high, "note": ends.note}
            yield Row((f"{name}, {meaning}",), cells, [fields])

    note = _with_provenance(model, note)
    return ReportTable.of_rows("model", "Davidson model", note, ("parameter",), rows())


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

    rows = [
        Row(
            (judge,),
            {"beta": f"{beta:.4g}", "gamma": f"{gamma:.4g}"},
            [{"judge": judge, "beta": beta, "gamma": gamma}],
        )
        for judge, beta, gamma in zip(model.judges, model.beta, model.gamma, strict=True)
    ]
    note = _with_provenance(model, f"{note} {shared}".strip())
    return ReportTable.of_rows("panel", "Panel of judges", note, ("judge",), rows)


def plan_table(plan: Plan) -> ReportTable:
    """Tabulate the forecast of a job by number of votes and rule."""
    labels = "; ".join(f"{size} labels {excess:.4f}" for size, excess in plan.labels)
    note = "Changed: labels that differ from those of all votes."
    if labels:
        note += f" Error above that of a model of many labels: {labels}."
    rows = []
    for row in plan.budgets:
        cells: dict[str, str | Entry] = {
            "votes": fixed(row.votes, 2),
            "MAE": Entry(fixed(row.mae, 4), True),
            "changed": percent(row.change_rate),
            "calls": f"{row.calls:,.0f}",
        }
        if row.price not in (0, row.calls):  # a vote has a price
            cells["price"] = f"{row.price:,.2f}"
        rows.append(Row((str(row.n), row.rule), cells, [vars(row)]))
    return ReportTable.of_rows("plan", "Plan of a job", note, ("at most", "rule"), rows)


def _with_provenance(model: DavidsonModel | PanelModel, note: str) -> str:
    provenance = model.provenance
    return note if provenance is None else f"{note} Fitted to: {provenance}.".strip()


def _ends(interval: ParameterInterval) -> str:
    if math.isnan(interval.low):
        return f"none: {interval.note}"
    ends = f"{interval.low:.4g} to {interval.high:.4g}"
    return f"{ends} ({interval.note})" if interval.note else ends
