"""What every aggregator does, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Needs:
    """What an aggregator needs besides counts.

    Attributes
    ----------
    confidences : bool
        A confidence of every vote.
    decisions : str or None
        Name of the decisions that it takes over, as of their column where votes are read.
    time : bool
        More than a few milliseconds to fit: what fits thousands of times leaves it out.
    neighbours : bool
        A prior learned from other tasks or judges, which the evaluation hands to its `among`.
    """

    confidences: bool = False
    decisions: str | None = None
    time: bool = False
    neighbours: bool = False

    @property
    def votes_alone(self) -> bool:
        """Whether it decides by counts of votes, and learns from these alone."""
        return not self.confidences and self.decisions is None and not self.neighbours


class Aggregator(Protocol):
    """Turns what is known of items into labels.

    That is `btdagg.Evidence`, or a plain (n, 3) array of counts in label order. One that needs
    counts alone may take either as an array (`numpy.asarray`, or any function of btdagg that takes
    counts); one that needs more takes `Evidence.of` it and asks that for what it needs.

    Every implementation states its rule for ties between categories. The rule depends neither on
    the order of the votes nor on which side is called A: swapping A and B mirrors every label.

    One that needs more than counts, or is slow to fit, says so in an attribute `needs`. One whose
    fit is a `btdagg.Calibration` keeps it as `calibration`, for what it says of the judge.
    """

    @property
    def name(self) -> str:
        """Name in tables."""

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Learn from a calibration set of n items and their (n,) labels, and return itself.

        What was learned before is replaced. An aggregator without parameters has nothing to learn
        and checks nothing. The evaluations fit copies (`copy.copy`) and leave what they are given
        as it is, so that the splits, and threads, do not see one another's fits.
        """

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,): -1, 0 or +1."""


@runtime_checkable
class Refittable(Protocol):
    """An aggregator of counts that is fitted under many weights sooner than one by one."""

    def decide_refitted(
        self, counts: NDArray[np.int64], labels: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> NDArray[np.int8]:
        """Fit with each row of weights, (k, n), and return the labels of all items: (k, n)."""


def needs_of(aggregator: Aggregator) -> Needs:
    """Return what an aggregator says that it needs; nothing, where it says nothing."""
    needs: Needs = getattr(aggregator, "needs", Needs())
    return needs


def decisions_of(aggregators: Iterable[Aggregator]) -> list[str]:
    """Return the names of the decisions that aggregators need."""
    names = (needs_of(aggregator).decisions for aggregator in aggregators)
    return [name for name in names if name is not None]
