"""Ablations and orders: the same items and splits under every value of a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from btdagg import InputError, evaluate
from btdagg._util.errors import expect, forbid
from btdagg._util.lazy import pl
from btdagg.evaluation import CROSS_FITTED, Scores
from btdagg.methods import by_name
from btdagg.votes import with_task

if TYPE_CHECKING:
    from btdagg import Labels, Votes

COMPARED = ("davidson", "majority")
"""Names of the methods that the paper compares: its fit, and majority vote."""

# Columns that may differ along with the compared one, and would be mistaken for its effect.
_CONDITIONS = ("judge", "template", "temperature", "order")

_VALUE = "\0value"  # no column of a source is called that


def ablate(
    votes: Votes,
    labels: Labels,
    column: str,
    *,
    n_votes: Sequence[int] | None = None,
    **options: Any,
) -> Scores:
    """Compare aggregators by the value of a column, on the same items and splits for all values.

    Parameters
    ----------
    votes : Votes
        Long votes. Only items with at least one vote under every value are used.
    labels : Labels
        Gold labels; items of one `group` are split together.
    column : str
        Column whose values are compared, such as ``temperature`` or ``template``.
    n_votes : sequence of int, optional
        Numbers of votes per item to compare at; by default all votes.
    **options
        `by`, `aggregators`, `confidence`, `protocol`, `progress` and `neighbours`; see `evaluate`.
        Nothing is tested. The paper's table of temperatures has 20 splits.

    Returns
    -------
    Scores
        By key, value (numbers ascending, then others as first seen) and number of votes.

    The paper's ablation over temperatures, and its calibration effect under prompt variations.
    """
    scores = _by_value(votes, labels, column, [pl.col(column)], n_votes, options)
    return _sorted(scores, sorted(dict.fromkeys(cell.value for cell in scores.cells), key=_number))


def compare_orders(votes: Votes, labels: Labels, n_votes: int, **options: Any) -> Scores:
    """Compare aggregators on votes with A first, with B first, and with half of each.

    Parameters
    ----------
    votes : Votes
        Long votes with a column `order`; only items with `n_votes` votes that are not missing in
        each order are used.
    labels : Labels
        Gold labels; items that share a `group` are split together.
    n_votes : int
        Votes per item, even; the paper has 12.
    **options
        As in `ablate`. Nothing is tested.

    Returns
    -------
    Scores
        By key and value: ``first``, ``second`` and ``balanced``.

    The paper's positional bias mitigation with flipping orders.
    """
    expect(n_votes % 2 == 0, "n_votes", n_votes, "an even number: half in each")
    order = pl.when(pl.col("order") == "AB").then(pl.lit("first")).otherwise(pl.lit("second"))
    values = [order, pl.lit("balanced")]
    scores = _by_value(votes, labels, "order", values, [n_votes], options, n_votes)
    # What fails under one value has no comparison.
    failed = {key[: len(scores.by)]: reason for key, reason in scores.skipped}
    cells = tuple(cell for cell in scores.cells if cell.key not in failed)
    whole = replace(scores, cells=cells, skipped=tuple(failed.items()))
    return _sorted(whole, ["first", "second", "balanced"])


def _by_value(
    votes: Votes,
    labels: Labels,
    column: str,
    values: Sequence[pl.Expr],
    n_votes: Sequence[int] | None,
    options: dict[str, Any],
    least: int = 1,
) -> Scores:
    # A vote counts under one value for each of the expressions `values`; an item is used if it has
    # `least` votes, other than missing ones, under each value of the column.
    expect(not votes.are_counts, "votes", "a table of counts", "single votes")
    votes, by = with_task(votes, labels), options.get("by")
    if by is None:
        by = [name for name in ("task", "judge") if name in votes.columns and name != column]
    parts, by = votes.partition(by), tuple(dict.fromkeys(by))
    forbid(
        column in by, f"by contains {column!r}, the column whose values are compared; leave it out"
    )
    found = ", ".join(votes.columns)
    forbid(column not in votes.columns, f"{votes.source}: no column {column!r}; found {found}")
    frames, left_out, skipped = [], {}, []
    for key, part in parts:
        try:
            _refuse_confounded(part, column, by)
            rows = _under_every_value(part, column, least)
            forbid(not rows.height, f"no item has {least} or more votes for every {column}")
            left_out[key] = part.frame["item"].n_unique() - rows["item"].n_unique()
        except InputError as error:
            where = f"{part.source}, {' '.join(key)}" if key else part.source
            skipped.append((key, f"{where}: {error}"))
        else:
            frames += [rows.with_columns(value.alias(_VALUE)) for value in values]
    forbid(not frames, skipped[0][1] if skipped else f"{votes.source}: no votes")

    options = options.copy()
    options["by"] = (*by, _VALUE)
    options["protocol"] = options.get("protocol", CROSS_FITTED).untested
    neighbours = options.get("neighbours")
    if neighbours is not None:
        rows = neighbours.numbered()
        frames_beside = [rows.with_columns(value.alias(_VALUE)) for value in values]
        valued = pl.concat(frames_beside).filter(pl.col(_VALUE).is_not_null())
        options["neighbours"] = neighbours.with_data(valued)
    if votes.scale.mirrored:
        options.setdefault("aggregators", by_name(COMPARED))
    scores = evaluate(votes.with_data(pl.concat(frames)), labels, n_votes=n_votes, **options)
    return Scores(
        by,
        tuple(replace(cell, key=cell.key[:-1], value=cell.key[-1]) for cell in scores.cells),
        (*skipped, *scores.skipped),
        column=column,
        n_left_out=left_out,
    )


def _refuse_confounded(part: Votes, column: str, by: Sequence[str]) -> None:
    """Refuse one value alone, and values that differ in more than what is varied."""
    values = part.values(column)
    forbid(len(values) < 2, f"all votes have the {column} {values[0]}, expected several values")
    for other in _CONDITIONS:
        if other not in part.columns or other in (column, *by):
            continue
        conditions: dict[frozenset[str | None], str] = {}
        for (value,), rows in part.partition([column]):
            conditions.setdefault(frozenset(rows.values(other)), value)
        if len(conditions) > 1:
            first, second, *_ = conditions.values()
            raise InputError(
                f"{column} {first!r} and {second!r} also differ in {other}; filter by {other}, or "
                f"compare by {other}"
            )


def _under_every_value(part: Votes, column: str, least: int) -> pl.DataFrame:
    frame = part.numbered()
    n_votes = frame.group_by("item", column).agg(pl.col("vote").is_not_null().sum())
    n_values = n_votes.filter(pl.col("vote") >= least).group_by("item").len()
    kept = n_values.filter(pl.col("len") == frame[column].n_unique())
    ordered = frame.select(pl.col("item").unique(maintain_order=True))
    ordered = ordered.join(kept, on="item", how="semi", maintain_order="left")
    rows = ordered.join(frame, on="item", how="inner", maintain_order="left_right")
    return rows.select(frame.columns)


def _sorted(scores: Scores, values: Sequence[str]) -> Scores:
    keys = list(scores.by_key())
    order = sorted(scores.cells, key=lambda c: (keys.index(c.key), values.index(c.value)))
    return replace(scores, cells=tuple(order))


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.inf
