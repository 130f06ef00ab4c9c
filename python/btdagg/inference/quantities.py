"""What is estimated of labels on a scale, and which means of votes are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from btdagg._util.errors import InputError, expect

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.inference.sample import Population
    from btdagg.votes.items import Items
    from btdagg.votes.scale import Scale

    Floats: TypeAlias = NDArray[np.float64]

Quantities: TypeAlias = Mapping[str, tuple[float, ...]]
"""Means over items of a value for each label, in label order."""

NET = "net win rate"


def quantities_of(scale: Scale) -> Quantities:
    """Return what is estimated of labels on a scale."""
    if scale.mirrored:
        minus, tie, plus = scale.names
        shares = {plus: (0.0, 0.0, 1.0), tie: (0.0, 1.0, 0.0), minus: (1.0, 0.0, 0.0)}
        return {**shares, NET: (-1.0, 0.0, 1.0), "win rate": (0.0, 0.5, 1.0)}
    _, *grades = scale.points
    names = ["pass rate"] if len(grades) == 1 else [f"share >= {least}" for least in grades]
    at_least = [tuple((scale.floats >= least).astype(float).tolist()) for least in grades]
    return {"mean grade": tuple(scale.floats.tolist()), **dict(zip(names, at_least, strict=True))}


def made_of(scale: Scale) -> Mapping[str, tuple[float, dict[str, float]]]:
    """Return of which quantities each is the sum: a constant, and factors by name.

    Of pairs all are made of two, so that shares add up to 1.
    """
    if not scale.mirrored:
        return {name: (0.0, {name: 1.0}) for name in quantities_of(scale)}
    minus, tie, plus = scale.names
    return {
        plus: (0.5, {NET: 0.5, tie: -0.5}),
        tie: (0.0, {tie: 1.0}),
        minus: (0.5, {NET: -0.5, tie: -0.5}),
        NET: (0.0, {NET: 1.0}),
        "win rate": (0.5, {NET: 0.5}),
    }


def main_of(scale: Scale) -> str:
    """Return the quantity that is meant where none is named."""
    quantities = quantities_of(scale)
    return next(name for name in (NET, "pass rate", *quantities) if name in quantities)


def features_of(scale: Scale) -> Quantities:
    """Return two means of an item's votes, by which labelled items are compared with the others."""
    place = 1 if scale.mirrored else -1  # ties, or the top grade
    indicator = np.eye(len(scale.points))[place]
    means = tuple(scale.floats.tolist()), tuple(indicator.tolist())
    return dict(zip(("mean vote", f"share of votes of {scale.names[place]}"), means, strict=True))


def vote_shares(items: Items) -> Floats:
    """Return the share of each item's votes for each point, (n, J)."""
    counts = np.asarray(items.pooled, dtype=np.float64)
    shares: Floats = counts / counts.sum(axis=1, keepdims=True)
    return shares


def said_of(population: Population, n_items: int) -> str:
    """Say what means are of."""
    return "new items like these" if population == "new" else f"these {n_items:,} items"


def require_same_points(items: Items, why: str) -> None:
    """Refuse labels that are not on the points of the votes."""
    expected = f"that of the votes, {items.scale}, {why}"
    good = items.scale.points == items.label_scale.points
    expect(good, "label_scale", str(items.label_scale), expected)


def too_few(name: Any, n: int, *, grouped: bool) -> InputError:
    """Say that something has labels of no two groups."""
    s = "" if n == 1 else "s"
    what = f"group{s} with labels" if grouped else f"label{s}"
    return InputError(f"{name} has {n} {what}, expected at least 2", argument="labels")
