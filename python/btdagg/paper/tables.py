"""Tables of the paper that no report of a user has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from btdagg._core import InputError
from btdagg.evaluation.cells import Cell
from btdagg.evaluation.intervals import Interval, mean_interval
from btdagg.evaluation.summary import lines_of, name_of_average, record, spread
from btdagg.paper.raters import LeaveOneOut
from btdagg.report.table import Entry, PivotCell, ReportTable
from btdagg.report.tables.models import PARAMETER_DIGITS, shortest
from btdagg.report.tables.scores import (
    LOWER_IS_BETTER,
    best_lines,
    interval_note_of,
    scored_on,
    splits_of,
    where,
)
from btdagg.report.wording import (
    MISSING,
    NEW_ITEMS_NOTE,
    SPLITS_NOTE,
    fixed,
    not_evaluated,
    percent,
    percent_with_error,
    stem,
    votes_of,
    with_error,
)

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.evaluation.parts import Key
    from btdagg.paper.parameters import FittedParameters
    from btdagg.paper.raters import RaterScores
    from btdagg.paper.ties import TieRates
    from btdagg.paper.transfer import Transfer


def ablation_table(found: Scores) -> ReportTable:
    """Tabulate MAE by the value of what was varied: values in columns, methods in rows.

    Where there are two methods, a third row has their difference. The records have accuracy too.

    References
    ----------
    The paper's tables of temperatures and of prompt variations.
    """
    if not found.cells:
        raise InputError("the ablation has no cells: nothing could be evaluated")
    one = len(found.cells[0].comparison.methods) == 1
    bold = "the lowest of the row" if one else f"the lowest of the methods at that {found.column}"
    n_left_out = sum(found.n_left_out.values())
    left_out = (
        f" {n_left_out} items without votes under every {found.column} are left out."
        if n_left_out
        else ""
    )
    return ReportTable.pivot(
        stem("ablation", found.column),
        f"Error by {found.column}",
        f"{LOWER_IS_BETTER}: means over {scored_on(found)} of the same items for every "
        f"{found.column}; {interval_note_of(found)}. Bold: {bold}.{left_out}"
        + not_evaluated(key for key, _ in found.skipped),
        (*found.by, "votes", "method"),
        _by_value(found, f"{found.column} ", across=one, differences=True),
    )


def order_table(found: Scores) -> ReportTable:
    """Tabulate MAE on votes of the first order, of the second, and of both in equal parts.

    References
    ----------
    The paper's table of positional bias mitigation.
    """
    over = f" over {scored_on(found)}; {interval_note_of(found)}" if found.cells else ""
    return ReportTable.pivot(
        "orders",
        "Error by the order in which responses are shown",
        f"{LOWER_IS_BETTER}: means{over}. First: all votes with A shown first; second: all "
        "with B shown first; balanced: half of each. Equal numbers of votes on the same items. "
        "Bold: the lowest of the row." + not_evaluated(key for key, _ in found.skipped),
        (*found.by, "votes", "method"),
        _by_value(found, "", across=True),
        ("first", "second", "balanced"),
    )


def _by_value(
    found: Scores, prefix: str, *, across: bool, differences: bool = False
) -> Iterator[PivotCell]:
    """MAE of each method under each value; bold is the lowest `across` values, or of methods.

    Where there are two methods, a row below has their difference if asked for.
    """
    names = ("n_votes", "method", "mae", "accuracy", "n_items", "n_splits")
    blocks: dict[tuple[Key, int | None], list[Cell]] = {}
    for cell in found.cells:
        blocks.setdefault((cell.key, cell.n_votes), []).append(cell)
    for (key, n_votes), block in blocks.items():
        label, lines = (*key, votes_of(n_votes)), [lines_of(cell) for cell in block]
        for cell, of_value in zip(block, lines, strict=True):
            own = {**where(found.by, key), found.column: cell.value}
            column = f"{prefix}{cell.value}".strip()
            for place, line in enumerate(of_value):
                best = best_lines([other[place] for other in lines] if across else of_value)
                whole, text = record(own, line.fields(*names)), with_error(line.mae)
                yield PivotCell((*label, line.method), column, text, line in best, whole, place)
        for cell in block:
            methods, new_items = cell.comparison.methods, cell.comparison.new_items
            if differences and len(methods) == 2:
                first, second = methods
                less = (
                    mean_interval(first.mae - second.mae)
                    if new_items is None
                    else new_items.difference(0, 1)
                )
                column, pair = f"{prefix}{cell.value}".strip(), f"{first.name} less {second.name}"
                yield PivotCell((*label, pair), column, with_error(less, signed=True), place=2)


def parameters_table(fitted: Mapping[str, FittedParameters]) -> ReportTable:
    """Tabulate median and interquartile range of beta, nu and gamma by task, and the regime.

    References
    ----------
    The paper's table of fitted parameters.
    """
    if not fitted:
        raise InputError("fitted is empty, expected at least one task")

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
                median, low, high = (shortest(value, PARAMETER_DIGITS[name]) for value in shown)
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
        "parameters-over-splits",
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
        for source in found.tasks:
            for target in found.tasks:
                change = found.change_interval(source, target)
                record = {
                    "source": source,
                    "target": target,
                    **spread("mae", found.mae_interval(source, target)),
                    **spread("change", change),
                    "n_splits": found.mae.shape[2],
                }
                text = "0" if source == target else with_error(change, signed=True)
                yield PivotCell((source,), target, text, change.high < 0, record)
        for target in found.tasks:
            own = with_error(found.mae_interval(target, target))
            yield PivotCell(("MAE, own calibration",), target, own, place=1)

    over, note = splits_of([found.mae.shape[2]]), SPLITS_NOTE
    if found.new_items is not None:
        over, note = "the folds of a cross-validation by group", NEW_ITEMS_NOTE
    return ReportTable.pivot(
        "transfer",
        "Transfer of a calibration between tasks",
        "Change in MAE on the task of the column where the calibration is that of the task of the "
        f"row instead of its own: mean over {over}; {note}. "
        "Below 0 the other calibration is better. Bold: its whole interval is below 0.",
        ("calibrated on",),
        cells(),
    )


def raters_table(
    found: LeaveOneOut | Mapping[int, LeaveOneOut], shared: Literal["tie", "drop"] = "tie"
) -> ReportTable:
    """Tabulate every rater against the others, and against a judge if there was one.

    Parameters
    ----------
    found : LeaveOneOut, or mapping of int to LeaveOneOut
        One, or one for each number of votes of the judge.
    shared : {"tie", "drop"}
        What was done with items on which labels share the most votes of the other raters.

    References
    ----------
    The paper's table of the leave-one-out comparison by rater.
    """
    several = {None: found} if isinstance(found, LeaveOneOut) else dict(found.items())
    if not several:
        raise InputError("found is empty, expected at least one")
    judged = any(scores.judge is not None for one in several.values() for scores in one.raters)
    rows: list[tuple[Entry, ...]] = []
    records: list[dict[str, object]] = []
    for n_votes, one in several.items():
        label = [] if n_votes is None else [str(n_votes)]
        for scores in one.raters:
            texts = map(Entry, (*label, str(scores.rater), str(scores.n_items)))
            rows.append((*texts, *_rater_entries(scores)))
            budget = {} if n_votes is None else {"n_votes": n_votes}
            records.append({**budget, **_rater_record(scores)})
        if judged:
            blank = (Entry(""),) * 3
            wins, by_mae = (
                Entry(f"{n}/{len(one.raters)}", bold=True) for n in (one.n_wins, one.n_wins_by_mae)
            )
            rows.append((*map(Entry, (*label, "wins", "")), *blank, wins, *blank, by_mae))
    header = ["rater", "items", "accuracy", "MAE"]
    rule = "it is a tie" if shared == "tie" else "the item is left out"
    note = f"Gold is the majority vote of the other raters; where labels share the most, {rule}."
    if judged:
        header[3:3] = columns = ["judge", "gain", "wins"]
        header += columns
        beside = [s.judge for one in several.values() for s in one.raters if s.judge is not None]
        over, sure = splits_of([len(judge.judge.mae) for judge in beside]), SPLITS_NOTE
        if beside[0].new_items is not None:
            over, sure = "the folds of a cross-validation by group", NEW_ITEMS_NOTE
        note += (
            f" The judge's labels are by {beside[0].judge.name}. Rater and judge are scored on the "
            f"evaluation sets of {over}, which the judge is not calibrated on; {sure}. A gain "
            "above 0 is the judge's. Wins: the judge's mean is the better one."
        )
    labels = [] if None in several else ["votes"]
    return ReportTable(
        "raters",
        "Raters left out one by one",
        note + not_evaluated((str(r),) for one in several.values() for r, _ in one.skipped),
        (*labels, *header),
        tuple(rows),
        tuple(records),
        n_label_columns=len(labels) + 1,
    )


def _rater_entries(scores: RaterScores) -> tuple[Entry, ...]:
    judge = scores.judge
    if judge is None:
        return Entry(fixed(scores.accuracy)), Entry(fixed(scores.mae))
    entries: list[Entry] = []
    rater, by_judge = judge.human, judge.judge
    for human, own, gain, wins in (
        (rater.mean_accuracy, by_judge.mean_accuracy, judge.accuracy_gain, judge.wins),
        (rater.mean_mae, by_judge.mean_mae, judge.mae_gain, judge.wins_by_mae),
    ):
        means = fixed(human), fixed(own)
        entries += map(Entry, (*means, with_error(gain, signed=True)))
        entries.append(Entry("yes" if wins else "no", wins))
    return tuple(entries)


def _rater_record(scores: RaterScores) -> dict[str, object]:
    names = ("rater", "n_items", "n_alone", "n_shared", "n_without_votes", "accuracy", "mae")
    record: dict[str, object] = {name: getattr(scores, name) for name in names}
    judge = scores.judge
    if judge is not None:
        record |= {
            "human_accuracy_evaluated": judge.human.mean_accuracy,
            "human_mae_evaluated": judge.human.mean_mae,
            **spread("judge_accuracy", judge.judge.accuracy_interval),
            **spread("judge_mae", judge.judge.mae_interval),
            **spread("accuracy_gain", judge.accuracy_gain),
            **spread("mae_gain", judge.mae_gain),
            "wins": judge.wins,
            "wins_by_mae": judge.wins_by_mae,
            "n_splits": len(judge.judge.mae),
        }
    return record


def tie_rate_table(found: TieRates, rows: str = "judge", columns: str = "template") -> ReportTable:
    """Tabulate the share of ties by two columns, with averages.

    References
    ----------
    The paper's table of tie rates.
    """
    names = [f"{columns} {name}".strip() for name in found.column_names]
    average = name_of_average(found.row_names)

    def cells() -> Iterator[PivotCell]:
        for i, row in enumerate(found.row_names):
            for j, column in enumerate(found.column_names):
                rate = found.cells[i][j]
                counts = {
                    "ties": int(found.ties[i, j]),
                    "total": int(found.totals[i, j]),
                    "n_items": int(found.n_items[i, j]),
                    "n_missing": int(found.n_missing[i, j]),
                }
                whole = record({rows: row, columns: column}, {**counts, **spread("rate", rate)})
                yield PivotCell((row,), names[j], _rate(rate), False, whole)
            yield PivotCell((row,), "average", _rate(found.row_averages[i]))
        for name, rate in zip(names, found.column_averages, strict=True):
            yield PivotCell((average,), name, _rate(rate))
        yield PivotCell((average,), "average", _rate(found.overall))

    return ReportTable.pivot(
        "tie-rates",
        f"Tie rates by {rows} and {columns}",
        "Share of votes that are ties; ± is half of the 95% interval, which goes by the "
        "number of items. Averages pool their cells.",
        (rows,),
        cells(),
    )


def _rate(interval: Interval | None) -> str:
    """A rate and half the width of its interval, which need not be symmetric, in percent."""
    if interval is None:
        return MISSING
    half = (interval.high - interval.low) / 2
    return percent_with_error(Interval(interval.mean, interval.mean - half, interval.mean + half))
