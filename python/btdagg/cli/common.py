"""Options, reading and printing that commands share."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, TypeVar

import typer

from btdagg import remarks
from btdagg._util.errors import InputError, expect, quoted, reworded
from btdagg._util.files import load_any
from btdagg.cli.console import Terminal, write_data
from btdagg.cli.flags import TABLE, CommandLine
from btdagg.remarks import Remark

# What reads and computes is imported where it is used, so that help begins without NumPy.
if TYPE_CHECKING:
    from btdagg import DavidsonModel, GradeModel, PanelModel
    from btdagg.project import Project
    from btdagg.votes import Table
    from btdagg.votes.labels import Labels
    from btdagg.votes.votes import Votes


AnyTable = TypeVar("AnyTable", bound="Table")
AnyModel: TypeAlias = "DavidsonModel | PanelModel | GradeModel"

out = Terminal()
err = Terminal(stderr=True)

VotesFile = Annotated[
    str | None,
    typer.Argument(
        metavar="VOTES",
        help="Votes (columns item, vote; optional judge, order, sample, task ...) or counts "
        "(columns item, minus, tie, plus): .csv, .tsv, .jsonl (each also .gz) or .parquet; "
        "a folder or pattern of .parquet files; a vote store (a file, or postgresql://...); - is "
        "standard input.",
        show_default="of btdagg.toml",
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="LABELS",
        help="Gold labels (columns item, label; optional group, task). Items of one group are "
        "always split together.",
        show_default="of btdagg.toml",
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a key of the project file (btdagg.toml) for this command; repeat for more keys. "
        "Examples: votes.item=case reads the column case as item (item=case does so in every "
        "file, item=conversation+bot joins two columns to one key); votes.scale=1-5 and "
        "labels.scale=pass/fail say that votes and labels are grades; words.draw=tie says "
        "what a word means; a=chat-new names A. The documentation of the project file lists "
        "all keys, such as raters, strength, population, panel and covariates.",
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        "-f",
        metavar="COLUMN=VALUE",
        help="Use only rows with this value, in votes and labels that have the column; repeat for "
        "more columns or values.",
    ),
]
FirstVotes = Annotated[
    int | None,
    typer.Option(
        "-n",
        help="Use only the first N votes of each item.",
        show_default="all",
        min=1,
        rich_help_panel="Data",
    ),
]
OwnModel = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="A model or a panel that was calibrated on labels other than these.",
        show_default="fitted to these labels; each item by a model fitted without its group",
    ),
]
TableOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Write the table to this file: .csv, .tsv, .jsonl, .ndjson or .parquet.",
        show_default="standard output, as CSV",
    ),
    TABLE,
]
Splits = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Calibrate on 5% of the labels, in this many random splits; the paper uses 100.",
        show_default="cross-validation, as btdagg evaluate",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class Data:
    """Labels and votes that pass the filters, and the tables that they are from."""

    gold: Labels
    votes: Votes
    project: Project
    raw: Sequence[Table]
    filters: Mapping[str, list[str]]

    @cached_property
    def all_parts(self) -> tuple[Labels, Votes]:
        """Labels and votes of all tasks and judges that can be read as these."""
        from btdagg.votes.join import with_task
        from btdagg.votes.labels import read_labels
        from btdagg.votes.table import filtered
        from btdagg.votes.votes import read_votes

        project, columns = self.project, self.raw[0].columns
        parts = {"task", "criterion", "judge"}.intersection(columns)
        wider = {name: values for name, values in self.filters.items() if name not in parts}
        criteria = project.criteria_on(self.votes.scale, self.gold.scale)
        if criteria is not None and "criterion" in self.filters:  # others have other scales
            wider["criterion"] = criteria
        if wider == self.filters:
            return self.gold, self.votes
        votes, labels = filtered(wider, *self.raw)
        how = project.how() | self.votes.provenance.how_to_read(votes)
        how_labelled = project.how_labelled | {"scale": self.gold.scale}
        gold = _readable(labels, partial(read_labels, **how_labelled))
        votes = _readable(votes, partial(read_votes, scale=self.votes.scale, **how))
        return gold, with_task(votes, gold)


@dataclass(frozen=True, kw_only=True)
class ProjectOption:
    """The project file and typed keys, which say how data are read."""

    typed: CommandLine
    keys: Keys = None

    @cached_property
    def project(self) -> Project:
        """The project."""
        return self.typed.project.with_keys([*(self.keys or ()), *self._own_keys])

    @property
    def _own_keys(self) -> list[str]:
        return []

    @property
    def panel(self) -> str | None:
        """The column of the judges of a panel."""
        name: str | None = self.project.setting("panel")
        return None if name is None else name.strip().lower()

    @property
    def covariates(self) -> str | None:
        """Names of covariates, with commas between; None if there are none."""
        names: str | None = self.project.setting("covariates")
        return None if names == "none" else names

    def covariates_for(self, model: AnyModel | None) -> Any:
        """Return the covariates that a model needs, or without one those of the project."""
        return (
            self.covariates
            if model is None
            else [covariate.name for covariate in model.covariates] or None
        )

    @property
    def population(self) -> Any:
        """Population that intervals are for."""
        return self.project.setting("population", "new")


@dataclass(frozen=True, kw_only=True)
class Reading(ProjectOption):
    """How votes and labels are read, and which."""

    filters: Filters = None
    signs: ClassVar[bool] = False  # whether votes have no strength

    def filtered(self, *tables: Table) -> list[Table]:
        """Return the rows that pass --filter, which come before their values are checked."""
        from btdagg.votes.source import with_item
        from btdagg.votes.table import filtered

        return filtered(self._wanted(*tables), *map(with_item, tables))

    def _wanted(self, *tables: Table) -> dict[str, list[str]]:
        columns = {column for table in tables for column in table.columns}
        wanted = parse_filters(self.filters).items()
        return {n if n in columns else self.project.name_of(n): values for n, values in wanted}

    def votes(
        self, table: Table, model: AnyModel | None = None, *, is_decided: bool = False
    ) -> Votes:
        """Read votes as the project says, or a model's were; see `Project.votes_of`."""
        scale, signs = self.project.scales(table, model=model)[0], self.signs
        with differences_said():
            return self.project.votes_of(table, scale, model, signs=signs, is_decided=is_decided)

    def data(
        self,
        votes: str | Path | None,
        labels: str | Path | None,
        model: AnyModel | None = None,
    ) -> Data:
        """Read votes and labels, as a model was fitted to them if there is one."""
        project, places = self.project, (("votes", votes), ("labels", labels))
        raw = project.read(*((kind, project.place(kind, given)) for kind, given in places))
        return self.data_of(raw, model)

    def data_of(self, raw: Sequence[Table], model: AnyModel | None = None) -> Data:
        """Read tables of votes and of labels, whose columns are named."""
        filters = self._wanted(*raw)
        with differences_said():
            votes, gold = self.project.tables(raw, filters, model, signs=self.signs)
        return Data(gold, votes, self.project, raw, filters)


@dataclass(frozen=True, kw_only=True)
class ReadingWithCovariates(Reading):
    """How votes and labels are read, and what else is known of items."""

    known: Annotated[
        str | None,
        typer.Option(
            "--covariates",
            metavar="NAMES",
            help="Facts about each item besides its votes: standing (how the judge votes on other "
            "items of the item's systems), group-standing (for grades: on other responses to its "
            "prompt), length, or any numeric column; auto: the first three, where available.",
            show_default="none, or covariates of btdagg.toml",
        ),
    ] = None

    @property
    def _own_keys(self) -> list[str]:
        return [] if self.known is None else [f"covariates={quoted(self.known)}"]


@dataclass(frozen=True, kw_only=True)
class Signs(Reading):
    """The same, for votes without their strength."""

    signs: ClassVar[bool] = True


def _readable(table: Table, read: Callable[[Table], AnyTable]) -> AnyTable:
    """Read the tasks and judges of a table that can be read so; print why others cannot."""
    import polars as pl

    from btdagg.votes.grades import with_criteria
    from btdagg.votes.table import NUMBER

    with suppress(InputError):
        return read(table)
    table, good = with_criteria(table), []
    for key, part in table.partition([c for c in ("task", "judge") if c in table.columns]):
        try:
            read(part)
            good.append(part.numbered())
        except InputError as error:
            note(f"{' '.join(key)} is not used as a neighbour: {error}")
    return read(table.with_data(pl.concat(good).sort(NUMBER)))


def parse_pairs(
    texts: Sequence[str] | None, argument: str, expected: str = "NAME=COLUMN"
) -> list[tuple[str, str]]:
    """Parse NAME=VALUE texts."""
    pairs = []
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        expect(name and equals, argument, text, expected)
        pairs.append((name, value))
    return pairs


def parse_filters(filters: Sequence[str] | None, argument: str = "filters") -> dict[str, list[str]]:
    """Parse --filter, or a like option, to the values of each column."""
    values: dict[str, list[str]] = {}
    for column, value in parse_pairs(filters, argument, "COLUMN=VALUE"):
        values.setdefault(column.lower(), []).append(value)
    return values


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    write_data(json.dumps(value, indent=2, allow_nan=False) + "\n")


def say(*texts: str) -> None:
    """Print each text as a line on standard output, however long."""
    for text in texts:
        out.print(text, soft_wrap=True)


def say_in_words(text: str) -> None:
    """Print prose on standard output, which a terminal breaks between words."""
    out.print(text, soft_wrap=not out.is_terminal)


def note(*texts: str) -> None:
    """Print remarks on standard error, so that standard output stays clean."""
    for text in texts:
        worded = getattr(text, "in_options", text)
        err.print(" ".join(worded.split()), style="yellow", soft_wrap=True)


def what_is_pooled(
    votes: Votes, verb: str, by: Sequence[str] = (), *, missing: bool = True
) -> list[Remark]:
    """Return remarks on the strength of votes, on what is pooled, and on missing votes."""
    from btdagg.votes.provenance import Provenance
    from btdagg.votes.scale import listed
    from btdagg.votes.strength import Strength
    from btdagg.votes.votes import Votes

    provenance, about = Provenance.of(votes), []
    if isinstance(votes, Votes) and not votes.scale.mirrored:
        about.append(remarks.grades_read(listed(votes.scale.points)))
    if isinstance(votes, Votes) and votes.kind != "none":
        about.append(remarks.strength_read(str(Strength(votes.kind, provenance.full_margins))))
    for column in ("task", "judge", "template", "temperature"):
        if column in votes.columns and column not in by:
            values = votes.values(column).drop_nulls().sort().to_list()
            if len(values) > 1:
                about.append(remarks.pooled_values(column, values, verb))
    if missing and votes.n_missing:
        about.append(remarks.missing_votes(votes.n_missing))
    return about


def criteria_of(votes: Votes) -> list[str]:
    """Return the criteria of grades, which have means of their own, where there are several."""
    columns = [name for name in votes.scale.mode.criteria if name in votes.columns]
    criteria = [of for name in columns for of in votes.values(name).drop_nulls().sort()]
    return criteria if len(criteria) > 1 else []


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


def model_or_panel(path: Path) -> AnyModel:
    """Load a model, of pairs, a panel or grades, whichever a file holds."""
    from btdagg import DavidsonModel, GradeModel, PanelModel

    kinds = (DavidsonModel, PanelModel, GradeModel)
    loaded: AnyModel = load_any(path, *kinds)
    return loaded


def keep_what_is_no_model(output: Path, typed: CommandLine) -> None:
    """Refuse to replace a file of the default name that holds something else."""
    if output.exists() and not typed.is_given("output"):
        message = f"{output} exists and is not a model; give another name with --output"
        with reworded(InputError, message):
            model_or_panel(output)


_NEW_JUDGE = {
    "judge": "--model ",
    "template": "--set judge.template=",
    "temperature": "--set judge.temperature=",
}


def say_differences(differences: Iterable[str]) -> None:
    """Print each difference on standard error, once, and how to carry a model to another judge."""
    texts = [*dict.fromkeys(differences)]
    note(*(f"warning: {text}" for text in texts))
    options = [
        _NEW_JUDGE[column] + quote(values[0])
        for text in texts
        if isinstance(text, Remark) and text.code == "other-values"
        for column, values in [(text.values["column"], text.values["values"])]
        if column in _NEW_JUDGE and len(values) == 1
    ]
    if options:
        note(
            "to carry the model over to the new judge, ask it about labelled items: btdagg "
            f"rejudge OLD_VOTES LABELS --pairs PAIRS {' '.join(options)}"
        )


@contextmanager
def differences_said() -> Iterator[None]:
    """Print provenance warnings of the library; pass other warnings on."""
    from btdagg.votes.provenance import ProvenanceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ProvenanceWarning)
        yield
    say_differences(w.message.args[0] for w in caught if isinstance(w.message, ProvenanceWarning))
    for other in caught:
        if not isinstance(other.message, ProvenanceWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
