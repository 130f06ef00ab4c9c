"""What the words of other tools mean as votes, and what to type for words that are not known."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.votes import schema
from btdagg.votes.table import Table, as_text, listing, refuse

if TYPE_CHECKING:
    import polars as pl

VOTE = "\0vote"  # no column of a source is called that
_MEANINGS: dict[str, int | None] = {
    "a": 1, "1": 1, "+1": 1, "tie": 0, "same": 0, "0": 0, "b": -1, "-1": -1, "missing": None,
}  # fmt: skip
_SIDES = {"first": 1, "second": -1}  # the vote where A is shown first
_WHOLE = r"^\+?(-?[0-9]+)(?:\.0*)?$"  # 1.0 and +1 are the word 1
_MEANT = re.compile(r"\s*(.+?)\s*=\s*(a|b|tie|same|missing|[+-]?1|0)\s*(?:,|$)", re.IGNORECASE)
_BLANK = "..."  # what a user is to fill in
_MOST_WORDS = 12  # that are listed
_LONGEST = 60  # of a word, in characters


def parse_words(texts: Sequence[str]) -> dict[str, str]:
    """Parse texts such as ``model_a=A,model_b=B,A=B=tie`` to meanings by word."""
    words: dict[str, str] = {}
    for text in texts:
        place = 0
        while place < len(text):
            pair = _MEANT.match(text, place)
            if pair is None or f"={_BLANK}" in pair[1]:
                raise InputError(
                    f"--words is {text!r}, expected WORD=A, WORD=B, WORD=tie or WORD=missing, "
                    "separated by commas"
                )
            words[pair[1]] = pair[2]
            place = pair.end()
    return words


def as_words(words: Mapping[str, object] | None) -> dict[str, int | None]:
    """Return votes by word in lower case; None for a word that says there is no vote."""
    meanings: dict[str, int | None] = {}
    for word, meaning in (words or {}).items():
        text = "missing" if meaning is None else str(meaning).strip().lower()
        if text not in _MEANINGS:
            raise InputError(f"words: {word!r} is {meaning!r}, expected A, B, tie or missing")
        meanings[str(word).strip().lower()] = _MEANINGS[text]
    return meanings


def voted(table: Table, column: str, words: Mapping[str, int | None]) -> Table:
    """Add the column `VOTE`, Int8: what the words of a column mean."""
    word = _words_in(table, column)
    meant = word.replace(
        {_word(name): "" if vote is None else str(vote) for name, vote in words.items()}
    )
    added = table.with_columns([meant.alias(VOTE)])
    parser = schema.votes(added, VOTE)
    ((is_bad, wanted),) = parser.checks
    unknown = added.data.lazy().filter(is_bad).group_by(word.alias(column))
    bad = added.collect(unknown.len())
    if bad.height:
        counted = dict(bad.sort("len", column, descending=[True, False]).iter_rows())
        known = f"{listing(list(words))} or {wanted}" if words else wanted
        are_texts = max(map(len, counted)) > _LONGEST
        said = f"--map answer={column} reads verdicts in texts" if are_texts else hint(counted)
        refuse(added, is_bad, column, f"{known}; {said}")
    return added.with_columns([parser.value.alias(VOTE)])


def shown_second(table: Table, name: str, values: Sequence[str]) -> pl.Expr:
    """Whether a row calls A what was shown second: its column has one of these values."""
    column = name.strip().lower()
    if column not in table.columns:
        raise InputError(
            f"flip_where {name}: no column {column!r}; {table.source} has {listing(table.columns)}"
        )
    present = table.values(column).fill_null("").unique(maintain_order=True).to_list()
    wanted = [value.strip().lower() for value in values]
    for value in values:
        if value.strip().lower() not in (text.strip().lower() for text in present):
            raise InputError(
                f"flip_where {column}={value}: no row of {table.source} has that; found "
                f"{listing(present)}"
            )
    shown = as_text(table, column).fill_null("").str.strip_chars().str.to_lowercase()
    return shown.is_in(wanted)


def in_own_words(
    table: Table, words: Mapping[str, object] | None, order: Mapping[str, str] | None
) -> Table:
    """Return a table whose votes and orders in a user's own words are those of `VOTES`."""
    import polars as pl

    if order is not None:
        names = {_word(word): str(name) for word, name in order.items()}
        table = table.with_columns([_words_in(table, "order").replace(names).alias("order")])
    if words is None:
        return table
    sides = {
        _word(word): _SIDES[side]
        for word, side in words.items()
        if isinstance(side, str) and side in _SIDES
    }
    meanings = as_words({word: m for word, m in words.items() if _word(word) not in sides})
    vote, is_of_side = pl.col(VOTE), _words_in(table, "vote").is_in(list(sides))
    table = voted(table, "vote", meanings | sides)
    if sides:
        shown_as = as_text(table, "order").str.strip_chars().str.to_uppercase()
        vote = pl.when(is_of_side & (shown_as == "BA")).then(-vote).otherwise(vote)
    table = table.with_columns([vote.alias("vote")])
    return table.renumbered(table.data.drop(VOTE))


def _word(value: object) -> str:
    return re.sub(_WHOLE, r"\1", str(value).strip().lower())


def _words_in(table: Table, column: str) -> pl.Expr:
    """Return a column as words; a whole number is one word, however it is stored."""
    words = as_text(table, column).str.strip_chars().str.to_lowercase()
    return words.str.replace(_WHOLE, "${1}")


def hint(unknown: Mapping[str, int]) -> str:
    """Say which words are unknown and how often they come, and where to say what they mean."""
    listed = list(unknown)[:_MOST_WORDS]
    counted = ", ".join(f"{word!r} {unknown[word]:,} times" for word in listed)
    others = f" and {len(unknown) - len(listed)} others" if len(unknown) > len(listed) else ""
    return f"unknown are {counted}{others}; say what they mean in {blanks(listed)}"


def blanks(words: Sequence[str]) -> str:
    """Return the option in which a user says what words mean, with blanks to fill in."""
    typed = shlex.quote(",".join(f"{word}={_BLANK}" for word in words))
    return f"--words {typed}: A, B, tie or missing for each {_BLANK}"
