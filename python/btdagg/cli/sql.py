"""`btdagg sql`: write a model as a SQL expression, or the whole job as a query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

import btdagg
from btdagg.cli.common import Filters, model_or_panel, parse_filters
from btdagg.cli.console import write_data
from btdagg.model.sql.queries import LabelsTable, VotesTable, histogram_query

# What a name ends with that DuckDB reads as a file, and whose dots do not divide it.
_FILES = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz")


_COLUMNS = ("item", "vote", "sample", "task", "judge", "label", "label_task")
_COUNTS = ("minus", "tie", "plus")


def sql(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="A model from btdagg calibrate, or a panel that was saved; not with --labels.",
            show_default=False,
        ),
    ] = None,
    dialect: Annotated[
        Literal[
            "duckdb",
            "postgresql",
            "sqlite",
            "spark",
            "clickhouse",
            "bigquery",
            "snowflake",
            "trino",
        ],
        typer.Option("--dialect", "-d", help="SQL dialect."),
    ] = "duckdb",
    votes: Annotated[
        str | None,
        typer.Option(
            "--votes",
            metavar="TABLE",
            help="Write a query that tallies and decides this table of single votes (-1, 0, 1 or "
            "B, tie, A; NULL is missing). A dot divides schema and table.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="TABLE",
            help="Table of gold labels: with --votes, write the query that counts the items of "
            "each triple and label instead, for btdagg calibrate.",
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="NAME=COLUMN",
            help="Read a column under another name: item, vote, label, or minus, tie, plus. "
            "task=COLUMN and judge=COLUMN decide items by task or judge (a panel needs judge); "
            "label_task=COLUMN is of the labels. sample=COLUMN, repeated for each, tells the votes "
            "of an item apart where rows may be repeated: judge, order and sample for an export of "
            "btdagg. Equal votes of a sample count once; different ones give NULL.",
            show_default=False,
            rich_help_panel="Data",
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
) -> None:
    """Print a SQL query that tallies votes and decides every item, or the decision alone.

    With --votes the query has the columns item, minus, tie, plus and label. Without it, the
    decision is printed as one expression over three columns of counts. --labels needs no model: it
    writes a query of votes and labels, whose few hundred rows btdagg calibrate reads.

    Example: btdagg sql model.json --votes votes --dialect postgresql
    """
    named = parse_filters(columns, any_case=False, option="--column")
    allowed = _COUNTS if votes is None else _COLUMNS
    for name, several in named.items():
        if name not in allowed or (len(several) > 1 and name != "sample"):
            raise btdagg.InputError(
                f"--column {name}={several[-1]}: expected one of each of {', '.join(allowed)}"
            )
    of_votes = {"--filter": filters, "--numbers": numbers, "--probabilities": probabilities}
    if votes is None:
        _refuse({"--labels": labels, **of_votes}, "is of single votes: name their table by --votes")
    column = {name: several[0] for name, several in named.items() if name != "sample"}
    item = column.get("item", "item")
    table = None
    if votes is not None:
        table = VotesTable(
            _parts(votes, dialect),
            item=item,
            vote=column.get("vote", "vote"),
            sample=named.get("sample", ()),
            task=column.get("task"),
            judge=column.get("judge"),
            where=parse_filters(filters, any_case=False),
            numbers=numbers,
        )
    if labels is not None and table is not None:
        refused = {"MODEL": model, "--probabilities": probabilities}
        _refuse(refused, "decides items, and --labels is for calibrating")
        gold = LabelsTable(
            _parts(labels, dialect),
            item=item,
            label=column.get("label", "label"),
            task=column.get("label_task"),
            numbers=numbers,
        )
        write_data(f"{histogram_query(dialect, table, gold)}\n")
        return
    if model is None:
        raise btdagg.InputError("MODEL is missing, expected a model from btdagg calibrate")
    fitted = model_or_panel(model)
    if isinstance(fitted, btdagg.PanelModel):
        _refuse(
            {"--column": votes is None and columns},
            "is of a single model, and MODEL is a panel",
        )
        written = (
            fitted.to_sql(dialect)
            if table is None
            else fitted.to_sql_query(dialect, table, probabilities=probabilities)
        )
    elif table is not None:
        written = fitted.to_sql_query(dialect, table, probabilities=probabilities)
    else:
        written = fitted.to_sql(dialect, **{name: column.get(name, name) for name in _COUNTS})
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
