"""Tables of the paper that no report of a user has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.errors import forbid
from btdagg._util.wording import MISSING, fixed, percent, stem
from btdagg.evaluation import basis_of, not_evaluated, with_error
from btdagg.report import Entry, ReportTable, Row

if TYPE_CHECKING:
    from btdagg.evaluation import Cell, Interval, Scores
    from btdagg.paper.parameters import FittedParameters
    from btdagg.paper.raters import LeaveOneOut, RaterScores
    from btdagg.paper.ties import TieRates
    from btdagg.paper.transfer import Transfer

_LOWER_IS_BETTER = "Mean absolute error, lower is better"


def ablation_table(scores: Scores) -> ReportTable:
    """Tabulate MAE by value and method, and the difference of two (temperatures, prompts)."""
    forbid(not scores.cells, "the ablation has no cells: nothing could be evaluated")
    alone = len(scores.cells[0].methods) == 1
    column = scores.column
    bold = "the lowest of the row" if alone else f"the lowest of the methods at that {column}"
    n_left_out = sum(scores.n_left_out.values())
    left_out = (
        f" {n_left_out} items without votes for every {column} are left out." if n_left_out else ""
    )
    over, error = basis_of(scores.cells)
    return ReportTable.of_rows(
        stem("ablation", column),
        f"Error by {column}",
        f"{_LOWER_IS_BETTER}: means over {over} of the same items for every {column}; {error}. "
        f"Bold: {bold}.{left_out}" + not_evaluated(key for key, _ in scores.skipped),
        (*scores.by, "votes", "method"),
        _by_value(scores, f"{column} ", across=alone, differences=True),
    )


def order_table(scores: Scores) -> ReportTable:
    """Tabulate MAE on votes of the first order, the second, and both: the paper's flipping."""
    over = " over {}; {}".format(*basis_of(scores.cells)) if scores.cells else ""
    return ReportTable.of_rows(
        "orders",
        "Error by the order in which responses are shown",
        f"{_LOWER_IS_BETTER}: means{over}. First: all votes with A shown first; second: all "
        "with B shown first; balanced: half of each. Equal numbers of votes on the same items. "
        "Bold: the lowest of the row." + not_evaluated(key for key, _ in scores.skipped),
        (*scores.by, "votes", "method"),
        _by_value(scores, "", across=True),
        ("first", "second", "balanced"),
    )


def _by_value(
    scores: Scores, prefix: str, *, across: bool, differences: bool = False
) -> Iterator[Row]:
    # Bold is the lowest of `across` values, or of methods.
    names = ("n_votes", "method", "mae", "accuracy", "n_items", "n_splits")
    by_value = replace(scores, by=(*scores.by, scores.column))
    blocks: dict[tuple[tuple[str, ...], int | None], list[Cell]] = {}
    for cell in scores.cells:
        blocks.setdefault((cell.key, cell.n_votes), []).append(cell)
    for (key, n_votes), block in blocks.items():
        label = (*key, "all" if n_votes is None else str(n_votes))
        columns = [f"{prefix}{cell.value}".strip() for cell in block]
        for of_method in zip(*(cell.lines for cell in block), strict=True):
            cells, records = {}, []
            for cell, column, line in zip(block, columns, of_method, strict=True):
                lowest = min(other["mae"].mean for other in (of_method if across else cell.lines))
                cells[column] = Entry(with_error(line["mae"]), line["mae"].mean == lowest)
                records.append(by_value.record({**line, "key": (*key, cell.value)}, names))
            yield Row((*label, of_method[0]["method"]), cells, records)
        methods = [method.name for method in block[0].methods]
        if differences and len(methods) == 2:
            less = [with_error(cell.difference(0, 1), signed=True) for cell in block]
            yield Row((*label, " − ".join(methods)), dict(zip(columns, less, strict=True)))


_DIGITS = {"beta": 2, "nu": 1, "gamma": 2}


def parameters_table(fitted: Mapping[str, FittedParameters]) -> ReportTable:
    """Tabulate median and quartiles of beta, nu and gamma by task, and the regime, as the paper."""

    def rows() -> Iterator[Row]:
        for task, parameters in fitted.items():
            at_bounds = parameters.at_bounds.mean(axis=0).tolist()
            cells: dict[str, str] = {}
            records = []
            for (name, spread_), bound in zip(parameters.spreads.items(), at_bounds, strict=True):
                middle = float(np.median(getattr(parameters, name)))
                shown = (middle, spread_.low, spread_.high)
                median, low, high = (_shortest(value, _DIGITS[name]) for value in shown)
                cells |= {name: median, f"{name}: IQR": f"[{low}, {high}]"}
                records.append(
                    {
                        "task": task,
                        "parameter": name,
                        "mean": spread_.mean,
                        "median": middle,
                        "lower_quartile": spread_.low,
                        "upper_quartile": spread_.high,
                        "share_at_bounds": bound,
                        "n_splits": len(parameters.beta),
                        "gold_tie_share": parameters.gold_tie_share,
                        "judge_tie_share": parameters.judge_tie_share,
                        "regime": parameters.regime,
                    }
                )
            cells |= {
                "at a bound": percent(float(parameters.at_bounds.any(axis=1).mean()), 0),
                "gold ties": percent(parameters.gold_tie_share),
                "judge ties": percent(parameters.judge_tie_share),
                "regime": parameters.regime,
            }
            yield Row((task,), cells, records)

    fewest, most = (pick(len(of.beta) for of in fitted.values()) for pick in (min, max))
    over = f"{fewest if fewest == most else f'{fewest} to {most}'} random splits"
    return ReportTable.of_rows(
        "parameters-over-splits",
        "Fitted parameters",
        f"Median and interquartile range over {over}. beta: sensitivity to the margin; nu: how "
        "strongly ties are preferred from the start; gamma: sensitivity to the share of ties. At "
        "a bound: share of fits with a parameter at a bound. Gold and judge ties: share of items "
        "whose gold label, or majority vote, is a tie.",
        ("task",),
        rows(),
    )


def _shortest(value: float, digits: int) -> str:
    return fixed(value, 0 if abs(value) >= 100 else digits)


def transfer_table(transfer: Transfer) -> ReportTable:
    """Tabulate the change in MAE against each target's own calibration, and that MAE below."""

    def rows() -> Iterator[Row]:
        for source in transfer.tasks:
            cells, records = {}, []
            for target in transfer.tasks:
                change = transfer.change_interval(source, target)
                text = "0" if source == target else with_error(change, signed=True)
                cells[target] = Entry(text, change.high < 0)
                records.append(
                    {
                        "source": source,
                        "target": target,
                        "mae": transfer.mae_interval(source, target),
                        "change": change,
                        "n_splits": transfer.compared[0][0].n_splits,
                    }
                )
            yield Row((source,), cells, records)
        own_maes = {task: with_error(transfer.mae_interval(task, task)) for task in transfer.tasks}
        yield Row(("MAE, own calibration",), own_maes)

    over, error = basis_of(chain(*transfer.compared))
    return ReportTable.of_rows(
        "transfer",
        "Transfer of a calibration between tasks",
        "Change in MAE on the task of the column if the model is calibrated on the task of the "
        f"row instead of the same task: mean over {over}; {error}. Below 0 the other calibration "
        "is better. Bold: the whole interval is below 0.",
        ("calibrated on",),
        rows(),
    )


def raters_table(by_votes: Mapping[int | None, LeaveOneOut]) -> ReportTable:
    """Tabulate raters against the others and a judge, by its number of votes (None: all)."""
    judges = [s.compared for of in by_votes.values() for s in of.raters if s.compared]
    note = (
        "The gold label is the majority vote of the other raters, or a tie if several labels "
        "have the most votes."
    )
    if judges:
        over, error = basis_of(judges)
        note += (
            f" The judge's labels are by {judges[0].methods[0].name}. Rater and judge are scored "
            f"on the held-out items of {over}; {error}. A gain above 0 favours the judge. Wins: "
            "the judge's mean is better."
        )
    labels = [] if None in by_votes else ["votes"]

    def rows() -> Iterator[Row]:
        for n_votes, leave_one_out in by_votes.items():
            label = () if n_votes is None else (str(n_votes),)
            budget = {} if n_votes is None else {"n_votes": n_votes}
            yield from (_rater_row(label, budget, scores) for scores in leave_one_out.raters)
            if judges:
                n = len(leave_one_out.raters)
                wins = {
                    "wins": Entry(f"{leave_one_out.n_wins}/{n}", True),
                    "wins by MAE": Entry(f"{leave_one_out.n_wins_by_mae}/{n}", True),
                }
                yield Row((*label, "wins"), wins)

    skipped = ((str(rater),) for of in by_votes.values() for rater, _ in of.skipped)
    return ReportTable.of_rows(
        "raters",
        "Raters left out one by one",
        note + not_evaluated(skipped),
        (*labels, "rater"),
        rows(),
    )


def _rater_row(label: tuple[str, ...], budget: Mapping[str, int], scores: RaterScores) -> Row:
    names = ("rater", "n_items", "n_alone", "n_shared", "n_without_votes", "accuracy", "mae")
    fields: dict[str, object] = {**budget, **{name: getattr(scores, name) for name in names}}
    cells: dict[str, str | Entry] = {"items": str(scores.n_items)}
    if scores.compared is None:
        cells |= {"accuracy": fixed(scores.accuracy), "MAE": fixed(scores.mae)}
        return Row((*label, str(scores.rater)), cells, [fields])
    judge, human = scores.compared.lines
    by_score = (
        ("accuracy", "accuracy", scores.accuracy_gain, "wins", scores.wins),
        ("mae", "MAE", scores.mae_gain, "wins_by_mae", scores.wins_by_mae),
    )
    for score, title, gain, name, wins in by_score:
        cells |= {
            title: fixed(human[score].mean),
            f"judge's {title}": fixed(judge[score].mean),
            f"gain of {title}": with_error(gain, signed=True),
            name.replace("_", " ").replace("mae", "MAE"): Entry("yes" if wins else "no", wins),
        }
        fields |= {f"human_{score}_evaluated": human[score].mean, name: wins}
        fields |= {f"judge_{score}": judge[score], f"{score}_gain": gain}
    return Row((*label, str(scores.rater)), cells, [{**fields, "n_splits": judge["n_splits"]}])


def tie_rate_table(rates: TieRates, rows: str = "judge", columns: str = "template") -> ReportTable:
    """Tabulate the share of ties by two columns, with averages: the paper's tie rates."""
    names = [f"{columns} {name}".strip() for name in rates.column_names]

    def lines() -> Iterator[Row]:
        for i, row in enumerate(rates.row_names):
            cells, records = {}, []
            for j, column in enumerate(rates.column_names):
                rate = rates.rate(i, j)
                cells[names[j]] = _rate(rate)
                fields = {
                    "ties": int(rates.ties[i, j]),
                    "total": int(rates.totals[i, j]),
                    "n_items": int(rates.n_items[i, j]),
                    "n_missing": int(rates.n_missing[i, j]),
                    "rate": rate,
                }
                taken = {rows, columns} & {*fields}
                forbid(taken, f"columns {taken} have names of fields of the results; rename them")
                records.append({rows: row, columns: column, **fields})
            yield Row((row,), {**cells, "average": _rate(rates.rate(i))}, records)
        averages = {name: _rate(rates.rate(column=j)) for j, name in enumerate(names)}
        average = "average of all" if "average" in rates.row_names else "average"
        yield Row((average,), {**averages, "average": _rate(rates.rate())})

    return ReportTable.of_rows(
        "tie-rates",
        f"Tie rates by {rows} and {columns}",
        "Share of votes that are ties; ± is half of the 95% interval, based on the number of "
        "items. Averages pool their cells.",
        (rows,),
        lines(),
    )


def _rate(interval: Interval | None) -> str:
    if interval is None:
        return MISSING
    half = (interval.high - interval.low) / 2
    return f"{percent(interval.mean)} ±{fixed(100 * half, 1)}"
