"""The whole job as one SQL query: votes to counts, labels and probabilities.

A vote is -1, 0 or 1 in these queries, NULL if it is missing, and `UNREADABLE` if it is none of
these, or a sample has two different ones. A query cannot refuse a row, so an item with such a vote
gets NULL for its counts and label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.model.sql.dialects import (
    Dialect,
    Name,
    dialect_named,
    is_storable,
    number_in,
    quoted,
    text_in,
    texts_in,
)
from btdagg.model.sql.expressions import label_in, lead_of, size_and_slope, to_sql
from btdagg.model.sql.panel import PanelTerms, panel_label, panel_terms

if TYPE_CHECKING:
    from btdagg.model.sql.expressions import _Model
    from btdagg.model.sql.panel import _SeveralJudges

UNREADABLE = 2
SIDES = {"minus": -1, "tie": 0, "plus": 1}
# How databases write a number as text: 1, 1.0 and 1.00 of decimals, 1.0E0 of Trino's floats.
_WORDS = {
    -1: ("b", "-1", "-1.0", "-1.00", "-1.0e0"),
    0: ("tie", "same", "0", "-0", "0.0", "-0.0", "0.00", "0.0e0", "-0.0e0"),
    1: ("a", "1", "+1", "1.0", "1.00", "1.0e0"),
}
_LEAST_EXPONENT = -700  # databases raise an error where a float underflows


@dataclass(frozen=True)
class VotesTable:
    """A table of votes in a database, one row per vote, and the names of its columns.

    Parameters
    ----------
    name : str or sequence of str
        The table; several parts are a qualified name such as ``("main", "btdagg_votes")``.
    item, vote : str
        Columns of the items and of the votes from A's point of view.
    sample : str or sequence of str
        Columns that tell the votes of an item apart: ``("judge", "order", "sample")`` for what
        `btdagg votes --export` writes, in which each judge and order numbers its samples from 0.
        Equal votes of a sample count once; an item that has a sample with different votes gets NULL
        for its counts and label. Without such columns every row is one more vote.
    task, judge : str, optional
        Columns to group by as well: an item is then decided for each of their values. Of a panel
        `judge` is the column of the judges' names.
    where : mapping of column name to a value, or to several in a list
        Use only the rows that have one of these values, compared as text.
    numbers : bool
        Whether all votes are numbers, so that they need not be read as text, which takes longer.

    Raises
    ------
    InputError
        If `where` is no mapping, or one of its values no text or number.
    """

    name: Name
    item: str = "item"
    vote: str = "vote"
    sample: str | Sequence[str] = ()
    task: str | None = None
    judge: str | None = None
    where: Mapping[str, object] = field(default_factory=dict)
    numbers: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.where, Mapping):
            raise InputError(f"where is {self.where!r}, expected a mapping of column to value")
        for column, asked in self.where.items():
            values = _several(asked)
            if not values:
                raise InputError(f"where has no value of {column!r}, expected at least one")
            for value in values:
                if isinstance(value, bool) or not isinstance(value, str | int | float):
                    raise InputError(
                        f"where has {column!r}: {value!r}, expected a text or a number"
                    )
                if isinstance(value, str) and not is_storable(value):
                    raise InputError(f"where has {column!r}: {value!r}, which no database takes")

    @property
    def keys(self) -> dict[str, str]:
        """The columns to group by besides the item, by the names they have in the result."""
        columns = {"task": self.task, "judge": self.judge}
        return {name: column for name, column in columns.items() if column is not None}

    @property
    def samples(self) -> list[str]:
        """The columns that tell samples apart."""
        return [self.sample] if isinstance(self.sample, str) else list(self.sample)


def model_query(
    model: _Model,
    dialect: str,
    votes: VotesTable | Name,
    *,
    probabilities: bool,
    max_votes: int | None,
) -> str:
    """Return the query of a model; see `DavidsonModel.to_sql_query`."""
    words, table = dialect_named(dialect), _table(votes)
    if probabilities and max_votes is not None:
        raise InputError("probabilities need mathematical functions, and max_votes does without")
    steps = [*counted_votes(table, words)]
    kept = [*table.keys, "item", *SIDES]
    if max_votes is not None:
        looked_up = to_sql(model, dialect, max_votes=max_votes)
        return query(
            steps, [*names(kept, words), f"{looked_up} AS {_name('label', words)}"], "btdagg_counts"
        )
    # Step by step, since not every database sees that a value is used several times.
    minus, tie, plus, size, slope, lead, label, u, eta = names(
        (*SIDES, "size", "slope", "lead", "label", "u", "eta"), words
    )
    sizes = size_and_slope(model, words, minus, tie, plus)
    found = [*names(kept, words), f"{sizes[0]} AS {size}", f"{sizes[1]} AS {slope}"]
    steps.append(("btdagg_features", select(found, "btdagg_counts")))
    found = [*names(kept, words), size, slope, f"{lead_of(size, words)} AS {lead}"]
    steps.append(("btdagg_margins", select(found, "btdagg_features")))
    decided = label_in(model, words, f"{minus} IS NOT NULL", (minus, plus), lead, slope)
    found = [*names(kept, words), f"{decided} AS {label}"]
    if not probabilities:
        return query(steps, found, "btdagg_margins")
    ahead, behind = (plus, minus) if model.beta > 0 else (minus, plus)
    side = f"CASE WHEN {ahead} > {behind} THEN {size} WHEN {ahead} < {behind} THEN 0 - {size}"
    found += [
        f"{side} ELSE 0 * {size} END AS {u}",
        f"{number_in(model.eta0, words)} + {slope} AS {eta}",
    ]
    steps.append(("btdagg_decided", select(found, "btdagg_margins")))
    return _with_probabilities(steps, kept, words)


def panel_query(
    model: _SeveralJudges,
    dialect: str,
    votes: VotesTable | Name,
    rounding: float,
    *,
    probabilities: bool,
) -> str:
    """Return the query of a panel; see `PanelModel.to_sql_query`."""
    words, table = dialect_named(dialect), _table(votes)
    if table.judge is None:
        raise InputError("judge is None, expected the column of the judges' names")
    columns = {
        name: [f"{side}_{number}" for side in SIDES] for number, name in enumerate(model.judges)
    }
    terms = panel_terms(model, words, columns)
    kept = [*(key for key in table.keys if key != "judge"), "item", *SIDES]
    # Each judge's counts are of an item whose votes can all be read, or all of them are NULL.
    known = f"{_name('minus', words)} IS NOT NULL"
    with_terms = [
        *names(kept, words),
        *(f"{term} AS {_name(name, words)}" for name, term in _panel_terms_of(terms)),
    ]
    of_row = PanelTerms(known, *(_name(name, words) for name in ("u", "eta", "doubt")))
    label = f"{panel_label(of_row, words, rounding)} AS {_name('label', words)}"
    counted = [
        *counted_votes(table, words, model.judges),
        ("btdagg_terms", select(with_terms, "btdagg_counts")),
    ]
    if not probabilities:
        return query(counted, [*names(kept, words), label], "btdagg_terms")
    found = [*names((*kept, "u", "eta"), words), label]
    return _with_probabilities(
        [*counted, ("btdagg_decided", select(found, "btdagg_terms"))], kept, words
    )


def _panel_terms_of(terms: PanelTerms) -> Iterator[tuple[str, str]]:
    yield from (("u", terms.u), ("eta", terms.eta), ("doubt", terms.doubt))


def counted_votes(
    table: VotesTable, words: Dialect, judges: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Write the subqueries from votes to `counts`, one row per item and key.

    With `judges` there is one row for all of them, with their counts side by side too. A vote of
    anybody else is then unreadable.
    """
    samples = table.samples
    columns = {**table.keys, "item": table.item}
    columns |= {f"sample_{number}": column for number, column in enumerate(samples)}
    of_rows = [f"{_of(column, words)} AS {_name(name, words)}" for name, column in columns.items()]
    vote = _of(table.vote, words)
    if samples or not table.numbers:  # other numbers than votes are found by counting
        vote = reading(vote, words, numbers=table.numbers)
    if judges:
        # As names are read from files: without blanks around them.
        judge = f"TRIM(CAST({_of(table.keys['judge'], words)} AS {words.text}))"
        known = f"COALESCE({judge} IN {texts_in(judges, words)}, FALSE)"
        vote = f"CASE WHEN {known} THEN {vote} ELSE {UNREADABLE} END"
        of_rows[list(columns).index("judge")] = f"{judge} AS {_name('judge', words)}"
    of_rows.append(f"{vote} AS {_name('vote', words)}")
    yield (
        "btdagg_votes",
        f"{select(of_rows, f'{_source(table, words)} AS v')}{_conditions(table, words)}",
    )
    rows, vote_name = "btdagg_votes", _name("vote", words)
    if samples:
        once = (
            f"CASE WHEN MIN({vote_name}) = MAX({vote_name}) THEN MAX({vote_name}) "
            f"WHEN MAX({vote_name}) IS NOT NULL THEN {UNREADABLE} END AS {vote_name}"
        )
        kept = names((*table.keys, "item"), words)
        yield (
            "btdagg_samples",
            f"{select([*kept, once], rows)} GROUP BY {', '.join(names(columns, words))}",
        )
        rows = "btdagg_samples"
    keys = names((*(key for key in table.keys if not (judges and key == "judge")), "item"), words)
    sums = [_count(f"{vote_name} = {vote}", side, words) for side, vote in SIDES.items()]
    judge_name = _name("judge", words)
    for number, judge in enumerate(judges):
        own = f"{judge_name} = {text_in(judge, words)}"
        sums += [
            _count(f"{vote_name} = {vote} AND {own}", f"{side}_{number}", words)
            for side, vote in SIDES.items()
        ]
    yield "btdagg_counts", f"{select([*keys, *sums], rows)} GROUP BY {', '.join(keys)}"


def reading(column: str, words: Dialect, *, numbers: bool) -> str:
    """Write a vote or a label as -1, 0, 1, NULL if it is missing, or `UNREADABLE`."""
    if numbers:
        known = " ".join(f"WHEN {column} = {number} THEN {number}" for number in _WORDS)
        return f"CASE WHEN {column} IS NULL THEN NULL {known} ELSE {UNREADABLE} END"
    said = f"LOWER(TRIM(CAST({column} AS {words.text})))"
    known = " ".join(
        f"WHEN {text_in(word, words)} THEN {number}"
        for number, several in _WORDS.items()
        for word in several
    )
    missing = f"CASE WHEN {column} IS NULL THEN NULL"
    return f"{missing} ELSE CASE {said} {known} WHEN '' THEN NULL ELSE {UNREADABLE} END END"


def _count(condition: str, name: str, words: Dialect) -> str:
    """Count the votes for which a condition holds, if all votes of the item can be read."""
    vote = _name("vote", words)
    known = " + ".join(_how_many(f"{vote} = {number}") for number in SIDES.values())
    return (
        f"CASE WHEN COUNT({vote}) = {known} THEN {_how_many(condition)} END AS {_name(name, words)}"
    )


def _how_many(condition: str) -> str:
    return f"COUNT(CASE WHEN {condition} THEN 1 END)"


def _with_probabilities(
    steps: Sequence[tuple[str, str]], kept: Sequence[str], words: Dialect
) -> str:
    """Write the query of probabilities from u and eta, which do not overflow."""
    known = names((*kept, "label"), words)
    u, eta, floor = _name("u", words), _name("eta", words), number_in(_LEAST_EXPONENT, words)
    greatest = words.greatest
    top = f"{greatest}(ABS({u}), {eta})"
    odds = [
        f"EXP({greatest}({logit} - {top}, {floor})) AS {_name(f'odds_{side}', words)}"
        for side, logit in zip(SIDES, (f"(0 - {u})", eta, u), strict=True)
    ]
    minus, tie, plus = (_name(f"odds_{side}", words) for side in SIDES)
    missing = f"CASE WHEN {_name('label', words)} IS NULL THEN NULL"
    # Both sides first, so that mirrored items have mirrored sums.
    shares = [
        f"{missing} ELSE {one} / (({minus} + {plus}) + {tie}) END AS {_name(f'p_{side}', words)}"
        for side, one in zip(SIDES, (minus, tie, plus), strict=True)
    ]
    return query(
        [*steps, ("btdagg_odds", select([*known, *odds], "btdagg_decided"))],
        [*known, *shares],
        "btdagg_odds",
    )


def _conditions(table: VotesTable, words: Dialect) -> str:
    conditions = []
    for column, asked in table.where.items():
        wanted = texts_in(map(str, _several(asked)), words)
        conditions.append(f"CAST({_of(column, words)} AS {words.text}) IN {wanted}")
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def query(steps: Sequence[tuple[str, str]], columns: Sequence[str], source: str) -> str:
    """Write a query over subqueries."""
    above = ",\n".join(f"{name} AS (\n  {query}\n)" for name, query in steps)
    return f"WITH {above}\n{select(columns, source)}"


def select(columns: Sequence[str], source: str) -> str:
    """Write a query of one source."""
    return f"SELECT {', '.join(columns)} FROM {source}"


def _table(votes: VotesTable | Name) -> VotesTable:
    return votes if isinstance(votes, VotesTable) else VotesTable(votes)


def _source(table: VotesTable, words: Dialect) -> str:
    return quoted(table.name, "votes", words, "table")


def _of(column: str, words: Dialect) -> str:
    """Write a column of the table of votes, which in a query may have the name of another."""
    if not isinstance(column, str):
        raise InputError(f"column is {column!r}, expected its name")
    return f"v.{quoted(column, 'column', words)}"


def _name(name: str, words: Dialect) -> str:
    return quoted(name, "column", words)


def names(columns: Sequence[str] | Mapping[str, str], words: Dialect) -> list[str]:
    """Quote the names of columns of a subquery."""
    return [_name(column, words) for column in columns]


def _several(asked: object) -> list[object]:
    return list(asked) if isinstance(asked, list | tuple | set | frozenset) else [asked]
