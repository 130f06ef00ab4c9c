"""Print to terminals of any width and encoding, and escape control characters."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from btdagg.report.table import Entry
from btdagg.report.wording import visible

_WIDE = 160  # columns of a table that goes to a file or a pipe
_BETWEEN = 2  # columns of a table

_ASCII = {"±": "+/-", "−": "-", "–": "-", "—": "-", "…": "...", "²": "^2", "·": "."}


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    escapes = (_ASCII.get(char) or char.encode("unicode_escape").decode() for char in lost)
    return "".join(escapes), error.end


ERRORS = "btdagg.ascii"
"""Error handler of `codecs` that writes what an encoding does not have in ASCII."""

codecs.register_error(ERRORS, _in_ascii)


class Terminal(Console):
    """Standard output, or standard error.

    Text is printed as it is, without markup. Control characters in it are shown as escapes, and
    what the encoding does not have is written in ASCII.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)
        if not stderr and not self.is_terminal:
            self.width = _WIDE

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; if that fails, the error names the stream."""
        try:
            super().print(*objects, **options)
        except OSError as error:
            name = "standard error" if self.stderr else "standard output"
            raise _of_stream(error, name) from None

    def render_str(self, text: str, **options: Any) -> Text:
        """Make text of whatever is printed, in cells of tables too."""
        return super().render_str(_encodable(visible(text), self.encoding), **options)

    def print_rows(
        self, header: Sequence[str], rows: Sequence[Sequence[Entry]], n_labels: int
    ) -> None:
        """Print a table. If it is too wide, each row is printed as a block; no value is cut.

        Parameters
        ----------
        header : sequence of str
            Names of the columns.
        rows : sequence of sequences of Entry
        n_labels : int
            Number of leading columns that name the row.
        """
        shown = [[Entry(self._on_a_line(cell.text), cell.bold) for cell in row] for row in rows]
        if self.fits(header, shown):
            self._print_table(header, shown, n_labels)
        else:
            self._print_blocks(header, shown, n_labels)

    def fits(self, header: Sequence[str], rows: Sequence[Sequence[Entry]]) -> bool:
        """Whether a table has room with every value on one line."""
        texts = [header, *([self._on_a_line(cell.text) for cell in row] for row in rows)]
        widths = [
            max(cell_len(line) for text in column for line in text.split("\n"))
            for column in zip(*texts, strict=True)
        ]
        return sum(widths) + _BETWEEN * (len(widths) - 1) <= self.width

    def _print_table(
        self, header: Sequence[str], rows: Sequence[Sequence[Entry]], n_labels: int
    ) -> None:
        table = Table(box=None, pad_edge=False, padding=(0, _BETWEEN // 2), header_style="bold")
        for place, name in enumerate(header):
            justify: JustifyMethod = "left" if place < n_labels else "right"
            table.add_column(name, justify=justify, vertical="bottom", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(cell.text, _style(cell)) for cell in row))
        self.print(table)

    def _print_blocks(
        self, header: Sequence[str], rows: Sequence[Sequence[Entry]], n_labels: int
    ) -> None:
        names = [" ".join(name.split()) for name in header]
        for row in rows:
            named = [
                Text(f"{name} {cell.text}", _style(cell))
                for name, cell in zip(names, row, strict=True)
                if cell.text
            ]
            n_about = sum(1 for cell in row[:n_labels] if cell.text)
            self._print_filled(named[:n_about], ", ", "", style="bold")
            self._print_filled(named[n_about:], " " * _BETWEEN, " " * _BETWEEN)

    def _print_filled(self, parts: Sequence[Text], between: str, indent: str, **style: Any) -> None:
        """Print parts on as few lines as have room for them; none is broken."""
        line, mark = Text(), between.rstrip()
        for part in parts:
            if line and line.cell_len + part.cell_len + len(between + mark) > self.width:
                self.print(line.append(mark), soft_wrap=True, **style)
                line = Text()
            line.append(between if line else indent).append(part)
        self.print(line, soft_wrap=True, **style)

    def _on_a_line(self, text: str) -> str:
        one_line = visible(text).replace("\n", "\\n").replace("\t", "\\t")
        return _encodable(one_line, self.encoding)


def _style(cell: Entry) -> str:
    return "bold" if cell.bold else ""


def write_data(text: str) -> None:
    """Write exact UTF-8 to standard output, or on a terminal with escaped control characters."""
    if not hasattr(sys.stdout, "buffer"):  # it collects text, as io.StringIO does
        sys.stdout.write(text)
        return
    if sys.stdout.isatty():
        data = visible(text).encode(sys.stdout.encoding, ERRORS)
    else:
        data = text.encode()
    rest = memoryview(data)
    try:
        sys.stdout.flush()
        while rest:  # an unbuffered pipe may take only a part, if its reader goes away
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.flush()
    except OSError as error:
        raise _of_stream(error, "standard output") from None


def _encodable(text: str, encoding: str) -> str:
    return text.encode(encoding, ERRORS).decode(encoding)


def _of_stream(error: OSError, name: str) -> OSError:
    return OSError(error.errno, error.strerror, name)
