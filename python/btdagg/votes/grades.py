"""Tables whose votes or labels are grades: which column has them, and on which scale."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from btdagg._util.errors import InputError
from btdagg.votes.scale import PAIRS, PASS_FAIL, Scale, points_of
from btdagg.votes.schema import PASS_WORDS
from btdagg.votes.strength import are_counts
from btdagg.votes.table import AnyTable, Table, as_text, listing, refuse

_MOST_INFERRED = 101  # points, as many as from 0 to 100
# Where grades are, in the order in which they are looked for.
_OF_VOTES, _OF_LABELS = ("score", "vote"), ("label", "grade", "score")


def with_criteria(table: AnyTable) -> AnyTable:
    """Return a table whose column `criterion` is called `task`, beside a task a part of it."""
    import polars as pl

    if "criterion" not in table.columns:
        return table
    criterion = as_text(table, "criterion").str.strip_chars()
    if "task" in table.columns:
        criterion = pl.concat_str(
            as_text(table, "task").str.strip_chars(), criterion, separator=" "
        )
    return table.with_data(table.data.with_columns(criterion.alias("task")).drop("criterion"))


def column_of_votes(table: Table, scale: Scale | None) -> str | None:
    """Return the column of votes that has grades; None if they are of pairs, or counts."""
    if scale is not None and scale.mirrored:
        return None
    if are_counts(table) or (scale is not None and not {*_OF_VOTES} & {*table.columns}):
        return None
    names = _OF_VOTES if scale is not None else ("score",)
    if scale is None and {"vote", "margin", "strength", "p_tie"} & {*table.columns}:
        return None
    return next((name for name in names if name in table.columns), None)


def column_of_labels(table: Table, scale: Scale | None) -> str | None:
    """Return the column of a table of labels that has grades; None if they are of pairs."""
    if scale is not None and scale.mirrored:
        return None
    if scale is None:
        if {"label", "vote"} & {*table.columns}:
            return None
        return next((name for name in ("grade", "score") if name in table.columns), None)
    return next((name for name in _OF_LABELS if name in table.columns), "label")


def inferred_points(
    table: Table, column: str, words: Mapping[str, object] | None = None
) -> tuple[float, ...]:
    """Return the whole numbers from the least to the greatest grade of a column, or pass and fail.

    A column `grades`, which exports of a vote store have, says the points itself.
    """
    if stated := stated_points(table):
        return stated
    points = _points_in(table, column, words)
    n_points = points[-1] - points[0] + 1 if points else 0
    if not 2 <= n_points <= _MOST_INFERRED:
        came = f"from {points[0]} to {points[-1]}" if points else "missing"
        raise InputError(
            f"{table.source}: all grades in column {column} are {came}, which tells no scale; say "
            "it, such as 1-5",
            argument="scale",
        )
    return tuple(range(points[0], points[-1] + 1))


def scale_of(
    votes: Table,
    labels: Table | None = None,
    points: Sequence[float] | None = None,
    points_of_labels: Sequence[float] | None = None,
) -> tuple[Scale, Scale]:
    """Return the scales of two tables that are read together: of the votes, and of the labels.

    Labels have the points of the votes, but labels that are 0 and 1, or pass and fail, have a scale
    of their own unless 0 and 1 are among the points that votes were said to have.
    """
    column = column_of_votes(votes, None) if points is None else ""
    if column:
        points = stated_points(votes)
    if column is None:
        if points_of_labels is not None:
            expected = "the points of the votes beside those of the labels"
            raise InputError(argument="grades", came=None, expected=expected)
        return PAIRS, PAIRS
    inferred = None if points is None else tuple(points)
    own = None if points_of_labels is None else tuple(points_of_labels)
    column_of = None if labels is None else column_of_labels(labels, PASS_FAIL)
    if own is None and labels is not None and column_of in labels.columns:
        texts = _texts_in(labels, column_of)
        is_passing = bool(texts) and texts <= {*PASS_WORDS, "0", "1", "0.0", "1.0"}
        if is_passing and (inferred is None or not {0, 1} <= {*inferred}):
            own = (0, 1)
        elif inferred is None:
            every = _points_in(votes, column) + _points_in(labels, column_of)
            is_scale = len({*every}) > 1
            inferred = tuple(range(min(every), max(every) + 1)) if is_scale else None
    inferred = inferred_points(votes, column) if inferred is None else inferred
    scale = Scale(inferred)
    return scale, scale if own is None else Scale(own)


def stated_points(table: Table) -> tuple[float, ...] | None:
    """Return the points that a column `grades` says, if there is one."""
    if "grades" not in table.columns:
        return None
    scales = sorted(_texts_in(table, "grades"))
    if len(scales) > 1:
        raise InputError(
            f"{table.source}: grades are on several scales, {listing(scales)}; expected one",
            argument="scale",
        )
    return points_of(scales[0]) if scales else None


def _points_in(table: Table, column: str, words: Mapping[str, object] | None = None) -> list[int]:
    """Return the different grades of a column in ascending order; refuse what is none."""
    meanings = {word.strip().lower(): str(value) for word, value in (words or {}).items()}
    texts = _texts_in(table, column)
    is_passing = {meanings.get(text, text) for text in texts} <= {*PASS_WORDS}
    points, bad = set(), []
    for text in texts:
        meaning = meanings.get(text, text)
        if is_passing:
            points.add(PASS_WORDS[meaning])
        elif re.fullmatch(r"[+]?\d+(\.0*)?", meaning):
            points.add(int(float(meaning)))
        elif meaning != "missing":
            bad.append(text)
    text_of = as_text(table, column).str.strip_chars().str.to_lowercase()
    if bad:
        refuse(
            table,
            text_of.is_in(bad),
            column,
            "a whole number of at least 0, or a {advice} that has it",
            {"scale": None},
        )
    return sorted(points)


def _texts_in(table: Table, column: str) -> set[str]:
    """Return the different values of a column, in lower case, but no empty ones."""
    import polars as pl

    different = table.data.lazy().select(pl.col(column).unique())
    rows = Table(table.collect(different), table.source)
    texts = rows.frame.select(as_text(rows, column).str.strip_chars().str.to_lowercase())
    return {*texts[column].drop_nulls().to_list()} - {""}
