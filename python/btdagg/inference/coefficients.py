"""Coefficients of agreement, as functions of sums over items."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.votes.scale import Scale

    Floats: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-12


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
    within = np.where(within > _ROUNDING * (counts @ points**2), within, 0.0)
    return np.column_stack([np.ones_like(n), n, n**2, n * mean, n * mean**2, within])


def intraclass_correlation(sums: Floats) -> Floats:
    """Intraclass correlation of one vote by one-way random effects, (k,): ICC(1).

    References
    ----------
    Shrout and Fleiss, Intraclass correlations (1979); Donner (1986) for items of unequal size.
    """
    items, n, squares, total, of_means, within = sums.T
    between = (of_means - total**2 / n) / (items - 1)
    between = np.where(between > _ROUNDING * of_means, between, 0.0)
    within = within / (n - items)
    size = (n - squares / n) / (items - 1)
    return np.asarray((between - within) / (between + (size - 1) * within))


def moments(first: Floats, second: Floats) -> Floats:
    """Return what `quadratic_kappa` needs the sums of, (n, 6), of (n, K) shares of labels."""
    ranks = np.arange(first.shape[1], dtype=np.float64)
    x, y = first @ ranks, second @ ranks
    return np.column_stack([first.sum(axis=1), x, y, first @ ranks**2, second @ ranks**2, x * y])


def quadratic_kappa(sums: Floats) -> Floats:
    """Cohen's kappa with quadratic weights, (k,), of sums of `moments` of single labels.

    References
    ----------
    Cohen (1968).
    """
    n, x, y, xx, yy, xy = sums.T
    return np.asarray(1 - (xx + yy - 2 * xy) / (xx + yy - 2 * x * y / n))


def kappa(sums: Floats) -> Floats:
    """Cohen's kappa, (k,), of (k, K²) confusion matrices.

    References
    ----------
    Cohen (1960).
    """
    n_labels = round(sums.shape[1] ** 0.5)
    tables = sums.reshape(len(sums), n_labels, n_labels)
    whole, agreed = tables.sum(axis=(1, 2)), np.einsum("ikk->i", tables)
    by_chance = (tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1)
    return np.asarray(1 - (whole - agreed) * whole / (whole**2 - by_chance))


def coincidences(ratings: Floats) -> Floats:
    """Pairs of labels of each item, each worth 1 / (m - 1) of m labels, (n, K²)."""
    k, n = ratings.shape[1], ratings.sum(axis=1)
    pairs = ratings[:, :, None] * ratings[:, None] - ratings[:, :, None] * np.eye(k)
    return np.asarray((pairs / np.maximum(n - 1, 1)[:, None, None]).reshape(len(ratings), -1))


def squared_differences(ratings: Floats, points: Floats) -> Floats:
    """Return what `interval_alpha` needs the sums of, (n, 4), of (n, K) numbers of labels."""
    n, total, squares = ratings.sum(axis=1), ratings @ points, ratings @ points**2
    return np.column_stack([n, total, squares, (n * squares - total**2) / np.maximum(n - 1, 1)])


def interval_alpha(sums: Floats) -> Floats:
    """Krippendorff's alpha of grades, (k,), of sums of `squared_differences`."""
    n, total, squares, away = sums.T
    return np.asarray(1 - (n - 1) * away / (n * squares - total**2))


def ordinal_alpha(sums: Floats) -> Floats:
    """Krippendorff's alpha of K labels that are an order alone, (k,), of sums of `coincidences`.

    References
    ----------
    Krippendorff, Computing Krippendorff's alpha-reliability (2011).
    """
    k = round(sums.shape[1] ** 0.5)
    tables = sums.reshape(len(sums), k, k)
    numbers = tables.sum(axis=2)
    places = numbers.cumsum(axis=1) - numbers / 2
    squares = (places[:, :, None] - places[:, None]) ** 2
    by_chance = (numbers[:, :, None] * numbers[:, None] * squares).sum(axis=(1, 2))
    away = (tables * squares).sum(axis=(1, 2)) * (numbers.sum(axis=1) - 1)
    return np.asarray(1 - away / by_chance)
