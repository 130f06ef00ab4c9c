"""Meaning of other tools' words as votes, and advice for unknown words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from btdagg._util.errors import InputError, expect
from btdagg._util.lazy import pl
from btdagg._util.spreadsheets import is_number
from btdagg._util.wording import counted
from btdagg.remarks import Remark, guessed_numbers
from btdagg.votes import schema
from btdagg.votes.grades import likely_scale
from btdagg.votes.table import Table, as_text, listing, refuse, require
from btdagg.votes.words import MISSING, PAIR_WORDS, PASS_WORDS, SHOWN, WHOLE, word_of

if TYPE_CHECKING:
    from btdagg.votes.scale import Scale

VOTE = "\0vote"  # no column of a source is called that
_MEANINGS: dict[str, int | None] = {
    **PAIR_WORDS, "1": 1, "+1": 1, "0": 0, "-1": -1, MISSING: None,
}  # fmt: skip
NAMES_OF_SYSTEMS = "; if they name systems, also name system_a and system_b, the columns of both"
_SYSTEMS = ("system_a", "system_b")
_OF_OURS = {"sample", "status"}  # columns beside the votes of every table that btdagg writes
_MOST_WORDS = 12  # that are listed
_LONGEST = 60  # of a word, in characters


def as_words(words: Mapping[str, object] | None) -> dict[str, int | None]:
    """Return votes by word in lower case; None for a word that says there is no vote."""
    meanings: dict[str, int | None] = {}
    for word, meaning in (words or {}).items():
        text = "missing" if meaning is None else str(meaning).strip().lower()
        expected = "A, B, first, second, tie or missing"
        expect(text in _MEANINGS, "words", f"{word}={meaning}", expected)
        meanings[str(word).strip().lower()] = _MEANINGS[text]
    return meanings


def meanings_of(words: Mapping[str, object] | None, scale: Scale) -> Mapping[str, float | None]:
    """Return votes on a scale by word in lower case; None for a word that says there is none."""
    return as_words(words) if scale.mirrored else grade_words(words)


def grade_words(words: Mapping[str, object] | None) -> dict[str, float | None]:
    """Return grades by word in lower case; None for a word that says there is none."""
    grades: dict[str, float | None] = {}
    for word, meaning in (words or {}).items():
        try:
            grade = None if meaning in (None, "missing") else float(str(meaning))
        except ValueError:
            expected = "a grade or missing"
            raise InputError(argument="words", got=f"{word}={meaning}", expected=expected) from None
        grades[str(word).strip().lower()] = grade
    return grades


def names_systems(table: Table, column: str) -> bool:
    """Whether a vote is the name of its row's `system_a` or `system_b`."""
    is_text = table.schema.get(column) == pl.String
    if not is_text or not {*_SYSTEMS} <= {*table.columns}:
        return False
    word = _words_in(table, column)
    is_name = pl.any_horizontal(word == _words_in(table, name) for name in _SYSTEMS)
    return bool(table.collect(table.data.lazy().select(is_name.any())).item())


def are_guessed(table: Table, column: str, words: Iterable[object] = ()) -> bool:
    """Whether votes, or labels, are 0 and 1 alone, and nobody said what these numbers mean.

    Tables that btdagg writes, of a store or an import, have its own numbers.
    """
    if {*table.columns} >= _OF_OURS:
        return False
    numbers = {*map(word_of, table.values(column).drop_nulls().unique())} - {""}
    return bool(numbers) and numbers <= {"0", "1"} and not numbers <= {*map(word_of, words)}


def about_words(votes: object) -> tuple[Remark, ...]:
    """Say how votes of 0 and 1 alone were read where nobody said what the numbers mean."""
    return (guessed_numbers(),) if getattr(votes, "is_guessed", False) else ()


def voted(
    table: Table,
    column: str,
    words: Mapping[str, int | None],
    systems: tuple[str, str] = _SYSTEMS,
) -> Table:
    """Add the column `VOTE`, Int8: what the words of a column mean; names of systems are theirs."""
    word = _words_in(table, column)
    meant = word.replace(
        {word_of(name): "" if vote is None else str(vote) for name, vote in words.items()}
    )
    added = table.with_columns([meant.alias(VOTE)])
    parser = schema.votes(added, VOTE)
    ((is_bad, expected),) = parser.checks
    value = parser.value
    if {*systems} <= {*table.columns}:
        is_a, is_b = (word.eq_missing(_words_in(table, name)) for name in systems)
        side = pl.when(is_a & ~is_b).then(1).when(is_b & ~is_a).then(-1).cast(pl.Int8)
        is_said = word.is_in([word_of(name) for name in words])
        other = f"a side that no {' or '.join(systems)} is called; {{advice}} says what it means"
        refuse(added, (side != value) & ~is_said, column, other, {"words": None})
        is_bad, value = is_bad & side.is_null(), pl.coalesce(value, side)
    unknown = added.data.lazy().filter(is_bad).group_by(word.alias(column))
    bad = added.collect(unknown.len())
    if bad.height:
        numbers = dict(bad.sort("len", column, descending=[True, False]).iter_rows())
        expected = f"{listing(list(words))} or {expected}" if words else expected
        if max(map(len, numbers)) > _LONGEST:
            how = {"columns": {"answer": "..."}}
            refuse(
                added, is_bad, column, f"{expected}; to find verdicts in texts pass {{advice}}", how
            )
        texts = {text.strip().lower() for text in table.values(column).drop_nulls()} - {""}
        are_grades = texts <= {*PASS_WORDS}
        are_grades |= all(re.fullmatch(r"[+-]?[\d.]+", word) for word in texts)
        if are_grades and column == "label":  # `scale_in` has seen that most are of pairs
            refuse(added, is_bad, column, expected)
        if are_grades:
            text = f"{expected}; to read grades pass {{advice}}"
            refuse(added, is_bad, column, text, {"scale": likely_scale(table, column)})
        words_to_say = {"words": dict.fromkeys([*numbers][:_MOST_WORDS], "...")}
        are_names = len(numbers) > 1 and not any(map(is_number, numbers))
        are_names &= not {*systems} <= {*table.columns}
        text = f"{expected}; {_unknown(numbers)}{NAMES_OF_SYSTEMS * are_names}"
        refuse(added, is_bad, column, text, words_to_say)
    return added.with_columns([value.alias(VOTE)])


def in_own_words(table: Table, words: Mapping[str, object], column: str = "vote") -> Table:
    """Return a table whose votes, or labels, in a user's own words are numbers."""
    require(table, [column], "columns")
    sides = {
        word_of(word): SHOWN[str(side).lower()]
        for word, side in words.items()
        if str(side).lower() in SHOWN
    }
    meanings = as_words({word: m for word, m in words.items() if word_of(word) not in sides})
    if sides:
        require(table, ["order"])
    vote, is_of_side = pl.col(VOTE), _words_in(table, column).is_in(list(sides))
    table = voted(table, column, meanings | sides)
    if sides:
        shown_as = as_text(table, "order").str.strip_chars().str.to_uppercase()
        vote = pl.when(is_of_side & (shown_as == "BA")).then(-vote).otherwise(vote)
    table = table.with_columns([vote.alias(column)])
    return table.with_data(table.data.drop(VOTE))


def in_own_orders(table: Table, order: Mapping[str, str]) -> Table:
    """Return a table whose orders in a user's own words are AB and BA."""
    names = {word_of(word): str(name) for word, name in order.items()}
    return table.with_columns([_words_in(table, "order").replace(names).alias("order")])


def _words_in(table: Table, column: str) -> pl.Expr:
    words = as_text(table, column).str.strip_chars().str.to_lowercase()
    return words.str.replace(WHOLE, "${1}")


def _unknown(unknown: Mapping[str, int]) -> str:
    words = list(unknown)[:_MOST_WORDS]
    rows = ", ".join(f"{word!r} in {counted(unknown[word], 'row')}" for word in words)
    rest = f" and {len(unknown) - len(words)} others" if len(unknown) > len(words) else ""
    return (
        f"unknown: {rows}{rest}; say what they mean in {{advice}}: A, B, tie or missing "
        "for each ..."
    )
