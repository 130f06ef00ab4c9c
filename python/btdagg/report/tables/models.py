"""Parameters of models, and what plans expect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from btdagg._util.wording import fixed, percent
from btdagg.report.table import Entry, ReportTable, Row

if TYPE_CHECKING:
    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.grades import GradeModel
    from btdagg.model.intervals import ParameterInterval
    from btdagg.online.plans import Plan

_MEANING = (
    "beta: sensitivity to the margin; nu: how strongly ties are preferred from the start; gamma: "
    "sensitivity to the share of ties; alpha and kappa: smoothing."
)


def parameters_table(
    models: Mapping[str, DavidsonModel],
    intervals: Mapping[str, Mapping[str, ParameterInterval]] | None = None,
    more: Mapping[str, Mapping[str, str]] | None = None,
    *,
    label: str = "model",
    note: str = "",
) -> ReportTable:
    """Tabulate the parameters of models by name, with intervals and more cells if given."""

    def rows() -> Iterator[Row]:
        for name, model in models.items():
            cells: dict[str, str | Entry] = {}
            records: list[dict[str, object]] = []
            for parameter in ("beta", "nu", "gamma", "alpha", "kappa"):
                value = getattr(model, parameter)
                cells[parameter] = Entry(f"{value:.4g}", True)
                fields = {label: name, "parameter": parameter, "value": value}
                ends = (intervals or {}).get(name, {}).get(parameter)
                if ends is not None:
                    cells[f"{parameter}: interval"] = _ends(ends)
                    low, high = (None if math.isnan(end) else end for end in (ends.low, ends.high))
                    fields |= {"low": low, "high": high, "note": ends.note}
                records.append(fields)
            yield Row((name,), {**cells, **(more or {}).get(name, {})}, records)

    note = f"{note} {_MEANING}".strip()
    return ReportTable.of_rows("parameters", "Fitted parameters", note, (label,), rows())


def grades_table(
    models: Mapping[str, GradeModel],
    more: Mapping[str, Mapping[str, str]] | None = None,
    *,
    label: str = "model",
    note: str = "",
) -> ReportTable:
    """Tabulate from which mean vote on models of grades decide each grade."""

    def rows() -> Iterator[Row]:
        for name, model in models.items():
            starts = model.reachable
            cells: dict[str, str | Entry] = {
                str(grade): Entry(f"{starts[grade]:.4g}", True) if grade in starts else "never"
                for grade in model.label_scale.points
            }
            fields = {label: name, "beta": model.beta}
            records = [{**fields, "grade": grade, "from": start} for grade, start in starts.items()]
            yield Row((name,), {**cells, **(more or {}).get(name, {})}, records)

    note = f"{note} Each grade is decided from this mean vote on.".strip()
    return ReportTable.of_rows(
        "parameters", "Lowest mean vote of each grade", note, (label,), rows()
    )


def plan_table(plan: Plan) -> ReportTable:
    """Tabulate the forecast of a job by number of votes and rule."""
    labels = "; ".join(f"{size} labels {excess:.4f}" for size, excess in plan.labels)
    note = "Changed: labels that differ from those with all votes."
    if labels:
        note += f" Extra error compared with a model of many labels: {labels}."
    rows = []
    for row in plan.budgets:
        cells: dict[str, str | Entry] = {
            "votes": fixed(row.votes, 2),
            "MAE": Entry(fixed(row.mae, 4), True),
            "95% interval": f"{fixed(row.low, 3)} to {fixed(row.high, 3)}",
            "changed": percent(row.change_rate),
            "calls": f"{row.calls:,.0f}",
        }
        if row.price not in (0, row.calls):  # a vote has a price
            cells["price"] = f"{row.price:,.2f}"
        rows.append(Row((str(row.n), row.rule), cells, [vars(row)]))
    return ReportTable.of_rows("plan", "Plan of a job", note, ("at most", "rule"), rows)


def _ends(interval: ParameterInterval) -> str:
    if math.isnan(interval.low):
        return f"none: {interval.note}"
    ends = f"{interval.low:.4g} to {interval.high:.4g}"
    return f"{ends} ({interval.note})" if interval.note else ends
