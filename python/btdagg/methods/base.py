"""The protocol of aggregators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
        Whether it needs a confidence of every vote.
    decisions : str or None
        Name of the decisions that it uses, which is their column in tables of votes.
    time : bool
        Whether a fit takes more than a few milliseconds. Sweeps, which fit thousands of times,
        leave such aggregators out.
    some_decisions : bool
        Whether items may have no decision, as those that a few-shot prompt shows as examples:
        evaluations then leave them out, for every method.
    neighbours : bool
        Whether it needs a prior learned from other tasks or judges, which evaluations pass to its
        `among`.
    """

    confidences: bool = False
    decisions: str | None = None
    time: bool = False
    neighbours: bool = False
    some_decisions: bool = False

    @property
    def votes_alone(self) -> bool:
        """Whether it decides, and learns, from counts of votes only."""
        return not self.confidences and self.decisions is None and not self.neighbours


class Aggregator(Protocol):
    """Turns the evidence on items into labels.

    It gets `btdagg.votes.Evidence`, or a plain (n, 3) array of counts in label order. An aggregator
    that needs only counts can use either as an array (`numpy.asarray`, or any function of btdagg
    that takes counts). One that needs more uses `Evidence.of`, which also raises if something is
    missing.

    Every implementation states its rule for ties between categories. The rule depends neither on
    the order of the votes nor on which side is called A: swapping A and B mirrors every label.

    An aggregator that needs more than counts, or is slow to fit, says so in an attribute `needs`.
    One that fits a `btdagg.Calibration` keeps it as `calibration`, which reports use.
    """

    @property
    def name(self) -> str:
        """Name in tables."""

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Learn from a calibration set of n items and their (n,) labels, and return itself.

        An earlier fit is replaced. An aggregator without parameters learns and checks nothing.
        Evaluations fit copies (`copy.copy`) and leave the original unchanged, so that splits and
        threads do not see each other's fits.
        """

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,): -1, 0 or +1."""


@runtime_checkable
class Refittable(Protocol):
    """An aggregator of counts that fits many weightings faster than one by one."""

    def refitted(
        self, counts: NDArray[np.int64], labels: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> Callable[[NDArray[np.int64]], NDArray[np.int8]]:
        """Fit with each row of weights, (k, n); return what labels m items by all: (k, m)."""


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
