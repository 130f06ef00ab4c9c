"""What calibrations find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.wording import MISSING, fixed

if TYPE_CHECKING:
    from btdagg.model.calibration import Calibration

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
