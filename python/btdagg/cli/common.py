"""What the commands share: options, reading, printing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from btdagg._core import InputError
from btdagg.cli.console import Terminal, write_data
from btdagg.votes import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from btdagg.votes import Histogram, Votes

AnyTable = TypeVar("AnyTable", bound=Table)

out = Terminal()
err = Terminal(stderr=True)

VotesFile = Annotated[
    str,
    typer.Argument(
        metavar="VOTES",
        help="Votes (columns item, vote; optional judge, order, sample, task ...) or counts "
        "(columns item, minus, tie, plus): .csv, .tsv, .jsonl (each also .gz) or .parquet; "
        "a folder or pattern of .parquet files; a vote store (a file, or postgresql://...); - is "
        "standard input.",
        show_default=False,
    ),
]
LabelsFile = Annotated[
    Path,
    typer.Argument(
        metavar="LABELS",
        help="Gold labels (columns item, label; optional group, task). Items of one group are "
        "always split together.",
        show_default=False,
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        "-f",
        metavar="COLUMN=VALUE",
        help="Use only the votes with this value; repeat for more columns, or more values.",
        show_default=False,
    ),
]
FirstVotes = Annotated[
    int | None,
    typer.Option(
        "--votes", "-n", help="Use only the first N votes of each item.", show_default="all"
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Also replace files that btdagg did not write. Files that are read are never "
        "replaced.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def parse_filters(filters: Sequence[str] | None, *, any_case: bool = True) -> dict[str, list[str]]:
    """Parse COLUMN=VALUE texts to the values of each column, in lower case if it is of any case.

    Raises
    ------
    InputError
        If a text has no ``=``.
    """
    wanted: dict[str, list[str]] = {}
    for given in filters or ():
        column, equals, value = given.partition("=")
        if not equals or not column.strip():
            raise InputError(f"--filter is {given!r}, expected COLUMN=VALUE")
        name = column.strip().lower() if any_case else column.strip()
        wanted.setdefault(name, []).append(value.strip())
    return wanted


def filtered(table: AnyTable, filters: Sequence[str] | None) -> AnyTable:
    """Return the rows that pass the filters of the command line."""
    wanted = parse_filters(filters)
    return table.filter(wanted) if wanted else table


def at_least(value: int | None, option: str, least: int) -> None:
    """Check that the number given for an option is large enough; None passes.

    Raises
    ------
    InputError
        If it is less than `least`.
    """
    if value is not None and value < least:
        raise InputError(f"{option} is {value}, expected at least {least}")


def single_votes(votes: Votes, n_votes: object) -> None:
    """Check that --votes is not used with counts.

    Raises
    ------
    InputError
        If --votes is given and the table has counts.
    """
    if n_votes is not None and votes.are_counts:
        raise InputError(f"--votes wants single votes, and {votes.source} has counts")


def files_read(context: typer.Context, *outputs: str) -> list[str]:
    """Return every text on the command line that could name a file, except the outputs."""
    named: list[str] = []
    for parameter, value in context.params.items():
        if parameter not in outputs:
            several = value if isinstance(value, list) else [value]
            named += (os.fspath(one) for one in several if isinstance(one, (str, Path)))
    return named


def is_given(context: typer.Context, name: str) -> bool:
    """Whether a parameter was given on the command line (or by the environment)."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    write_data(json.dumps(value, indent=2, allow_nan=False) + "\n")


def note(text: str) -> None:
    """Print a remark on standard error, so that standard output stays clean."""
    err.print(" ".join(text.split()), style="yellow", soft_wrap=True)


def what_is_pooled(
    votes: Votes | Histogram, verb: str, by: Sequence[str] = (), *, missing: bool = True
) -> list[str]:
    """Return remarks on columns whose values are pooled, and on missing votes."""
    remarks = []
    for column in ("task", "judge", "template", "temperature"):
        if column in votes.columns and column not in by:
            values = votes.values(column).drop_nulls().sort().to_list()
            if len(values) > 1:
                remarks.append(
                    f"pooling {len(values)} values of {column} ({', '.join(values[:5])}"
                    f"{', ...' if len(values) > 5 else ''}); --filter {column}=... {verb} one"
                )
    if missing and votes.n_missing:
        remarks.append(f"{votes.n_missing} votes are missing and not counted")
    return remarks


def say_what_is_pooled(votes: Votes | Histogram, verb: str, by: Sequence[str] = ()) -> None:
    """Print what `what_is_pooled` returns."""
    for remark in what_is_pooled(votes, verb, by):
        note(remark)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int], Callable[[], object]]]:
    """Show progress on standard error if it is a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:

        def start(total: int) -> Callable[[], object]:
            task = bar.add_task(what, total=total)
            return lambda: bar.advance(task)

        yield start
