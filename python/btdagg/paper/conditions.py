"""Ablations and orders: the same items and splits under every value of a column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.evaluation.comparison import Options, evaluate, numbers_of_votes
from btdagg.evaluation.parts import USUAL, Key, grouping
from btdagg.evaluation.protocol import CROSS_FITTED
from btdagg.evaluation.scores import Scores
from btdagg.votes.join import with_task
from btdagg.votes.table import require, text
from btdagg.votes.votes import require_single

if TYPE_CHECKING:
    import polars as pl

    from btdagg.votes import Labels, Votes

# Columns that may differ along with the compared one, and would be mistaken for its effect.
_CONDITIONS = ("judge", "template", "temperature", "order")

_VALUE = "\0value"  # no column of a source is called that


def ablate(
    votes: Votes,
    labels: Labels,
    column: str,
    *,
    n_votes: Sequence[int] | None = None,
    **options: Unpack[Options],
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
        By key, value (numbers in ascending order, then others as first seen) and number of votes.

    Raises
    ------
    InputError
        If, in every group, judge, template, temperature or order are pooled and differ between the
        values, or no item has votes under every value; and where `evaluate` does.

    References
    ----------
    The paper's ablation over temperatures, and its calibration effect under prompt variations.
    """
    import polars as pl

    numbers_of_votes(n_votes)

    def refuse(part: Votes, where: str, by: Key) -> None:
        """Refuse values that differ in more than what is varied."""
        for other in _CONDITIONS:
            if other not in part.columns or other in (column, *by):
                continue
            seen: dict[frozenset[str | None], str] = {}
            for (value,), rows in part.partition([column]):
                seen.setdefault(frozenset(text(rows, other).unique()), value)
            if len(seen) > 1:
                one, two, *_ = seen.values()
                raise InputError(
                    f"{where}: {column} {one!r} and {two!r} differ in {other} too; filter by "
                    f"{other}, or go by it"
                )

    found = _by_value(votes, labels, column, [pl.col(column)], refuse, n_votes, options)
    values = sorted(dict.fromkeys(cell.value for cell in found.cells), key=_number)
    return _sorted(found, values)


def compare_orders(
    votes: Votes, labels: Labels, n_votes: int, **options: Unpack[Options]
) -> Scores:
    """Compare aggregators on votes with A first, with B first, and with half of each.

    Parameters
    ----------
    votes : Votes
        Long votes with a column `order`. Only items with `n_votes` votes in each order, not
        counting missing ones, are used.
    labels : Labels
        Gold labels; items that share a `group` are split together.
    n_votes : int
        Votes per item, even; the paper has 12.
    **options
        `by`, `aggregators`, `confidence`, `protocol`, `progress` and `neighbours`; see `evaluate`.
        Nothing is tested.

    Returns
    -------
    Scores
        By key and value: ``first``, ``second`` and ``balanced``.

    Raises
    ------
    InputError
        If `n_votes` is not even, or, in every group, no item has enough votes or votes of several
        judges, templates or temperatures are pooled; and where `evaluate` does.

    References
    ----------
    The paper's positional bias mitigation with flipping orders.
    """
    import polars as pl

    n_votes = as_integer(n_votes, "n_votes", 2)
    if n_votes % 2:
        raise InputError(f"n_votes is {n_votes}, expected an even number: half in each order")

    def refuse(part: Votes, where: str, by: Key) -> None:
        """Refuse votes of one order alone, and votes that differ in more than order."""
        orders = part.frame["order"]
        if orders.n_unique() < 2:
            raise InputError(f"{where}: all votes have order {orders[0]}, expected both")
        for column in ("judge", "template", "temperature"):
            if column in part.columns and part.frame[column].n_unique() > 1:
                raise InputError(
                    f"{where}: votes of several values of {column} are pooled; filter by {column}, "
                    "or go by it"
                )

    shown = pl.when(pl.col("order") == "AB").then(pl.lit("first")).otherwise(pl.lit("second"))
    values = [shown, pl.lit("balanced")]
    found = _by_value(votes, labels, "order", values, refuse, [n_votes], options, n_votes)
    # What fails under one value has no comparison.
    failed = {key[: len(found.by)]: reason for key, reason in found.skipped}
    cells = tuple(cell for cell in found.cells if cell.key not in failed)
    whole = replace(found, cells=cells, skipped=tuple(failed.items()))
    return _sorted(whole, ["first", "second", "balanced"])


def _by_value(
    votes: Votes,
    labels: Labels,
    column: str,
    values: Sequence[pl.Expr],
    refuse: Callable[[Votes, str, Key], object],
    n_votes: Sequence[int] | None,
    options: Options,
    least: int = 1,
) -> Scores:
    """Evaluate by value, on the items that have enough votes under every value of the column.

    Parameters
    ----------
    votes, labels, column, n_votes, options
        See `ablate`.
    values : sequence of polars expressions
        Under which value a vote counts: under one for each expression.
    refuse : callable
        Takes the votes of a group, what messages call them, and the columns that votes are grouped
        by; raises an `InputError` where its values cannot be compared.
    least : int
        Votes, other than missing ones, that an item wants under each value of the column.
    """
    import polars as pl

    require_single(votes)
    votes = with_task(votes, labels)
    by = grouping(votes, options.get("by"), [name for name in USUAL if name != column])
    if column in by:
        raise InputError(f"by names {column!r}, the column whose values are compared")
    require(votes, [column])
    frames, left_out, skipped = [], {}, []
    for key, part in votes.partition(by):
        try:
            refuse(part, f"{part.source}, {' '.join(key)}" if key else part.source, by)
            rows = _under_every_value(part, column, least)
            left_out[key] = part.frame["item"].n_unique() - rows["item"].n_unique()
            if not rows.height:
                names = text(part, column).fill_null("").unique(maintain_order=True)
                raise InputError(
                    f"{part.source}: no item has {least} or more votes under each {column}: "
                    + ", ".join(name or "''" for name in names)
                )
        except InputError as error:
            skipped.append((key, str(error)))
        else:
            frames += [rows.with_columns(value.alias(_VALUE)) for value in values]
    if not frames:
        raise InputError(skipped[0][1] if skipped else f"{votes.source}: no votes")

    options = options.copy()
    options["by"] = (*by, _VALUE)
    options["protocol"] = options.get("protocol", CROSS_FITTED).untested
    neighbours = options.get("neighbours")
    if neighbours is not None:
        rows = neighbours.numbered()
        frames_beside = [rows.with_columns(value.alias(_VALUE)) for value in values]
        valued = pl.concat(frames_beside).filter(pl.col(_VALUE).is_not_null())
        options["neighbours"] = neighbours.with_data(valued)
    found = evaluate(votes.with_data(pl.concat(frames)), labels, n_votes=n_votes, **options)
    return Scores(
        by,
        tuple(replace(cell, key=cell.key[:-1], value=cell.key[-1]) for cell in found.cells),
        (*skipped, *found.skipped),
        column=column,
        n_left_out=left_out,
    )


def _under_every_value(part: Votes, column: str, least: int) -> pl.DataFrame:
    """Keep the items with so many votes under every value of the column, in one order for all."""
    import polars as pl

    frame = part.numbered()
    n_votes = frame.group_by("item", column).agg(pl.col("vote").is_not_null().sum())
    n_values = n_votes.filter(pl.col("vote") >= least).group_by("item").len()
    kept = n_values.filter(pl.col("len") == frame[column].n_unique())
    ordered = frame.select(pl.col("item").unique(maintain_order=True))
    ordered = ordered.join(kept, on="item", how="semi", maintain_order="left")
    rows = ordered.join(frame, on="item", how="inner", maintain_order="left_right")
    return rows.select(frame.columns)


def _sorted(found: Scores, values: Sequence[str]) -> Scores:
    """Put the cells of every key into the order of their values."""
    keys = list(found.by_key())
    order = sorted(found.cells, key=lambda c: (keys.index(c.key), values.index(c.value)))
    return replace(found, cells=tuple(order))


def _number(value: str) -> float:
    """Where a value stands among others: numbers in ascending order, then the rest."""
    try:
        return float(value)
    except ValueError:
        return math.inf
