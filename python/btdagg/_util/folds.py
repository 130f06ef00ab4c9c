"""Dealing items into folds: by what the items hold, so that the order of rows changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.validation import as_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


def deal(
    groups: NDArray[np.int64],
    content: Sequence[ArrayLike],
    n_folds: int,
    seed: int,
    repetition: int = 0,
) -> NDArray[np.int64]:
    """Deal groups of items into folds, (n,), in turn and in the order of `places`."""
    # So groups with the same content are spread evenly, whatever the order of items.
    folds: NDArray[np.int64] = places(groups, content, seed, repetition)[groups] % n_folds
    return folds


def places(
    groups: NDArray[np.int64], content: Sequence[ArrayLike], seed: int, repetition: int = 0
) -> NDArray[np.int64]:
    """Order groups at random by a hash of what their items hold: (G,) array with places from 0."""
    # Mirror images have one hash and judges no order, so swapping A and B of all changes nothing.
    # `content` are arrays (n, ..., 3) by label, (n,) labels, and (n, 1) without sides; groups of
    # the same content are in the order of their numbers, and random without any content.
    n_groups = int(groups.max()) + 1
    contents = [_in_order(values) for values in content] or [groups[:, None]]
    items = _hashed([_columns(values) for values in contents])
    mirrored = _hashed([_columns(_mirrored(values)) for values in contents])
    leaning = int((items - mirrored).view(np.int64).sum())
    key = _mixed(_mixed(np.array([seed], dtype=np.uint64)) + np.uint64(repetition))
    by_content = _mixed(_sums(items + mirrored, groups, n_groups) + key)
    by_side = _sums(mirrored if leaning < 0 else items, groups, n_groups)
    order = np.lexsort((by_side, by_content))
    place = np.empty(n_groups, dtype=np.int64)
    place[order] = np.arange(n_groups)
    return place


def resampled(n_groups: int, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw as many groups as there are with replacement: times each is drawn, (n_draws, G)."""
    times: NDArray[np.int64] = rng.multinomial(
        n_groups, np.full(n_groups, 1 / n_groups), size=n_draws
    )
    return times


def numbered(
    groups: ArrayLike | None, keys: Sequence[NDArray[Any]], n_items: int
) -> NDArray[np.int64]:
    """Number the groups of items, in the order of their names; without groups items by `keys`."""
    # `keys` are (n,) arrays, sorted by the last first, and rows in the end.
    if groups is not None:
        return as_groups(groups, "items", n_items)
    number = np.empty(n_items, dtype=np.int64)
    order = np.lexsort(keys) if len(keys) else np.arange(n_items)
    number[order] = np.arange(n_items)
    return number


def _in_order(values: ArrayLike) -> NDArray[Any]:
    # The order of judges must not matter.
    counts = np.asarray(values)
    if counts.ndim < 3:
        return counts
    judges = np.swapaxes(counts, 0, 1)
    hashes = [_hashed([_columns(judge)]) + _hashed([_columns(judge[:, ::-1])]) for judge in judges]
    return counts[:, np.argsort([_mixed(hashed).sum() for hashed in hashes], kind="stable")]


def _columns(values: ArrayLike) -> NDArray[np.uint64]:
    """Return numbers of items as bits, (columns, n), the same for equal numbers of any type."""
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers.reshape(len(numbers), -1).T + 0.0  # no -0.0
    return np.ascontiguousarray(np.where(np.isnan(numbers), np.nan, numbers)).view(np.uint64)


def _mirrored(values: ArrayLike) -> NDArray[np.float64]:
    numbers = np.asarray(values, dtype=np.float64)
    return -numbers if numbers.ndim == 1 else numbers[..., ::-1]


def _hashed(content: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    hashes = np.zeros(content[0].shape[1], dtype=np.uint64)
    for column in np.concatenate(content):
        hashes = _mixed(hashes + column)
    return hashes


def _sums(
    items: NDArray[np.uint64], groups: NDArray[np.int64], n_groups: int
) -> NDArray[np.uint64]:
    # The order of items must not matter.
    sums = np.zeros(n_groups, dtype=np.uint64)
    np.add.at(sums, groups, items)
    return sums


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of numbers, by the last steps of splitmix64."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
