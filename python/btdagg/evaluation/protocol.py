"""The protocol of an evaluation: how items are split, and how methods are scored and tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args
from typing import Protocol as Interface

import numpy as np

from btdagg._util.errors import InputError, expect, forbid, one_of
from btdagg._util.folds import deal, numbered, places, resampled
from btdagg._util.readable import readable
from btdagg._util.validation import as_groups, as_integer, as_probabilities
from btdagg.inference.significance import Method, split_pvalues
from btdagg.model.intervals import as_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Score: TypeAlias = Literal["mae", "accuracy", "kappa", "bias"]
Correction: TypeAlias = Literal["none", "holm"]
Rule: TypeAlias = Literal["twice-median", "mean"]
Loss: TypeAlias = "Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]"
"""Loss of each item by its gold and predicted label, 0 where they are equal."""


def absolute_error(gold: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
    """Return how far predicted labels are from gold labels."""
    return np.asarray(np.abs(predicted - gold))


def zero_one(gold: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
    """Return which predicted labels are wrong."""
    return np.asarray(gold != predicted)


def signed_error(gold: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
    """Return how far predicted labels are above gold labels."""
    return np.asarray(predicted - gold)


@readable
class Split(NamedTuple):
    """Indices of the items of both sets, each in ascending order."""

    calibration: NDArray[np.intp]
    evaluation: NDArray[np.intp]


class Splitter(Interface):
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

        `content` are (n_items, ...) arrays, such as counts and labels, for splitters that do not go
        by the order of rows. A set without items is an `InputError`.
        """


@dataclass(frozen=True)
class RandomSplits:
    """Random splits, as in the paper's experimental setup.

    Parameters
    ----------
    share : float, optional
        Share of the items to calibrate on, between 0 and 1; by default the paper's 0.05.
    size : int, optional
        Number of items instead of a share. With the same seed, a smaller calibration set of each
        split is part of the larger.
    n_splits : int
        Number of splits.
    seed : int
        Split k depends only on the seed and k, not on the number of splits.
    reserve : int, optional
        Number of items to keep out of the evaluation set, of which `share` or `size` are calibrated
        on; by default all of them.
    """

    share: float | None = None
    size: int | None = None
    n_splits: int = 100
    seed: int = 0
    reserve: int | None = None

    def __post_init__(self) -> None:
        as_integer(self.n_splits, "n_splits", 1)
        as_integer(self.seed, "seed", 0)
        self.size_of(2)

    def draw(
        self,
        n_items: int,
        groups: ArrayLike | None = None,
        content: Sequence[ArrayLike] = (),
    ) -> Iterator[Split]:
        """Split by rows as in the paper: whole groups until there are enough; see `Splitter`."""
        n_items = as_integer(n_items, "n_items", 2)
        size = self.size_of(n_items)
        reserve = size if self.reserve is None else self.reserve
        for number in (size, reserve):
            _refuse_all(number >= n_items, number, f"{n_items} items")
        group = np.arange(n_items) if groups is None else as_groups(groups, "items", n_items)
        return self._drawn(group, size, reserve)

    def _drawn(self, group: NDArray[np.intp], *n_items: int) -> Iterator[Split]:
        sizes = np.bincount(group)
        for number in range(self.n_splits):
            order = np.random.default_rng([self.seed, number]).permutation(len(sizes))
            drawn = np.cumsum(sizes[order])
            calibrated, reserved = (_groups_that_hold(n, drawn) for n in n_items)
            place = np.empty(len(order), dtype=np.intp)
            place[order] = np.arange(len(order))
            of_item = place[group]
            yield Split(np.flatnonzero(of_item < calibrated), np.flatnonzero(of_item >= reserved))

    def size_of(self, n_items: int) -> int:
        """Return the number of items to calibrate on; whole groups may make it larger."""
        if self.size is not None:
            if self.share is not None:
                raise InputError(
                    "share and size are both given, expected one of them", argument="size"
                )
            return as_integer(self.size, "size", 1)
        share = as_level(0.05 if self.share is None else self.share, "share")
        return max(1, round(share * n_items))


@dataclass(frozen=True)
class CrossFit:
    """Repeated cross-validation by group: every item is decided by models that did not see it.

    A model is calibrated on all folds but one, nearly as `calibrate` does on all labels. Intervals
    are for new groups, see `btdagg.evaluation.new_items.NewItems`.

    Parameters
    ----------
    n_folds : int
        Folds of whole groups, at least 2; as many as there are groups where they are fewer.
    n_repeats : int
        How often the groups are dealt into folds.
    n_refits : int
        Models fitted to resampled groups, at least 2, whose differences are part of an interval.
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
        """Split items; each repetition has every item in one fold, whatever the order of rows."""
        n_items = as_integer(n_items, "n_items", 2)
        group = numbered(groups, (), n_items)
        _refuse_one_group(group.max() == 0, n_items)
        return self._drawn(group, content)

    def resampled(
        self, groups: NDArray[np.int64], content: Sequence[ArrayLike] = ()
    ) -> NDArray[np.float64]:
        """Draw as many groups, numbers from 0, with replacement; items' numbers, (n_refits, n)."""
        n_groups = int(groups.max()) + 1
        rng = np.random.default_rng([self.seed, self.n_repeats])
        times = resampled(n_groups, self.n_refits, rng)
        return times[:, places(groups, content, self.seed)[groups]].astype(np.float64)

    def _drawn(self, group: NDArray[np.int64], content: Sequence[ArrayLike]) -> Iterator[Split]:
        n_groups = int(group.max()) + 1
        n_folds = min(self.n_folds, n_groups)
        # Folds of one group each are the same in every repetition.
        for number in range(1 if n_folds == n_groups else self.n_repeats):
            of_item = deal(group, content, n_folds, self.seed, number)
            for left in range(n_folds):
                yield Split(np.flatnonzero(of_item != left), np.flatnonzero(of_item == left))


def _refuse_one_group(is_one: object, n_items: int) -> None:
    forbid(
        is_one,
        f"all {n_items} items are in one group, which cannot be split; expected several groups, "
        "such as one for each prompt",
    )


def _refuse_all(are_all: object, size: int, whole: str) -> None:
    forbid(are_all, f"calibrating on {size} of {whole} leaves none to evaluate; calibrate on fewer")


def _groups_that_hold(n_items: int, drawn: NDArray[np.intp]) -> int:
    n_groups = int(np.searchsorted(drawn, n_items)) + 1
    _refuse_one_group(len(drawn) == 1, drawn[-1])
    whole = f"{drawn[-1]} items in {len(drawn)} groups"
    _refuse_all(n_groups >= len(drawn), n_items, whole)
    return n_groups


@dataclass(frozen=True)
class SplitTest:
    """How methods are tested against each other over splits.

    Parameters
    ----------
    method : {"auto", "exact", "monte-carlo"}
        See `btdagg.paired_permutation_test`; ``"auto"`` is exact for absolute and zero-one errors.
    n_resamples : int
        Sign patterns that Monte Carlo draws for each split.
    rule : {"twice-median", "mean"}
        How p-values of splits become one; see `btdagg.evaluation.combine_pvalues`.
    tau : float
        Level of significance, above 0 and below 1.
    correction : {"none", "holm"}
        Whether p-values are corrected for the number of pairs of methods.
    """

    method: Method = "auto"
    n_resamples: int = 10_000
    rule: Rule = "twice-median"
    tau: float = 0.05
    correction: Correction = "none"

    def __post_init__(self) -> None:
        for name, kind in (("method", Method), ("rule", Rule), ("correction", Correction)):
            value, options = getattr(self, name), get_args(kind)
            expect(value in options, name, value, " or ".join(map(repr, options)))
        as_integer(self.n_resamples, "n_resamples", 1)
        as_level(self.tau, "tau")

    def pvalues(
        self, losses: Sequence[NDArray[Any]], groups: Sequence[NDArray[Any]] | None, seed: int
    ) -> NDArray[np.float64]:
        """P-values of every two of m methods on each split, (splits, m, m)."""
        if len(losses[0]) == 1:  # nothing to compare
            return np.ones((len(losses), 1, 1))
        return split_pvalues(
            losses, groups=groups, method=self.method, n_resamples=self.n_resamples, seed=seed
        )

    @property
    def words(self) -> str:
        """The test in words, for a caption."""
        is_drawn = self.method == "monte-carlo"
        drawn = f"{self.n_resamples} random sign patterns a split"
        how = drawn if is_drawn else "exact on each split"
        combined = "the mean" if self.rule == "mean" else "twice the median"
        return (
            f"paired permutation test, {how}; p is {combined} over splits"
            f"{_corrected(self.correction)}; level {self.tau:g}"
        )


@dataclass(frozen=True)
class GroupTest:
    """How methods are tested against each other where they are cross-fitted.

    Student's t over groups, with the variance of fitted models; see
    `btdagg.evaluation.new_items.NewItems`.

    Parameters
    ----------
    tau : float
        Level of significance, above 0 and below 1.
    correction : {"none", "holm"}
        Whether p-values are corrected for the number of pairs of methods.
    """

    tau: float = 0.05
    correction: Correction = "none"

    def __post_init__(self) -> None:
        SplitTest(tau=self.tau, correction=self.correction)  # which checks them

    @property
    def rule(self) -> Rule:
        """How p-values of splits become one; there is only one."""
        return "mean"

    @property
    def words(self) -> str:
        """The test in words, for a caption."""
        corrected = _corrected(self.correction)
        return f"t test over groups of cross-fitted errors{corrected}; level {self.tau:g}"


def _corrected(correction: Correction) -> str:
    return ", corrected after Holm" if correction == "holm" else ""


PAPER_TEST = SplitTest(method="monte-carlo", n_resamples=100, rule="mean")
"""The paper's reading: 100 random sign patterns a split, and the mean of the p-values."""


@dataclass(frozen=True)
class Protocol:
    """How aggregators are evaluated.

    Parameters
    ----------
    splitter : Splitter
        By default 100 random splits with a twentieth calibrated on.
    test : SplitTest, GroupTest or None
        By default exact, with twice the median of the p-values over splits; ``PAPER_TEST`` is the
        paper's reading. `CrossFit` takes a `GroupTest`, other splitters a `SplitTest`; None: no
        test.
    loss : callable
        Takes arrays of gold and predicted labels, returns the loss of each item; by default the
        absolute error. Results call its mean MAE, whatever the loss.
    """

    splitter: Splitter = field(default_factory=RandomSplits)
    test: SplitTest | GroupTest | None = field(default_factory=SplitTest)
    loss: Loss = absolute_error

    def __post_init__(self) -> None:
        of_folds = isinstance(self.splitter, CrossFit)
        forbid(
            self.test is not None and isinstance(self.test, GroupTest) != of_folds,
            f"test is a {type(self.test).__name__} and splitter a "
            f"{type(self.splitter).__name__}, expected GroupTest with CrossFit and SplitTest "
            "with other splitters",
        )

    @property
    def untested(self) -> Protocol:
        """The same splits without a test."""
        return replace(self, test=None)

    @property
    def losses(self) -> dict[Score, Loss]:
        """The loss behind each score."""
        return {"mae": self.loss, "accuracy": zero_one}

    def require_intervals(self) -> None:
        """Check that there are two splits: fewer have no interval."""
        as_integer(self.splitter.n_splits, "n_splits", 2)


CROSS_FITTED = Protocol(CrossFit(), GroupTest())
"""Scores the model that `calibrate` would write, with intervals for new items; the default."""


def combine_pvalues(pvalues: ArrayLike, *, rule: Rule = "twice-median") -> NDArray[np.float64]:
    """Combine p-values of the same hypothesis on many splits into one.

    Splits of the same items depend on each other, so rules for independent p-values call too much
    significant. Twice the median is valid under any dependence.

    Parameters
    ----------
    pvalues : (splits, ...) array of numbers from 0 to 1
        Further dimensions are combined separately; a single split is returned unchanged.
    rule : {"twice-median", "mean"}
        The mean is the paper's reading; it can reject true nulls up to twice as often as it says.

    References
    ----------
    Rüger, Das maximale Signifikanzniveau des Tests, Metrika 25 (1978); Meinshausen, Meier and
    Bühlmann, P-values for high-dimensional regression, JASA 104 (2009); Vovk and Wang, Combining
    p-values via averaging, Biometrika 107 (2020).
    """
    one_of(rule, get_args(Rule), "rule")
    array = as_probabilities(pvalues, "pvalues")
    if len(array) == 1:
        return np.array(array[0])
    if rule == "mean":
        return np.asarray(array.mean(axis=0))
    return np.minimum(2 * np.asarray(np.median(array, axis=0)), 1.0)
