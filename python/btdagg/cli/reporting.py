"""Options, tables, JSON and report of commands that compare or tabulate."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from btdagg._util.addresses import shown_address
from btdagg._util.errors import expect
from btdagg._util.extras import needs
from btdagg.cli.common import err, note, out, print_json, say, say_in_words
from btdagg.cli.flags import CommandLine
from btdagg.evaluation import RandomSplits
from btdagg.evaluation.protocol import CROSS_FITTED, Protocol
from btdagg.report.table import ReportTable
from btdagg.report.tables.scores import answers_table, scores_table

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.project import Project
    from btdagg.report.figure import ReportFigure
    from btdagg.report.folder import ReportFolder


@dataclass(frozen=True, kw_only=True)
class ReportOption:
    """Where a command writes a report, if it does."""

    typed: CommandLine
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Write a report to this folder: a page, tables (Markdown, CSV, LaTeX), figures "
            "(SVG, PNG).",
        ),
    ] = None

    def open(self, project: Project, title: str) -> ReportFolder | None:
        """Return the report, if there is one, with the project's title or else this one."""
        if self.report is None:
            return None
        return open_report(self.typed, project.setting("title", title), self.report)


def open_report(typed: CommandLine, title: str, path: Path) -> ReportFolder:
    """Return a report, whose settings are the command, its options and versions."""
    with needs("report", "--report"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    from btdagg.report.folder import ReportFolder

    command, values = typed.context.command, typed.context.params
    usual = {option.name: option.default for option in command.params}
    # Under another program, such as a test, the command alone.
    words = sys.argv[1:] if command.name in sys.argv else [command.name or ""]
    settings = {
        "command": shlex.join(shown_address(word) for word in ("btdagg", *words)),
        **{
            name: _shown(value)
            for name, value in values.items()
            if not (value is None or value is False or value == "") or value != usual.get(name)
        },
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "polars", "scipy")},
    }
    return ReportFolder(path, title, settings=settings, reads=typed.files("report", "output"))


def _shown(value: object) -> object:
    # The address of a store may hold a password.
    if isinstance(value, list | tuple):
        return [_shown(part) for part in value]
    return shown_address(str(value)) if isinstance(value, str | Path) else value


def say_where(report: ReportFolder) -> None:
    """Print where the page is."""
    err.print(f"wrote {report.path / 'index.html'}", soft_wrap=True)


def show_result(
    result: Any,
    table: ReportTable,
    write: Callable[[ReportFolder, Any], None],
    report: ReportFolder | None,
    *,
    json: bool,
) -> None:
    """Print a result, its answer first, or as JSON, and write its section of a report."""
    note(*result.remarks)
    if json:
        print_json(result.as_dict())
    else:
        say_answer(result.answer)
        print_report_table(table)
    if report is not None:
        with report:
            write(report, result)
        say_where(report)


def print_report_table(table: ReportTable) -> None:
    """Print a table of a report on the terminal."""
    out.print(table.title, style="bold", soft_wrap=True)
    out.print_rows(table.header, table.rows, table.n_label_columns)
    say_in_words(table.note)
    out.print("")


def show_exhibits(
    exhibits: Iterable[ReportTable | ReportFigure],
    report: ReportFolder | None,
    *section: str,
    json: bool,
    remarks: Sequence[str] | None = None,
) -> None:
    """Print the tables among the exhibits, and write all of them to a section of a report."""
    exhibits = list(exhibits)
    tables = [exhibit for exhibit in exhibits if isinstance(exhibit, ReportTable)]
    note(*(remarks or ()))
    if json:
        more = {} if remarks is None else {"remarks": list(remarks)}
        print_json({**{table.name: list(table.records) for table in tables}, **more})
    else:
        for table in tables:
            print_report_table(table)
    if report is not None:
        with report:
            report.section(*section)
            report.add(*exhibits)
            report.remark(*(remarks or ()))
        say_where(report)


def names(listed: str | None, argument: str) -> list[str] | None:
    """Parse names of columns, separated by commas."""
    if listed is None:
        return None
    columns = [name.strip().lower() for name in listed.split(",")]
    expect(all(columns), argument, listed, "names of columns separated by commas")
    return columns


def numbers_of_votes(listed: str | None) -> list[int] | None:
    """Parse the numbers of -n, separated by commas."""
    if listed is None:
        return None
    numbers = [int(text) if text.strip().isdecimal() else 0 for text in listed.split(",")]
    expected = "whole numbers from 1 to 2147483647 separated by commas, such as 4,8"
    expect(all(0 < number < 2**31 for number in numbers), "n_votes", listed, expected)
    return numbers


# Scores


def protocol_of(splits: int | None) -> Protocol:
    """Return the protocol of --splits: the paper's, or cross-validation without it."""
    return CROSS_FITTED if splits is None else Protocol(RandomSplits(n_splits=splits))


def say_answer(*answers: str) -> None:
    """Print what a result comes to, and an empty line before what follows."""
    for answer in answers:
        say(answer)
    out.print("")


def print_scores(evaluation: Scores) -> None:
    """Print the answer, a line for each method in each cell, the averages and remarks."""
    say_answer(evaluation.answer)
    table = scores_table(evaluation)
    out.print_rows(table.header, table.rows, table.n_label_columns)
    say_in_words(table.note)
    if not evaluation.cells[0].scale.mirrored:
        out.print("")
        print_report_table(answers_table(evaluation))
    note(*evaluation.remarks)
