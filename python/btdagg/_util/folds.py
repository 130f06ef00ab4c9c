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
    """Deal groups of items into folds: (n,) array with the fold of each item.

    Groups in the order of `places` go to the folds in turn. So those that hold the same are spread
    evenly over the folds, and items in another order have the same folds.
    """
    folds: NDArray[np.int64] = places(groups, content, seed, repetition)[groups] % n_folds
    return folds


def places(
    groups: NDArray[np.int64], content: Sequence[ArrayLike], seed: int, repetition: int = 0
) -> NDArray[np.int64]:
    """Order groups at random by a hash of what their items hold: (G,) array with places from 0.

    Neither swapping A and B of all items nor the order of judges changes anything: an item and its
    mirror image have one hash, and which of them is first depends on where all items lean.

    Parameters
    ----------
    groups : (n,) array of int
        Group of each item, as a number from 0. Of groups that hold the same, the one with the
        smaller number is first.
    content : sequence of arrays of numbers
        What is known of each item: arrays (n, ..., 3) with a column for each label, such as counts;
        (n,) arrays of labels; and (n, 1) arrays of what has no sides. If there is nothing, groups
        are in a random order of their numbers.
    seed, repetition : int
        Another of either gives another order.
    """
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


def numbered(
    groups: ArrayLike | None, told: Sequence[NDArray[Any]], n_items: int
) -> NDArray[np.int64]:
    """Number the groups of items, in the order of their names.

    Parameters
    ----------
    groups : (n,) array, or None where each item is one by itself
    told : sequence of (n,) arrays
        What else tells items apart where there are no groups, such as their ids: then items are in
        the order of the last of these, then of the one before it. Items that are alike in all of
        them are in the order of the rows.
    n_items : int
    """
    if groups is not None:
        return as_groups(groups, "items", n_items)
    number = np.empty(n_items, dtype=np.int64)
    order = np.lexsort(told) if len(told) else np.arange(n_items)
    number[order] = np.arange(n_items)
    return number


def _in_order(values: ArrayLike) -> NDArray[Any]:
    """Put the judges of (n, judges, 3) counts into an order that does not depend on theirs."""
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
    """Swap the sides A and B."""
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
    """Add up hashes by group, whatever the order of the items."""
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
