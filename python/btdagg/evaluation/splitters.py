"""Splitters: how items are divided into calibration and evaluation sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np

from btdagg._core import InputError
from btdagg._util.folds import deal, numbered, places
from btdagg._util.readable import readable
from btdagg._util.validation import as_groups, as_integer
from btdagg.model.intervals import as_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@readable
class Split(NamedTuple):
    """Indices of the items of both sets, each in ascending order."""

    calibration: NDArray[np.intp]
    evaluation: NDArray[np.intp]


class Splitter(Protocol):
    """Splits items. The same items are always split in the same way."""

    @property
    def n_splits(self) -> int:
        """Number of splits."""

    @property
    def seed(self) -> int:
        """Seed of everything random in an evaluation."""

    def draw(
        self,
        n_items: int,
        groups: ArrayLike | None = None,
        content: Sequence[ArrayLike] = (),
    ) -> Iterator[Split]:
        """Split `n_items` items. Items with equal `groups`, (n_items,), stay together.

        `content` has what is known of the items, (n_items, ...) arrays of numbers such as counts
        and labels, for splitters that do not go by the order of rows. A set without items is an
        `InputError`.
        """

    def times(self, n_splits: int) -> Splitter:
        """Return the same splitter with another number of splits."""

    def nested(self, sizes: Sequence[int]) -> Sequence[Splitter]:
        """Return a splitter for each number of items to calibrate on.

        In each split all of them have the same evaluation set, and a smaller calibration set is
        part of a larger one.
        """


@dataclass(frozen=True)
class RandomSplits:
    """Random splits, as in the paper.

    Parameters
    ----------
    share : float, optional
        Share of the items to calibrate on, above 0 and below 1. The default is the paper's 0.05,
        unless `size` is given.
    size : int, optional
        Number of items to calibrate on, instead of a share. With two sizes and the same seed, the
        smaller calibration set of each split is part of the larger.
    n_splits : int
        Number of splits.
    seed : int
        Split k depends only on the seed and k, not on the number of splits.
    reserve : int, optional
        Number of items to keep out of the evaluation set, of which only `share` or `size` are
        calibrated on. By default the same number.

    References
    ----------
    The paper's experimental setup.
    """

    share: float | None = None
    size: int | None = None
    n_splits: int = 100
    seed: int = 0
    reserve: int | None = None

    def __post_init__(self) -> None:
        as_integer(self.n_splits, "n_splits", 1)
        as_integer(self.seed, "seed", 0)
        self._size_of(2)

    def draw(
        self,
        n_items: int,
        groups: ArrayLike | None = None,
        content: Sequence[ArrayLike] = (),
    ) -> Iterator[Split]:
        """Split `n_items` items, at least 2, by their rows as in the paper; see `Splitter`.

        Whole groups are drawn until the calibration set has at least the requested number of items.
        `content` is not used.
        """
        n_items = as_integer(n_items, "n_items", 2)
        size = self._size_of(n_items)
        reserve = size if self.reserve is None else self.reserve
        for wanted in (size, reserve):
            if wanted >= n_items:
                raise InputError(
                    f"calibrating on {wanted} of {n_items} items leaves none to evaluate, "
                    "expected fewer"
                )
        group = np.arange(n_items) if groups is None else as_groups(groups, "items", n_items)
        return self._drawn(group, size, reserve)

    def times(self, n_splits: int) -> Self:
        """Return the same with another number of splits."""
        return replace(self, n_splits=n_splits)

    def nested(self, sizes: Sequence[int]) -> list[Self]:
        """Return a splitter for each number of items to calibrate on; see `Splitter`."""
        return [replace(self, share=None, size=size, reserve=max(sizes)) for size in sizes]

    def _drawn(self, group: NDArray[np.intp], *n_items: int) -> Iterator[Split]:
        """Draw whole groups until they hold each of the numbers of items."""
        sizes = np.bincount(group)
        for number in range(self.n_splits):
            order = np.random.default_rng([self.seed, number]).permutation(len(sizes))
            drawn = np.cumsum(sizes[order])
            calibrated, reserved = (_groups_that_hold(n, drawn) for n in n_items)
            place = np.empty(len(order), dtype=np.intp)
            place[order] = np.arange(len(order))
            of_item = place[group]
            yield Split(np.flatnonzero(of_item < calibrated), np.flatnonzero(of_item >= reserved))

    def _size_of(self, n_items: int) -> int:
        """Return how many items to calibrate on, given by share, by size, or by default."""
        if self.size is None:
            return max(
                1, round(as_level(0.05 if self.share is None else self.share, "share") * n_items)
            )
        if self.share is not None:
            raise InputError("share and size are both given, expected one")
        return as_integer(self.size, "size", 1)


@dataclass(frozen=True)
class CrossFit:
    """Repeated cross-validation by group: every item is decided by models that did not see it.

    A model is calibrated on all folds but one, so that it is nearly the one that `calibrate` makes
    of all labels. The scores are the error of that model on new items; their intervals are for new
    groups, see `btdagg.evaluation.NewItems`.

    Parameters
    ----------
    n_folds : int
        Folds of whole groups, at least 2; as many as there are groups where they are fewer.
    n_repeats : int
        How often the groups are dealt into folds.
    n_refits : int
        Models fitted to resampled groups, at least 2: how much they differ is part of an interval.
    seed : int
    """

    n_folds: int = 10
    n_repeats: int = 5
    n_refits: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("n_folds", 2), ("n_repeats", 1), ("n_refits", 2), ("seed", 0)):
            as_integer(getattr(self, name), name, least)

    @property
    def n_splits(self) -> int:
        """Number of splits where there are at least `n_folds` groups."""
        return self.n_folds * self.n_repeats

    def draw(
        self,
        n_items: int,
        groups: ArrayLike | None = None,
        content: Sequence[ArrayLike] = (),
    ) -> Iterator[Split]:
        """Split so many items; see `Splitter`. Each repetition has every item in one fold.

        Groups are dealt by their content, so that the order of rows changes nothing.
        """
        n_items = as_integer(n_items, "n_items", 2)
        group = numbered(groups, (), n_items)
        if group.max() == 0:
            raise _one_group(n_items)
        return self._drawn(group, content)

    def resampled(
        self, groups: NDArray[np.int64], content: Sequence[ArrayLike] = ()
    ) -> NDArray[np.float64]:
        """Draw as many groups as there are, with replacement, `n_refits` times.

        Parameters
        ----------
        groups : (n,) array
            Group of each item, as a number from 0.
        content : sequence of arrays, optional
            As of `draw`.

        Returns
        -------
        (n_refits, n) array
            How often each item is drawn.
        """
        n_groups = int(groups.max()) + 1
        rng = np.random.default_rng([self.seed, self.n_repeats])
        times = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=self.n_refits)
        return times[:, places(groups, content, self.seed)[groups]].astype(np.float64)

    def times(self, n_splits: int) -> RandomSplits:
        """Return so many random splits: folds cannot be any number."""
        return RandomSplits(n_splits=n_splits, seed=self.seed)

    def nested(self, sizes: Sequence[int]) -> list[RandomSplits]:
        """Return a splitter for each number of items to calibrate on; see `Splitter`."""
        return RandomSplits(seed=self.seed).nested(sizes)

    def _drawn(self, group: NDArray[np.int64], content: Sequence[ArrayLike]) -> Iterator[Split]:
        n_groups = int(group.max()) + 1
        n_folds = min(self.n_folds, n_groups)
        # Folds of one group each are the same in every repetition.
        for number in range(1 if n_folds == n_groups else self.n_repeats):
            of_item = deal(group, content, n_folds, self.seed, number)
            for left in range(n_folds):
                yield Split(np.flatnonzero(of_item != left), np.flatnonzero(of_item == left))


def _one_group(n_items: int) -> InputError:
    return InputError(
        f"all {n_items} items are in one group, which would have to be split; expected groups of "
        "items that share something, such as a prompt"
    )


def _groups_that_hold(n_items: int, drawn: NDArray[np.intp]) -> int:
    """Return how many groups hold `n_items` items, given the running total of items."""
    n_groups = int(np.searchsorted(drawn, n_items)) + 1
    if len(drawn) == 1:
        raise _one_group(int(drawn[-1]))
    if n_groups >= len(drawn):
        raise InputError(
            f"calibrating on {n_items} of {drawn[-1]} items in {len(drawn)} groups leaves none to "
            "evaluate, expected fewer"
        )
    return n_groups
