"""Votes of several judges, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from btdagg._util.errors import expect, forbid
from btdagg._util.lazy import pl
from btdagg._util.validation import names_of_judges
from btdagg.votes.items import Facts, Items, Origin
from btdagg.votes.table import counts_of, ids_of


def panel_items(
    votes: Any,
    *,
    judges: Sequence[str] | None = None,
    panel: str | None = None,
    n_votes: int | None = None,
) -> Items:
    """Count the votes of each item by judge; see `Votes.items`."""
    # Items are in order of first appearance, judge by judge; counts of an absent judge are zeros.
    # Votes of no judge, or of one not among `judges`, are refused.
    expected = "no panel, since the votes are grades, and judges of grades are pooled"
    expect(votes.scale.mirrored, "panel", panel, expected)
    column = panel or "judge"
    parts = {key[0]: part for key, part in votes.partition([column])}
    forbid("" in parts, f"{votes.source}: a row has no {column}")
    names = names_of_judges(judges or tuple(sorted(parts)))
    for name in parts:
        forbid(
            name not in names,
            f"{votes.source}: {column} {name!r} is not in the panel ({', '.join(names)})",
        )
    tallied = (
        parts[name].tally_of_part(n_votes).with_columns(judge=place)
        for place, name in enumerate(names)
        if name in parts
    )
    rows = pl.concat(tallied, how="vertical_relaxed")
    counts, items = counts_of(rows), rows["item"].unique(maintain_order=True)
    stacked = np.zeros((len(items), len(names), 3), dtype=counts.dtype)
    row = rows["item"].replace_strict(items, range(len(items)))
    stacked[row.to_numpy(), rows["judge"].to_numpy()] = counts
    return Items(
        counts=stacked,
        ids=ids_of(items),
        scale=votes.scale,
        facts=Facts(votes=votes),
        origin=Origin(judges=names),
    )
