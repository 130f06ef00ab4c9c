"""Results: a sentence, tables, remarks, plain values, and the data of a figure.

A terminal, JSON, Markdown, HTML and a report show a result by these alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from btdagg._util.display import Displayed
from btdagg._util.extras import as_frame
from btdagg._util.readable import Readable, readable
from btdagg._util.wording import MISSING, in_lines, stem
from btdagg.remarks import Remark, as_remarks

if TYPE_CHECKING:
    from btdagg._util.lazy import pl


@readable
class Interval(NamedTuple):
    """A mean and the ends of its interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Exhibit(Readable):
    """A table or a figure: the stem of its files, a title, and the note that is its caption."""

    name: str
    title: str
    note: str

    def named_after(self, *key: str) -> Self:
        """Return it named after the part that it is of, such as a judge; unchanged without one."""
        if not key:
            return self
        return replace(self, name=stem(self.name, *key), title=f"{self.title}, {', '.join(key)}")


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
class ResultTable(Exhibit):
    """A table of a result.

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

    def text(self) -> list[str]:
        """Return the header and the rows as lines of aligned columns."""
        rows = [self.header, *([entry.text for entry in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        align = ["<"] * self.n_label_columns + [">"] * (len(widths) - self.n_label_columns)
        return [
            "  ".join(
                f"{text:{side}{width}}"
                for text, side, width in zip(row, align, widths, strict=True)
            ).rstrip()
            for row in rows
        ]


@dataclass(frozen=True, eq=False)
class IntervalFigure(Exhibit):
    """The data of a figure that has a row of means with intervals for each name.

    Attributes
    ----------
    points : mapping of str to mapping of str to Interval or None
        Means with intervals, by row and by series.
    series : sequence of str
    label : str
        What the means are, on their axis.
    sides : tuple of two str, optional
        What means below and above zero say; the axis is then symmetric.
    unit : int
        100 where means are shown in percent, else 1.
    limits : tuple of two float, optional
        Ends of the axis, as values of the means.
    """

    points: Mapping[str, Mapping[str, Interval | None]]
    series: Sequence[str]
    label: str
    sides: tuple[str, str] | None = None
    unit: int = 100
    limits: tuple[float, float] | None = None


class Curve(NamedTuple):
    """Points of a line, and the ends of a band around it where there is one."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


class Panel(NamedTuple):
    """Curves by name over one axis, and where reference lines cross the axes.

    With `in_logs` the horizontal values are logarithms of the numbers that the axis shows.
    """

    curves: Mapping[str, Curve]
    x_label: str
    y_label: str
    x_line: float | None = None
    y_line: float | None = None
    in_logs: bool = False


@dataclass(frozen=True, eq=False)
class CurveFigure(Exhibit):
    """The data of a figure of curves, in one panel or several beside each other."""

    panels: tuple[Panel, ...]
    limits: tuple[float, float] | None = None


class Result(Displayed, Readable):
    """What a question was answered with; a frozen dataclass with the field or property `remarks`.

    `str` of a result is its sentence, its rows if there are several, and its remarks.
    """

    if TYPE_CHECKING:

        @property
        def remarks(self) -> tuple[Remark, ...]:
            """What to know besides."""

    def sentence(self) -> str:
        """Return the answer in words."""
        raise NotImplementedError

    def table(self) -> ResultTable:
        """Return the numbers as a table."""
        raise NotImplementedError

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the table, and others where there are some."""
        return (self.table(),)

    @property
    def heading(self) -> str:
        """Heading of the result's section in a report."""
        return self.table().title

    def figure(self) -> Exhibit | None:
        """Return the data of the figure; None where there is none."""
        return None

    def values(self) -> dict[str, Any]:
        """Return what `as_dict` has besides sentence and remarks, by name: by default fields."""
        shown = [field.name for field in fields(self) if field.repr]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in shown if name != "remarks"}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values by name: the sentence, the numbers, and the remarks."""
        values = {name: plain(value) for name, value in self.values().items()}
        return {"sentence": self.sentence(), **values, "remarks": [*map(str, self.remarks)]}

    def to_frame(self) -> pl.DataFrame:
        """Return the rows of the main table in full precision."""
        return as_frame([*self.table().records])

    def as_row(self) -> pl.DataFrame:
        """Return all of `as_dict` as one row, with the remarks as one text."""
        values = self.as_dict()
        return as_frame([values | {"remarks": "; ".join(values["remarks"])}])

    def with_remarks(self, remarks: Iterable[Remark]) -> Self:
        """Return the result with more remarks, which are about its data, before its own."""
        both = (*as_remarks(remarks), *self.remarks)
        return replace(self, remarks=both)  # type: ignore[type-var]

    def __str__(self) -> str:
        table = self.table()
        rows = table.text() if len(table.rows) > 1 else []  # the sentence says what one row does
        return in_lines([self.sentence(), *rows, *(f"remark: {text}" for text in self.remarks)])


def plain(value: Any) -> Any:
    """Return a value as JSON has it: NaN is None, a value with fields is a dict of them."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and value != value else value


def _flat(record: Mapping[str, object]) -> dict[str, object]:
    """Return a record whose intervals are a mean and two ends."""
    flat: dict[str, object] = {}
    for name, value in record.items():
        if isinstance(value, Interval):
            flat |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            flat[name] = value
    return flat
