"""`btdagg paper votes`: tie rates, positional bias, and errors by order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import btdagg
from btdagg.cli.common import (
    Columns,
    Filters,
    Force,
    Json,
    VotesFile,
    at_least,
    files_read,
    filtered,
    note,
    progress_bar,
    tables_of,
)
from btdagg.cli.reporting import ReportOption, names, refuse_report
from btdagg.cli.votes import bias_by_judge, show
from btdagg.evaluation import CrossFit, Protocol, RandomSplits
from btdagg.paper.conditions import compare_orders
from btdagg.paper.figures import tie_rate_figure
from btdagg.paper.tables import order_table, tie_rate_table
from btdagg.paper.ties import tie_rates
from btdagg.report.table import ReportTable
from btdagg.votes.table import text

if TYPE_CHECKING:
    from btdagg.report.sections import Exhibits
    from btdagg.votes import Labels, Votes

# Tie rates are tabulated by the judge and the first of these columns that has several values.
_BESIDES = ("template", "temperature", "task", "order")


def votes(
    context: typer.Context,
    votes: VotesFile,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Gold labels, to compare votes in one order, in the other, and in both.",
            show_default=False,
        ),
    ] = None,
    gold_ties: Annotated[
        bool,
        typer.Option(
            "--gold-ties", help="Count only items that --labels calls a tie, as in the paper."
        ),
    ] = False,
    filters: Filters = None,
    columns: Columns = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="Column that says whether ties were allowed, for the table of positional bias.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Two columns to tabulate tie rates by, separated by a comma.",
            show_default="judge and template, temperature, task or order",
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(
            help="Compare orders on so many random splits that calibrate on 5% of the labels.",
            show_default="cross-validation, as btdagg evaluate",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the splits.")] = 0,
    report: ReportOption = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Tabulate tie rates and positional bias, and with labels the error by order.

    Example: btdagg paper votes votes.csv --by judge,order --report out
    """
    at_least(splits, "--splits", 2)
    raw = tables_of(columns, votes, *([] if labels is None else [labels]))
    table = filtered(btdagg.read_votes(raw[0]), filters)
    gold = None if labels is None else btdagg.read_labels(raw[1])
    if gold_ties and gold is None:
        raise btdagg.InputError("--gold-ties wants --labels")
    going_by = None if by is None else names(by, "--by")
    setting = None if setting is None else setting.strip().lower()
    if going_by is not None and len(going_by) != 2:
        raise btdagg.InputError(f"--by is {by!r}, expected two columns separated by a comma")
    tied = gold if gold_ties else None
    refuse_report(report, reads := files_read(context, "report"), force)
    exhibits = list(_exhibits(table, gold, tied, going_by, setting, splits, seed))
    show(exhibits, table, report, context, reads, force=force, json=json)


def _exhibits(
    table: Votes,
    gold: Labels | None,
    tied: Labels | None,
    columns: list[str] | None,
    setting: str | None,
    splits: int | None,
    seed: int,
) -> Exhibits:
    judge = [column for column in ("judge",) if column in table.columns]
    if columns is None:
        besides = [column for column in _BESIDES if _several(table, column)]
        columns = [*judge, *besides][:2]
    if len(columns) == 2:
        rates = tie_rates(table, *columns, gold_ties=tied)
        yield tie_rate_figure(rates, *columns)
        yield tie_rate_table(rates, *columns)
    if "order" not in table.columns:
        return
    yield from bias_by_judge(table, setting, tied)
    if gold is None:
        return
    try:
        yield from _orders(table, gold, splits, seed)
    except btdagg.InputError as error:
        note(f"orders are not compared: {error}")


def _orders(table: Votes, gold: Labels, splits: int | None, seed: int) -> Iterator[ReportTable]:
    """Compare errors with votes in one order, the other and both, if items have enough of each."""
    by = [column for column in ("task", "judge") if column in table.columns]
    present = table.frame.drop_nulls("vote")
    shown = present["order"].unique().sort().to_list()
    if len(shown) < 2:
        raise btdagg.InputError(
            f"all votes have order {shown[0] if shown else 'none'}, expected both"
        )
    per_order = present.group_by("item", "order", *by).len()["len"]
    each = int(per_order.median() or 0)  # type: ignore[arg-type]
    each -= each % 2
    if each < 2:
        raise btdagg.InputError("most items have 1 vote of each order, expected at least 2")
    protocol = Protocol(CrossFit(seed=seed), None)
    if splits is not None:
        protocol = Protocol(RandomSplits(n_splits=splits, seed=seed))
    with progress_bar("comparing orders") as progress:
        found = compare_orders(table, gold, each, protocol=protocol, progress=progress)
    yield order_table(found)


def _several(table: Votes, column: str) -> bool:
    return column in table.columns and text(table, column).n_unique() > 1
