"""Scores by the value of something: a column of the votes, their number or order, the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.evaluation.intervals import Interval, difference_interval
from btdagg.evaluation.summary import record
from btdagg.report.table import Entry, ReportTable
from btdagg.report.tables.common import Record, least, plain, splits_of, spread, where
from btdagg.report.wording import (
    MISSING,
    SPLITS_NOTE,
    not_evaluated,
    stem,
    votes_of,
    with_error,
)

if TYPE_CHECKING:
    from btdagg.evaluation import MethodScores, OrderComparisons, Scores

_LOWER = "Mean absolute error, lower is better"


def ablation_table(found: Scores) -> ReportTable:
    """Tabulate MAE by the value of what was varied: values in columns, methods in rows.

    Where there are two methods, a third row has their difference. The records have accuracy too.

    Raises
    ------
    InputError
        If nothing could be evaluated.

    References
    ----------
    The paper's tables of temperatures and of prompt variations.
    """
    if not found.cells:
        raise InputError("the ablation has no cells: nothing could be evaluated")
    values = list(dict.fromkeys(cell.value for cell in found.cells))
    blocks = list(dict.fromkeys((cell.key, cell.n_votes) for cell in found.cells))
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for key, budget in blocks:
        by_value = {
            cell.value: cell.comparison
            for cell in found.cells
            if (cell.key, cell.n_votes) == (key, budget)
        }
        methods = {
            value: {method.name: method for method in comparison.methods}
            for value, comparison in by_value.items()
        }
        names = [method.name for method in next(iter(by_value.values())).methods]
        best = _best_by_value(methods, names)
        for name in names:
            cells = [
                Entry(with_error(methods[value][name].mae_interval), (value, name) in best)
                if value in methods
                else Entry(MISSING)
                for value in values
            ]
            rows.append((*plain(*key, votes_of(budget), name), *cells))
        if len(names) == 2:
            cells = [
                Entry(with_error(_difference(methods[value], names), signed=True))
                if value in methods
                else Entry(MISSING)
                for value in values
            ]
            rows.append((*plain(*key, votes_of(budget), f"{names[0]} less {names[1]}"), *cells))
        records += [
            record(
                {**where(found.by, key), found.column: value},
                {
                    "n_votes": budget,
                    "method": name,
                    **spread("mae", method.mae_interval),
                    **spread("accuracy", method.accuracy_interval),
                    "n_items": by_value[value].n_items,
                    "n_splits": len(method.mae),
                },
            )
            for value, own in methods.items()
            for name, method in own.items()
        ]
    n_splits = splits_of([len(cell.comparison.methods[0].mae) for cell in found.cells])
    one = all(len(cell.comparison.methods) == 1 for cell in found.cells)
    bold = "the lowest of the row" if one else f"the lowest of the methods at that {found.column}"
    n_left_out = sum(found.n_left_out.values())
    left_out = (
        f" {n_left_out} items without votes under every {found.column} are left out."
        if n_left_out
        else ""
    )
    return ReportTable(
        stem("ablation", found.column),
        f"Error by {found.column}",
        f"{_LOWER}: means over {n_splits} of the same items for every {found.column}; "
        f"{SPLITS_NOTE}. Bold: {bold}.{left_out}" + not_evaluated(key for key, _ in found.skipped),
        (*found.by, "votes", "method", *(f"{found.column} {value}".strip() for value in values)),
        tuple(rows),
        tuple(records),
        n_label_columns=len(found.by) + 2,
    )


def vote_sweep_table(found: Scores) -> ReportTable:
    """Tabulate MAE by the number of votes; the records have accuracy too.

    References
    ----------
    The paper's figure of aggregation methods against n.
    """
    return _sweep_table(found, "votes", "n_votes", "Error by the number of votes", "")


def calibration_sweep_table(found: Scores) -> ReportTable:
    """Tabulate MAE by the number of labels calibrated on; the records have accuracy too.

    References
    ----------
    The paper's figures of MAE against the size of the calibration set.
    """
    return _sweep_table(
        found,
        "calibration",
        "n_labels",
        "Error by the number of labels calibrated on",
        " The items evaluated on are the same for every number.",
    )


def order_table(found: OrderComparisons) -> ReportTable:
    """Tabulate MAE on votes of the first order, of the second, and of both in equal parts.

    References
    ----------
    The paper's table of positional bias mitigation.
    """
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for one in found.comparisons:
        orders = {"first": one.first, "second": one.second, "balanced": one.balanced}
        for place, name in enumerate(method.name for method in one.balanced.methods):
            scores = {order: each.methods[place] for order, each in orders.items()}
            best = least({order: float(method.mae.mean()) for order, method in scores.items()})
            cells = [
                Entry(with_error(method.mae_interval), order in best)
                for order, method in scores.items()
            ]
            rows.append((*plain(*one.key, str(one.n_votes), name), *cells))
            records += [
                record(
                    where(found.by, one.key),
                    {
                        "n_votes": one.n_votes,
                        "method": name,
                        "order": order,
                        **spread("mae", method.mae_interval),
                        **spread("accuracy", method.accuracy_interval),
                        "n_items": one.balanced.n_items,
                        "n_splits": len(method.mae),
                    },
                )
                for order, method in scores.items()
            ]
    n_splits = [len(one.first.methods[0].mae) for one in found.comparisons]
    over = f" over {splits_of(n_splits)}" if n_splits else ""
    return ReportTable(
        "orders",
        "Error by the order in which responses are shown",
        f"{_LOWER}: means{over}; {SPLITS_NOTE}. First: all votes with A shown first; second: all "
        "with B shown first; balanced: half of each. Equal numbers of votes on the same items. "
        "Bold: the lowest of the row." + not_evaluated(key for key, _ in found.skipped),
        (*found.by, "votes", "method", "first", "second", "balanced"),
        tuple(rows),
        tuple(records),
        n_label_columns=len(found.by) + 2,
    )


def _sweep_table(found: Scores, name: str, point_name: str, title: str, more: str) -> ReportTable:
    if not found.sweeps:
        raise InputError("there is no sweep: nothing could be evaluated")
    points = sorted({point for sweep in found.sweeps for point in sweep.points})
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for sweep in found.sweeps:
        best: dict[int, float] = {
            point: min(float(curve.mae[place].mean()) for curve in sweep.curves)
            for place, point in enumerate(sweep.points)
        }
        for curve in sweep.curves:
            intervals = dict(zip(sweep.points, curve.mae_intervals, strict=True))
            cells = [_at_point(intervals, best, point, len(sweep.curves) > 1) for point in points]
            rows.append((*plain(*sweep.key, curve.name), *cells))
            records += [
                record(
                    where(found.by, sweep.key),
                    {
                        point_name: point,
                        "method": curve.name,
                        **spread("mae", curve.mae_intervals[place]),
                        **spread("accuracy", curve.accuracy_intervals[place]),
                        "n_items": sweep.n_items,
                        "n_calibration": float(sweep.n_calibration[place]),
                        "n_evaluation": float(sweep.n_evaluation[place]),
                        "n_splits": curve.mae.shape[1],
                    },
                )
                for place, point in enumerate(sweep.points)
            ]
    n_splits = splits_of([s.curves[0].mae.shape[1] for s in found.sweeps])
    return ReportTable(
        f"sweep-{name}",
        title,
        f"{_LOWER}: means over {n_splits}; {SPLITS_NOTE}.{more} Bold: the lowest of the methods."
        + not_evaluated(key for key, _ in found.skipped),
        (*found.by, "method", *(str(point) for point in points)),
        tuple(rows),
        tuple(records),
        n_label_columns=len(found.by) + 1,
    )


def _at_point(
    intervals: dict[int, Interval], best: dict[int, float], point: int, several: bool
) -> Entry:
    if point not in intervals:
        return Entry(MISSING)
    return Entry(with_error(intervals[point]), several and intervals[point].mean == best[point])


def _best_by_value(
    methods: dict[str, dict[str, MethodScores]], names: Sequence[str]
) -> set[tuple[str, str]]:
    """Value and name of what is bold: the best method of each value, or value of one method."""
    if len(names) == 1:
        means = {value: float(own[names[0]].mae.mean()) for value, own in methods.items()}
        return {(value, names[0]) for value in least(means)}
    return {
        (value, name)
        for value, own in methods.items()
        for name in least({name: float(method.mae.mean()) for name, method in own.items()})
    }


def _difference(methods: dict[str, MethodScores], names: Sequence[str]) -> Interval:
    return difference_interval(*(methods[name].mae for name in names))
