"""Options, tables, JSON and report of commands that compare or tabulate."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
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
from btdagg.result import Exhibit, Result, ResultTable

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.project import Project
    from btdagg.report.folder import ReportFolder


_MOST_ROWS = 28  # of a table after the first: the differences of 8 values


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
    result: Result, report: ReportFolder | None = None, *, json: bool, **more: Any
) -> None:
    """Print a result, its sentence first, or as JSON, and write its section of a report.

    `more` are further values for JSON.
    """
    note(*result.remarks)
    if json:
        print_json({**result.as_dict(), **more})
    else:
        print_result(result)
    if report is not None:
        from btdagg.report.sections import write_result

        with report:
            write_result(report, result)
        say_where(report)


def print_result(result: Result) -> None:
    """Print the sentence of a result, and its tables; of further tables those of a few rows."""
    say_answer(result.sentence())
    for place, table in enumerate(result.tables()):
        if place > 0 and len(table.rows) > _MOST_ROWS:
            note(f"{table.title}: {len(table.rows)} rows, which --json and --report show")
        else:
            print_table(table)


def print_table(table: ResultTable) -> None:
    """Print a table on the terminal."""
    out.print(table.title, style="bold", soft_wrap=True)
    out.print_rows(table.header, table.rows, table.n_label_columns)
    say_in_words(table.note)
    out.print("")


def show_exhibits(
    exhibits: Iterable[Exhibit],
    report: ReportFolder | None,
    *section: str,
    json: bool,
    remarks: Sequence[str] | None = None,
) -> None:
    """Print the tables among the exhibits, and write all of them to a section of a report."""
    exhibits = list(exhibits)
    tables = [exhibit for exhibit in exhibits if isinstance(exhibit, ResultTable)]
    note(*(remarks or ()))
    if json:
        more = {} if remarks is None else {"remarks": list(remarks)}
        print_json({**{table.name: list(table.records) for table in tables}, **more})
    else:
        for table in tables:
            print_table(table)
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
    """Print the sentence, a line for each method in each cell, the averages and remarks."""
    say_answer(evaluation.sentence())
    answers, scores = evaluation.tables()
    out.print_rows(scores.header, scores.rows, scores.n_label_columns)
    say_in_words(scores.note)
    if not evaluation.cells[0].scale.mirrored:
        out.print("")
        print_table(answers)
    note(*evaluation.remarks)
