"""The tables that a command is given: files and standard input, with their columns mapped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from btdagg._core import InputError
from btdagg.tables import Table, read_table
from btdagg.tables.source import STANDARD_INPUT
from btdagg.tables.table import listing

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="Which column is meant by a name, such as item=qid; repeat for others. Holds for "
        "every file that has the column.",
        show_default=False,
    ),
]


def tables_of(columns: Sequence[str] | None, *places: str | Path) -> list[Table]:
    """Read the tables at some places, each column under the name that it is given for.

    Raises
    ------
    InputError
        If one cannot be read, standard input is named twice, or no table has a column that is
        named.
    """
    if sum(str(place) == STANDARD_INPUT for place in places) > 1:
        raise InputError("standard input is named twice, want it for one table")
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
    """Columns by name of NAME=COLUMN texts."""
    wanted: dict[str, str] = {}
    for given in columns or ():
        name, equals, column = (part.strip().lower() for part in given.partition("="))
        if not (name and equals and column):
            raise InputError(f"--column is {given!r}, want NAME=COLUMN")
        if name in wanted:
            raise InputError(f"--column {name} is given twice")
        wanted[name] = column
    return wanted
