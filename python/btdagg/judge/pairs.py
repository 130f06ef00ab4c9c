"""Pairs to be judged, from a file or a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from btdagg._util.errors import InputError
from btdagg._util.readable import readable
from btdagg.votes import Table, read_table
from btdagg.votes.schema import PAIRS, parse
from btdagg.votes.source import ITEM_NAMES, with_item
from btdagg.votes.table import listing, refuse, refuse_duplicates, text

if TYPE_CHECKING:
    from btdagg.votes.source import Source

# What a column may be called; the first of these that is there is taken.
_NAMES = {
    "item": ("item",),
    "a": ("a", "response_a", "translation_a"),
    "b": ("b", "response_b", "translation_b"),
    "prompt": ("prompt", "source", "question", "instruction"),
    "reference": ("reference",),
}
# Never shown to a judge.
_SECRET = ("label", "vote")


@readable
@dataclass(frozen=True)
class Pair:
    """Two responses to one prompt; a prompt or reference that there is none of is empty.

    Attributes
    ----------
    fields : mapping of str to str
        Whatever else is known of the pair, by column, for the placeholders of templates.
    """

    item: str
    a: str
    b: str
    prompt: str = ""
    reference: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


@readable
@dataclass(frozen=True, eq=False)
class Pairs(Table):
    """Pairs in a row: has a length, is iterated and indexed like a tuple of :class:`Pair`.

    Pairs are made when asked for, so that a million of them cost no more than their texts.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns `item` (text or Int64), `a`, `b` (text); where the source has them `prompt`,
        `reference` (text); and every other column as it came.
    source : str
        What errors call these pairs.
    """

    def __len__(self) -> int:
        return self.frame.height

    def __getitem__(self, number: int) -> Pair:
        if not -len(self) <= number < len(self):
            raise IndexError(f"pair {number} of {len(self)}")
        return _pair(self.frame.row(number, named=True))

    def __iter__(self) -> Iterator[Pair]:
        return map(_pair, self.frame.iter_rows(named=True))

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the columns that templates may use besides those of every pair."""
        return tuple(name for name in self.columns if name not in _NAMES and name not in _SECRET)

    @property
    def n_identical(self) -> int:
        """Number of pairs whose responses are the same text, blanks around it apart."""
        import polars as pl

        a, b = (pl.col(name).str.strip_chars() for name in ("a", "b"))
        # Streamed: stripped copies of all texts would double the memory that pairs take.
        n_identical = self.frame.lazy().select((a == b).sum()).collect(engine="streaming")
        return int(n_identical.item())


def read_pairs(source: Source, *, columns: Mapping[str, str] | None = None) -> Pairs:
    """Read pairs of responses, one row per pair.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.votes.read_table`. Required are `item` (or `id`, `item_id`), `a` and `b`
        (or `response_a` and `response_b`, `translation_a` and `translation_b`). Known too are
        `prompt` (or `source`, `question`, `instruction`) and `reference`. Other columns are kept,
        and can be used in templates, but for `label` and `vote`, which no judge is shown. Blanks
        around ids do not count.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"prompt": "query"}``.

    Raises
    ------
    InputError
        If a column or a response is missing, or an item is there twice.
    """
    table = with_item(read_table(source, [], columns=columns))
    renamed = {}
    for name, names in _NAMES.items():
        column = next((other for other in names if other in table.columns), None)
        if column is not None:
            renamed[column] = name
        elif name in ("item", "a", "b"):
            expected = " or ".join(names if name != "item" else ("item", *ITEM_NAMES))
            columns_there = listing(table.columns)
            raise InputError(f"{table.source}: no column {expected}; found {columns_there}")
        if name in ("a", "b"):
            values = text(table, column or name)
            blank = values.is_null() | (values.str.strip_chars() == "")
            refuse(table, blank, column or name, "the text of a response")
    parsed = parse(table.with_data(table.numbered().rename(renamed)), PAIRS.kinds)
    pairs = Pairs(parsed.data, parsed.source, files=parsed.files)
    refuse_duplicates(pairs, PAIRS.key_of(pairs))
    return pairs


def _pair(row: dict[str, object]) -> Pair:
    texts = {name: _text(row.pop(name, None)) for name in _NAMES}
    fields = {name: _text(value) for name, value in row.items() if name not in _SECRET}
    return Pair(**texts, fields=fields)


def _text(value: object) -> str:
    return "" if value is None else str(value)
