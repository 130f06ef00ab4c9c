"""Tables: the rows of one source, with errors that name source and row."""
# Nothing here knows what a vote is. Rows of Parquet files stay in the files until needed.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

from btdagg._util.errors import InputError, expect, forbid, reworded, shown
from btdagg._util.lazy import pl
from btdagg._util.readable import Readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

AnyTable = TypeVar("AnyTable", bound="Table")

# The number that a row has in its source, from 1, and its place among the rows that are left. No
# column of a source is called that.
NUMBER, PLACE = "\0row", "\0place"
_FIRST = "\0first"
# A number, the same text however it was written: 1.0, +1 and 1 are 1.
_NUMBER = r"^\+?(?:(-?(?:0|[1-9][0-9]*))(?:\.0*)?|(-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9])0*)$"
_SAME = {"criterion": "task", "task": "criterion"}  # a criterion is read as a task


@dataclass(frozen=True, eq=False)
class Table(Readable):
    """Rows of one source.

    Attributes
    ----------
    frame : polars.DataFrame
        The columns, in memory. Names are stripped and lower-case; NaN becomes null, a category
        becomes text. Rows of Parquet files are loaded on first use.
    source : str
        Name of these rows in errors, such as the path.
    """

    data: pl.DataFrame | pl.LazyFrame
    source: str
    # Names of the files and their numbers of rows, where there are several.
    files: tuple[tuple[str, int], ...] = field(default=(), repr=False, kw_only=True)
    # What columns that were renamed are called in the source.
    titles: Mapping[str, str] = field(default_factory=dict, repr=False, kw_only=True)

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """Types of the columns by name, in the order of the source."""
        return {name: kind for name, kind in self._schema().items() if name != NUMBER}

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order of the source."""
        return list(self.schema)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The columns, in memory."""
        if isinstance(self.data, pl.DataFrame):
            return self.data.drop(NUMBER) if NUMBER in self.data.columns else self.data
        return self.collect(self.data.drop(NUMBER, strict=False))

    @cached_property
    def rows(self) -> pl.LazyFrame:
        """The rows with the column `NUMBER`; rows in files are not read yet."""
        rows = self.data.lazy()
        return rows if NUMBER in self._schema() else rows.with_row_index(NUMBER, offset=1)

    def title(self, column: str) -> str:
        """Return what a column is called in the source."""
        return self.titles.get(column, column)

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in memory already."""
        return isinstance(self.data, pl.DataFrame)

    def collect(self, rows: pl.LazyFrame) -> pl.DataFrame:
        """Compute a query over the rows, as they are read."""
        errors = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
        with reworded(errors, f"{self.source}: cannot be read: {{error}}"):
            return rows.collect(engine="streaming")

    def with_columns(self, columns: Iterable[pl.Expr | pl.Series]) -> Self:
        """Return the same rows with some columns added or replaced."""
        return replace(self, data=self.data.with_columns(columns))

    def numbered(self) -> pl.DataFrame:
        """Return the frame with the numbers of its rows, to select or reorder rows."""
        if isinstance(self.data, pl.DataFrame) and NUMBER in self.data.columns:
            return self.data
        return self.collect(self.rows)

    def with_data(self, data: pl.DataFrame | pl.LazyFrame) -> Self:
        """Return the table with other data, such as rows selected from `numbered` or `rows`."""
        return replace(self, data=data)

    def values(self, column: str) -> pl.Series:
        """Return the distinct values of a column as text, in order of first appearance."""
        rows = self.data.lazy().select(as_text(self, column)).with_row_index(PLACE)
        return self.collect(rows.group_by(column).agg(pl.col(PLACE).min()).sort(PLACE))[column]

    def texts(self, column: str) -> pl.DataFrame:
        """Return the different texts of a column, in alphabetical order.

        Columns are `value`, as it is, `text`, without blanks around it and in lower case, and
        `rows`, their number.
        """
        if column not in self._texts:
            text = plain_text(self, column).alias("text")
            rows = self.data.lazy().group_by(column).agg(pl.len().alias("rows"))
            different = self.collect(rows).select(pl.col(column).alias("value"), text, "rows")
            self._texts[column] = different.sort("text", "value")
        return self._texts[column]

    @cached_property
    def _texts(self) -> dict[str, pl.DataFrame]:
        return {}

    def constants(self, columns: Sequence[str]) -> dict[str, pl.Expr]:
        """Return the value, as a literal, of those columns that are the same in all rows."""
        if not columns:
            return {}
        values = [pl.col(column) for column in columns]
        is_same = [(c.null_count() == 0) & (c.min() == c.max()) for c in values]
        first = [c.first().name.prefix("\0") for c in values]
        row = self.collect(self.data.lazy().select(*is_same, *first))
        same = {column: row[f"\0{column}"] for column in columns if row[column][0]}
        return {name: pl.lit(value[0], value.dtype).alias(name) for name, value in same.items()}

    def filter(self, where: Mapping[str, object]) -> Self:
        """Keep the rows that have one of the given values in every named column.

        Parameters
        ----------
        where : mapping of column name, in any case, to a value, or to several in a list or set
            Numbers are compared as numbers, so that 1 and ``"1.0"`` match the same rows, and all
            else as text. An empty text matches null.

        Raises
        ------
        InputError
            If there is no such column, a value never occurs in it, or no row matches.
        """
        return filtered(where, self)[0]

    def _kept(self, keep: pl.Expr, columns: Sequence[str]) -> Self:
        rows = self.rows.filter(keep)
        return self.with_data(self.collect(rows) if self.in_memory else rows)

    def _rows_with(self, columns: Iterable[str]) -> pl.LazyFrame:
        return self.data.lazy()

    @property
    def height(self) -> int:
        """Number of rows."""
        if isinstance(self.data, pl.DataFrame):
            return self.data.height
        return int(self.collect(self.data.lazy().select(pl.len())).item())

    def partition(self, by: Sequence[str]) -> list[tuple[tuple[str, ...], Self]]:
        """Split the rows by the values of some columns, in order of first appearance.

        A key has one text per column of `by`; null is an empty text. Without columns there is one
        part, with the empty key.
        """
        expect(not isinstance(by, str), "by", by, "a sequence of column names")
        require(self, by)
        if not by:
            return [((), self)]
        parts = map(self.with_data, self.numbered().partition_by(list(by), maintain_order=True))
        return [(tuple(text(part, column)[0] or "" for column in by), part) for part in parts]

    def where(self, *numbers: int) -> str:
        """Return a text that names rows by their numbers in the source."""
        if not self.files:
            rows = " and ".join(map(str, numbers))
            return f"{self.source}, row{'s' if len(numbers) > 1 else ''} {rows}"
        return " and ".join(", row ".join(map(str, self.place(number))) for number in numbers)

    def place(self, number: int) -> tuple[str, int]:
        """Return the file, or the source, that has a row, and the number that the row has there."""
        for name, n_rows in self.files[:-1]:
            if number <= n_rows:
                return name, number
            number -= n_rows
        return self.files[-1][0] if self.files else self.source, number

    def error(
        self,
        number: int,
        column: str,
        expected: str,
        advice: Mapping[str, object] | None = None,
    ) -> InputError:
        """Return the error of the value in a row, by its number in the source, and a column."""
        value = self.rows.filter(pl.col(NUMBER) == number).select(column)
        source, row = self.place(number)
        got = self.collect(value)[column].to_list()[0]  # a list too as Python has it
        return InputError(
            source=source,
            row=row,
            column=self.title(column),
            got=got,
            expected=expected,
            advice=advice,
        )

    def sizes_of(
        self, column: str, texts: Sequence[str], rows: pl.Expr | None = None
    ) -> pl.DataFrame:
        """Return some of `texts` in some rows: `text`, their number `len` and the first of them."""
        text = plain_text(self, column).alias("text")
        is_bad = text.is_in([*texts]) & (pl.lit(True) if rows is None else rows)
        sizes = self.rows.filter(is_bad).group_by(text).agg(pl.len(), pl.col(NUMBER).min())
        return self.collect(sizes).sort("len", "text", descending=[True, False])

    def _schema(self) -> Mapping[str, pl.DataType]:
        return self.data.collect_schema()


# Columns and rows of a table


def require(table: Table, columns: Iterable[str], argument: str | None = None) -> None:
    """Raise an :class:`InputError` unless the table has all these columns."""
    for column in columns:
        if column not in table.columns:
            found = listing(map(table.title, table.columns))
            text = f"{table.source}: no column {column!r}; found {found}"
            advice = None if argument is None else {argument: {column: "NAME"}}
            text += "; {advice} reads it from a column NAME" if advice else ""
            raise InputError(text, advice=advice)


def as_text(table: Table, column: str) -> pl.Expr:
    """Return a column as text; null stays null."""
    require(table, [column])
    kind = table.schema[column]
    forbid(
        kind.is_nested() or kind == pl.Object,
        f"{table.source}, column {column}: got values of type {kind}, expected text or numbers",
    )
    return pl.col(column) if kind == pl.String else pl.col(column).cast(pl.String)


def plain_text(table: Table, column: str) -> pl.Expr:
    """Return a column as words are compared: text without blanks around it, in lower case."""
    return as_text(table, column).str.strip_chars().str.to_lowercase()


def text(table: Table, column: str) -> pl.Series:
    """Return a column as text, in memory; see `as_text`."""
    return table.collect(table.data.lazy().select(as_text(table, column)))[column]


def refuse(
    table: Table,
    bad: pl.Expr | pl.Series,
    column: str,
    expected: str,
    advice: Mapping[str, object] | None = None,
) -> None:
    """Raise an :class:`InputError` for the first row where `bad` is true, if there is one."""
    rows = table.collect(table.rows.filter(bad).select(NUMBER).head(1))
    if rows.height:
        raise table.error(rows[NUMBER][0], column, expected, advice)


def refuse_duplicates(
    table: Table,
    key: Sequence[str],
    remedy: str = "",
    argument: str | None = None,
    advice: Mapping[str, object] | None = None,
) -> None:
    """Raise an :class:`InputError` naming the first row that repeats the key of an earlier one."""
    if table.in_memory and not table.frame.select(key).is_duplicated().any():
        return
    rows = _with_first(table.numbered(), key)
    repeats = rows.filter(pl.col(_FIRST) != pl.col(NUMBER)).head(1)
    if repeats.height:
        raise InputError(_both_have(table, repeats, key) + remedy, argument=argument, advice=advice)


def without_repeats(
    table: AnyTable,
    key: Sequence[str],
    column: str,
    *more_columns: str,
    remedy: str = "",
    argument: str | None = None,
    advice: Mapping[str, object] | None = None,
) -> AnyTable:
    """Keep one row per key: the first with a value in `column`; refuse rows that differ."""
    frame = table.numbered()
    if frame.select(pl.struct(key).is_unique().all()).item():
        return table
    rows = _with_first(frame.drop_nulls(column), key)
    for name in (column, *more_columns):
        first = pl.col(name).first().over(key)
        differing = rows.with_columns(first.alias(PLACE)).filter(pl.col(name) != pl.col(PLACE))
        if differing.height:
            values = f"{differing[PLACE][0]} and {differing[name][0]}"
            text = (
                f"{_both_have(table, differing, key)}, with {table.title(name)}s {values}{remedy}"
            )
            raise InputError(text, argument=argument, advice=advice)
    present_first = pl.exclude(key).sort_by(pl.col(column).is_null(), maintain_order=True)
    kept = frame.group_by(key, maintain_order=True).agg(present_first.first())
    return table.with_data(kept.select(frame.columns))


def _with_first(frame: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    return frame.with_columns(pl.col(NUMBER).first().over(key).alias(_FIRST))


def _both_have(table: Table, rows: pl.DataFrame, key: Sequence[str]) -> str:
    same = ", ".join(f"{table.title(column)} {shown(rows[column][0])}" for column in key)
    return f"{table.where(rows[_FIRST][0], rows[NUMBER][0])}: both have {same}"


def listing(values: Iterable[str], most: int = 10) -> str:
    """Join the first values with commas."""
    values = [value or "''" for value in values]
    more = len(values) - most
    return ", ".join(values[:most]) + (f" and {more} more" if more > 0 else "")


def filtered(where: Mapping[str, object], *tables: AnyTable) -> list[AnyTable]:
    """Filter tables that are read together; one with the column has to have each value."""
    keeps: list[dict[str, pl.Expr]] = [{} for _ in tables]
    for name, value in where.items():
        column = str(name).strip().lower()
        having = [table for table in tables if column in table.columns]
        if not having and column in _SAME:
            column = _SAME[column]
            having = [table for table in tables if column in table.columns]
        if not having:
            if len(tables) == 1:
                require(tables[0], [column])
            present = "; ".join(f"{table.source} has {listing(table.columns)}" for table in tables)
            raise InputError(f"no column {column!r}; {present}")
        texts = _texts_of(value)
        as_numbers = any(re.fullmatch(_NUMBER, text) for text in texts)
        wanted = [re.sub(_NUMBER, r"\1\2", text) for text in texts]
        absent = {*wanted}
        for table, keep in zip(tables, keeps, strict=True):
            if column in table.columns:
                key = as_text(table, column).fill_null("")
                key = key.str.replace(_NUMBER, "${1}${2}") if as_numbers else key
                keep[column] = key.is_in(wanted)
                rows = table._rows_with([column]).select(key.filter(keep[column]).unique())
                absent -= {*table.collect(rows)[column]}
        if absent:
            text = min(text for text, key in zip(texts, wanted, strict=True) if key in absent)
            found = having[0].values(column).fill_null("").unique(maintain_order=True)
            raise InputError(
                f"{having[0].source}: no row has {column} {text!r}; found {listing(found)}"
            )
    parts = []
    for table, keep in zip(tables, keeps, strict=True):
        part = table._kept(pl.all_horizontal(keep.values()), [*keep]) if keep else table
        pairs = " and ".join(f"{column} {value!r}" for column, value in where.items())
        forbid(keep and not part.height, f"{table.source}: no row has {pairs}")
        parts.append(part)
    return parts


def _texts_of(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple | set | frozenset) else [value]
    return [
        "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for value in values
    ]


def ids_of(items: pl.Series) -> NDArray[Any]:
    """Return items as an array of int64, or of object holding str."""
    import numpy as np

    return items.to_numpy() if items.dtype.is_integer() else np.array(items.to_list(), dtype=object)


def counts_of(
    frame: pl.DataFrame, columns: Iterable[str] = ("minus", "tie", "plus")
) -> NDArray[Any]:
    """Return columns of counts as an array with a row for each item."""
    return frame.select(*columns).to_numpy(order="c")
