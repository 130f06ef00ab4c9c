"""`btdagg paper votes`: tie rates, positional bias, and errors by order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from btdagg import InputError, read_labels
from btdagg._util.errors import forbid
from btdagg.cli.common import Json, Signs, Splits, VotesFile, note, progress_bar
from btdagg.cli.reporting import ReportOption, protocol_of, show_exhibits
from btdagg.cli.votes import bias_by_judge
from btdagg.paper.conditions import compare_orders
from btdagg.paper.figures import tie_rate_figure
from btdagg.paper.tables import order_table, tie_rate_table
from btdagg.paper.ties import tie_rates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from btdagg import Labels, Protocol, Votes
    from btdagg.report import Exhibit

# Tie rates are tabulated by the judge and the first of these columns that has several values.
_BESIDES = ("template", "temperature", "task", "order")


def votes(
    selection: Signs,
    reporting: ReportOption,
    votes: VotesFile = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Gold labels: compare the errors of votes in one order, in the other, and in both."
        ),
    ] = None,
    gold_ties: Annotated[
        bool,
        typer.Option(
            "--gold-ties",
            help="Count only items whose gold label (--labels) is a tie, as in the paper.",
        ),
    ] = False,
    splits: Splits = None,
    json: Json = False,
) -> None:
    """Tabulate tie rates, positional bias and, with labels, the error by order.

    If the votes have a column setting (whether ties were allowed), the bias is given for each
    setting.

    Example: btdagg paper votes votes.csv --labels labels.csv --report out
    """
    project = selection.project
    sources = (("votes", project.place("votes", votes)), ("labels", labels))
    raw_votes, *raw_labels = selection.filtered(*project.read(*sources))
    table = selection.votes(raw_votes)
    gold = read_labels(*raw_labels, **project.how_labelled) if raw_labels else None
    forbid(gold_ties and gold is None, "gold_ties needs --labels", "gold_ties")
    folder = reporting.open(selection.project, f"Votes of {Path(table.source).name}")
    exhibits = _exhibits(table, gold, gold if gold_ties else None, protocol_of(splits))
    show_exhibits(exhibits, folder, "votes", "What votes look like", json=json)


def _exhibits(
    table: Votes, gold: Labels | None, gold_ties: Labels | None, protocol: Protocol
) -> Iterator[Exhibit]:
    judge = [column for column in ("judge",) if column in table.columns]
    besides = (c for c in _BESIDES if c in table.columns and len(table.values(c)) > 1)
    columns = [*judge, *besides][:2]
    if len(columns) == 2:
        rates = tie_rates(table, *columns, gold_ties=gold_ties)
        yield tie_rate_figure(rates, *columns)
        yield tie_rate_table(rates, *columns)
    if "order" not in table.columns:
        return
    yield from bias_by_judge(table, "setting", gold_ties=gold_ties)
    if gold is None:
        return
    try:
        yield _orders(table, gold, protocol)
    except InputError as error:
        note(f"orders not compared: {error}")


def _orders(table: Votes, gold: Labels, protocol: Protocol) -> Exhibit:
    by = [column for column in ("task", "judge") if column in table.columns]
    present = table.frame.drop_nulls("vote")
    orders = present["order"].unique().sort().to_list()
    forbid(
        len(orders) < 2,
        f"all votes have order {orders[0] if orders else 'none'}, expected votes in both orders",
    )
    per_order = present.group_by("item", "order", *by).len()["len"]
    n_votes = int(per_order.median() or 0)  # type: ignore[arg-type]
    n_votes -= n_votes % 2
    forbid(n_votes < 2, "most items have 1 vote of each order, expected at least 2")
    with progress_bar("comparing orders") as progress:
        scores = compare_orders(table, gold, n_votes, protocol=protocol, progress=progress)
    return order_table(scores)
