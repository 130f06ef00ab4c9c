"""`btdagg sql`: write a model as a SQL expression, or the whole job as a query."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from btdagg._util.errors import InputError, expect, forbid
from btdagg.cli.common import Filters, model_or_panel, parse_pairs
from btdagg.cli.console import write_data
from btdagg.cli.flags import CommandLine
from btdagg.model.sql.dialects import DIALECTS
from btdagg.model.sql.queries import LabelsTable, VotesTable, histogram_query

# What a name ends with that DuckDB reads as a file, and whose dots do not divide it.
_FILES = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz")


_COLUMNS = (
    *("item", "vote", "score", "sample", "task", "judge", "label", "label_task", "margin"),
    "template",
)
_OF_VOTES = ("task", "judge", "margin", "template")


def sql(
    typed: CommandLine,
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="A model from btdagg calibrate, or a saved panel; not with --labels.",
        ),
    ] = None,
    dialect: Annotated[
        Literal[tuple(DIALECTS)],  # type: ignore[valid-type]
        typer.Option("--dialect", "-d", help="SQL dialect."),
    ] = "duckdb",
    votes: Annotated[
        str | None,
        typer.Option(
            "--votes",
            metavar="TABLE",
            help="Table of single votes to tally and decide (-1, 0, 1 or B, tie, A; for a model of "
            "grades its column score; NULL is missing). A dot separates schema and table.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="TABLE",
            help="Table of gold labels: print instead the query that counts items by votes and "
            "label, for btdagg calibrate.",
        ),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=COLUMN",
            help="Name a column: item, vote, score, label, minus, tie, plus, mean (of grades), or "
            "a covariate of the model; + joins the columns of one key. task=COLUMN and "
            "judge=COLUMN decide each task or judge separately (a panel needs judge); "
            "label_task=COLUMN is the task of the labels. sample=COLUMN, once per column, names "
            "the columns that identify one vote of an item, if rows may be repeated (judge, order "
            "and sample in an export of btdagg): equal repeats count once, different ones give "
            "NULL. margin=COLUMN and template=COLUMN are for models fitted with strength; "
            "strength=none leaves strength out.",
        ),
    ] = None,
    filters: Filters = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add the columns p_minus, p_tie and p_plus.")
    ] = False,
) -> None:
    """Print a SQL query that tallies votes and decides every item, or the decision alone.

    With --votes the query has the columns item, minus, tie, plus and label; for grades, the number
    of votes of each grade and their mean. Without it, the decision is printed as one expression
    over three columns of counts, or over a column of means. With --labels, and no model, it prints
    a query over votes and labels whose result, a few hundred rows, btdagg calibrate reads. Column
    names are those of btdagg.toml, for tables that its files were loaded into.

    Example: btdagg sql model.json --votes votes --dialect postgresql
    """
    fitted = None if model is None else model_or_panel(model)
    allowed: Sequence[str] = _COLUMNS
    if votes is None:
        # Names that the decision alone can have: of counts, or of a mean.
        named = {} if fitted is None else signature(fitted.to_sql).parameters
        allowed = [name for name in named if name not in ("dialect", "columns", "covariates")]
    known = () if fitted is None else [covariate.name for covariate in fitted.covariates]
    column, samples = _columns(keys, [*allowed, *known, "strength"])
    covariates = {name: column.pop(name) for name in known if name in column}
    strength: Any = column.pop("strength", None)
    forbid(
        strength not in (None, "none"),
        f"--set strength is {strength!r}, expected none, which counts whole votes",
    )
    if votes is None:
        for option, value in {
            "--labels": labels,
            "--filter": filters,
            "--set strength": strength,
        }.items():
            forbid(value, f"{option} needs single votes: name their table with --votes")
        forbid(probabilities, "--probabilities needs --votes")
    table = None
    if votes is not None:
        project = typed.project

        def parts(kind: str, name: str, default: str | None = None) -> Any:
            said = column.get(name)
            if said is None:
                return project.column(kind, name, default)
            return said.split("+") if name == "item" else [said]

        where: dict[str, list[str]] = {}
        for name, value in parse_pairs(filters, "filters", "COLUMN=VALUE"):
            columns = project.column("votes", name.lower(), name) or [name]
            where.setdefault("+".join(columns), []).append(value)
        verdict = column.get("vote", column.get("score"))
        if verdict is None and (columns := parts("votes", "vote") or parts("votes", "score")):
            verdict = columns[0]
        of_votes: Any = {name: column[name] for name in _OF_VOTES if name in column}
        table = VotesTable(
            _parts(votes, dialect),
            item=parts("votes", "item", "item"),
            vote=verdict,
            sample=samples,
            where=where,
            strength=strength,
            covariates=covariates,
            **of_votes,
        )
    if labels is not None and table is not None:
        forbid(
            fitted is not None or probabilities,
            "--labels writes a query for calibration; expected no MODEL and no --probabilities",
        )
        gold = LabelsTable(
            _parts(labels, dialect),
            item=parts("labels", "item", "item"),
            label=parts("labels", "label", "label")[0],
            task=column.get("label_task"),
        )
        write_data(f"{histogram_query(dialect, table, gold)}\n")
        return
    if fitted is None:
        raise InputError("MODEL is missing, expected a model from btdagg calibrate")
    if table is not None:
        written = fitted.to_sql_query(dialect, table, probabilities=probabilities)
    else:
        names: Any = column | ({"covariates": covariates} if covariates else {})
        written = fitted.to_sql(dialect, **names)
    write_data(f"{written}\n")


def _columns(
    texts: Sequence[str] | None, allowed: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    column: dict[str, str] = {}
    samples = []
    for name, value in parse_pairs(texts, "keys"):
        expected = f"one of each of {', '.join(allowed)}" if allowed else "no names here"
        expect(name in allowed and name not in column, "keys", f"{name}={value}", expected)
        if name == "sample":
            samples.append(value)
        else:
            column[name] = value
    return column, samples


def _parts(table: str, dialect: str) -> list[str]:
    """Return the parts of a qualified name; what DuckDB reads as a file is one part."""
    if dialect == "duckdb" and table.lower().endswith(_FILES):
        return [table]
    return table.split(".")
