"""The paper's table of fitted parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.report.table import Entry, ReportTable
from btdagg.report.tables.common import Record, plain, splits_of
from btdagg.report.wording import fixed, percent

if TYPE_CHECKING:
    from btdagg.evaluation import FittedParameters

_DIGITS = {"beta": 2, "nu": 1, "gamma": 2}


def parameters_table(fitted: Mapping[str, FittedParameters]) -> ReportTable:
    """Tabulate mean and interquartile range of beta, nu and gamma by task, and the regime.

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
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for task, found in fitted.items():
        at_bounds = found.at_bounds.mean(axis=0).tolist()
        cells = []
        for name, spread in found.spreads.items():
            digits = _DIGITS[name]
            mean, low, high = (_shortest(value, digits) for value in spread)
            cells += [mean, f"[{low}, {high}]"]
        rows.append(
            plain(
                task,
                *cells,
                percent(float(found.at_bounds.any(axis=1).mean()), 0),
                percent(found.gold_tie_share),
                percent(found.judge_tie_share),
                str(found.regime),
            )
        )
        records += [
            {
                "task": task,
                "parameter": name,
                "mean": spread.mean,
                "lower_quartile": spread.low,
                "upper_quartile": spread.high,
                "share_at_bounds": bound,
                "n_splits": len(found.beta),
                "gold_tie_share": found.gold_tie_share,
                "judge_tie_share": found.judge_tie_share,
                "regime": str(found.regime),
            }
            for (name, spread), bound in zip(found.spreads.items(), at_bounds, strict=True)
        ]
    names = (text for name in _DIGITS for text in (name, f"{name}: IQR"))
    return ReportTable(
        "parameters",
        "Fitted parameters",
        f"Mean and interquartile range over {splits_of([len(f.beta) for f in fitted.values()])}. "
        "beta: sensitivity to the margin; nu: how strongly ties are preferred from the start; "
        "gamma: sensitivity to the share of ties. At a bound: share of fits with a parameter at "
        "one. Gold and judge ties: share of items whose gold label, or majority vote, is a tie.",
        ("task", *names, "at a bound", "gold ties", "judge ties", "regime"),
        tuple(rows),
        tuple(records),
    )


def _shortest(value: float, digits: int) -> str:
    """Fewer decimals for large numbers: three or four digits say it."""
    return fixed(value, 0 if abs(value) >= 100 else digits)
