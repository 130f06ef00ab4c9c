"""Aggregators with nothing to learn: majority, median, by confidences, and decided elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from btdagg._util.errors import one_of
from btdagg._util.validation import as_checked_counts
from btdagg.inference.intervals import ROUNDING
from btdagg.methods.base import Needs, OnScale, WithoutFit
from btdagg.votes.by_id import as_items

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Score = Literal["mean", "min", "product", "sum"]

# Below every logarithm of a product that is not 0, and above minus infinity.
_LOG_OF_ZERO = -1e300

# More than shares of whole votes are rounded by, and less than one vote of many is of all.
_HALF = 1e-12


def majority_vote(counts: ArrayLike) -> NDArray[np.int8]:
    """Label with the most votes, (n,) int8; a tie if two or three labels share the most.

    Parameters
    ----------
    counts : (n, 3) array of non-negative numbers
        Votes per item in label order: minus, tie, plus. An item without votes is a tie.

    References
    ----------
    Self-consistency: Wang et al. (2023), the paper's baseline SC, which states no rule for equal
    votes; this one is mirror-symmetric.
    """
    minus, tie, plus = as_checked_counts(counts).T
    labels = np.zeros(len(minus), dtype=np.int8)
    labels[(plus > tie) & (plus > minus)] = 1
    labels[(minus > tie) & (minus > plus)] = -1
    return labels


class Voted(WithoutFit, OnScale):
    """A plain statistic of the votes, as the nearest label, scaled linearly between other ends."""

    # An item without votes is in the middle of two sides, else an error.

    name: str
    # Whether half of a vote for a side is that side's.
    _outward: ClassVar[bool] = False

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,)."""
        array = self._checked(as_items(counts, scale=self.scale).votes)
        values = self.scale.rescaled(self._statistic(array), self.label_scale)
        return self._nearest(values, outward=self._outward and self.scale.mirrored)

    def _statistic(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        raise NotImplementedError


@dataclass(frozen=True)
class MajorityVote(Voted):
    """The mode of the votes, as in `btdagg.majority_vote`; where votes share it, their mean."""

    name: str = "majority vote"

    def _statistic(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        if self.scale.mirrored:  # in a third of the time
            return np.asarray(self.scale.floats[majority_vote(counts) + 1])
        most = reduce(np.maximum, counts.T)
        are_most = [column == most for column in counts.T]
        total = sum(map(np.multiply, are_most, self.scale.floats))
        return np.asarray(total / sum(is_most.astype(np.intp) for is_most in are_most))


@dataclass(frozen=True)
class RoundedMedian(Voted):
    """The median vote; of a scale with two sides a half is rounded away from the middle.

    The paper uses it for two greedy samples: 0 and 1 give 1, 0 and -1 give -1, -1 and 1 give 0.
    """

    name: str = "rounded median"
    _outward: ClassVar[bool] = True

    def _statistic(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        sums = np.cumsum(counts, axis=1, dtype=np.float64)
        share = sums / np.where(sums[:, -1:] > 0, sums[:, -1:], np.inf) - 0.5
        none = np.zeros(len(share), np.intp)
        ends = (sum((below < end for below in share.T[:-1]), none) for end in (-_HALF, _HALF))
        low, high = (self.scale.floats[end] for end in ends)
        middle = (low + high) / 2
        return np.where(sums[:, -1] > 0, middle, self.scale.middle)


@dataclass(frozen=True)
class RoundedMean(Voted):
    """The label nearest to the mean vote."""

    name: str = "rounded mean"

    def _statistic(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        return self._means(counts)


@dataclass(frozen=True)
class SoftSelfConsistency(WithoutFit, OnScale):
    """Label whose votes score highest by the mean, minimum, product or sum of their confidences.

    A label without votes has no score, or a sum of 0. Equal highest scores (within 1e-9, relative)
    are a tie; so are no votes. `decide` takes `btdagg.votes.Items` with a confidence of every vote.

    References
    ----------
    Wang et al. (2024), Soft self-consistency improves language model agents: the paper's Soft-SC.
    With sums Taubenfeld et al. (2025), Confidence improves self-consistency in LLMs: its CI-SC. As
    in the paper, and unlike in these, confidences are not passed through a softmax. The rule for
    equal scores is our own.
    """

    needs: ClassVar[Needs] = Needs(confidences=True)

    score: Score = "mean"
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.score, get_args(Score), "score")
        name = self.name or ("CI-SC" if self.score == "sum" else f"Soft-SC {self.score}")
        self.scale.require_sides(f"{name}, which needs confidences in minus, tie and plus")
        object.__setattr__(self, "name", name)

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,), from items with confidences."""
        items = as_items(counts, scale=self.scale)
        confidences = items.require_confidences(self.name)
        votes, absolute = self.scale.counts(items.votes), 0.0
        if self.score == "product":
            scores = np.maximum(confidences.log_product, _LOG_OF_ZERO)
            absolute = ROUNDING  # of a logarithm is relative of the product
        elif self.score == "min":
            scores = confidences.least
        else:
            scores = confidences.total / (np.maximum(votes, 1) if self.score == "mean" else 1)
        least = 0.0 if self.score == "sum" else -np.inf
        scores = np.where(votes > 0, scores, least)
        # The highest, or a tie where two or three share it up to rounding.
        best = scores.max(axis=1, initial=-np.inf, keepdims=True)
        finite = np.where(np.isfinite(best), best, 0.0)
        highest = scores >= best - np.maximum(absolute, ROUNDING * np.abs(finite))
        alone = highest.sum(axis=1) == 1
        return np.asarray(self.label_scale.labels[np.where(alone, highest.argmax(axis=1), 1)])


@dataclass(frozen=True)
class Decided(WithoutFit, OnScale):
    """Decisions that come with the items, such as those of a generative aggregator.

    Mirror-symmetric if the decisions are.

    Parameters
    ----------
    column : str
        Name of the decisions, which is their column in tables of votes.
    name : str
        Name in tables; by default the column in capitals.
    some : bool
        Whether items may lack a decision, and are then left out for every method.

    References
    ----------
    The paper's baselines GSA (Li et al., 2025) and USC (Chen et al., 2023).
    """

    column: str
    name: str = ""
    some: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", self.name or self.column.upper())
        self.scale.require_sides(f"{self.name}, which reads the decisions -1, 0 and 1")

    @property
    def needs(self) -> Needs:
        """The decisions of its column."""
        return Needs(decisions=self.column, some_decisions=self.some)

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Decision on each item, (n,); without one the item is named in an `InputError`."""
        decided = as_items(counts, scale=self.scale).require_decisions(self.column)
        return np.asarray(self.label_scale.labels[decided + 1])
