"""What the words and numbers in a column of votes or labels mean."""
# A column has few different texts. Their meaning is found once for each, and an error names the row
# in which a text is first.

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from btdagg._util.errors import InputError, expect
from btdagg._util.lazy import pl
from btdagg._util.spreadsheets import is_number
from btdagg._util.wording import counted
from btdagg.remarks import Remark, guessed_numbers
from btdagg.votes.grades import likely_scale
from btdagg.votes.scale import PAIRS, Scale, listed
from btdagg.votes.schema import Fault, Kind, Parser
from btdagg.votes.table import NUMBER, Table, as_text, listing, plain_text, require
from btdagg.votes.words import MISSING, PAIR_WORDS, PASS_WORDS, SHOWN, WHOLE, word_of

NAMES_OF_SYSTEMS = "; if they name systems, also name system_a and system_b, the columns of both"
_OF_OURS = {"sample", "status"}  # columns beside the votes of every table that btdagg writes
_MOST_WORDS = 12  # that are listed
_MOST_SPELLINGS = 100  # of 0 and 1
_LONGEST = 60  # of a word, in characters
_OF_PAIRS: dict[str, int | None] = {
    **PAIR_WORDS, "1": 1, "+1": 1, "0": 0, "-1": -1, MISSING: None,
}  # fmt: skip


def as_words(words: Mapping[str, object] | None) -> dict[str, int | None]:
    """Return votes on pairs by word; None for a word that says there is no vote."""
    votes: dict[str, int | None] = {}
    for word, meaning in (words or {}).items():
        text = MISSING if meaning is None else str(meaning).strip().lower()
        expected = "A, B, first, second, tie or missing"
        expect(text in _OF_PAIRS, "words", f"{word}={meaning}", expected)
        votes[word_of(word)] = _OF_PAIRS[text]
    return votes


def grade_words(words: Mapping[str, object] | None) -> dict[str, float | None]:
    """Return grades by word; None for a word that says there is none."""
    grades: dict[str, float | None] = {}
    for word, meaning in (words or {}).items():
        try:
            grade = None if meaning in (None, MISSING) else float(str(meaning))
        except ValueError:
            expected = "a grade or missing"
            raise InputError(argument="words", got=f"{word}={meaning}", expected=expected) from None
        grades[word_of(word)] = grade
    return grades


def meanings_of(words: Mapping[str, object] | None, scale: Scale) -> Mapping[str, float | None]:
    """Return votes on a scale by word; None for a word that says there is none."""
    return as_words(words) if scale.mirrored else grade_words(words)


def number_of(text: str) -> float:
    """Return the number that a text is, NaN if it is none."""
    # Python takes digits of other scripts, and underscores between them, for numbers.
    with suppress(ValueError):
        return float(text) if text.isascii() and "_" not in text else math.nan
    return math.nan


def are_guessed(table: Table, column: str, words: Iterable[object] = ()) -> bool:
    """Whether votes, or labels, are 0 and 1 alone, and nobody said what these numbers mean.

    Tables that btdagg writes, of a store or an import, have its own numbers.
    """
    if {*table.columns} >= _OF_OURS or table.texts(column).height > _MOST_SPELLINGS:
        return False
    numbers = {*map(word_of, table.texts(column)["text"].drop_nulls())} - {""}
    return bool(numbers) and numbers <= {"0", "1"} and not numbers <= {*map(word_of, words)}


def about_words(votes: object) -> tuple[Remark, ...]:
    """Say how votes of 0 and 1 alone were read where nobody said what the numbers mean."""
    return (guessed_numbers(),) if getattr(votes, "is_guessed", False) else ()


def verdicts_on(
    scale: Scale,
    words: Mapping[str, object] | None = None,
    *,
    systems: Sequence[str] = PAIRS.systems,
    strict: bool = True,
) -> Kind:
    """Votes or labels on a scale, in its numbers, in its words or in a user's; empty ones are null.

    A vote on a pair may also be the name of one of the row's two systems, and a user's word may
    name the response that was shown first or second, which the column `order` turns to A and B.
    Without `strict` unknown words are null as well.
    """

    def kind(table: Table, column: str) -> Parser:
        texts = table.texts(column)
        points = _points(scale, words)
        found = {text: _point(text, points, scale) for text in texts["text"].fill_null("")}
        unknown = [text for text, point in found.items() if point is _UNKNOWN]
        value = _replaced(table, column, scale, found)
        if scale == PAIRS and {*systems} <= {*table.columns} and texts["value"].dtype == pl.String:
            value, unknown = _with_systems(table, column, systems, words, (value, unknown))
        shown = [word for word, of in (words or {}).items() if str(of).strip().lower() in SHOWN]
        shown = shown if scale == PAIRS else []
        require(table, ["order"] if shown else [])
        fault = None
        if unknown and strict:
            fault = _unknown_words(table, column, scale, words, systems, (value, unknown))
        if shown:
            is_of_side = _word_in(table, column).is_in([word_of(word) for word in shown])
            is_turned = as_text(table, "order").str.strip_chars().str.to_uppercase() == "BA"
            value = pl.when(is_of_side & is_turned).then(-value).otherwise(value)
        return Parser(value, pl.lit(True), value, fault=fault)

    return kind


_UNKNOWN = object()


def _points(scale: Scale, words: Mapping[str, object] | None) -> dict[str, Any]:
    """Return the point of each word; None for one that says there is no vote."""
    names: dict[str, Any] = dict(zip(scale.names, scale.points, strict=True))
    points = {word_of(name): point for name, point in names.items()}
    if scale.mirrored:
        points |= {word: scale.points[side + 1] for word, side in PAIR_WORDS.items()}
    elif scale.points == (0, 1):
        points |= PASS_WORDS
    points |= {"": None}
    if scale == PAIRS:
        sides = {w: SHOWN.get(str(of).strip().lower(), of) for w, of in (words or {}).items()}
        return points | as_words(sides)
    known = {**points, MISSING: None}
    meant = {word_of(w): known.get(str(of).strip().lower(), of) for w, of in (words or {}).items()}
    return points | {w: of if of is None else _point(str(of), {}, scale) for w, of in meant.items()}


def _point(text: str, points: Mapping[str, Any], scale: Scale) -> Any:
    word = word_of(text)
    if word in points:
        return points[word]
    number = number_of(text)
    return scale.points[scale.points.index(number)] if number in scale.points else _UNKNOWN


def _replaced(table: Table, column: str, scale: Scale, found: Mapping[str, Any]) -> pl.Expr:
    """Return a column with a point for each of its texts; unknown ones are null."""
    stored = _stored(scale)
    texts, values = table.texts(column)["text"].fill_null(""), table.texts(column)["value"]
    points = [None if found[text] is _UNKNOWN else found[text] for text in texts]
    are_plain = all(
        str(value) == str(point) or (point is None and value in (None, ""))
        for value, point in zip(values, points, strict=True)
    )
    if are_plain and (values.dtype.is_integer() or values.dtype == pl.String):
        plain = pl.col(column)
        return plain if values.dtype == stored else plain.cast(stored, strict=False)
    keys = pl.col(column)
    if not (values.dtype.is_numeric() or values.dtype in (pl.String, pl.Boolean)):
        keys, values = as_text(table, column), values.cast(pl.String)
    by_value = pl.DataFrame({"value": values, "point": pl.Series(points, dtype=stored)})
    old, new = by_value.drop_nulls("value")
    return keys.replace_strict(old, new, default=None, return_dtype=stored)


def _stored(scale: Scale) -> Any:
    if scale == PAIRS:
        return pl.Int8
    return pl.Int64 if all(isinstance(point, int) for point in scale.points) else pl.Float64


def _with_systems(
    table: Table,
    column: str,
    systems: Sequence[str],
    words: Mapping[str, object] | None,
    read: tuple[pl.Expr, list[str]],
) -> tuple[pl.Expr, list[str]]:
    """Return votes of which some name a system of their row, and the words that are unknown."""
    value, unknown = read
    word = _word_in(table, column)
    is_a, is_b = (word.eq_missing(_word_in(table, name)) for name in systems)
    side = pl.when(is_a & ~is_b).then(1).when(is_b & ~is_a).then(-1).cast(pl.Int8)
    rows = table.rows.group_by(word.alias("word"), side.alias("side"), value.alias("value"))
    different = table.collect(rows.agg(pl.col(NUMBER).min())).sort(NUMBER)
    named = different.filter(pl.col("side").is_not_null())
    if not named.height:
        return read
    said = [word_of(word) for word in words or ()]
    contrary = named.filter((pl.col("side") != pl.col("value")) & ~pl.col("word").is_in(said))
    if contrary.height:
        expected = f"a side that no {' or '.join(systems)} is called; {{advice}} says what it means"
        raise table.error(contrary[NUMBER][0], column, expected, {"words": None})
    left = different.filter(pl.col("side").is_null())["word"]
    return pl.coalesce(value, side), [text for text in unknown if word_of(text) in {*left}]


def _word_in(table: Table, column: str) -> pl.Expr:
    return plain_text(table, column).str.replace(WHOLE, "${1}")


def _unknown_words(
    table: Table,
    column: str,
    scale: Scale,
    words: Mapping[str, object] | None,
    systems: Sequence[str],
    read: tuple[pl.Expr, Sequence[str]],
) -> Fault:
    """Return the first row with an unknown word, and its error, which says how to read it."""
    value, unknown = read
    bad = table.sizes_of(column, unknown, value.is_null())
    row = int(bad[NUMBER].to_numpy().min())
    advice: dict[str, Any] = {}
    if scale != PAIRS:
        return row, table.error(row, column, f"{listed(scale.points)}, or nothing")
    expected = "-1, 0, 1 or A, tie, B"
    expected = f"{listing([*map(word_of, words)])} or {expected}" if words else expected
    numbers: dict[str, int] = {}
    for text, n in bad.select("text", "len").iter_rows():
        numbers[word_of(text)] = numbers.get(word_of(text), 0) + n
    every = {*table.texts(column)["text"].drop_nulls()} - {""}
    are_grades = every <= {*PASS_WORDS} or all(re.fullmatch(r"[+-]?[\d.]+", w) for w in every)
    if max(map(len, numbers)) > _LONGEST:
        advice = {"columns": {"answer": "..."}}
        expected = f"{expected}; to find verdicts in texts pass {{advice}}"
    elif are_grades and column != "label":  # of labels `scale_in` has seen that most are of pairs
        advice = {"scale": likely_scale(table, column)}
        expected = f"{expected}; to read grades pass {{advice}}"
    elif not are_grades:
        advice = {"words": dict.fromkeys([*numbers][:_MOST_WORDS], "...")}
        are_names = len(numbers) > 1 and not any(map(is_number, numbers))
        are_names &= not {*systems} <= {*table.columns}
        expected = f"{expected}; {_listed_words(numbers)}{NAMES_OF_SYSTEMS * are_names}"
    return row, table.error(row, column, expected, advice)


def _listed_words(unknown: Mapping[str, int]) -> str:
    words = list(unknown)[:_MOST_WORDS]
    rows = ", ".join(f"{word!r} in {counted(unknown[word], 'row')}" for word in words)
    rest = f" and {len(unknown) - len(words)} others" if len(unknown) > len(words) else ""
    return (
        f"unknown: {rows}{rest}; say what they mean in {{advice}}: A, B, tie or missing "
        "for each ..."
    )


def with_orders(table: Table, order: Mapping[str, str] | None) -> Table:
    """Return a table whose orders in a user's words are AB and BA."""
    if not order:
        return table
    names = {word_of(word): str(name) for word, name in order.items()}
    return table.with_columns([_word_in(table, "order").replace(names).alias("order")])
