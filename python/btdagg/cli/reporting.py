"""What commands share that compare or tabulate: their options, tables, JSON and report."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from btdagg._util.addresses import shown_address
from btdagg._util.errors import InputError
from btdagg._util.extras import needs
from btdagg.cli.common import err, files_named, note, out, print_json, say
from btdagg.evaluation.scores import averages, lines
from btdagg.report.table import Entry, ReportTable
from btdagg.report.wording import votes_of

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.evaluation.metrics import Interval
    from btdagg.report.figure import ReportFigure
    from btdagg.report.folder import ReportFolder

ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Write a report to this folder: a page, tables (Markdown, CSV, LaTeX), figures (SVG, "
        "PNG).",
        rich_help_panel="Output",
    ),
]


def open_report(
    context: typer.Context, title: str, path: Path | None = None
) -> ReportFolder | None:
    """Return the report of --report, if it is given; nothing is written yet.

    Its settings are the command, its options and versions.
    """
    path = path or context.params["report"]
    if path is None:
        return None
    with needs("report", "--report"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    from btdagg.report.folder import ReportFolder

    usual = {option.name: option.default for option in context.command.params}
    settings = {
        "command": shlex.join(shown_address(word) for word in _words(context)),
        **{
            name: _shown(value)
            for name, value in context.params.items()
            if not (value is None or value is False or value == "") or value != usual.get(name)
        },
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "polars", "scipy")},
    }
    reads = files_named(context, "report", "output")
    return ReportFolder(path, title, settings=settings, reads=reads)


def _words(context: typer.Context) -> list[str]:
    """Return the command line; under another program, such as a test, the command alone."""
    name = context.command.name or ""
    return ["btdagg", *(sys.argv[1:] if name in sys.argv else [name])]


def _shown(value: object) -> object:
    """Return a setting without the password that the address of a store may hold."""
    if isinstance(value, list | tuple):
        return [_shown(part) for part in value]
    return shown_address(str(value)) if isinstance(value, str | Path) else value


def say_where(report: ReportFolder) -> None:
    """Print where the page is."""
    err.print(f"wrote {report.path / 'index.html'}", soft_wrap=True)


def print_report_table(table: ReportTable) -> None:
    """Print a table of a report on the terminal."""
    out.print(table.title, style="bold", soft_wrap=True)
    out.print_rows(table.header, table.rows, table.n_label_columns)
    say(f"{table.note}\n")


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
    for remark in remarks or ():
        note(remark)
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
            for remark in remarks or ():
                report.remark(remark)
        say_where(report)


def names(listed: str | None, argument: str) -> list[str] | None:
    """Parse names of columns, separated by commas."""
    if listed is None:
        return None
    columns = [name.strip().lower() for name in listed.split(",")]
    if not all(columns):
        expected = "names of columns separated by commas"
        raise InputError(argument=argument, came=listed, expected=expected)
    return columns


def numbers_of_votes(listed: str | None) -> list[int] | None:
    """Parse the numbers of -n, separated by commas."""
    if listed is None:
        return None
    numbers = [int(text) if text.strip().isdecimal() else 0 for text in listed.split(",")]
    if not all(0 < number < 2**31 for number in numbers):
        expected = "whole numbers from 1 to 2147483647 separated by commas, such as 4,8"
        raise InputError(argument="n_votes", came=listed, expected=expected)
    return numbers


# Scores


def print_scores(evaluation: Scores) -> None:
    """Print a line for each method in each cell, the averages, and remarks."""
    header, rows = _table(evaluation)
    out.print_rows(header, rows, len(evaluation.by) + 3)
    first = evaluation.cells[0].comparison
    labels = "label" if evaluation.n_calibration == "1" else "labels"
    how = (
        f"models calibrated on {evaluation.n_calibration} {labels} in each of {first.n_splits} "
        "random splits; ±: half of the 95% interval of the mean over splits, not one for new items"
    )
    if first.new_items is not None:
        how = (
            f"each item decided by models calibrated on {evaluation.n_calibration} other {labels}; "
            "±: half of the 95% interval for new items, or new groups of items"
        )
    ranked = f"rank: clusters by MAE; {first.test.words}; " if len(first.methods) > 1 else ""
    say(f"{ranked}{how}")
    for remark in evaluation.remarks:
        note(remark)


def _table(evaluation: Scores) -> tuple[list[str], list[list[Entry]]]:
    first = evaluation.cells[0].comparison
    less = first.new_items is not None and first.baseline is not None
    is_ranked = len(first.methods) > 1
    header = [*evaluation.by, "votes", "items", "method", "MAE"]
    header += [*(["less majority"] if less else []), "accuracy", *(["rank"] if is_ranked else [])]
    rows = []
    for line in (*lines(evaluation), *averages(evaluation)):
        best = line.rank == 1 and is_ranked
        size = "" if line.n_items is None else str(line.n_items)
        row = [Entry(text) for text in (*line.key, votes_of(line.n_votes), size, line.method)]
        row.append(Entry(_with_error(line.mae), best))
        if less:
            difference = line.mae_less_majority
            row.append(Entry("" if difference is None else _with_error(difference, signed=True)))
        row.append(Entry(_with_error(line.accuracy)))
        if is_ranked:
            row.append(Entry("" if line.rank is None else str(line.rank), best))
        rows.append(row)
    return header, rows


def scores_as_json(evaluation: Scores, **settings: Any) -> dict[str, Any]:
    """Return everything that `print_scores` prints as plain values."""
    return {
        "settings": {**settings, "test": evaluation.cells[0].comparison.test.words},
        "by": list(evaluation.by),
        "lines": [line.as_dict(evaluation.by) for line in lines(evaluation)],
        "averages": [line.as_dict(()) for line in averages(evaluation)],
        "remarks": list(evaluation.remarks),
    }


def _with_error(interval: Interval, signed: bool = False) -> str:
    # At 0 or 1 an interval ends on one side: the other is what it may be off by.
    half = f"{max(interval.high - interval.mean, interval.mean - interval.low):.3f}"
    half = half.removeprefix("0")
    return f"{interval.mean:{'+' if signed else ''}.3f} ±{half}"
