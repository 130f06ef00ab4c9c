"""What commands share that can write a report."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from btdagg._core import InputError
from btdagg._util.addresses import shown_address
from btdagg._util.extras import needs
from btdagg.cli.common import err, out

if TYPE_CHECKING:
    from btdagg.report.folder import ReportFolder
    from btdagg.report.table import ReportTable

ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Write a report to this folder: a page, tables (Markdown, CSV, LaTeX), figures (SVG, "
        "PNG).",
        show_default=False,
        rich_help_panel="Output",
    ),
]


def refuse_report(path: Path | None, reads: Sequence[str], force: bool) -> None:
    """Check, before any work, that a report can be written."""
    if path is None:
        return
    with needs("report", "--report"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    from btdagg.report.folder import claim

    claim(path, reads=reads, force=force)


def open_report(
    path: Path,
    title: str,
    context: typer.Context,
    reads: Sequence[str],
    force: bool,
) -> ReportFolder:
    """Open a report with the command, its options and the versions as its settings."""
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
    return ReportFolder(path, title, settings=settings, reads=reads, force=force)


def _words(context: typer.Context) -> list[str]:
    """Return the command line; under another program, such as a test, the command alone."""
    name = context.command.name or ""
    return ["btdagg", *(sys.argv[1:] if name in sys.argv else [name])]


def _shown(value: object) -> object:
    """Return a setting without the password that the address of a store may hold."""
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    return shown_address(str(value)) if isinstance(value, str | Path) else value


def say_where(path: Path) -> None:
    """Print where the page is."""
    err.print(f"wrote {path / 'index.html'}", soft_wrap=True)


def print_report_table(table: ReportTable) -> None:
    """Print a table of a report on the terminal."""
    out.print(table.title, style="bold", soft_wrap=True)
    out.print_rows(table.header, table.rows, table.n_label_columns)
    out.print(f"{table.note}\n", soft_wrap=True)


def names(listed: str, option: str) -> list[str]:
    """Parse names of columns, separated by commas."""
    found = [name.strip().lower() for name in listed.split(",")]
    if not all(found):
        raise InputError(f"{option} is {listed!r}, expected names of columns separated by commas")
    return found


def numbers(listed: str | None, option: str, example: str) -> list[int] | None:
    """Parse whole numbers of at least 1, separated by commas."""
    if listed is None:
        return None
    try:
        found = [int(number) for number in listed.split(",")]
    except ValueError:
        raise InputError(
            f"{option} is {listed!r}, expected whole numbers separated by commas, such as {example}"
        ) from None
    if min(found) < 1 or max(found) >= 2**31:
        raise InputError(f"{option} is {listed!r}, expected whole numbers from 1 to 2147483647")
    return found
