"""`btdagg votes`: summarize votes, or export a vote store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import btdagg
from btdagg.cli.common import (
    Filters,
    Force,
    Json,
    at_least,
    files_read,
    filtered,
    note,
    print_json,
    progress_bar,
)
from btdagg.cli.reporting import (
    ReportOption,
    names,
    open_report,
    print_report_table,
    refuse_report,
    say_where,
)
from btdagg.cli.tables import Columns, tables_of
from btdagg.cli.votes_store import export_file, export_store, show_store
from btdagg.evaluation import Protocol, RandomSplits, compare_orders, positional_bias, tie_rates
from btdagg.report import figures, tables
from btdagg.report.table import Entry, ReportTable
from btdagg.tables.source import is_store
from btdagg.tables.table import text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from btdagg.report.questions import Exhibits
    from btdagg.tables import Labels

# Tie rates are tabulated by the judge and the first of these columns that has several values.
_BESIDES = ("template", "temperature", "task", "order")


def votes(
    context: typer.Context,
    votes: Annotated[
        str,
        typer.Argument(
            metavar="VOTES",
            help="Votes (columns item, vote; optional judge, order ...): .csv, .tsv, .jsonl (each "
            "also .gz) or .parquet; - is standard input; or a vote store from btdagg judge (a "
            "file, "
            "or postgresql://...).",
            show_default=False,
        ),
    ],
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            "-o",
            help="Write the votes of a store to this file: .parquet, .csv, .tsv, .jsonl or "
            ".ndjson.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="Methods whose votes are exported, separated by commas.",
            show_default="sample",
        ),
    ] = None,
    exchanges: Annotated[
        bool, typer.Option("--exchanges", help="Also export the texts that were sent and received.")
    ] = False,
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
        int, typer.Option(help="Number of random splits to compare orders on.")
    ] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the splits.")] = 0,
    report: ReportOption = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Summarize votes: how many there are, how many are missing, ties, positional bias.

    For a vote store it prints one line per judge, template and method, with tokens and cost.
    --export writes the votes of a store to a file.

    Example: btdagg votes votes.csv --by judge,order --report out
    """
    looked_at = (labels, filters, columns, setting, by, report, gold_ties or None)
    looks = any(option is not None for option in looked_at)
    if is_store(votes) and (export is not None or not looks):
        if looks:
            raise btdagg.InputError(
                f"{votes} is a vote store; --export its votes, and use these options on the "
                f"exported file"
            )
        if export is None and (methods is not None or exchanges):
            option = "exchanges" if methods is None else "method"
            raise btdagg.InputError(f"--{option} wants --export")
        if export is None:
            show_store(votes, json=json)
        else:
            wanted = (methods or "sample").split(",")
            reads = files_read(context, "export")
            file = export_file(export, reads=reads, force=force)
            export_store(votes, file, methods=wanted, exchanges=exchanges)
        return
    if export is not None or methods is not None or exchanges:
        option = "export" if export else "method" if methods else "exchanges"
        raise btdagg.InputError(f"--{option} wants a vote store, and {votes} is not one")
    at_least(splits, "--splits", 2)
    raw = tables_of(columns, votes, *([] if labels is None else [labels]))
    table = filtered(btdagg.read_votes(raw[0]), filters)
    gold = None if labels is None else btdagg.read_labels(raw[1])
    if gold_ties and gold is None:
        raise btdagg.InputError("--gold-ties wants --labels")
    going_by = None if by is None else names(by, "--by")
    setting = None if setting is None else setting.strip().lower()
    if going_by is not None and len(going_by) != 2:
        raise btdagg.InputError(f"--by is {by!r}, want two columns separated by a comma")
    tied = gold if gold_ties else None
    refuse_report(report, reads := files_read(context, "report"), force)
    exhibits = list(_exhibits(table, gold, tied, going_by, setting, splits, seed))
    printed = [exhibit for exhibit in exhibits if isinstance(exhibit, ReportTable)]
    if json:
        print_json({one.name: list(one.records) for one in printed})
    else:
        for one in printed:
            print_report_table(one)
    if report is not None:
        title = f"Votes of {Path(table.source).name}"
        with open_report(report, title, context, reads, force) as folder:
            folder.section("votes", "What votes look like")
            folder.add(*exhibits)
        say_where(report)


def _exhibits(
    table: btdagg.Votes,
    gold: Labels | None,
    tied: Labels | None,
    columns: list[str] | None,
    setting: str | None,
    splits: int,
    seed: int,
) -> Exhibits:
    judge = [column for column in ("judge",) if column in table.columns]
    yield _counts(table, judge)
    if columns is None:
        besides = [column for column in _BESIDES if _several(table, column)]
        columns = [*judge, *besides][:2]
    if len(columns) == 2:
        rates = tie_rates(table, *columns, gold_ties=tied)
        yield figures.tie_rate_figure(rates, *columns)
        yield tables.tie_rate_table(rates, *columns)
    if "order" not in table.columns:
        return
    bias = positional_bias(table, by=judge, setting=setting, gold_ties=tied)
    if any(one.interval for one in bias):
        yield figures.positional_bias_figure(bias, setting or "setting")
    yield tables.positional_bias_table(bias, judge, setting or "setting")
    if gold is None:
        return
    try:
        yield from _orders(table, gold, splits, seed)
    except btdagg.InputError as error:
        note(f"orders are not compared: {error}")


def _orders(table: btdagg.Votes, gold: Labels, splits: int, seed: int) -> Iterator[ReportTable]:
    """Compare errors with votes in one order, the other and both, if items have enough of each."""
    by = [column for column in ("task", "judge") if column in table.columns]
    present = table.frame.drop_nulls("vote")
    shown = present["order"].unique().sort().to_list()
    if len(shown) < 2:
        raise btdagg.InputError(f"all votes have order {shown[0] if shown else 'none'}, want both")
    per_order = present.group_by("item", "order", *by).len()["len"]
    each = int(per_order.median() or 0)  # type: ignore[arg-type]
    each -= each % 2
    if each < 2:
        raise btdagg.InputError("most items have 1 vote of each order, want at least 2")
    protocol = Protocol(RandomSplits(n_splits=splits, seed=seed))
    with progress_bar("comparing orders") as progress:
        found = compare_orders(table, gold, each, protocol=protocol, progress=progress)
    yield tables.order_table(found)


def _counts(table: btdagg.Votes, judge: list[str]) -> ReportTable:
    """Count votes, missing votes, and the share of each vote, by judge."""
    rows, records = [], []
    for key, part in table.partition(judge):
        (ids, counts), total = part.counts(), len(part.frame)
        minus, tie, plus = (int(number) for number in counts.sum(axis=0))
        present = max(minus + tie + plus, 1)
        name = key[0] if key else "all"
        shares = {"A": plus / present, "tie": tie / present, "B": minus / present}
        cells = (str(len(ids)), str(total), str(part.n_missing))
        percents = (f"{100 * share:.1f}" for share in shares.values())
        rows.append(tuple(Entry(cell) for cell in (name, *cells, *percents)))
        record = {"n_items": len(ids), "n_votes": total, "n_missing": part.n_missing}
        records.append({"judge": name, **record, "plus": plus, "tie": tie, "minus": minus})
    return ReportTable(
        "votes",
        "Votes",
        "Shares are of the votes that are not missing, in percent.",
        ("judge", "items", "votes", "missing", "A", "tie", "B"),
        tuple(rows),
        tuple(records),
    )


def _several(table: btdagg.Votes, column: str) -> bool:
    return column in table.columns and text(table, column).n_unique() > 1
