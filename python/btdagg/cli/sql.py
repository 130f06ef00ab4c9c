"""`btdagg sql`: write a model as a SQL expression, or the whole job as a query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from btdagg._util.errors import InputError, expect, forbid
from btdagg.cli.common import AnyModel, Filters, model_or_panel, parse_pairs
from btdagg.cli.console import write_data
from btdagg.cli.flags import CommandLine
from btdagg.model.sql.dialects import DIALECTS
from btdagg.model.sql.queries import LabelsTable, VotesTable, histogram_query

if TYPE_CHECKING:
    from btdagg.project import Project

# What a name ends with that DuckDB reads as a file, and whose dots do not divide it.
_FILES = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz")


_COLUMNS = (
    *("item", "vote", "score", "order", "sample", "task", "judge", "label", "label_task"),
    *("margin", "template"),
)
_OF_VOTES = ("task", "judge", "margin", "template")
_OF_PROJECT = re.compile(r"((votes|labels)\.)?(words|orders)\..", re.IGNORECASE)
_IMPORTED = ("format", "scorer", "criteria", "judges", "constants")


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
            "strength=none leaves strength out. words.WORD=A and orders.WORD=BA say what words "
            "mean, as in btdagg.toml.",
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
    names, words and orders are those of btdagg.toml, for tables that its files were loaded into.

    Example: btdagg sql model.json --votes votes --dialect postgresql
    """
    fitted = None if model is None else model_or_panel(model)
    allowed: Sequence[str] = _COLUMNS
    if votes is None:
        # Names that the decision alone can have: of counts, or of a mean.
        named = {} if fitted is None else signature(fitted.to_sql).parameters
        allowed = [name for name in named if name not in ("dialect", "columns", "covariates")]
    known = () if fitted is None else [covariate.name for covariate in fitted.covariates]
    of_words = [key for key in keys or () if _OF_PROJECT.match(key)]
    others = [key for key in keys or () if key not in of_words]
    column, samples = _columns(others, [*allowed, *known, "strength"])
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
            "--set words": of_words,
        }.items():
            forbid(value, f"{option} needs single votes: name their table with --votes")
        forbid(probabilities, "--probabilities needs --votes")
    table = gold = None
    if votes is not None:
        project = typed.project.with_keys(of_words)
        _refuse_imported(project)
        where = _rows(project, filters)
        how = project.how()
        of_model = {} if fitted is None else _as_fitted(project, fitted, where)
        verdict = column.get("vote", column.get("score"))
        of_votes: dict[str, Any] = {"task": _tasks(project, where)} | of_model
        of_votes |= {name: column[name] for name in _OF_VOTES if name in column}
        of_votes |= {} if strength is None else {"strength": strength}
        table = VotesTable(
            _parts(votes, dialect),
            item=_key(column, project, "votes"),
            vote=verdict or _column(project, "vote") or _column(project, "score"),
            sample=samples,
            where={"+".join(project.column("votes", n, n) or [n]): v for n, v in where.items()},
            covariates=covariates,
            words=how["words"],
            orders=how["order"],
            order=column.get("order") or _column(project, "order") or "order",
            **of_votes,
        )
    if labels is not None and table is not None:
        forbid(
            fitted is not None or probabilities,
            "--labels writes a query for calibration; expected no MODEL and no --probabilities",
        )
        label = column.get("label") or _column(project, "label", "labels")
        gold = LabelsTable(
            _parts(labels, dialect),
            item=_key(column, project, "labels"),
            label=label or "label",
            task=column.get("label_task", _tasks(project, where, "labels")),
            words=project.how_labelled["words"],
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


def _refuse_imported(project: Project) -> None:
    for key in _IMPORTED:
        path = ("votes", key) if key in project.keys.get("votes", {}) else (key,)
        forbid(
            project.said("votes", key),
            f"{project.where(*path)} imports a file, which no query does; load the table that "
            "btdagg import writes, and name its columns in a project file",
        )


def _rows(project: Project, filters: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the values of each column that --filter names, by our name of it."""
    where: dict[str, list[str]] = {}
    for name, value in parse_pairs(filters, "filters", "COLUMN=VALUE"):
        ours = project.name_of(name.lower())
        where.setdefault(ours if project.names_column(ours) else name, []).append(value)
    return where


def _column(project: Project, name: str, kind: str = "votes") -> str | None:
    """Return the one column of a table that the project names."""
    columns = project.column(kind, name) or []
    expect(len(columns) < 2, name, columns, "one column")
    return columns[0] if columns else None


def _key(column: Mapping[str, str], project: Project, kind: str) -> list[str]:
    typed = column["item"].split("+") if "item" in column else None
    return typed or project.column(kind, "item") or ["item"]


def _tasks(project: Project, where: Mapping[str, Sequence[str]], kind: str = "votes") -> str | None:
    """Return the column of tasks or criteria that the project names; --filter takes one of them."""
    named = [name for name in ("task", "criterion") if project.names_column(name)]
    names = [name for name in named if len(where.get(name, ())) != 1]
    choice = "--filter criterion=... or --filter task=..."
    forbid(len(names) > 1, f"votes have tasks and criteria; choose one: {choice}", "where")
    return _column(project, names[0], kind) if names else None


def _as_fitted(
    project: Project, fitted: AnyModel, where: Mapping[str, list[str]]
) -> dict[str, Any]:
    """Return the columns and strength of votes that a model needs, if the project suits it."""
    import polars as pl

    from btdagg.votes.table import Table

    criteria = pl.DataFrame({"criterion": where.get("criterion", [])}, {"criterion": pl.String})
    project.scales(Table(criteria, "votes"), model=fitted)
    origin, strength = fitted.provenance, project.setting("strength")
    kind = None if origin is None else origin.strength
    expected = f"{kind or 'none'}, as the model was fitted"
    expect(strength in (None, "none", kind), "strength", strength, expected)
    full = project.setting("full_margin")
    fitted_margins = [] if origin is None else [margin for *_, margin in origin.full_margins]
    is_same = full is None or strength == "none" or {*fitted_margins} == {full}
    expect(is_same, "full_margin", full, "the full margin of the model")
    columns = {
        "judge": _column(project, "judge") if fitted.judges else None,
        "margin": _column(project, kind) if kind in ("margin", "strength", "confidence") else None,
        "template": _column(project, "template"),
    }
    if strength == "none":
        columns["strength"] = strength
    return {name: column for name, column in columns.items() if column is not None}


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
