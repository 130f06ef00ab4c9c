"""What the commands share: options, reading, printing."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from btdagg._core import InputError
from btdagg._util.files import TABLE_SUFFIXES, read_whole
from btdagg._util.outputs import require_file
from btdagg.cli.console import Terminal, write_data
from btdagg.model.davidson import DavidsonModel
from btdagg.model.panel import PANEL_FILE, PanelModel
from btdagg.votes import Table, read_table
from btdagg.votes.provenance import Provenance, ProvenanceWarning
from btdagg.votes.source import STANDARD_INPUT
from btdagg.votes.table import listing

if TYPE_CHECKING:
    from collections.abc import Callable

    from btdagg.votes import Votes
    from btdagg.votes.histogram import Histogram

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
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="Read a column under another name: item=qid reads qid as item. Repeat for more. "
        "Applies to every file that has the column, which may get two names: vote=verdict and "
        "label=verdict.",
        show_default=False,
        rich_help_panel="Data",
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
        rich_help_panel="Data",
    ),
]
FirstVotes = Annotated[
    int | None,
    typer.Option(
        "-n",
        help="Use only the first N votes of each item.",
        show_default="all",
        rich_help_panel="Data",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Also replace files that btdagg did not write. Files that are read are never "
        "replaced.",
        rich_help_panel="Output",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel="Output")]


def parse_filters(
    filters: Sequence[str] | None, *, any_case: bool = True, option: str = "--filter"
) -> dict[str, list[str]]:
    """Parse COLUMN=VALUE texts to the values of each column, in lower case if it is of any case."""
    wanted: dict[str, list[str]] = {}
    for text in filters or ():
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            what = "COLUMN=VALUE" if option == "--filter" else "NAME=COLUMN"
            raise InputError(f"{option} is {text!r}, expected {what}")
        name = column.strip().lower() if any_case else column.strip()
        wanted.setdefault(name, []).append(value.strip())
    return wanted


def filtered(table: AnyTable, filters: Sequence[str] | None) -> AnyTable:
    """Return the rows that pass the filters of the command line."""
    wanted = parse_filters(filters)
    return table.filter(wanted) if wanted else table


def at_least(value: int | None, option: str, least: int) -> None:
    """Check that the number given for an option is large enough; None passes."""
    if value is not None and value < least:
        raise InputError(f"{option} is {value}, expected at least {least}")


def single_votes(votes: Votes, n_votes: object) -> None:
    """Check that -n is not used with counts."""
    if n_votes is not None and votes.are_counts:
        raise InputError(f"-n is for single votes, and {votes.source} has counts")


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


def tables_of(
    columns: Sequence[str] | Mapping[str, str] | None, *places: str | Path
) -> list[Table]:
    """Read tables from files or standard input, with columns renamed as --column says."""
    if sum(str(place) == STANDARD_INPUT for place in places) > 1:
        raise InputError("standard input is named twice, expected it for one table only")
    if isinstance(columns, Mapping):
        columns = [f"{name}={column}" for name, column in columns.items()]
    wanted = renames(columns)
    tables = [read_table(place, []) for place in places]
    for name, column in wanted.items():
        if not any(column in table.columns for table in tables):
            there = "; ".join(f"{table.source} has {listing(table.columns)}" for table in tables)
            raise InputError(f"--column {name}={column}: no column {column!r}; {there}")
    return [
        read_table(table, [], columns={n: c for n, c in wanted.items() if c in table.columns})
        for table in tables
    ]


def renames(columns: Sequence[str] | None) -> dict[str, str]:
    """Parse NAME=COLUMN texts to columns by name."""
    wanted: dict[str, str] = {}
    for text in columns or ():
        name, equals, column = (part.strip().lower() for part in text.partition("="))
        if not (name and equals and column):
            raise InputError(f"--column is {text!r}, expected NAME=COLUMN")
        if name in wanted:
            raise InputError(f"--column {name} is given twice")
        wanted[name] = column
    # The labels' column may be called as the votes' is, which stays in the file of votes.
    return {c: c for c in wanted.values() if c in ("vote", "label") and c not in wanted} | wanted


def model_or_panel(path: Path) -> DavidsonModel | PanelModel:
    """Load a model, or the model of a panel, whichever a file holds."""
    content = read_whole(path)
    if f'"{PANEL_FILE.name}"'.encode() in content[:200]:
        return PanelModel.from_json(content, source=str(path))
    return DavidsonModel.from_json(content, source=str(path))


def provenance_of(votes: Votes | Histogram, n_votes: int | None) -> Provenance:
    """Return the provenance of votes, with the number used per item."""
    return replace(Provenance.of(votes), n_votes=n_votes)


def say_differences(differences: Iterable[str]) -> None:
    """Print each difference on standard error, once."""
    for text in dict.fromkeys(differences):
        note(f"warning: {text}")


@contextmanager
def differences_said() -> Iterator[None]:
    """Print provenance warnings of the library; pass other warnings on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ProvenanceWarning)
        yield
    say_differences(str(w.message) for w in caught if w.category is ProvenanceWarning)
    for other in caught:
        if other.category is not ProvenanceWarning:
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


def table_to_write(option: str, path: Path | None, reads: Sequence[str]) -> None:
    """Check, before any work, that a table can be written to a file."""
    if path is None:
        return
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise InputError(f"{option} is {path}, expected a name in {', '.join(TABLE_SUFFIXES)}")
    require_file(option, path, reads=reads)
