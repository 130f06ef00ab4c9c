"""Which scale the votes or labels of a table have, where nobody says it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from btdagg._util.errors import InputError, forbid
from btdagg._util.lazy import pl
from btdagg.votes.scale import PAIRS, PASS_FAIL, Scale, column_text
from btdagg.votes.schema import LABEL_COLUMNS, VOTE_COLUMNS
from btdagg.votes.strength import are_counts
from btdagg.votes.table import NUMBER, AnyTable, Table, as_text, listing, require
from btdagg.votes.words import MISSING, PASS_WORDS, WHOLE, word_of

_OF_PAIRS = {"vote": ("vote", "margin", "strength", "p_tie"), "label": ("label", "vote")}
_PASSES = {**PASS_WORDS, "0": 0, "1": 1, "0.0": 0, "1.0": 1}
_TOPS = (2, 3, 4, 5, 7, 10, 100)  # of scales from 0 or 1
_PER_POINT = (2, 4, 10, 20)  # parts of a point, such as half points
_OF_PEOPLE = ("label", "grade")
_MOST = 12  # points that are listed
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def with_criteria(table: AnyTable) -> AnyTable:
    """Return a table whose column `criterion` is called `task`, beside a task a part of it."""
    if "criterion" not in table.columns:
        return table
    criterion = as_text(table, "criterion").str.strip_chars()
    if "task" in table.columns:
        criterion = pl.concat_str(
            as_text(table, "task").str.strip_chars(), criterion, separator=" "
        )
    return table.with_data(table.data.with_columns(criterion.alias("task")).drop("criterion"))


def scale_in(
    table: Table,
    columns: tuple[str, ...] = VOTE_COLUMNS,
    *,
    words: Mapping[str, object] | None = None,
    argument: str = "scale",
    are_grades: bool = False,
    judged: Scale | None = None,
) -> Scale:
    """Return the scale of votes, or labels, where it is certain, else an error with advice."""
    # Certain are pairs by their columns, pass and fail by words or 0 and 1, and a column `grades`.
    # Of labels `judged` is the scale of the votes, of which they may be means.
    first = columns[0]
    if are_counts(table) or {*columns, *_OF_PAIRS[first]}.isdisjoint(table.columns):
        if first == "vote" and (scale := scale_of_columns(table)) is not None:
            raise InputError(
                f"{table.source}: no column {first!r}; if columns {listing(scale.columns)} count "
                "the votes for grades, state their scale: {advice}",
                argument=argument,
                advice={argument: scale},
            )
        return PAIRS
    if not are_grades and not {*_OF_PAIRS[first]}.isdisjoint(table.columns):
        if first not in table.columns or (first == "vote" and table.schema[first] == pl.Boolean):
            return PAIRS
        if _are_grades(table, first, words):
            raise _not_said(table, first, words, argument, judged)
        meanings = {*_meanings(table, first, words)}
        return PASS_FAIL if meanings and meanings <= {*PASS_WORDS} else PAIRS
    if {*columns}.isdisjoint(table.columns):
        require(table, [first], "columns")
    column = next(name for name in columns if name in table.columns)
    if stated := stated_scale(table):
        return stated
    meanings = {*_meanings(table, column, words)} - {"missing"}
    if meanings and meanings <= {*_PASSES}:
        return PASS_FAIL
    raise _not_said(table, column, words, argument, judged)


def scales_in(
    votes: Table,
    labels: Table | None,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    words: Mapping[str, object] | None = None,
) -> tuple[Scale, Scale]:
    """Return the scales of two tables, as given or certain; labels do not inherit one."""
    scale = scale or scale_in(votes, words=words)
    if label_scale is None and labels is not None and (scale == PAIRS or not scale.mirrored):
        how: dict[str, Any] = {"words": words, "argument": "label_scale", "judged": scale}
        label_scale = scale_in(labels, LABEL_COLUMNS, are_grades=not scale.mirrored, **how)
    return scale, label_scale or scale


def scale_of_columns(table: Table) -> Scale | None:
    """Return the scale whose points name columns that may be counts of votes; None if none do."""
    named = {name: column_text(name) for name in table.columns}
    named = {name: text for name, text in named.items() if _NUMBER.fullmatch(text)}
    points = tuple(sorted(map(float, named.values())))
    is_usual = 1 < len({*points}) == len(points) <= _MOST and points != PAIRS.points
    if not is_usual or are_counts(table):
        return None
    numbers = [pl.col(name).cast(pl.Float64, strict=False) for name in named]
    are_whole = pl.all_horizontal((number % 1 == 0) & (number >= 0) for number in numbers)
    total, most = pl.sum_horizontal(numbers), pl.max_horizontal(numbers)
    columns = {"whole": are_whole.fill_null(False), "most": most}
    sizes = table.collect(table.data.lazy().select(total, **columns))
    totals, largest = sizes.to_series().to_numpy(), sizes["most"].to_numpy()
    if not len(totals) or not sizes["whole"].all():
        return None
    # Items mostly have as many votes, and not one for each point that has any: grades of raters
    # have other sums, and those who pass are ones.
    _, numbers_of = np.unique(totals, return_counts=True)
    are_alike = 2 * numbers_of.max() >= len(totals)
    return Scale(points) if are_alike and not largest.max() == 1 < totals.max() else None


def stated_scale(table: Table) -> Scale | None:
    """Return the scale that a column `grades` says, if there is one."""
    texts = table.texts("grades")["text"] if "grades" in table.columns else ()
    scales: list[Any] = sorted(filter(None, texts))
    forbid(
        len(scales) > 1,
        f"{table.source}: grades are on several scales, {listing(scales)}; expected one",
        "scale",
    )
    return Scale(scales[0]) if scales else None


def likely_scale(
    table: Table, column: str, words: Mapping[str, object] | None = None
) -> Scale | None:
    """Return a usual scale that has the grades of a column, None if they are too many."""
    points: Any = _points_in(table, column, words)
    if points and {*points} <= {0, 1}:
        return Scale((0, 1))
    whole = [int(point) for point in points if point == int(point)]
    has_fractions = len(whole) < len(points)
    if has_fractions and len(whole) < 3:
        return Scale(points) if 1 < len(points) < _MOST else None
    ends = whole if column in _OF_PEOPLE else points  # whose fractions are means
    low, high = (math.floor(ends[0]), math.ceil(ends[-1])) if ends else (1, 5)
    if low >= 0:
        low, high = min(low, 1), next((top for top in _TOPS if high <= top), high)
    if not has_fractions or column in _OF_PEOPLE:
        points = range(low, high + 1)
    elif per_point := next((n for n in _PER_POINT if _are_whole(points, n)), None):
        points = [k / per_point for k in range(low * per_point, high * per_point + 1)]
    elif len(points) >= _MOST:
        return None
    return Scale(points) if 1 < len(points) <= 256 else None


def _are_whole(numbers: Sequence[float], times: int) -> bool:
    return all(abs(number * times - round(number * times)) < 1e-9 for number in numbers)


def _are_grades(table: Table, column: str, words: Mapping[str, object] | None) -> bool:
    # Whether a tenth of the rows, and not one alone, are off the scale of pairs: fewer are slips.
    said = [word_of(word) for word in words or ()]
    text = pl.col("text")
    is_said = text.str.replace(WHOLE, "${1}").is_in(said)
    is_beyond = text.cast(pl.Float64, strict=False).abs().is_between(1, math.inf, closed="none")
    present = table.texts(column).filter(text != "")
    n_beyond = present.filter(is_beyond & ~is_said)["rows"].sum()
    return bool(n_beyond > 1 and 10 * n_beyond >= present["rows"].sum())


def are_means(numbers: Iterable[float], scale: Scale) -> bool:
    """Whether numbers, not all of them points, can be means of two to seven raters."""
    numbers = [*numbers]
    between = [number for number in numbers if number not in scale.points]
    inside = all(scale.points[0] <= number <= scale.points[-1] for number in numbers)
    few = (min(abs(n * k - round(n * k)) for k in range(2, 8)) < 0.01 for n in between)
    return bool(between) and inside and all(few)


def _not_said(
    table: Table,
    column: str,
    words: Mapping[str, object] | None,
    argument: str,
    judged: Scale | None,
) -> InputError:
    table, points = with_criteria(table), _points_in(table, column, words)
    seen = [f"{point:g}" for point in points]
    seen = [*seen[:2], "...", seen[-1]] if len(seen) > 4 else seen
    got = ", ".join(seen).replace("..., ", "... ") or "missing"
    parts = table.partition(["task"] if "task" in table.columns else [])
    by_task = {" ".join(key): likely_scale(part, column, words) for key, part in parts}
    say = "state it: {advice}"
    advice: dict[str, object] = {argument: likely_scale(table, column, words)}
    likely: Any = advice[argument]
    has_fractions = likely is not None and any(point % 1 for point in likely.points)
    if judged is not None and has_fractions and are_means(points, judged):
        advice = {argument: Scale(judged.points)}
        say = "if they are means of several raters, give the scale of one rater: {advice}"
    elif len({*by_task.values()}) > 1:
        scales = listing(f"{task} {scale}" for task, scale in by_task.items())
        task, scale = next(iter(by_task.items()))
        advice = {"where": {"criterion": task}, argument: scale}
        say = f"criteria differ ({scales}), so choose one: {{advice}}"
    return InputError(
        f"{table.source}: {table.title(column)}s are {got}, and their scale is not given; {say}",
        source=table.source,
        argument=argument,
        advice=advice,
    )


def _points_in(table: Table, column: str, words: Mapping[str, object] | None) -> list[float]:
    points = set()
    for meaning, text in _meanings(table, column, words).items():
        try:
            points.add(float(_PASSES.get(meaning, meaning)))
        except ValueError:
            if meaning != MISSING:
                row = table.sizes_of(column, [text])[NUMBER][0]
                expected = "a number, or a {advice} that has it"
                raise table.error(row, column, expected, {"scale": None}) from None
    return sorted(points)


def _meanings(table: Table, column: str, words: Mapping[str, object] | None) -> dict[str, str]:
    meanings = {str(word).strip().lower(): str(of).lower() for word, of in (words or {}).items()}
    return {meanings.get(text, text): text for text in table.texts(column)["text"] if text}
