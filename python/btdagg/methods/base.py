"""The aggregator protocol, and helpers of all aggregators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.votes.by_id import as_items
from btdagg.votes.scale import PAIRS, Scale, require_alike, scale_from

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Learned = TypeVar("Learned")

ROUNDING = 1e-9
"""What should be half way between two labels may miss it by a rounding error."""


@dataclass(frozen=True)
class Needs:
    """Inputs that an aggregator needs besides counts.

    Attributes
    ----------
    confidences : bool
        A confidence of every vote.
    decisions : str or None
        Decisions of this name, which is their column in tables of votes.
    time : bool
        More than a few milliseconds for a fit: sweeps leave it out.
    judges : bool
        Counts of each judge of a panel.
    some_decisions : bool
        Items may lack a decision, and are then left out for every method.
    neighbours : bool
        A prior of other tasks or judges, which evaluations pass to `among`.
    """

    confidences: bool = False
    decisions: str | None = None
    time: bool = False
    neighbours: bool = False
    some_decisions: bool = False
    judges: bool = False

    @property
    def votes_alone(self) -> bool:
        """Whether it decides, and learns, from counts of votes only."""
        needs_more = self.confidences or self.neighbours or self.judges
        return not needs_more and self.decisions is None


class Aggregator(Protocol):
    """Turns the votes of items into labels.

    It gets `btdagg.votes.Items`, which work as an array of counts, or a plain (n, 3) array in label
    order; one that needs more than counts calls `btdagg.votes.as_items`, and says so, or that it is
    slow to fit, in `needs`. Its rule for ties does not depend on the order of votes, and swapping A
    and B mirrors every label. A `btdagg.Calibration` that it fits is its `calibration`, which
    reports use.
    """

    @property
    def name(self) -> str:
        """Name in tables."""

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Learn from n items and their (n,) labels, and return itself; evaluations fit copies."""

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,): -1, 0 or +1, or a point of the scale of labels."""


@runtime_checkable
class Refittable(Protocol):
    """An aggregator of counts that may fit many weightings faster than one by one."""

    def refitted(
        self, counts: ArrayLike, labels: NDArray[Any], weights: NDArray[np.float64]
    ) -> Callable[[ArrayLike], NDArray[Any]] | None:
        """Fit with each row of weights, (k, n), to label m items, (k, m); None if not faster."""


class WithoutFit:
    """An aggregator without parameters."""

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Return itself: there is nothing to learn."""
        return self


def fitted(learned: Learned | None, name: str) -> Learned:
    """Return what an aggregator of that name learned in `fit`, which it needs to decide."""
    if learned is None:
        raise InputError(f"{name} is not fitted: call fit with labelled counts first")
    return learned


@dataclass(frozen=True)
class OnScale:
    """An aggregator of the votes of a scale, whose labels are of a scale: the same unless given."""

    scale: Scale = field(default=PAIRS, kw_only=True)
    label_scale: Scale = field(default=None, kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        scale = scale_from(self.scale, "scale")
        label_scale = scale_from(self.label_scale or scale, "label_scale")
        require_alike(scale, label_scale)
        self.__dict__.update(scale=scale, label_scale=label_scale)

    def _checked(self, counts: Any) -> NDArray[Any]:
        array = self.scale.counts(counts)
        self.scale.require_votes(array)
        return array

    def _means(self, counts: Any) -> NDArray[np.float64]:
        """Return the mean vote of each item; without votes, the middle of the scale."""
        values = self._checked(counts).astype(np.float64)
        total = values.sum(axis=1)
        means = values @ self.scale.floats / np.where(total > 0, total, 1)
        return np.where(total > 0, means, self.scale.middle)

    def _labelled(
        self, counts: Any, labels: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        items = as_items(counts, labels, scale=self.scale, label_scale=self.label_scale)
        return self._means(items.pooled), items.label.astype(np.float64)

    def _nearest(self, values: NDArray[np.float64], *, outward: bool = False) -> NDArray[Any]:
        # Half way the label nearer the middle, or `outward` the further; in the middle the lower.
        points = self.label_scale.floats
        halves = (points[1:] + points[:-1]) / 2
        upwards = (halves < self.label_scale.middle) != outward
        # Point by point, which is many times as fast as along rows of a few points.
        least = np.where(upwards, -ROUNDING, np.nextafter(ROUNDING, 1))
        pairs = zip(halves, least, strict=True)
        place = sum((values - half >= away for half, away in pairs), np.zeros(len(values), np.intp))
        return np.asarray(self.label_scale.labels[place])


def needs_of(aggregator: Aggregator) -> Needs:
    """Return the needs that an aggregator declares; by default none."""
    needs: Needs = getattr(aggregator, "needs", Needs())
    return needs


def is_written(aggregator: Aggregator) -> bool:
    """Whether it calibrates a model, and is quick to fit: the first such is what commands write."""
    return hasattr(aggregator, "calibration") and not needs_of(aggregator).time


def decisions_of(aggregators: Iterable[Aggregator]) -> list[str]:
    """Return the names of the decisions that aggregators need."""
    names = (needs_of(aggregator).decisions for aggregator in aggregators)
    return [name for name in names if name is not None]


def voting_behaviour(aggregator: Aggregator, n_votes: int) -> np.ma.MaskedArray[Any, Any]:
    """Decision of a fitted aggregator of counts for every way in which n votes can fall.

    Entry ``[a, b]`` of the (n_votes + 1, n_votes + 1) masked array is the label of `a` votes for A,
    `b` for B and ties, masked where ``a + b > n_votes``. As in the paper's figure.
    """
    n_votes = as_integer(n_votes, "n_votes", 0)
    plus, minus = np.indices((n_votes + 1, n_votes + 1))
    possible = plus + minus <= n_votes
    counts = np.stack([minus, n_votes - plus - minus, plus], axis=-1)
    # The number of votes is what is asked about; these are no items that someone decides.
    aggregator = getattr(aggregator, "for_any_votes", lambda: aggregator)()
    decided = aggregator.decide(counts[possible])
    labels = np.zeros(possible.shape, dtype=decided.dtype)
    labels[possible] = decided
    return np.ma.array(labels, mask=~possible)
