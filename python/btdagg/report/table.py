"""A table as Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self

from btdagg._util.extras import MissingExtraError
from btdagg._util.spreadsheets import guarded
from btdagg._util.wording import printable
from btdagg.report.markup import escaped, template
from btdagg.result import Entry as Entry
from btdagg.result import Exhibit as Exhibit
from btdagg.result import ResultTable
from btdagg.result import Row as Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


@dataclass(frozen=True, eq=False)
class ReportTable(ResultTable):
    """A table of a report: a `btdagg.result.ResultTable` that is written in each format."""

    kind: ClassVar[str] = "table"

    @classmethod
    def of(cls, table: ResultTable) -> Self:
        """Return a table of a result as one of a report."""
        return cls(**{field.name: getattr(table, field.name) for field in fields(table)})

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
