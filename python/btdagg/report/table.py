"""A table as Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

from btdagg._core import InputError
from btdagg._util.extras import MissingExtraError
from btdagg._util.readable import readable
from btdagg._util.spreadsheets import guarded
from btdagg.report.markup import escaped
from btdagg.report.wording import MISSING, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_MOST_ROWS = 100  # that a notebook shows

_MARKDOWN = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        **{letter: "\\" + letter for letter in "\\`*_{}[]|~$#!"},
    }
)

_LATEX = str.maketrans(
    {
        **{letter: "\\" + letter for letter in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        "−": r"\ensuremath{-}",
        "±": r"\ensuremath{\pm}",
        "–": "--",
        "—": "---",
    }
)


@dataclass(frozen=True)
class Entry:
    """One printed cell.

    Attributes
    ----------
    text : str
        Plain text; it may come from a user's file, and each format escapes it.
    bold : bool
        Whether it is bold.
    """

    text: str
    bold: bool = False


class PivotCell(NamedTuple):
    """One value of a table by its row and its column.

    Attributes
    ----------
    label : tuple of str
        Of the row, one text for each label column.
    column : str
    text : str
        What is printed.
    bold : bool
        Whether it is bold.
    record : mapping, optional
        The same in full precision, as the CSV file has it.
    place : int
        Tells rows of the same label apart.
    """

    label: tuple[str, ...]
    column: str
    text: str
    bold: bool = False
    record: Mapping[str, object] | None = None
    place: int = 0


@readable
@dataclass(frozen=True, eq=False)
class ReportTable:
    """A table of a report.

    Attributes
    ----------
    name : str
        Stem of its files: letters, digits, dots, hyphens and underscores.
    title : str
    note : str
        The caption.
    header : tuple of str
    rows : tuple of tuples of Entry
        Each as long as the header.
    records : tuple of dicts
        The same numbers in full precision, tidy: what the CSV file holds.
    n_label_columns : int
        Leading columns that are text. Where there are several, all but the last are printed only
        where they change, and a change in the first begins a group of rows.
    family, choice : str
        Tables of one family in a section are shown one at a time, by a selector of choices.
    folded : bool
        Whether the page shows the title alone until it is opened, as of a long table.

    Raises
    ------
    InputError
        If the name is no file stem or a row is not as long as the header.
    """

    kind: ClassVar[Literal["table"]] = "table"

    name: str
    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    records: tuple[dict[str, object], ...]
    n_label_columns: int = 1
    family: str = ""
    choice: str = ""
    folded: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"name is {self.name!r}, expected letters, digits, dots and hyphens")
        for number, row in enumerate(self.rows):
            if len(row) != len(self.header):
                raise InputError(
                    f"row {number} of table {self.name!r} has {len(row)} cells, "
                    f"want {len(self.header)} as in the header"
                )

    @classmethod
    def pivot(
        cls,
        name: str,
        title: str,
        note: str,
        labels: Sequence[str],
        cells: Iterable[PivotCell],
        columns: Iterable[str] = (),
    ) -> Self:
        """Arrange values in rows and columns, in order of first appearance; a dash if missing.

        Parameters
        ----------
        name, title, note
            See `ReportTable`.
        labels : sequence of str
            Header of the label columns.
        cells : iterable of PivotCell
        columns : iterable of str
            Those that come first, whether there are values or not.
        """
        cells = list(cells)
        header = tuple(dict.fromkeys((*columns, *(cell.column for cell in cells))))
        rows: dict[tuple[tuple[str, ...], int], dict[str, Entry]] = {}
        for cell in cells:
            row = rows.setdefault((cell.label, cell.place), {})
            row[cell.column] = Entry(cell.text, cell.bold)
        return cls(
            name,
            title,
            note,
            (*labels, *header),
            tuple(
                (*map(Entry, label), *(row.get(column, Entry(MISSING)) for column in header))
                for (label, _), row in rows.items()
            ),
            tuple(dict(cell.record) for cell in cells if cell.record is not None),
            n_label_columns=len(labels),
        )

    def markdown(self) -> str:
        """Return a heading, the table in pipes, and the note."""
        header = [_in_markdown(text) for text in self.header]
        body = [
            ["" if same else _bold(_in_markdown, "**{}**", e) for e, same in zip(*row, strict=True)]
            for row in zip(self.rows, self._repeats(), strict=True)
        ]
        widths = [max(3, *(len(row[i]) for row in (header, *body))) for i in range(len(header))]
        rule = ["-" * w if self._is_label(i) else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
        lines = [
            "| " + " | ".join(self._padded(text, i, widths[i]) for i, text in enumerate(row)) + " |"
            for row in (header, rule, *body)
        ]
        title, note = _in_markdown(self.title), _in_markdown(self.note)
        return "\n".join((f"### {title}", "", *lines, "", *([note, ""] if note else [])))

    def csv(self) -> str:
        """Return the records; a number that is missing is an empty field.

        Text that a spreadsheet would run as a formula gets an apostrophe in front. Numbers, and
        text that is a number, are unchanged.
        """
        columns = list(dict.fromkeys(name for record in self.records for name in record))
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_in_csv, columns))
        for record in self.records:
            writer.writerow(_in_csv(record.get(name, "")) for name in columns)
        return file.getvalue()

    def latex(self) -> str:
        """Return a `table*` for a document that uses the packages booktabs and graphicx.

        A table that is wider than the page is scaled down. The first line says which packages are
        wanted, and whether XeLaTeX or LuaLaTeX is, for letters that pdfLaTeX may not know.
        """
        columns = "l" * self.n_label_columns + "r" * (len(self.header) - self.n_label_columns)
        body: list[str] = []
        for row, same, begins in zip(self.rows, self._repeats(), self._begins(), strict=True):
            if begins and body:
                body.append(r"\midrule")
            cells = [
                "" if hidden else _bold(_in_latex, r"\textbf{{{}}}", entry)
                for entry, hidden in zip(row, same, strict=True)
            ]
            body.append(_latex_row(cells))
        note = f" {_in_latex(self.note)}" if self.note else ""
        table = "\n".join(
            (
                r"\begin{table*}",
                r"\centering",
                rf"\caption{{{_in_latex(self.title)}.{note}}}",
                rf"\label{{tab:{self.name}}}",
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                _latex_row([_in_latex(text) for text in self.header]),
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}}",
                r"\end{table*}",
                "",
            )
        )
        wanted = r"\usepackage{booktabs} and \usepackage{graphicx}"
        if not table.isascii():
            wanted += "; XeLaTeX or LuaLaTeX, and a font with all of the letters below"
        return f"% Wants {wanted}.\n{table}"

    def html(self) -> str:
        """Return a `table` element; title and note are left to the page."""
        from btdagg.report.templating import TEMPLATES

        groups: list[list[list[tuple[Entry, int]]]] = []
        repeats = self._repeats()
        for number, (row, begins) in enumerate(zip(self.rows, self._begins(), strict=True)):
            if begins:
                groups.append([])
            groups[-1].append(
                [
                    (entry, self._height(repeats[number:], place))
                    for place, entry in enumerate(row)
                    if not repeats[number][place]  # the cell above spans this row
                ]
            )
        return TEMPLATES.get_template("table.html.jinja").render(table=self, groups=groups)

    def _repr_html_(self) -> str | None:
        """Return title, table and note for a notebook; None without jinja2, where it has a repr."""
        few = replace(self, rows=self.rows[:_MOST_ROWS])
        try:
            table = few.html()
        except MissingExtraError:
            return None
        left_out = len(self.rows) - len(few.rows)
        note = f"{self.note} {left_out:,} more rows." if left_out else self.note
        return (
            f"<p><strong>{escaped(self.title)}</strong></p>\n"
            f'<div style="overflow-x: auto">{table}</div>\n<p>{escaped(note)}</p>'
        )

    def _height(self, below: Sequence[Sequence[bool]], place: int) -> int:
        """Rows that a cell spans if it is a label; 0 if it is none."""
        if not self._is_label(place):
            return 0
        same = takewhile(lambda row: row[place], below[1:])
        return 1 + sum(1 for _ in same)

    def _is_label(self, place: int) -> bool:
        return place < self.n_label_columns

    def _padded(self, text: str, place: int, width: int) -> str:
        return text.ljust(width) if self._is_label(place) else text.rjust(width)

    def _repeats(self) -> list[list[bool]]:
        """For each cell, whether it is a label that the row above has said already."""
        found = []
        above: tuple[Entry, ...] | None = None
        for row in self.rows:
            found.append(
                [
                    above is not None
                    and place < self.n_label_columns - 1
                    and row[: place + 1] == above[: place + 1]
                    for place in range(len(row))
                ]
            )
            above = row
        return found

    def _begins(self) -> list[bool]:
        """For each row, whether it begins a group."""
        if self.n_label_columns < 2:
            return [number == 0 for number in range(len(self.rows))]
        return [not same[0] for same in self._repeats()]


def _bold(written: Callable[[str], str], form: str, entry: Entry) -> str:
    text = written(entry.text)
    return form.format(text) if entry.bold and text else text


def _in_markdown(text: str) -> str:
    return printable(text).translate(_MARKDOWN)


def _in_latex(text: str) -> str:
    written, before = [], ""
    for letter in printable(text):
        # What TeX would join: hyphens to a dash, quotes to one mark.
        joins = any(letter in kind and before in kind for kind in ("-–—", "'", ",")) and before
        written.append(("{}" if joins else "") + letter.translate(_LATEX))
        before = letter
    return "".join(written)


def _latex_row(cells: Sequence[str]) -> str:
    first, *others = cells
    # After the end of a row TeX takes a bracket or a star for an argument of that end.
    guarded = "{}" + first if first.startswith(("[", "*")) else first
    return " & ".join((guarded, *others)) + r" \\"


def _in_csv(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    return guarded(value) if isinstance(value, str) else value
