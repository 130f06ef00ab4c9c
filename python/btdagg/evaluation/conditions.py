"""Which votes take part: those of items under every condition, in one order.

What is then evaluated by condition sees the same items and, from the same seed, the same splits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.evaluation.parts import USUAL, Key, with_task
from btdagg.tables import require, text
from btdagg.votes import Votes

if TYPE_CHECKING:
    from btdagg.labels import Labels


@dataclass(frozen=True, eq=False)
class SameItems:
    """Votes on the items that have enough of them under every condition.

    Attributes
    ----------
    votes : Votes
        For each value of `by` and each condition the same items in the same order.
    by : tuple of str
        Columns that are gone by.
    n_left_out : dict of key to int
        Items left out, by value of those columns.
    empty : tuple of (key, reason)
        Values of those columns that no item is left of.
    """

    votes: Votes
    by: tuple[str, ...]
    n_left_out: dict[Key, int]
    empty: tuple[tuple[Key, str], ...]


def columns_to_go_by(
    votes: Votes, labels: Labels, by: Sequence[str] | None, besides: str
) -> tuple[Votes, tuple[str, ...]]:
    """Return the votes with their task, if known, and the columns to go by besides another.

    Raises
    ------
    InputError
        If these are no single votes, there is no such column, or `by` names the other one.
    """
    if not isinstance(votes, Votes):
        raise InputError(f"votes is a {type(votes).__name__}, want single votes (read_votes)")
    if isinstance(by, str):
        raise InputError(f"by is {by!r}, want a sequence of column names")
    votes = with_task(votes, labels)
    usual = [column for column in USUAL if column in votes.columns and column != besides]
    chosen = tuple(dict.fromkeys(usual if by is None else by))
    if besides in chosen:
        raise InputError(f"by names {besides!r}, which is what is compared")
    require(votes, chosen)
    return votes, chosen


def fit_for(
    votes: Votes, by: Sequence[str], refuse: Callable[[Votes, Key], object]
) -> tuple[Votes, tuple[tuple[Key, str], ...]]:
    """Keep the votes of those values of `by` that are not refused.

    Parameters
    ----------
    votes : Votes
    by : sequence of str
        Columns that are gone by.
    refuse : callable
        Takes the votes of a value and the value; raises an `InputError` where they will not do.

    Returns
    -------
    tuple of (Votes, tuple of (key, reason))
        The votes that are left, and what was refused.

    Raises
    ------
    InputError
        The first one, if nothing is left.
    """
    import polars as pl

    frames, refused = [], []
    for key, part in votes.partition(by):
        try:
            refuse(part, key)
        except InputError as error:
            refused.append((key, str(error)))
        else:
            frames.append(part.frame)
    if refused and not frames:
        raise InputError(refused[0][1])
    kept = replace(votes, frame=pl.concat(frames)) if refused else votes
    return kept, tuple(refused)


def on_same_items(votes: Votes, by: Sequence[str], column: str, least: int = 1) -> SameItems:
    """Keep, within each value of `by`, the items with enough votes under every condition.

    Parameters
    ----------
    votes : Votes
    by : sequence of str
        Columns that are gone by.
    column : str
        Column that says the condition.
    least : int
        Votes that are not missing that an item wants under each condition.

    Raises
    ------
    InputError
        If there is no such column, or no item is left at all.
    """
    import polars as pl

    require(votes, [column])
    frames, left_out, empty = [], {}, []
    for key, part in votes.partition(by):
        frame = part.frame
        n_votes = frame.group_by("item", column).agg(pl.col("vote").is_not_null().sum())
        n_enough = n_votes.filter(pl.col("vote") >= least).group_by("item").len()
        kept = n_enough.filter(pl.col("len") == frame[column].n_unique()).select("item")
        left_out[key] = frame["item"].n_unique() - kept.height
        if not kept.height:
            names = ", ".join(value or "''" for value in _values(part, column))
            reason = f"no item has {least} or more votes under each {column}: {names}"
            empty.append((key, reason))
            continue
        # By first appearance, so that items come in one order whatever the condition.
        ordered = frame.select(pl.col("item").unique(maintain_order=True)).join(
            kept, on="item", how="semi", maintain_order="left"
        )
        rows = ordered.join(frame, on="item", how="inner", maintain_order="left_right")
        frames.append(rows.select(frame.columns))
    if not frames:
        raise InputError(f"{votes.source}: {empty[0][1]}" if empty else f"{votes.source}: no votes")
    same = replace(votes, frame=pl.concat(frames))
    return SameItems(same, tuple(by), left_out, tuple(empty))


def _values(votes: Votes, column: str) -> list[str]:
    return text(votes, column).fill_null("").unique(maintain_order=True).to_list()
