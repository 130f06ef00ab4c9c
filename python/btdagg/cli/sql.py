"""`btdagg sql`: write a model as a SQL expression, or the whole job as a query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

import btdagg
from btdagg.cli.common import Filters, parse_filters
from btdagg.cli.console import write_data
from btdagg.cli.fitted_files import model_or_panel
from btdagg.model.sql.queries import LabelsTable, VotesTable, histogram_query

# What a name ends with that DuckDB reads as a file, and whose dots do not divide it.
_FILES = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz")


def sql(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="A model from btdagg calibrate, or a panel that was saved; not with --histogram.",
            show_default=False,
        ),
    ] = None,
    dialect: Annotated[
        str,
        typer.Option(
            "--dialect",
            "-d",
            help="SQL dialect: duckdb, postgresql, sqlite, spark, clickhouse, bigquery, snowflake "
            "or trino.",
        ),
    ] = "duckdb",
    votes: Annotated[
        str | None,
        typer.Option(
            "--votes",
            metavar="TABLE",
            help="Write a query that tallies and decides this table of single votes. A dot divides "
            "schema and table.",
            show_default=False,
        ),
    ] = None,
    item: Annotated[str, typer.Option(help="Column of the items.")] = "item",
    vote: Annotated[
        str, typer.Option(help="Column of the votes: -1, 0, 1 or B, tie, A; NULL is missing.")
    ] = "vote",
    sample: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that tells the votes of an item apart, where rows may be repeated. Name "
            "all of them: --sample judge --sample order --sample sample for an export of btdagg, "
            "and template and temperature if it has several. Equal votes of a sample count once; "
            "different ones give NULL for the item.",
            show_default="every row is one vote",
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Column of the tasks, to decide items by task.", show_default=False),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Column of the judges, to decide items by judge; a panel needs it.",
            show_default=False,
        ),
    ] = None,
    filters: Filters = None,
    numbers: Annotated[
        bool,
        typer.Option(
            "--numbers", help="All votes are numbers: they are not read as text, which is faster."
        ),
    ] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add the columns p_minus, p_tie and p_plus.")
    ] = False,
    histogram: Annotated[
        bool,
        typer.Option(
            "--histogram",
            help="Write the query that counts the items of each triple and label instead, for "
            "btdagg calibrate.",
        ),
    ] = False,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="With --histogram: table of gold labels, with the column --item names.",
            show_default=False,
        ),
    ] = None,
    label: Annotated[str, typer.Option(help="With --histogram: column of the labels.")] = "label",
    label_task: Annotated[
        str | None,
        typer.Option(
            help="With --histogram: column of the tasks of the labels, if they have tasks too.",
            show_default=False,
        ),
    ] = None,
    minus: Annotated[
        str | None,
        typer.Option(help="Without --votes: column that counts votes for B.", show_default="minus"),
    ] = None,
    tie: Annotated[
        str | None,
        typer.Option(help="Without --votes: column that counts ties.", show_default="tie"),
    ] = None,
    plus: Annotated[
        str | None,
        typer.Option(help="Without --votes: column that counts votes for A.", show_default="plus"),
    ] = None,
    max_votes: Annotated[
        int | None,
        typer.Option(
            help="Look decisions up instead of computing them, for databases without mathematical "
            "functions. Items with more votes get NULL; at most 200.",
            show_default="closed form",
        ),
    ] = None,
) -> None:
    """Print a SQL query that tallies votes and decides every item, or the decision alone.

    With --votes the query has the columns item, minus, tie, plus and label. Without it, the
    decision is printed as one expression over three columns of counts. --histogram needs no model:
    it writes a query of votes and labels, whose few hundred rows btdagg calibrate reads.

    Example: btdagg sql model.json --votes votes --dialect postgresql
    """
    columns = {"--minus": minus, "--tie": tie, "--plus": plus}
    of_votes = {
        "--sample": sample,
        "--task": task,
        "--judge": judge,
        "--filter": filters,
        "--numbers": numbers,
        "--probabilities": probabilities,
    }
    of_labels = {"--labels": labels, "--label-task": label_task}
    if not histogram:
        _refuse(of_labels, "wants --histogram")
    if votes is None:
        _refuse({"--histogram": histogram, **of_votes}, "wants --votes TABLE")
    else:
        _refuse(columns, "is of a table of counts, and --votes names one of single votes")
    table = None
    if votes is not None:
        table = VotesTable(
            _parts(votes, dialect),
            item=item,
            vote=vote,
            sample=sample or (),
            task=task,
            judge=judge,
            where=parse_filters(filters, any_case=False),
            numbers=numbers,
        )
    if histogram and table is not None:
        refused = {"MODEL": model, "--probabilities": probabilities, "--max-votes": max_votes}
        _refuse(refused, "decides items, and --histogram is for calibrating")
        if labels is None:
            raise btdagg.InputError("--histogram wants --labels TABLE")
        place = _parts(labels, dialect)
        gold = LabelsTable(place, item=item, label=label, task=label_task, numbers=numbers)
        write_data(f"{histogram_query(dialect, table, gold)}\n")
        return
    if model is None:
        raise btdagg.InputError("MODEL is missing, expected a model from btdagg calibrate")
    fitted = model_or_panel(model)
    if isinstance(fitted, btdagg.PanelModel):
        _refuse({**columns, "--max-votes": max_votes}, "is of a single model, and MODEL is a panel")
        written = (
            fitted.to_sql(dialect)
            if table is None
            else fitted.to_sql_query(dialect, table, probabilities=probabilities)
        )
    elif table is not None:
        written = fitted.to_sql_query(
            dialect, table, probabilities=probabilities, max_votes=max_votes
        )
    else:
        names = {name.strip("-"): column or name.strip("-") for name, column in columns.items()}
        written = fitted.to_sql(dialect, **names, max_votes=max_votes)
    write_data(f"{written}\n")


def _refuse(options: Mapping[str, object], why: str) -> None:
    for name, given in options.items():
        if given:
            raise btdagg.InputError(f"{name} {why}")


def _parts(table: str, dialect: str) -> list[str]:
    """Return the parts of a qualified name; what DuckDB reads as a file is one part."""
    if dialect == "duckdb" and table.lower().endswith(_FILES):
        return [table]
    return table.split(".")
