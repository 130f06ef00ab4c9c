"""Random splits into calibration and evaluation set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg.validation import as_groups, as_integer, as_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Split(NamedTuple):
    """Indices of the items of either set, each in ascending order."""

    calibration: NDArray[np.intp]
    evaluation: NDArray[np.intp]


def random_splits(
    n_items: int,
    *,
    share: float | None = None,
    size: int | None = None,
    n_splits: int = 100,
    seed: int = 0,
    groups: ArrayLike | None = None,
) -> Iterator[Split]:
    """Split items at random into a calibration and an evaluation set, again and again.

    Parameters
    ----------
    n_items : int
        Number of items.
    share : float, optional
        Share of the items to calibrate on, above 0 and below 1; the paper's 0.05 unless `size` is
        given.
    size : int, optional
        Number of items to calibrate on instead. Of two sizes, else alike, the calibration set of
        the smaller is within that of the larger, split by split.
    n_splits : int
        Number of splits.
    seed : int
        Split k depends on the seed and k alone, not on how many there are.
    groups : (n_items,) array, optional
        What items share, such as their prompt. Items of a group stay together: whole groups are
        drawn until the calibration set has at least as many items as asked for.

    Returns
    -------
    iterator of Split

    Raises
    ------
    InputError
        If an argument is out of range, or a set would have no items.

    References
    ----------
    The paper's experimental setup.
    """
    n_items = as_integer(n_items, "n_items", 2)
    n_splits, seed = as_integer(n_splits, "n_splits", 1), as_integer(seed, "seed", 0)
    size = calibration_size(n_items, share, size)
    if size >= n_items:
        raise InputError(
            f"calibrating on {size} of {n_items} items leaves none to evaluate, want fewer"
        )
    group = np.arange(n_items) if groups is None else as_groups(groups, "items", n_items)
    return _draw(group, size, n_splits, seed)


def _draw(group: NDArray[np.intp], size: int, n_splits: int, seed: int) -> Iterator[Split]:
    """Draw whole groups, given by number, until they have enough items."""
    sizes = np.bincount(group)
    for number in range(n_splits):
        order = np.random.default_rng([seed, number]).permutation(len(sizes))
        n_groups = int(np.searchsorted(np.cumsum(sizes[order]), size)) + 1
        if len(sizes) == 1:
            raise InputError(
                f"all {len(group)} items are in one group, which would have to be split; want "
                "groups of items that share something, such as a prompt"
            )
        if n_groups >= len(sizes):
            raise InputError(
                f"calibrating on {size} of {len(group)} items in {len(sizes)} groups leaves none "
                "to evaluate, want fewer"
            )
        drawn = np.zeros(len(sizes), dtype=np.bool_)
        drawn[order[:n_groups]] = True
        chosen = drawn[group]
        yield Split(np.flatnonzero(chosen), np.flatnonzero(~chosen))


def calibration_size(n_items: int, share: float | None, size: int | None) -> int:
    """Return the number of items to calibrate on, given as a share, as a size, or not at all.

    Raises
    ------
    InputError
        If both are given or one is out of range.
    """
    if size is not None and share is not None:
        raise InputError("share and size are both given, want one")
    if size is not None:
        return as_integer(size, "size", 1)
    fraction = as_number(0.05 if share is None else share, "share")
    if not 0 < fraction < 1:
        raise InputError(f"share is {fraction}, want a number above 0 and below 1")
    return max(1, round(fraction * n_items))
