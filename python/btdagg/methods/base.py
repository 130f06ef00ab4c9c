"""What an aggregator is, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.model.calibration_set import warn_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Needs:
    """What an aggregator needs besides counts.

    Attributes
    ----------
    confidences : bool
        A confidence of every vote.
    decisions : str or None
        Decisions of this name, which is their column in tables of votes.
    time : bool
        More than a few milliseconds for a fit: sweeps, which fit thousands of times, leave it out.
    judges : bool
        Counts of each judge of a panel.
    some_decisions : bool
        Items may have no decision, such as the examples of a few-shot prompt; evaluations then
        leave them out for every method.
    neighbours : bool
        A prior learned from other tasks or judges, which evaluations pass to `among`.
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
        others = self.confidences or self.neighbours or self.judges
        return not others and self.decisions is None


class Aggregator(Protocol):
    """Turns the evidence on items into labels.

    It gets `btdagg.votes.Evidence`, or a plain (n, 3) array of counts in label order. An aggregator
    that needs only counts can use either as an array; one that needs more calls `Evidence.of`.

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

        An earlier fit is replaced. Evaluations fit copies (`copy.copy`).
        """

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,): -1, 0 or +1."""


@runtime_checkable
class Refittable(Protocol):
    """An aggregator of counts that fits many weightings faster than one by one."""

    def refitted(
        self, counts: ArrayLike, labels: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> Callable[[ArrayLike], NDArray[np.int8]]:
        """Fit with each row of weights, (k, n); return what labels m items by all: (k, m)."""


class WithoutFit:
    """An aggregator without parameters."""

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Return itself: there is nothing to learn."""
        return self


def not_fitted(name: str) -> InputError:
    """Return the error of an aggregator that decides before it is fitted."""
    return InputError(f"{name} is not fitted: call fit with labelled counts first")


class Calibrated:
    """An aggregator that decides by the model of its `calibration`; its settings are frozen."""

    name: str
    calibration: Any

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Set `calibration` by counts and (n,) labels, warn as it does, and return itself."""
        self.fit_quietly(counts, labels)
        warn_of(self.calibration.warnings)
        return self

    def fit_quietly(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Set `calibration` as `fit` does, which keeps what it would warn of."""
        object.__setattr__(self, "calibration", self._calibrate(counts, labels))
        return self

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,); equal risks give a tie."""
        if self.calibration is None:
            raise not_fitted(self.name)
        labels: NDArray[Any] = self.calibration.model.decide(self._counts(counts))
        return labels

    def for_any_votes(self) -> Self:
        """Return a copy whose model does not say which votes it was fitted for."""
        model = replace(self.calibration.model, provenance=None)
        other = copy(self)
        object.__setattr__(other, "calibration", replace(self.calibration, model=model))
        return other

    def _calibrate(self, counts: ArrayLike, labels: ArrayLike) -> Any:
        raise NotImplementedError

    def _counts(self, counts: ArrayLike) -> ArrayLike:
        return counts


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

    Entry ``[a, b]`` of the (n_votes + 1, n_votes + 1) masked array is the label of an item with `a`
    votes for A, `b` for B and the others ties, masked where ``a + b`` is more than `n_votes`. As in
    the paper's figure.
    """
    n_votes = as_integer(n_votes, "n_votes", 0)
    plus, minus = np.indices((n_votes + 1, n_votes + 1))
    possible = plus + minus <= n_votes
    labels = np.zeros(possible.shape, dtype=np.int8)
    counts = np.stack([minus, n_votes - plus - minus, plus], axis=-1)
    if isinstance(aggregator, Calibrated) and aggregator.calibration is not None:
        # The number of votes is what is asked about; these are no items that someone decides.
        aggregator = aggregator.for_any_votes()
    labels[possible] = aggregator.decide(counts[possible])
    return np.ma.array(labels, mask=~possible)
