"""Stand-ins for the tables and figures of a report."""

import csv
import html
import io
from dataclasses import dataclass
from typing import ClassVar

from btdagg.report.figure import ReportFigure

# The smallest PNG there is: one pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


@dataclass
class Table:
    kind: ClassVar = "table"
    name: str = "mae"
    title: str = "Mean absolute error"
    note: str = "Mean over 100 splits."
    rows: tuple = (("method", "n = 4"), ("majority vote", "0.443"))

    def csv(self):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.rows)
        return text.getvalue()

    def markdown(self):
        return "\n".join(" | ".join(row) for row in self.rows) + "\n"

    def latex(self):
        return "\\begin{tabular}{lr}\n\\end{tabular}\n"

    def html(self):
        head, *body = ([html.escape(cell) for cell in row] for row in self.rows)
        kinds = ("", *[' class="number"'] * (len(head) - 1))
        heads = "".join(
            f'<th scope="col"{kind}>{cell}</th>' for kind, cell in zip(kinds, head, strict=True)
        )
        lines = "".join(
            f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
            for name, *cells in body
        )
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"

    def rendered(self):
        return self.html(), {"md": self.markdown(), "csv": self.csv(), "tex": self.latex()}


@dataclass
class Figure:
    kind: ClassVar = "figure"
    name: str = "scaling"
    title: str = "Error against votes"
    note: str = "Bands are 95% intervals."

    def svg(self):
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" width="80pt" height="40pt">'
            '<path d="M0 0h40v20z"/></svg>'
        )

    def rendered(self):
        return ReportFigure._image(self, self.svg()), {"svg": self.svg(), "png": PNG}
