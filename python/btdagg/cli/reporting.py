"""What the commands that can write a report share."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from btdagg._core import InputError
from btdagg.addresses import without_credentials
from btdagg.cli.common import err, out

if TYPE_CHECKING:
    from btdagg.report.folder import ReportFolder
    from btdagg.report.table import ReportTable

ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="A folder for a page with every table (Markdown, CSV, LaTeX) and figure (SVG, PNG).",
        show_default=False,
    ),
]


def refuse_report(path: Path | None) -> None:
    """Look at once whether a report that is asked for can be written.

    Raises
    ------
    InputError
        If the path is a file, a folder that holds something other than a report, or one that
        cannot be written.
    ImportError
        If jinja2 or matplotlib is not installed.
    """
    if path is None:
        return
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"--report needs {error.name}: pip install 'btdagg[report]'") from error
    from btdagg.report.folder import files_of_earlier

    try:
        files_of_earlier(path)
        there = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
        tempfile.TemporaryDirectory(dir=there).cleanup()
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def open_report(path: Path, title: str, context: typer.Context) -> ReportFolder:
    """Open a report with the options of the command as its settings."""
    from btdagg.report.folder import ReportFolder

    usual = {option.name: option.default for option in context.command.params}
    settings = {
        name: _shown(value)
        for name, value in context.params.items()
        if value not in (None, False, "") or value != usual.get(name)
    }
    return ReportFolder(path, title, settings=settings)


def _shown(value: object) -> object:
    """A setting as a page may show it: the address of a store may hold a password."""
    text = str(value) if isinstance(value, Path) else value
    return without_credentials(text) if isinstance(text, str) and "://" in text else text


def say_where(path: Path) -> None:
    """Say where the page is."""
    err.print(f"wrote {path / 'index.html'}", soft_wrap=True)


def print_report_table(table: ReportTable) -> None:
    """Print a table of a report on the terminal."""
    from rich.table import Table
    from rich.text import Text

    printed = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for place, name in enumerate(table.header):
        left = place < table.n_label_columns
        printed.add_column(Text(name), justify="left" if left else "right", overflow="fold")
    for row in table.rows:
        printed.add_row(*(Text(cell.text, style="green" if cell.bold else "") for cell in row))
    out.print(table.title, style="bold")
    out.print(printed)
    out.print(f"{table.note}\n", soft_wrap=True)


def names(listed: str, option: str) -> list[str]:
    """Names of columns with commas between.

    Raises
    ------
    InputError
        If one is empty.
    """
    found = [name.strip().lower() for name in listed.split(",")]
    if not all(found):
        raise InputError(f"{option} is {listed!r}, want names of columns with commas between")
    return found


def numbers(listed: str | None, option: str, example: str) -> list[int] | None:
    """Whole numbers of at least 1 with commas between.

    Raises
    ------
    InputError
        If one is anything else.
    """
    if listed is None:
        return None
    try:
        found = [int(number) for number in listed.split(",")]
    except ValueError:
        raise InputError(
            f"{option} is {listed!r}, want whole numbers with commas between, such as {example}"
        ) from None
    if min(found) < 1 or max(found) >= 2**31:
        raise InputError(f"{option} is {listed!r}, want whole numbers from 1 to 2147483647")
    return found
