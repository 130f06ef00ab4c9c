"""Print to terminals of any width and encoding, and escape control characters."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from btdagg.cli import stop_writing
from btdagg.report.table import Entry
from btdagg.report.wording import visible

_WIDE = 160  # columns of a table that goes to a file or a pipe
_STANDARD = 80  # what is printed looks the same on any terminal that is as wide
_BETWEEN = 2  # columns of a table
_LEAST = 12  # letters of a row's name that stand beside its values

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

    def on_broken_pipe(self) -> None:
        """Go on without printing, where rich would end the process."""
        stop_writing("stderr" if self.stderr else "stdout")

    def render_str(self, text: str, **options: Any) -> Text:
        """Make text of whatever is printed, in cells of tables too."""
        return super().render_str(_encodable(visible(text), self.encoding), **options)

    def print_rows(
        self, header: Sequence[str], rows: Sequence[Sequence[Entry]], n_labels: int
    ) -> None:
        """Print a table; no value is cut.

        Where it is too wide, names of columns are broken, then all leading columns but the last
        stand above their rows, then names of rows stand above their values. Else each row is
        printed as a block.

        Parameters
        ----------
        header : sequence of str
            Names of the columns.
        rows : sequence of sequences of Entry
        n_labels : int
            Number of leading columns that name the row.
        """
        shown = [[Entry(self._on_a_line(cell.text), cell.bold) for cell in row] for row in rows]
        flat, *others = (
            _Layout.of(names, shown, n_labels, n_above)
            for n_above in (0, n_labels - 1)
            for names in (header, _broken(header, shown))
        )
        least = min(self.width, _STANDARD)
        for width in sorted({least, self.width}):
            for layout in (flat, *others):
                if layout.width <= width:
                    self._print_layout(layout, width)
                    return
        *_, last = others
        if last.width_of_values + _BETWEEN + _LEAST <= self.width:
            self._print_layout(last, self.width)
        else:
            self._print_blocks(header, shown, n_labels)

    def _print_layout(self, layout: _Layout, width: int) -> None:
        """Print header and rows; a name that leaves its values no room stands above them."""
        first = min(layout.widths[0], width - layout.width_of_values - _BETWEEN)
        widths = [max(first, 0), *layout.widths[1:]]
        for line in layout.header:
            self._print_line([Entry(name, True) for name in line], widths, layout.n_labels)
        above: Sequence[str] = []
        for heading, row in layout.rows:
            if heading != above:
                above = heading
                self._print_filled([Text(part) for part in heading], ", ", "", style="bold")
            if cell_len(row[0].text) > widths[0]:
                self.print(Text(row[0].text, _style(row[0])), soft_wrap=True)
                row = [Entry(""), *row[1:]]
            self._print_line(row, widths, layout.n_labels)

    def _print_line(self, row: Sequence[Entry], widths: Sequence[int], n_labels: int) -> None:
        line = Text()
        for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
            blank = " " * (width - cell_len(cell.text))
            text = Text(cell.text, _style(cell))
            line.append(" " * _BETWEEN if place else "")
            line.append(text).append(blank) if place < n_labels else line.append(blank).append(text)
        line.rstrip()
        self.print(line, soft_wrap=True)

    def _print_blocks(
        self, header: Sequence[str], rows: Sequence[Sequence[Entry]], n_labels: int
    ) -> None:
        names = [" ".join(name.split()) for name in header]
        blocks = [
            [
                Text(f"{name} {cell.text}", _style(cell)) if cell.text else Text()
                for name, cell in zip(names, row, strict=True)
            ]
            for row in rows
        ]
        widest = max((part.cell_len for row in blocks for part in row[n_labels:]), default=0)
        for row in blocks:
            self._print_filled([part for part in row[:n_labels] if part], ", ", "", style="bold")
            values = [part for part in row[n_labels:] if part]
            for part in values[:-1]:
                if widest + 2 * _BETWEEN <= self.width:
                    part.append(" " * (widest - part.cell_len))
            self._print_filled(values, " " * _BETWEEN, " " * _BETWEEN)

    def _print_filled(self, parts: Sequence[Text], between: str, indent: str, **style: Any) -> None:
        """Print parts on as few lines as have room for them; none is broken."""
        line, mark = Text(), between.rstrip()
        for part in parts:
            if line and line.cell_len + part.cell_len + len(between + mark) > self.width:
                line.append(mark)
                line.rstrip()
                self.print(line, soft_wrap=True, **style)
                line = Text()
            line.append(between if line else indent).append(part)
        self.print(line, soft_wrap=True, **style)

    def _on_a_line(self, text: str) -> str:
        one_line = visible(text).replace("\n", "\\n").replace("\t", "\\t")
        return _encodable(one_line, self.encoding)


class _Layout(NamedTuple):
    """Lines of a table: names of columns, and rows with what stands above them."""

    header: list[list[str]]
    rows: list[tuple[list[str], list[Entry]]]
    widths: list[int]
    n_labels: int

    @classmethod
    def of(
        cls,
        header: Sequence[str],
        rows: Sequence[Sequence[Entry]],
        n_labels: int,
        n_above: int,
    ) -> _Layout:
        """Lay out rows, whose first `n_above` columns stand above those that share them."""
        n_above = max(n_above, 0)
        names = [name.split("\n") for name in header[n_above:]]
        height = max(map(len, names), default=0)
        lines = zip(*([""] * (height - len(name)) + name for name in names), strict=True)
        above = [
            [
                f"{' '.join(name.split())} {cell.text}"
                for name, cell in zip(header[:n_above], row, strict=False)
                if cell.text
            ]
            for row in rows
        ]
        indent = " " * _BETWEEN if n_above else ""
        cells = [
            [Entry(indent + row[n_above].text, row[n_above].bold), *row[n_above + 1 :]]
            for row in rows
        ]
        columns = zip(*(names, *([[cell.text] for cell in row] for row in cells)), strict=True)
        widths = [max(cell_len(line) for text in column for line in text) for column in columns]
        return cls(
            [list(line) for line in lines],
            list(zip(above, cells, strict=True)),
            widths,
            n_labels - n_above,
        )

    @property
    def width(self) -> int:
        """Width of a line."""
        return sum(self.widths) + _BETWEEN * (len(self.widths) - 1)

    @property
    def width_of_values(self) -> int:
        """Width of a line without its first column."""
        return self.width - self.widths[0] - _BETWEEN


def _broken(header: Sequence[str], rows: Sequence[Sequence[Entry]]) -> list[str]:
    """Break names that are wider than what is in their column between words."""
    found = []
    for name, *cells in zip(header, *rows, strict=True):
        words = name.split()
        width = max(cell_len(text) for text in (*words, *(cell.text for cell in cells)))
        while len(lines := _filled(words, width)) > 2:
            width += 1
        found.append("\n".join(lines))
    return found


def _filled(words: Sequence[str], width: int) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


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
    except BrokenPipeError:
        stop_writing("stdout")
    except OSError as error:
        raise _of_stream(error, "standard output") from None


def _encodable(text: str, encoding: str) -> str:
    return text.encode(encoding, ERRORS).decode(encoding)


def _of_stream(error: OSError, name: str) -> OSError:
    return OSError(error.errno, error.strerror, name)
