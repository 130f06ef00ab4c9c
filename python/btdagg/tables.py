"""Tables of columns, and parsing them.

Nothing here knows what a vote is. A :class:`Table` is the rows of one source and the name that
errors call the source by. A parser turns one of its columns into typed values and refuses the first
bad one by file, row and column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, TypeVar

from btdagg._core import InputError

if TYPE_CHECKING:
    import polars as pl

AnyTable = TypeVar("AnyTable", bound="Table")

MAX_LISTED = 10
MAX_SHOWN = 60

_NUMBER = "\0row"  # no column of a source is called that


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one source.

    Attributes
    ----------
    frame : polars.DataFrame
        The columns. Names are stripped and lower-case; a NaN is a null, a category is text.
    source : str
        What errors call these rows: the path as it was given, ``standard input`` or ``data frame``.
    row_numbers : polars.Series or None
        Number of each row in the source, from 1; None where that is its place in the frame.
    """

    frame: pl.DataFrame
    source: str
    row_numbers: pl.Series | None = field(default=None, repr=False, kw_only=True)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order of the source."""
        return self.frame.columns

    def filter(self, where: Mapping[str, object]) -> Self:
        """Keep the rows that have the given values.

        Parameters
        ----------
        where : mapping of column name, in any case, to a value, or to several in a list or set
            A row stays if in every named column it has one of the values given. Values are
            compared as text, so that 0.0 and ``"0.0"`` find the same in a column of numbers and in
            one of text. An empty text finds nulls.

        Returns
        -------
        object of the same class

        Raises
        ------
        InputError
            If there is no such column, a value never occurs in it, or no row has all that is asked
            for; the message lists what there is.
        """
        import polars as pl

        keep = pl.repeat(True, self.frame.height, eager=True)
        if not isinstance(where, Mapping):
            raise InputError(f"where is {where!r}, want a mapping of column to value")
        for name, asked in where.items():
            column, values = str(name).strip().lower(), _texts_of(asked)
            present = text(self, column).fill_null("")
            found = present.unique(maintain_order=True).to_list()
            absent = sorted(set(values).difference(found))
            if absent:
                raise InputError(
                    f"{self.source}: no row has {column} {absent[0]!r}; found {listing(found)}"
                )
            keep &= present.is_in(values)
        if not keep.any():
            each = " and ".join(f"{column} {value!r}" for column, value in where.items())
            raise InputError(f"{self.source}: no row has {each}")
        return self.renumbered(self.numbered().filter(keep))

    def numbered(self) -> pl.DataFrame:
        """Return the frame with the numbers of its rows, for whoever picks or moves rows."""
        import polars as pl

        numbers = pl.int_range(1, pl.len() + 1) if self.row_numbers is None else self.row_numbers
        return self.frame.with_columns(numbers.alias(_NUMBER))

    def renumbered(self, frame: pl.DataFrame) -> Self:
        """Return the same with rows that were picked from `numbered`."""
        return replace(self, frame=frame.drop(_NUMBER), row_numbers=frame[_NUMBER])

    def row_number(self, place: int) -> int:
        """Return the number that a row of the frame has in the source."""
        numbers = self.row_numbers
        return place + 1 if numbers is None or len(numbers) != self.frame.height else numbers[place]

    def partition(self, by: Sequence[str]) -> list[tuple[tuple[str, ...], Self]]:
        """Split the rows by the values of some columns.

        Parameters
        ----------
        by : sequence of str
            Names of columns. None of them leaves the rows whole, under the empty key.

        Returns
        -------
        list of (key, object of the same class)
            In the order in which the keys are first seen. A key holds one text per column of `by`;
            a null is an empty text.

        Raises
        ------
        InputError
            If there is no such column.
        """
        if isinstance(by, str):
            raise InputError(f"by is {by!r}, want a sequence of column names")
        require(self, by)
        if not by:
            return [((), self)]
        frames = self.numbered().partition_by(list(by), maintain_order=True)
        parts = [self.renumbered(frame) for frame in frames]
        return [(tuple(text(part, column)[0] or "" for column in by), part) for part in parts]


# Columns and rows of a table


def require(table: Table, columns: Iterable[str]) -> None:
    """Raise an :class:`InputError` unless the table has all these columns."""
    for column in columns:
        if column not in table.columns:
            found = listing(table.columns)
            raise InputError(f"{table.source}: no column {column!r}; found {found}")


def text(table: Table, column: str) -> pl.Series:
    """Parse a column as text, whatever its type; a null stays null."""
    import polars as pl

    require(table, [column])
    values = table.frame[column]
    try:
        return values.cast(pl.String)
    except pl.exceptions.PolarsError:
        raise InputError(
            f"{table.source}, column {column}: got values of type {values.dtype}, "
            "want text or numbers"
        ) from None


def parse_columns(
    table: Table, parsers: Mapping[str, Callable[[Table, str], pl.Series]]
) -> pl.DataFrame:
    """Replace each column that has a parser, if it is there, by what the parser makes of it."""
    present = [(parse, column) for column, parse in parsers.items() if column in table.columns]
    return table.frame.with_columns(parse(table, column) for parse, column in present)


def refuse(table: Table, bad: pl.Series, column: str, wanted: str) -> None:
    """Raise an :class:`InputError` for the first row where `bad` is true, if there is one."""
    rows = bad.arg_true()
    if len(rows):
        row = rows[0]
        got = shown(table.frame[column].slice(row, 1).to_list()[0])  # a list too as Python has it
        number = table.row_number(row)
        raise InputError(f"{table.source}, row {number}, column {column}: got {got}, want {wanted}")


def refuse_duplicates(table: Table, key: Sequence[str]) -> None:
    """Raise an :class:`InputError` naming the first row that repeats the key of an earlier one."""
    repeats = _repeats(table, key).arg_true()
    if len(repeats):
        raise InputError(_both_have(table, key, repeats[0], table.frame.select(key)))


def without_repeats(table: AnyTable, key: Sequence[str], column: str) -> AnyTable:
    """Keep one row of every key: the first whose column is not empty, or the first where all are.

    Raises
    ------
    InputError
        If two rows of a key hold different values; the message names them.
    """
    import polars as pl

    if not _repeats(table, key).any():
        return table
    known = table.renumbered(table.numbered().filter(pl.col(column).is_not_null()))
    values = known.frame[column]
    differ = known.frame.select(pl.col(column) != pl.col(column).first().over(key)).to_series()
    if differ.any():
        row = differ.arg_true()[0]
        keys = known.frame.select(key)
        first = values[keys.rows().index(keys.row(row))]
        raise InputError(
            f"{_both_have(known, key, row, keys)}, with {column}s {first} and {values[row]}"
        )
    frame = table.numbered()
    present_first = pl.exclude(key).sort_by(pl.col(column).is_null(), maintain_order=True)
    kept = frame.group_by(key, maintain_order=True).agg(present_first.first())
    return table.renumbered(kept.select(frame.columns))


def _repeats(table: Table, key: Sequence[str]) -> pl.Series:
    """Whether each row has the key of an earlier one."""
    import polars as pl

    return ~table.frame.select(pl.struct(key).is_first_distinct()).to_series()


def _both_have(table: Table, key: Sequence[str], row: int, keys: pl.DataFrame) -> str:
    """Say which earlier row has the key of a row, and what that is."""
    values = keys.row(row)
    pairs = zip(key, values, strict=True)
    same = ", ".join(f"{column} {shown(value)}" for column, value in pairs)
    first, second = table.row_number(keys.rows().index(values)), table.row_number(row)
    return f"{table.source}, rows {first} and {second}: both have {same}"


def listing(values: Iterable[str]) -> str:
    """Write values in a row, the first ten of them."""
    values = [value or "''" for value in values]
    more = len(values) - MAX_LISTED
    return ", ".join(values[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogate, which neither UTF-8 nor a column holds."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(value: object) -> str:
    """Write a value for an error message: one line, cut to length; a null is "nothing"."""
    line = "nothing" if value is None else repr(value)
    return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 3] + "..."


def _texts_of(asked: object) -> list[str]:
    """Return the texts that one value or several are compared by."""
    several = list(asked) if isinstance(asked, list | tuple | set | frozenset) else [asked]
    return [_text_of(value) for value in several]


def _text_of(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
