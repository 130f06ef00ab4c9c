"""A table as Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from btdagg._util.extras import MissingExtraError
from btdagg._util.readable import readable
from btdagg._util.spreadsheets import guarded
from btdagg.report.markup import escaped, template
from btdagg.report.wording import MISSING, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
        Stem of its files.
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
    """

    kind: ClassVar[str] = "table"

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
        labels = self.n_label_columns
        rule = ["---" if place < labels else "---:" for place in range(len(self.header))]
        rows = [[_in_markdown(text) for text in self.header], rule]
        rows += self._written(_in_markdown, "**{}**")
        lines = [f"| {' | '.join(row)} |" for row in rows]
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

        A table that is wider than the page is scaled down. The first line names the packages.
        """
        columns = "l" * self.n_label_columns + "r" * (len(self.header) - self.n_label_columns)
        body: list[str] = []
        cells = self._written(_in_latex, r"\textbf{{{}}}")
        for row, begins in zip(cells, self._begins(), strict=True):
            if begins and body:
                body.append(r"\midrule")
            body.append(_latex_row(row))
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
        return r"% Needs \usepackage{booktabs} and \usepackage{graphicx}." + f"\n{table}"

    def html(self) -> str:
        """Return a `table` element; title and note are left to the page."""
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
        return template("table.html.jinja").render(table=self, groups=groups)

    def rendered(self) -> tuple[str, dict[str, str | bytes]]:
        """Return HTML for a page, and the files by their endings."""
        return self.html(), {"md": self.markdown(), "csv": self.csv(), "tex": self.latex()}

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

    def _written(self, write: Callable[[str], str], bold: str) -> list[list[str]]:
        """Rows of texts in which a label that the row above has said already is empty."""
        rows = []
        for row, same in zip(self.rows, self._repeats(), strict=True):
            texts = [
                bold.format(write(e.text)) if e.bold and e.text else write(e.text) for e in row
            ]
            rows.append(
                ["" if repeats else text for text, repeats in zip(texts, same, strict=True)]
            )
        return rows

    def _height(self, below: Sequence[Sequence[bool]], place: int) -> int:
        """Rows that a cell spans if it is a label; 0 if it is none."""
        if place >= self.n_label_columns:
            return 0
        return 1 + sum(1 for _ in takewhile(lambda row: row[place], below[1:]))

    def _repeats(self) -> list[list[bool]]:
        """For each cell, whether it is a label that the row above has said already."""
        last = self.n_label_columns - 1
        return [
            [
                number > 0 and place < last and row[: place + 1] == above[: place + 1]
                for place in range(len(row))
            ]
            for number, (above, row) in enumerate(
                zip((*self.rows[:1], *self.rows), self.rows, strict=False)
            )
        ]

    def _begins(self) -> list[bool]:
        """For each row, whether it begins a group."""
        if self.n_label_columns < 2:
            return [number == 0 for number in range(len(self.rows))]
        return [not same[0] for same in self._repeats()]


def _in_markdown(text: str) -> str:
    return printable(text).translate(_MARKDOWN)


def _in_latex(text: str) -> str:
    # TeX joins two hyphens to a dash, two quotes to one mark.
    parts = re.split("(?<=[-'`,–—])(?=[-'`,–—])", printable(text))
    return "{}".join(part.translate(_LATEX) for part in parts)


def _latex_row(cells: Sequence[str]) -> str:
    first, *others = cells
    # After the end of a row TeX takes a bracket or a star for an argument of that end.
    guarded = "{}" + first if first.startswith(("[", "*")) else first
    return " & ".join((guarded, *others)) + r" \\"


def _in_csv(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    return guarded(value) if isinstance(value, str) else value
