"""Votes of several judges, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import names_of_judges
from btdagg.votes.table import counts_of, ids_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.votes.votes import Votes


@readable
class PanelCounts(NamedTuple):
    """Counts of every item by judge.

    Attributes
    ----------
    ids : (n,) array
        Items, in the order in which they are first seen, judge by judge.
    counts : (n, judges, 3) array
        Votes in label order; zeros where a judge is absent. Of int64; of float64 if votes have a
        strength.
    judges : tuple of str
    """

    ids: NDArray[Any]
    counts: NDArray[Any]
    judges: tuple[str, ...]


def panel_counts(
    votes: Votes,
    *,
    judges: Sequence[str] | None = None,
    column: str = "judge",
    n_votes: int | None = None,
) -> PanelCounts:
    """Count the votes of each item by judge.

    Parameters
    ----------
    votes : Votes
    judges : sequence of str, optional
        Those of the panel, in this order; unless given those of the column, sorted.
    column : str
        Column that tells the judges apart.
    n_votes : int, optional
        Count only the first so many votes of each judge on an item; see `Votes.counts`.

    Raises
    ------
    InputError
        If votes name no judge or one who is not among `judges`.
    """
    import polars as pl

    if not votes.scale.mirrored:
        raise InputError(argument="votes", came="grades", expected="votes of pairs for a panel")
    parts = {key[0]: part for key, part in votes.partition([column])}
    if "" in parts:
        raise InputError(f"{votes.source}: a row has no {column}")
    names = names_of_judges(tuple(sorted(parts)) if judges is None else judges)
    for name in parts:
        if name not in names:
            raise InputError(
                f"{votes.source}: {column} {name!r} is not of the panel ({', '.join(names)})"
            )
    tallied = (
        parts[name].tally(n_votes).with_columns(judge=place)
        for place, name in enumerate(names)
        if name in parts
    )
    rows = pl.concat(tallied, how="vertical_relaxed")
    counts, items = counts_of(rows), rows["item"].unique(maintain_order=True)
    stacked = np.zeros((len(items), len(names), 3), dtype=counts.dtype)
    row = rows["item"].replace_strict(items, range(len(items)))
    stacked[row.to_numpy(), rows["judge"].to_numpy()] = counts
    return PanelCounts(ids_of(items), stacked, names)
