"""Tables of the parameters of models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from btdagg.result import Entry, ResultTable, Row

if TYPE_CHECKING:
    from btdagg.model.intervals import ParameterInterval

_MEANING = (
    "beta: sensitivity to the margin; nu: how strongly ties are preferred from the start; gamma: "
    "sensitivity to the share of ties; alpha and kappa: smoothing."
)


def parameters_table(
    models: Mapping[str, Any],
    intervals: Mapping[str, Mapping[str, ParameterInterval]] | None = None,
    more: Mapping[str, Mapping[str, str]] | None = None,
    *,
    label: str = "model",
    note: str = "",
) -> ResultTable:
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
    return ResultTable.of_rows("parameters", "Fitted parameters", note, (label,), rows())


def grades_table(
    models: Mapping[str, Any],
    more: Mapping[str, Mapping[str, str]] | None = None,
    *,
    label: str = "model",
    note: str = "",
) -> ResultTable:
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
    return ResultTable.of_rows(
        "parameters", "Lowest mean vote of each grade", note, (label,), rows()
    )


def fitted_to(model: Any, note: str) -> str:
    """Return a note with the origin of a model's data, if it is known."""
    origin = "" if model.provenance is None else f"Fitted to: {model.provenance}."
    return f"{note} {origin}".strip()


def _ends(interval: ParameterInterval) -> str:
    if math.isnan(interval.low):
        return f"none: {interval.note}"
    ends = f"{interval.low:.4g} to {interval.high:.4g}"
    return f"{ends} ({interval.note})" if interval.note else ends
