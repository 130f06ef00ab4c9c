"""Pairs to be judged, or single responses, from a file or a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from btdagg._util.errors import InputError, expect
from btdagg._util.readable import readable
from btdagg.judge.client import digest_of
from btdagg.votes import Table, read_table
from btdagg.votes.grades import with_criteria
from btdagg.votes.schema import ITEM_NAMES, PAIRS, parse
from btdagg.votes.source import with_item
from btdagg.votes.table import listing, refuse, refuse_duplicates, text

if TYPE_CHECKING:
    import polars as pl

    from btdagg.votes.source import Source

# What a column may be called; the first of these that is there is taken.
_NAMES = {
    "item": ("item",),
    "a": ("a", "response_a", "translation_a"),
    "b": ("b", "response_b", "translation_b"),
    "response": ("response", "output", "completion"),
    "prompt": ("prompt", "source", "question", "instruction"),
    "reference": ("reference",),
}
# Never shown to a judge.
SECRET = ("label", "vote", "grade", "score")


@readable
@dataclass(frozen=True)
class Pair:
    """Two responses to one prompt, or one to be graded; texts that there are none of are empty.

    Attributes
    ----------
    fields : mapping of str to str
        Whatever else is known of the pair, by column, for the placeholders of templates.
    """

    item: str
    a: str = ""
    b: str = ""
    prompt: str = ""
    reference: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    response: str = ""

    @property
    def task(self) -> str:
        """Its task, of which a criterion is a part; empty where there is neither."""
        return " ".join(filter(None, map(self.fields.get, ("task", "criterion"))))

    @property
    def key(self) -> str:
        """Name of the item in a store, with the criterion that it is judged by."""
        criterion = self.fields.get("criterion")
        return f"{self.item} [{criterion}]" if criterion else self.item

    @property
    def responses(self) -> tuple[str, ...]:
        """What is judged."""
        return tuple(filter(None, (self.a, self.b, self.response)))

    @property
    def digest(self) -> str:
        """Digest of the texts: a store refuses another text under the same key."""
        texts = [self.a, self.b, self.prompt, self.reference]
        if self.response or "criterion" in self.fields:
            rubric = [self.fields.get(name, "") for name in ("criterion", "rubric")]
            texts += [self.response, *rubric]
        return digest_of(texts)

    @property
    def about(self) -> tuple[str | None, ...]:
        """Fields for a store: key, digest, task, criterion, the item if not the key, systems."""
        name = None if self.key == self.item else self.item
        of = self.fields.get
        systems = (of(name) or None for name in ("system", "system_a", "system_b"))
        return (self.key, self.digest, of("task"), of("criterion"), name, *systems)


@readable
@dataclass(frozen=True, eq=False)
class Pairs(Table):
    """Pairs in a row: has a length, is iterated and indexed like a tuple of :class:`Pair`.

    Pairs are made when asked for, so that a million of them cost no more than their texts.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns `item` (text or Int64), `a` and `b`, or `response` (text); where the source has them
        `prompt`, `reference` (text); and every other column as it came.
    source : str
        Name of these pairs in errors.
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
    def shown(self) -> tuple[str, ...]:
        """Placeholders of templates for what is judged."""
        return ("response",) if "a" not in self.columns else ("first", "second")

    @property
    def tasks(self) -> pl.Series | None:
        """The task of each row, as `Pair.task` has it; None without such columns."""
        named = with_criteria(self)
        return text(named, "task") if "task" in named.columns else None

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the columns that templates may use besides those of every pair."""
        return tuple(name for name in self.columns if name not in _NAMES and name not in SECRET)

    @property
    def facts(self) -> pl.DataFrame:
        """Facts about each pair besides its texts: other columns, characters of responses."""
        import polars as pl

        chars = {"a": "chars_a", "b": "chars_b", "response": "chars"}
        lengths = [
            pl.col(name).str.len_chars().alias(column)
            for name, column in chars.items()
            if name in self.columns and column not in self.columns
        ]
        return self.frame.select(*self.fields, *lengths)

    @property
    def n_identical(self) -> int:
        """Number of pairs whose responses are the same text, blanks around it apart."""
        import polars as pl

        if len(self.shown) == 1:
            return 0
        a, b = (pl.col(name).str.strip_chars() for name in ("a", "b"))
        # Streamed: stripped copies of all texts would double the memory that pairs take.
        n_identical = self.frame.lazy().select((a == b).sum()).collect(engine="streaming")
        return int(n_identical.item())


def read_pairs(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    criteria: Mapping[str, str] | None = None,
) -> Pairs:
    """Read pairs of responses, one row per pair, or single responses to be graded.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.votes.read_table`. Required are `item` (or `id`, `item_id`), `a` and `b`
        (or `response_a` and `response_b`, `translation_a` and `translation_b`). Optional are
        `prompt` (or `source`, `question`, `instruction`), `reference`, and columns of templates,
        but not `label` and `vote`, which no judge is shown. Blanks around ids do not count.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"prompt": "query"}``.
    criteria : mapping of str to str, optional
        Criteria for every item, and the rubric of each; by default the columns `criterion` and
        `rubric`, if present, in a row for each item and criterion.

    Raises
    ------
    InputError
        If a column or a response is missing, or an item is there twice (under one criterion).
    """
    table = with_item(read_table(source, [], columns=columns))
    is_pair = {*table.columns}.isdisjoint(_NAMES["response"]) or not {*table.columns}.isdisjoint(
        (*_NAMES["a"], *_NAMES["b"])
    )
    left_out = ("response",) if is_pair else ("a", "b")
    renamed = {}
    for name, names in _NAMES.items():
        if name in left_out:
            continue
        column = next((other for other in names if other in table.columns), None)
        if column is not None:
            renamed[column] = name
        elif name in ("item", "a", "b", "response"):
            expected = " or ".join(names if name != "item" else ("item", *ITEM_NAMES))
            columns_there = listing(table.columns)
            raise InputError(f"{table.source}: no column {expected}; found {columns_there}")
        if name in ("a", "b", "response"):
            values = text(table, column or name)
            blank = values.is_null() | (values.str.strip_chars() == "")
            refuse(table, blank, column or name, "the text of a response")
    parsed = parse(table.with_data(table.numbered().rename(renamed)), PAIRS.kinds)
    if "criterion" in parsed.columns:
        refuse(parsed, text(parsed, "criterion").is_null(), "criterion", "the name of a criterion")
    pairs = Pairs(parsed.data, parsed.source, files=parsed.files)
    refuse_duplicates(pairs, PAIRS.key_of(pairs))
    return _by_criteria(pairs, criteria) if criteria else pairs


def _by_criteria(pairs: Pairs, criteria: Mapping[str, str]) -> Pairs:
    import polars as pl

    for name in ("criterion", "rubric"):
        expected = f"None, since {pairs.source} has a column {name}"
        expect(name not in pairs.columns, "criteria", [*criteria], expected)
    columns = {"criterion": [*criteria], "rubric": [*criteria.values()]}
    return pairs.with_data(pairs.frame.join(pl.DataFrame(columns), how="cross"))


def _pair(row: dict[str, object]) -> Pair:
    texts = {name: _text(row.pop(name, None)) for name in _NAMES}
    fields = {name: _text(value) for name, value in row.items() if name not in SECRET}
    return Pair(**texts, fields=fields)


def _text(value: object) -> str:
    return "" if value is None else str(value)
