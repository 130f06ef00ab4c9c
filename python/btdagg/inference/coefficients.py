"""Coefficients of agreement, as functions of sums over items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.votes.scale import Scale

    Floats: TypeAlias = NDArray[np.float64]


def other_sides(scale: Scale) -> Floats:
    """Which two points of a scale are for different sides, (J, J); of grades none are."""
    if not scale.mirrored:
        return np.zeros((len(scale.points),) * 2)
    sides = np.sign(scale.floats - scale.middle)
    return (np.multiply.outer(sides, sides) < 0).astype(np.float64)


def pairs_within(counts: Floats, is_other: Floats) -> Floats:
    """Equal pairs of the votes of each item, pairs for different sides, and all, (n, 3)."""
    n = counts.sum(axis=1)
    pairs: Floats = (pairs_between(counts, counts, is_other) - np.outer(n, [1, 0, 1])) / 2
    return pairs


def pairs_between(first: Floats, second: Floats, is_other: Floats) -> Floats:
    """Return the same of pairs of one vote each of two (n, J) counts."""
    equal, flipped = (first * second).sum(axis=1), ((first @ is_other) * second).sum(axis=1)
    return np.column_stack([equal, flipped, first.sum(axis=1) * second.sum(axis=1)])


def intraclass_columns(counts: Floats, points: Floats) -> Floats:
    """Return what `intraclass_correlation` needs the sums of, (n, 6), of (n, J) counts."""
    n = counts.sum(axis=1)
    mean = counts @ points / np.maximum(n, 1)
    within = counts @ points**2 - n * mean**2
    return np.column_stack([np.ones_like(n), n, n**2, n * mean, n * mean**2, within])


def intraclass_correlation(sums: Floats) -> Floats:
    """Intraclass correlation of one vote by one-way random effects, (k,): ICC(1).

    References
    ----------
    Shrout and Fleiss, Intraclass correlations (1979); Donner (1986) for items of unequal size.
    """
    items, n, squares, total, of_means, within = sums.T
    between = (of_means - total**2 / n) / (items - 1)
    within = within / (n - items)
    size = (n - squares / n) / (items - 1)
    return np.asarray((between - within) / (between + (size - 1) * within))


def kappa_of(weights: Floats) -> Callable[[Floats], Floats]:
    """Return Cohen's kappa as a function of (k, K²) confusion matrices.

    `weights`, (K, K), say how bad each confusion is: 0 on the diagonal, else 1 or a square.

    References
    ----------
    Cohen (1960), and (1968) for weights.
    """

    def kappa(sums: Floats) -> Floats:
        tables = sums.reshape(len(sums), *weights.shape)
        by_chance = tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None]
        away = (tables * weights).sum(axis=(1, 2)) * tables.sum(axis=(1, 2))
        return np.asarray(1 - away / (by_chance * weights).sum(axis=(1, 2)))

    return kappa


def coincidences(ratings: Floats) -> Floats:
    """Pairs of labels of each item, each worth 1 / (m - 1) of m labels, (n, K²)."""
    k, n = ratings.shape[1], ratings.sum(axis=1)
    pairs = ratings[:, :, None] * ratings[:, None] - ratings[:, :, None] * np.eye(k)
    return np.asarray((pairs / np.maximum(n - 1, 1)[:, None, None]).reshape(len(ratings), -1))


def krippendorff(points: Floats, *, is_ordinal: bool) -> Callable[[Floats], Floats]:
    """Return Krippendorff's alpha as a function of (k, K²) sums of `coincidences`.

    Ordinal labels are as far apart as their ranks, others as their points.

    References
    ----------
    Krippendorff, Computing Krippendorff's alpha-reliability (2011).
    """

    def alpha(sums: Floats) -> Floats:
        tables = sums.reshape(len(sums), len(points), len(points))
        numbers = tables.sum(axis=2)
        places = numbers.cumsum(axis=1) - numbers / 2 if is_ordinal else points + 0 * numbers
        squares = (places[:, :, None] - places[:, None]) ** 2
        by_chance = (numbers[:, :, None] * numbers[:, None] * squares).sum(axis=(1, 2))
        away = (tables * squares).sum(axis=(1, 2)) * (numbers.sum(axis=1) - 1)
        return np.asarray(1 - away / by_chance)

    return alpha
