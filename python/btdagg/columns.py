"""Parsers of columns: from what a source holds to ids, votes and numbers.

Each takes a table and the name of a column, returns its clean values, and refuses the first bad
one by file, row and column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from btdagg._core import InputError
from btdagg.tables import Table, refuse, text

if TYPE_CHECKING:
    import polars as pl

Code = TypeVar("Code", int, str)

_VOTE_WORDS = {"a": 1, "tie": 0, "same": 0, "b": -1}
_TOO_LARGE = 2**53  # from here on float64, the way from text to numbers, skips whole numbers


def item_ids(table: Table, column: str) -> pl.Series:
    """Parse ids, text without the blanks around it or whole numbers.

    A text column stays text even if all of it are digits.
    """
    import polars as pl

    values = table.frame[column]
    ids = names(table, column)
    refuse(table, ids.is_null(), column, "an id")
    if not values.dtype.is_numeric():
        return ids
    if not values.dtype.is_integer():
        # pandas makes whole numbers floats where it has to fit in a NaN.
        refuse(table, ~_is_whole(values), column, "text or a whole number")
        refuse(table, ~_is_exact(values), column, "text or a whole number below 2**53 in size")
    whole = values.cast(pl.Int64, strict=False)
    return ids if whole.null_count() else whole


def names(table: Table, column: str) -> pl.Series:
    """Parse what a row belongs to, without the blanks around it; what is empty is null."""
    return text(table, column).str.strip_chars().replace("", None)


def vote_values(table: Table, column: str) -> pl.Series:
    """Parse votes or labels to Int8 -1, 0, 1; empty ones are null."""
    import polars as pl

    return _coded(table, column, _vote_value, "-1, 0, 1 or A, tie, B").cast(pl.Int8)


def whole_numbers(table: Table, column: str) -> pl.Series:
    """Parse numbers that are whole, at least 0 and below 2**53 to Int64."""
    import polars as pl

    values = _numbers(text(table, column))
    wanted = "a whole number of at least 0"
    good = (_is_whole(values) & (values >= 0)).fill_null(False)
    refuse(table, ~good, column, wanted)
    refuse(table, ~_is_exact(values), column, f"{wanted} and below 2**53")
    return values.cast(pl.Int64)


def confidences(table: Table, column: str) -> pl.Series:
    """Parse numbers as `fractions` does; a column that holds anything else stays as it is.

    It is refused by whoever uses it.
    """
    try:
        return fractions(table, column)
    except InputError:
        return table.frame[column]


def fractions(table: Table, column: str) -> pl.Series:
    """Parse numbers from 0 to 1 to Float64; empty ones are null."""
    values = _numbers(text(table, column))
    refuse(table, ~values.is_between(0, 1), column, "a number from 0 to 1, or nothing")
    return values


def amounts(table: Table, column: str) -> pl.Series:
    """Parse finite numbers of at least 0 to Float64; empty ones are null."""
    values = _numbers(text(table, column))
    refuse(table, ~((values >= 0) & values.is_finite()), column, "a number of at least 0")
    return values


def orders(table: Table, column: str) -> pl.Series:
    """Parse orders of presentation, AB or BA in any case."""
    wanted = "AB or BA"
    orders = _coded(table, column, {"ab": "AB", "ba": "BA"}.get, wanted)
    refuse(table, orders.is_null(), column, wanted)
    return orders


def _coded(table: Table, column: str, code: Callable[[str], Code | None], wanted: str) -> pl.Series:
    """Replace every text by its code; case and blanks around it do not count, empty is null."""
    words = text(table, column).str.strip_chars().str.to_lowercase().replace("", None)
    codes = {word: code(word) for word in words.unique() if word is not None}
    unknown = [word for word, value in codes.items() if value is None]
    refuse(table, words.is_in(unknown), column, wanted)
    return words.replace_strict(codes)


def _vote_value(word: str) -> int | None:
    import polars as pl

    if word in _VOTE_WORDS:
        return _VOTE_WORDS[word]
    number = _numbers(pl.Series([word])).item()  # what counts are written in, votes are too
    return int(number) if number in (-1, 0, 1) else None


def _numbers(words: pl.Series) -> pl.Series:
    """Parse texts to Float64: null where empty, NaN where it is no number in ASCII digits."""
    import polars as pl

    words = words.str.strip_chars()
    values = words.cast(pl.Float64, strict=False)
    return values.set(values.is_null() & (words != ""), float("nan"))


def _is_whole(values: pl.Series) -> pl.Series:
    return values.is_finite() & (values == values.floor())


def _is_exact(values: pl.Series) -> pl.Series:
    return values.abs() < _TOO_LARGE
