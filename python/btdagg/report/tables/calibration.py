"""What calibrations find, and what they are worth on another task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg.evaluation.intervals import mean_interval
from btdagg.evaluation.summary import spread
from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.tables.common import splits_of
from btdagg.report.wording import SPLITS_NOTE, fixed, percent, with_error

if TYPE_CHECKING:
    from btdagg.evaluation import FittedParameters, Transfer

_DIGITS = {"beta": 2, "nu": 1, "gamma": 2}


def parameters_table(fitted: Mapping[str, FittedParameters]) -> ReportTable:
    """Tabulate median and interquartile range of beta, nu and gamma by task, and the regime.

    Parameters
    ----------
    fitted : mapping of str to FittedParameters
        By task, or whatever they were fitted to.

    Raises
    ------
    InputError
        If there are none.

    References
    ----------
    The paper's table of fitted parameters.
    """
    if not fitted:
        raise InputError("fitted is empty, want at least one task")

    def cells() -> Iterator[PivotCell]:
        for task, found in fitted.items():
            at_bounds = found.at_bounds.mean(axis=0).tolist()
            for (name, values), bound in zip(found.spreads.items(), at_bounds, strict=True):
                middle = float(np.median(getattr(found, name)))
                record = {
                    "task": task,
                    "parameter": name,
                    "mean": values.mean,
                    "median": middle,
                    "lower_quartile": values.low,
                    "upper_quartile": values.high,
                    "share_at_bounds": bound,
                    "n_splits": len(found.beta),
                    "gold_tie_share": found.gold_tie_share,
                    "judge_tie_share": found.judge_tie_share,
                    "regime": str(found.regime),
                }
                shown = (middle, values.low, values.high)
                median, low, high = (_shortest(value, _DIGITS[name]) for value in shown)
                yield PivotCell((task,), name, median, False, record)
                yield PivotCell((task,), f"{name}: IQR", f"[{low}, {high}]")
            at_any = float(found.at_bounds.any(axis=1).mean())
            for column, text in (
                ("at a bound", percent(at_any, 0)),
                ("gold ties", percent(found.gold_tie_share)),
                ("judge ties", percent(found.judge_tie_share)),
                ("regime", str(found.regime)),
            ):
                yield PivotCell((task,), column, text)

    return ReportTable.pivot(
        "parameters",
        "Fitted parameters",
        f"Median and interquartile range over {splits_of([len(f.beta) for f in fitted.values()])}. "
        "beta: sensitivity to the margin; nu: how strongly ties are preferred from the start; "
        "gamma: sensitivity to the share of ties. At a bound: share of fits with a parameter at "
        "one. Gold and judge ties: share of items whose gold label, or majority vote, is a tie.",
        ("task",),
        cells(),
    )


def transfer_table(found: Transfer) -> ReportTable:
    """Tabulate the change in MAE against each target's own calibration: sources in rows.

    The last row has the MAE of the own calibration.

    References
    ----------
    The paper's heat map of transferability.
    """

    def cells() -> Iterator[PivotCell]:
        for row, source in enumerate(found.tasks):
            for column, target in enumerate(found.tasks):
                change = found.change_interval(source, target)
                record = {
                    "source": source,
                    "target": target,
                    **spread("mae", mean_interval(found.mae[row, column])),
                    **spread("change", change),
                    "n_splits": found.mae.shape[2],
                }
                text = "0" if source == target else with_error(change, signed=True)
                yield PivotCell((source,), target, text, change.high < 0, record)
        for place, target in enumerate(found.tasks):
            own = mean_interval(found.mae[place, place])
            yield PivotCell(("MAE, own calibration",), target, with_error(own), place=1)

    return ReportTable.pivot(
        "transfer",
        "Transfer of a calibration between tasks",
        "Change in MAE on the task of the column where the calibration is that of the task of the "
        f"row instead of its own: mean over {found.mae.shape[2]} random splits, {SPLITS_NOTE}. "
        "Below 0 the other calibration is better. Bold: its whole interval is below 0.",
        ("calibrated on",),
        cells(),
    )


def _shortest(value: float, digits: int) -> str:
    """Fewer decimals for large numbers: three or four digits say it."""
    return fixed(value, 0 if abs(value) >= 100 else digits)
