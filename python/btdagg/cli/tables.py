"""Read the tables that a command is given, and rename their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from btdagg._core import InputError
from btdagg.votes import Table, read_table
from btdagg.votes.source import STANDARD_INPUT
from btdagg.votes.table import listing

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="Read a column under another name: item=qid reads qid as item. Repeat for more. "
        "Applies to every file that has the column, which may get two names: vote=verdict and "
        "label=verdict.",
        show_default=False,
    ),
]


def tables_of(
    columns: Sequence[str] | Mapping[str, str] | None, *places: str | Path
) -> list[Table]:
    """Read tables from files or standard input, with columns renamed as --column says.

    Raises
    ------
    InputError
        If a table cannot be read, standard input is named twice, or no table has a column that
        --column names.
    """
    if sum(str(place) == STANDARD_INPUT for place in places) > 1:
        raise InputError("standard input is named twice, expected it for one table only")
    if isinstance(columns, Mapping):
        columns = [f"{name}={column}" for name, column in columns.items()]
    wanted = _parse(columns)
    tables = [read_table(place, []) for place in places]
    for name, column in wanted.items():
        if not any(column in table.columns for table in tables):
            found = "; ".join(f"{table.source} has {listing(table.columns)}" for table in tables)
            raise InputError(f"--column {name}={column}: no column {column!r}; {found}")
    return [
        read_table(table, [], columns={n: c for n, c in wanted.items() if c in table.columns})
        for table in tables
    ]


def _parse(columns: Sequence[str] | None) -> dict[str, str]:
    """Parse NAME=COLUMN texts to columns by name."""
    wanted: dict[str, str] = {}
    for given in columns or ():
        name, equals, column = (part.strip().lower() for part in given.partition("="))
        if not (name and equals and column):
            raise InputError(f"--column is {given!r}, expected NAME=COLUMN")
        if name in wanted:
            raise InputError(f"--column {name} is given twice")
        wanted[name] = column
    # The labels' column may be called as the votes' is, which stays in the file of votes.
    return {c: c for c in wanted.values() if c in ("vote", "label") and c not in wanted} | wanted
