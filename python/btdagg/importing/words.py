"""What the words of other tools mean as votes, and what to type for words that are not known."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from btdagg._core import InputError
from btdagg.tables import schema
from btdagg.tables.table import Table, as_text, listing, refuse

VOTE = "\0vote"  # no column of a source is called that
_MEANINGS: dict[str, int | None] = {
    "a": 1, "1": 1, "+1": 1, "tie": 0, "same": 0, "0": 0, "b": -1, "-1": -1, "missing": None,
}  # fmt: skip
_MEANT = re.compile(r"\s*(.+?)\s*=\s*(a|b|tie|same|missing|[+-]?1|0)\s*(?:,|$)", re.IGNORECASE)
# What people write for votes. It is no more than a hint, since `second` may be the better answer of
# one table and the worse of another.
_LIKELY = {
    "A": (
        "model_a", "model_1", "model a", "response_a", "assistant a", "first", "left", "a>b",
        "a>>b", "b<a", "b<<a", "a wins", "win", "[[a]]", "output (a)", "1.0",
    ),
    "B": (
        "model_b", "model_2", "model b", "response_b", "assistant b", "second", "right", "b>a",
        "b>>a", "a<b", "a<<b", "b wins", "loss", "lose", "[[b]]", "output (b)", "2",
    ),
    "tie": (
        "c", "[[c]]", "draw", "equal", "tied", "both", "neither", "a=b", "b=a", "=", "0.5",
        "both_bad", "bothbad", "both bad", "tie (bothbad)", "tie (inconsistent)", "inconsistent",
    ),
    "missing": ("error", "none", "null", "n/a", "na", "nan", "invalid", "unparsed", "failed", "?"),
}  # fmt: skip
_GUESSES = {word: meaning for meaning, words in _LIKELY.items() for word in words}


def parse_words(texts: Sequence[str]) -> dict[str, str]:
    """Parse texts such as ``model_a=A,model_b=B,A=B=tie`` to meanings by word.

    Raises
    ------
    InputError
        If a text is none such.
    """
    words: dict[str, str] = {}
    for text in texts:
        place = 0
        while place < len(text):
            found = _MEANT.match(text, place)
            if found is None:
                raise InputError(
                    f"--words is {text!r}, want WORD=A, WORD=B, WORD=tie or WORD=missing, "
                    "separated by commas"
                )
            words[found[1]] = found[2]
            place = found.end()
    return words


def as_words(words: Mapping[str, object] | None) -> dict[str, int | None]:
    """Return votes by word in lower case; None for a word that says there is no vote.

    Raises
    ------
    InputError
        If a word is given another meaning than -1, 0, 1, A, tie, B or missing.
    """
    known: dict[str, int | None] = {}
    for word, meaning in (words or {}).items():
        text = "missing" if meaning is None else str(meaning).strip().lower()
        if text not in _MEANINGS:
            raise InputError(f"words: {word!r} is {meaning!r}, want A, B, tie or missing")
        known[str(word).strip().lower()] = _MEANINGS[text]
    return known


def voted(table: Table, column: str, words: Mapping[str, int | None]) -> Table:
    """Add the column `VOTE`, Int8: what the words of a column mean.

    Raises
    ------
    InputError
        For the first word that is not known, with the option that would say what it means.
    """
    word = as_text(table, column).str.strip_chars().str.to_lowercase()
    meant = word.replace({word: "" if vote is None else str(vote) for word, vote in words.items()})
    added = table.with_columns([meant.alias(VOTE)])
    parser = schema.votes(added, VOTE)
    ((is_bad, wanted),) = parser.checks
    bad = added.collect(added.data.lazy().filter(is_bad).select(word.alias(column)).unique())
    if bad.height:
        known = f"{listing(list(words))} or {wanted}" if words else wanted
        refuse(added, is_bad, column, f"{known}; {hint(sorted(bad[column].to_list()))}")
    return added.with_columns([parser.value.alias(VOTE)])


def hint(unknown: Iterable[str]) -> str:
    """Say what to type so that words are known."""
    several = list(unknown)
    guessed = {word: _GUESSES[word] for word in several if word in _GUESSES}
    if not guessed:
        text = shlex.quote(f"{several[0]}=tie")
        return f"--words {text} (or =A, =B, =missing) says what it means"
    meanings = ",".join(f"{word}={meaning}" for word, meaning in guessed.items())
    others = [word for word in several if word not in guessed]
    rest = f"; {listing([repr(word) for word in others])} too want a meaning" if others else ""
    return f"--words {shlex.quote(meanings)} says what they may mean{rest}"
