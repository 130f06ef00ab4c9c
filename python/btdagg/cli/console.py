"""Print to terminals of any width and encoding, and escape control characters."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from itertools import product
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from btdagg._util.wording import in_line, visible
from btdagg.cli import stop_writing
from btdagg.result import Entry

_WIDE = 160  # columns of a table that goes to a file or a pipe
_STANDARD = 80  # what is printed looks the same on any terminal that is as wide
_ENDLESS = 10_000

_ASCII = {"±": "+/-", "−": "-", "–": "-", "—": "-", "…": "...", "²": "^2", "·": "."}


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    escapes = (_ASCII.get(char) or char.encode("unicode_escape").decode() for char in lost)
    return "".join(escapes), error.end


ERRORS = "btdagg.ascii"
"""Error handler of `codecs` that writes what an encoding does not have in ASCII."""

codecs.register_error(ERRORS, _in_ascii)


class Terminal(Console):
    """Standard output or error, without markup; control characters are escaped."""

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

    def on_broken_pipe(self) -> None:
        """Go on without printing, where rich would end the process."""
        stop_writing("stderr" if self.stderr else "stdout")

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a line of text of whatever is printed, in cells of tables too."""
        return super().render_str(_encodable(in_line(text), self.encoding), **options)

    def print_rows(
        self, header: Sequence[str], rows: Sequence[Sequence[Entry]], n_labels: int
    ) -> None:
        """Print a table whose first `n_labels` columns name the row; no value is cut."""
        # If too wide, headers are broken, then leading columns stand above rows; else rows are
        # blocks.
        header = [self.render_str(name).plain for name in header]
        cells = [[self._cell(cell) for cell in row] for row in rows]
        for width in sorted({min(self.width, _STANDARD), self.width}):
            for n_above, broken in product((0, n_labels - 1), (False, True)):
                table = Table(box=None, padding=(0, 1), pad_edge=False)
                for place, name in enumerate(header[n_above:], start=n_above):
                    side: Any = "left" if place < n_labels else "right"
                    text = self._broken(name, [row[place] for row in cells]) if broken else name
                    table.add_column(text, justify=side, vertical="bottom", no_wrap=True)
                for row in cells:
                    first = Text("  " if n_above else "").append_text(row[n_above])
                    table.add_row(first, *row[n_above + 1 :])
                if (
                    self.measure(table, options=self.options.update(width=_ENDLESS)).maximum
                    <= width
                ):
                    self._print_lines(table, header, [row[:n_above] for row in cells])
                    return
        for row in cells:
            self._print_heading(header, row[:n_labels])
            for name, cell in zip(header[n_labels:], row[n_labels:], strict=True):
                if cell:
                    self._print_line(Text(f"  {name} ").append(cell))

    def _print_lines(
        self, table: Table, header: Sequence[str], above: Sequence[Sequence[Text]]
    ) -> None:
        lines = self.render_lines(table, self.options, pad=False)
        heading: Sequence[Text] = []
        for place, line in enumerate(lines, start=len(above) - len(lines)):
            if place >= 0 and above[place] != heading:
                heading = above[place]
                self._print_heading(header, heading)
            self._print_line(Text.assemble(*((part.text, part.style or "") for part in line)))

    def _print_heading(self, header: Sequence[str], cells: Sequence[Text]) -> None:
        names = zip(header, cells, strict=False)
        parts = [Text(f"{name} ").append(cell) for name, cell in names if cell]
        heading = Text(", ").join(parts)
        if heading.cell_len > self.width:
            heading = Text(",\n").join(parts)
        self._print_line(heading, style="bold")

    def _print_line(self, line: Text, **style: Any) -> None:
        line.rstrip()
        self.print(line, soft_wrap=True, **style)

    def _cell(self, cell: Entry) -> Text:
        line = in_line(cell.text).replace("\t", "\\t")
        return Text(_encodable(line, self.encoding), "bold" if cell.bold else "")

    def _broken(self, name: str, cells: Sequence[Text]) -> Text:
        least = max(cell.cell_len for cell in (*map(Text, name.split()), *cells))
        lines = wrap(name, max(least, (len(name) + 1) // 2))
        return Text("\n").join(map(self.render_str, lines))


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
    except BrokenPipeError:
        stop_writing("stdout")
    except OSError as error:
        raise _of_stream(error, "standard output") from None


def _encodable(text: str, encoding: str) -> str:
    return text.encode(encoding, ERRORS).decode(encoding)


def _of_stream(error: OSError, name: str) -> OSError:
    return OSError(error.errno, error.strerror, name)
