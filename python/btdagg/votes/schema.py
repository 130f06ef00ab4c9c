"""The columns of each kind of table, and how they are parsed."""
# Columns that are plain, as one pass checks, are taken as they are, others parsed as text; a single
# row is examined only to report an error.

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from btdagg._util.errors import InputError
from btdagg._util.lazy import pl
from btdagg.votes.table import NUMBER, AnyTable, Table, as_text, require

_RELATIVE, _ROUNDING = 1e-9, 1e-12  # most that rounding changes a score, and scores near 0
_TOO_LARGE = 2**53  # from here on float64, the way from text to numbers, skips whole numbers


Fault: TypeAlias = tuple[int, InputError]
"""The number of a bad row, and the error of it."""


class Parser(NamedTuple):
    """How a column is parsed: `plain` where `is_plain` holds in every row, else `value`."""

    # `checks` are pairs of bad rows and what is expected of them; `fault` is found already.

    plain: pl.Expr
    is_plain: pl.Expr
    value: pl.Expr
    checks: Sequence[tuple[pl.Expr, str]] = ()
    fault: Fault | None = None


Kind: TypeAlias = Callable[[Table, str], Parser]


class Column(NamedTuple):
    """A declared column of a kind of table.

    Attributes
    ----------
    kind : Kind, optional
        How its text becomes a value, and what is expected of it. None where that depends on the
        scale (votes and labels, see `verdicts_on`), or for columns that are kept as they are.
    names : tuple of str
        What else it may be called, in the order of preference.
    is_key : bool
        Whether it tells rows apart: no two agree in all columns of the key that a table has.
    """

    kind: Kind | None = None
    names: tuple[str, ...] = ()
    is_key: bool = False


@dataclass(frozen=True)
class Spec:
    """A kind of table: its declared columns, in the order in which errors look at them."""

    columns: Mapping[str, Column]

    @property
    def kinds(self) -> dict[str, Kind]:
        """How columns are parsed, by their names."""
        return {name: c.kind for name, c in self.columns.items() if c.kind is not None}

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that tell rows apart."""
        return tuple(name for name, column in self.columns.items() if column.is_key)

    def key_of(self, table: Table) -> list[str]:
        """Return the columns of the key that a table has."""
        return [column for column in self.key if column in table.columns]

    def names_of(self, column: str) -> tuple[str, ...]:
        """Return the names that a column may have, the declared one first."""
        return (column, *self.columns[column].names)


def parse(table: AnyTable, kinds: Mapping[str, Kind]) -> AnyTable:
    """Parse each column that has a kind."""
    present = {name: kind for name, kind in kinds.items() if name in table.columns}
    return table.with_columns(checked(table, present))


def checked(table: Table, kinds: Mapping[str, Kind]) -> list[pl.Expr]:
    """Return the values of columns as expressions; the first bad row of any of them is an error.

    One pass over the rows finds columns that are plain. Only if some are not, a second one finds
    the first row that is bad.
    """
    require(table, kinds)
    parsers = {name: kind(table, name) for name, kind in kinds.items()}
    are_plain = (parser.is_plain.all().alias(name) for name, parser in parsers.items())
    plain = table.collect(table.data.lazy().select(are_plain)).row(0) if parsers else ()
    pairs = [*zip(parsers.items(), plain, strict=True)]
    checks = [(name, *check) for (name, p), as_is in pairs if not as_is for check in p.checks]
    first_bad = (
        pl.col(NUMBER).filter(bad).min().alias(str(n)) for n, (_, bad, _) in enumerate(checks)
    )
    numbers = table.collect(table.rows.select(first_bad)).row(0) if checks else ()
    faults = {name: p.fault for name, p in parsers.items() if p.fault is not None}
    for number, (name, _, expected) in zip(numbers, checks, strict=True):
        if number is not None:
            advice = {"order": {"...": "AB"}} if kinds[name] is orders else None
            fault = number, table.error(number, name, expected, advice)
            faults[name] = min(faults.get(name, fault), fault, key=lambda fault: fault[0])
    if faults:
        raise min((faults[n] for n in kinds if n in faults), key=lambda fault: fault[0])[1]
    return [(p.plain if as_is else p.value).alias(name) for (name, p), as_is in pairs]


def parse_column(table: Table, column: str, kind: Kind) -> pl.Series:
    """Return the values of one column, in memory."""
    return table.collect(table.data.lazy().select(checked(table, {column: kind})))[column]


# Kinds


def ids(table: Table, column: str) -> Parser:
    """Ids: text without spaces around it (even if all digits), or whole numbers."""
    values, words = pl.col(column), as_text(table, column)
    kind, trimmed = table.schema[column], words.str.strip_chars()
    absent = (trimmed.fill_null("") == "", "an id")
    if not kind.is_numeric():
        is_plain = (_is_trimmed(words) & (words != "")).fill_null(False)
        return Parser(words, is_plain, trimmed, [absent])
    whole = values if kind == pl.Int64 else values.cast(pl.Int64, strict=False)
    if kind.is_integer():
        return Parser(whole, whole.is_not_null(), words, [absent])
    # pandas makes whole numbers floats where it has to fit in a NaN.
    numbers = values.cast(pl.Float64)
    is_whole, is_exact = _is_whole(numbers), numbers.abs() < _TOO_LARGE
    checks = [
        absent,
        (~is_whole, "text or a whole number"),
        (~is_exact, "text or a whole number below 2**53 in size"),
    ]
    return Parser(whole, (is_whole & is_exact).fill_null(False), whole, checks)


def names(table: Table, column: str) -> Parser:
    """Names, without spaces around them; an empty name is null."""
    words = as_text(table, column)
    trimmed = words.str.strip_chars()
    is_plain = (_is_trimmed(words) & (words != "")).fill_null(True)
    return Parser(words, is_plain, pl.when(trimmed != "").then(trimmed))


def groups(table: Table, column: str) -> Parser:
    """Groups of items: names, none of them empty."""
    parser = names(table, column)
    is_plain = parser.is_plain & pl.col(column).is_not_null()
    return Parser(parser.plain, is_plain, parser.value, [(parser.value.is_null(), "a group name")])


def texts(table: Table, column: str) -> Parser:
    """Text, or numbers as text."""
    words = as_text(table, column)
    return Parser(words, pl.lit(True), words)


def whole_numbers(table: Table, column: str) -> Parser:
    """Numbers that are whole, at least 0 and below 2**53, as Int64."""
    number = _numbers(as_text(table, column))
    expected = "a whole number of at least 0"
    checks = [
        (~(_is_whole(number) & (number >= 0)).fill_null(False), expected),
        (~(number.abs() < _TOO_LARGE), f"{expected} and below 2**53"),
    ]
    value = number.cast(pl.Int64, strict=False)
    kind = table.schema[column]
    if not (kind.is_integer() or kind == pl.String):
        return Parser(value, pl.lit(False), value, checks)
    plain = pl.col(column)
    plain = plain if kind == pl.Int64 else plain.cast(pl.Int64, strict=False)
    is_plain = plain.is_between(0, _TOO_LARGE - 1).fill_null(False)
    return Parser(plain, is_plain, value, checks)


def amounts_of_votes(table: Table, column: str) -> Parser:
    """Numbers of votes: as `whole_numbers`, or Float64 where votes have strengths."""
    number = _numbers(as_text(table, column))
    whole, expected = whole_numbers(table, column), "a number of at least 0"
    checks = [
        (~(number >= 0).fill_null(False) | number.is_nan(), expected),
        (~(number < _TOO_LARGE), f"{expected} and below 2**53"),
    ]
    return Parser(whole.plain, whole.is_plain, number, checks)


def _floats(low: float, high: float, expected: str) -> Kind:
    def kind(table: Table, column: str) -> Parser:
        words = as_text(table, column)
        number = pl.col(column) if table.schema[column] == pl.Float64 else _numbers(words)
        good = number.is_between(low, high)
        return Parser(number, good.fill_null(True), number, [(~good, expected)])

    return kind


fractions = _floats(0, 1, "a number from 0 to 1, or nothing")
signed_fractions = _floats(-1, 1, "a number from 0 to 1, or -1 to 1")


def lead(score: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Difference of two scores, 0 where they are equal but for rounding, as 0.1 + 0.2 and 0.3."""
    difference = score - other
    rounding = pl.max_horizontal(score.abs(), other.abs()) * _RELATIVE
    is_rounding = difference.abs() <= pl.max_horizontal(rounding, pl.lit(_ROUNDING))
    return pl.when(is_rounding).then(0.0).otherwise(difference)


def margins(table: Table, column: str) -> Parser:
    """Differences of scores, whose sums are finite; those that are rounding are 0."""
    expected = "a number of at most 1e+100 in size, or nothing"
    parser = _floats(-1e100, 1e100, expected)(table, column)
    value = lead(parser.value, pl.lit(0.0))
    return parser._replace(plain=value, value=value)


amounts = _floats(0, sys.float_info.max, "a number of at least 0")
numbers_of_raters = _floats(1, 1e6, "a number of raters of at least 1, or nothing")
finite_numbers = _floats(-sys.float_info.max, sys.float_info.max, "a number, or nothing")


_ORDERS = "AB or BA; for other words pass {advice}"


def orders(table: Table, column: str) -> Parser:
    """Orders of presentation, AB or BA in any case."""
    words = as_text(table, column)
    value = words.str.strip_chars().str.to_uppercase()
    is_plain = ((words == "AB") | (words == "BA")).fill_null(False)
    is_order = ((value == "AB") | (value == "BA")).fill_null(False)
    return Parser(words, is_plain, pl.when(is_order).then(value), [(~is_order, _ORDERS)])


def _is_trimmed(words: pl.Expr) -> pl.Expr:
    # Whether texts have no blanks around them; lengths are compared sooner than texts.
    return words.str.strip_chars().str.len_bytes() == words.str.len_bytes()


def _numbers(words: pl.Expr) -> pl.Expr:
    words = words.str.strip_chars()
    values = words.cast(pl.Float64, strict=False)
    return pl.when(values.is_null() & (words != "")).then(float("nan")).otherwise(values)


def _is_whole(values: pl.Expr) -> pl.Expr:
    return values.is_finite() & (values == values.floor())


# Kinds of tables

ITEM = Column(ids, ("id", "item_id"), is_key=True)
NAME = Column(names)
TASK = Column(names, ("criterion",), is_key=True)
TEXT = Column(texts)

# What makes a sample the same sample is the key of votes.
VOTES = Spec(
    {
        "item": ITEM,
        "judge": Column(names, is_key=True),
        "order": Column(orders, is_key=True),
        "sample": Column(whole_numbers, is_key=True),
        "template": Column(names, is_key=True),
        "temperature": Column(is_key=True),
        "task": TASK,
        "vote": Column(names=("score",)),
    }
)
# With counts, whose columns have two names each.
COUNTS = Spec({"item": ITEM, "task": TASK, "judge": Column(names, is_key=True)})
LABELS = Spec(
    {
        "task": TASK,
        "item": ITEM,
        "group": Column(groups),
        "unit": NAME,
        "least_probability": Column(fractions),
        "n_raters": Column(numbers_of_raters),
        "label": Column(names=("grade", "score")),
    }
)
PAIRS = Spec(
    {
        "item": ITEM,
        **dict.fromkeys(("a", "b", "response", "prompt", "reference", "rubric"), TEXT),
        "criterion": Column(names, is_key=True),
    }
)
ITEM_NAMES = ITEM.names
VOTE_COLUMNS, LABEL_COLUMNS = VOTES.names_of("vote"), LABELS.names_of("label")
"""Where votes and labels are; pairs have the first of each."""
