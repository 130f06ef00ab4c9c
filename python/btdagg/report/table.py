"""A table as Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from btdagg._util.extras import MissingExtraError
from btdagg._util.spreadsheets import guarded
from btdagg._util.wording import MISSING, printable
from btdagg.evaluation.metrics import Interval
from btdagg.report.exhibit import Exhibit
from btdagg.report.markup import escaped, template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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


class Entry(NamedTuple):
    """One printed cell: plain text, which each format escapes, and whether it is bold."""

    text: str
    bold: bool = False


class Row(NamedTuple):
    """One row of a table: label columns, printed cells by column, and full-precision records."""

    label: tuple[str, ...]
    cells: Mapping[str, str | Entry]
    records: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, eq=False)
class ReportTable(Exhibit):
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
        Leading columns that are text. All but the last are printed only where they change, and a
        change in the first begins a group of rows.
    """

    kind: ClassVar[str] = "table"

    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    records: tuple[dict[str, object], ...]
    n_label_columns: int = 1

    @classmethod
    def of_rows(
        cls,
        name: str,
        title: str,
        note: str,
        labels: Sequence[str],
        rows: Iterable[Row],
        columns: Iterable[str] = (),
    ) -> Self:
        """Make a table of rows, with columns in order of first appearance; a dash where none is.

        `labels` are the header of the label columns; `columns` come first, with values or not. An
        interval in a record becomes three values: ``mae``, ``mae_low`` and ``mae_high``.
        """
        rows = list(rows)
        header = tuple(dict.fromkeys((*columns, *(name for row in rows for name in row.cells))))
        missing = Entry(MISSING)
        cells = [[row.cells.get(column, missing) for column in header] for row in rows]
        return cls(
            name,
            title,
            note,
            (*labels, *header),
            tuple(
                tuple(
                    Entry(cell) if isinstance(cell, str) else cell
                    for cell in (*row.label, *row_cells)
                )
                for row, row_cells in zip(rows, cells, strict=True)
            ),
            tuple(_flat(record) for row in rows for record in row.records),
            n_label_columns=len(labels),
        )

    def markdown(self) -> str:
        """Return a heading, the table in pipes, and the note."""
        labels = self.n_label_columns
        rule = ["---" if place < labels else "---:" for place in range(len(self.header))]
        rows = [[in_markdown(text) for text in self.header], rule]
        rows += self._written(in_markdown, "**{}**")
        lines = [f"| {' | '.join(row)} |" for row in rows]
        title, note = in_markdown(self.title), in_markdown(self.note)
        return "\n".join((f"### {title}", "", *lines, "", *([note, ""] if note else [])))

    def csv(self) -> str:
        """Return the records; text that a spreadsheet would run gets an apostrophe in front."""
        columns = list(dict.fromkeys(name for record in self.records for name in record))
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_in_csv, columns))
        for record in self.records:
            writer.writerow(_in_csv(record.get(name, "")) for name in columns)
        return file.getvalue()

    def latex(self) -> str:
        """Return a `table*` for the packages booktabs and graphicx, at most as wide as the page."""
        columns = "l" * self.n_label_columns + "r" * (len(self.header) - self.n_label_columns)
        cells = self._written(_in_latex, r"\textbf{{{}}}")
        lines = [_latex_row([_in_latex(text) for text in self.header])]
        for row, repeated in zip(cells, self._repeated, strict=True):
            if len(lines) == 1 or self._begins_group(repeated):
                lines.append(r"\midrule")
            lines.append(_latex_row(row))
        note, rows = f" {_in_latex(self.note)}" if self.note else "", "\n".join(lines)
        return rf"""% Needs \usepackage{{booktabs}} and \usepackage{{graphicx}}.
\begin{{table*}}
\centering
\caption{{{_in_latex(self.title)}.{note}}}
\label{{tab:{self.name}}}
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{%
\begin{{tabular}}{{{columns}}}
\toprule
{rows}
\bottomrule
\end{{tabular}}}}
\end{{table*}}
"""

    def html(self) -> str:
        """Return a `table` element; title and note are left to the page."""
        groups = [self._begins_group(repeated) for repeated in self._repeated]
        rows = zip(self.rows, self._repeated, groups, strict=True)
        return template("table.html.jinja").render(table=self, rows=rows)

    def rendered(self) -> tuple[str, dict[str, str | bytes]]:
        """Return HTML for a page, and the files by their endings."""
        return self.html(), {"md": self.markdown(), "csv": self.csv(), "tex": self.latex()}

    def _repr_html_(self) -> str | None:
        try:
            table = self.html()
        except MissingExtraError:
            return None
        return (
            f"<p><strong>{escaped(self.title)}</strong></p>\n"
            f'<div style="overflow-x: auto">{table}</div>\n<p>{escaped(self.note)}</p>'
        )

    def _written(self, write: Callable[[str], str], bold: str) -> list[list[str]]:

        def text(entry: Entry, *, blank: bool) -> str:
            written = "" if blank else write(entry.text)
            return bold.format(written) if entry.bold and written else written

        return [
            [text(entry, blank=place < repeated) for place, entry in enumerate(row)]
            for row, repeated in zip(self.rows, self._repeated, strict=True)
        ]

    @cached_property
    def _repeated(self) -> list[int]:
        labels = [row[: self.n_label_columns - 1] for row in self.rows]
        equal = ([a == b for a, b in zip(*pair, strict=False)] for pair in pairwise([(), *labels]))
        return [[*same, False].index(False) for same in equal]

    def _begins_group(self, repeated: int) -> bool:
        return self.n_label_columns > 1 and repeated == 0


def _flat(record: Mapping[str, object]) -> dict[str, object]:
    """Return a record whose intervals are a mean and two ends."""
    fields: dict[str, object] = {}
    for name, value in record.items():
        if isinstance(value, Interval):
            fields |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            fields[name] = value
    return fields


def in_markdown(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return printable(text).translate(_MARKDOWN)


def _in_latex(text: str) -> str:
    # TeX joins two hyphens to a dash, two quotes to one mark.
    parts = re.split("(?<=[-'`,–—])(?=[-'`,–—])", printable(text))
    return "{}".join(part.translate(_LATEX) for part in parts)


def _latex_row(cells: Sequence[str]) -> str:
    first, *rest = cells
    # After the end of a row TeX takes a bracket or a star for an argument of that end.
    guarded = "{}" + first if first.startswith(("[", "*")) else first
    return " & ".join((guarded, *rest)) + r" \\"


def _in_csv(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    return guarded(value) if isinstance(value, str) else value
