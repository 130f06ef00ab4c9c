"""Aggregators with nothing to learn: majority, median, by confidences, and decided elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_checked_counts
from btdagg.methods.base import Needs, WithoutFit
from btdagg.votes.evidence import Evidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Score = Literal["mean", "min", "product"]

# Below every logarithm of a product that is not 0, and above minus infinity.
_LOG_OF_ZERO = -1e300

# Scores that differ by less, relatively, are the same up to the rounding of their sums.
_ROUNDING = 1e-9


def majority_vote(counts: ArrayLike) -> NDArray[np.int8]:
    """Label with the most votes, (n,) int8; a tie if two or three labels share the most.

    Parameters
    ----------
    counts : (n, 3) array of non-negative numbers
        Votes per item in label order: minus, tie, plus. An item without votes is a tie.

    References
    ----------
    Self-consistency: Wang et al. (2023), the paper's baseline SC. The paper states no rule for
    labels that share the most votes; this one is mirror-symmetric.
    """
    minus, tie, plus = as_checked_counts(counts).T
    labels = np.zeros(len(minus), dtype=np.int8)
    labels[(plus > tie) & (plus > minus)] = 1
    labels[(minus > tie) & (minus > plus)] = -1
    return labels


@dataclass(frozen=True)
class MajorityVote(WithoutFit):
    """`btdagg.majority_vote` as an aggregator; a tie if labels share the most votes."""

    name: str = "majority vote"

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,)."""
        return majority_vote(Evidence.of(counts).signs)


def rounded_median(counts: ArrayLike) -> NDArray[np.int8]:
    """Median vote, a half rounded away from zero; takes and returns what `majority_vote` does.

    Of two votes, a 0 and a 1 give 1, a 0 and a -1 give -1, a -1 and a 1 give 0. The paper uses it
    for two greedy samples.
    """
    minus, tie, plus = as_checked_counts(counts).T
    labels = np.zeros(len(minus), dtype=np.int8)
    # A side has at least half of the votes: it is the median, or one of the two middle votes and
    # the other is no vote for the other side. Differences, because sums could overflow.
    for label, ahead, behind in ((1, plus, minus), (-1, minus, plus)):
        leads = ahead > behind
        labels[leads] = np.where(ahead[leads] - behind[leads] >= tie[leads], label, 0)
    return labels


@dataclass(frozen=True)
class RoundedMedian(WithoutFit):
    """The median vote; a half is rounded away from zero."""

    name: str = "rounded median"

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,)."""
        return rounded_median(Evidence.of(counts).signs)


@dataclass(frozen=True)
class SoftSelfConsistency(WithoutFit):
    """Label whose votes score highest by the mean, minimum or product of their confidences.

    A label without votes has no score. If labels share the highest score (within 1e-9, relative)
    the item is a tie; so is an item without votes. `decide` takes `btdagg.votes.Evidence` with a
    confidence of every vote.

    References
    ----------
    Wang et al. (2024), Soft self-consistency improves language model agents; the paper's baseline
    Soft-SC. Neither states a rule for equal scores; this one is mirror-symmetric.
    """

    needs: ClassVar[Needs] = Needs(confidences=True)

    score: Score = "mean"
    name: str = ""

    def __post_init__(self) -> None:
        if self.score not in get_args(Score):
            raise InputError(
                f"score is {self.score!r}, expected one of {', '.join(get_args(Score))}"
            )
        if not self.name:
            object.__setattr__(self, "name", f"Soft-SC {self.score}")

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,), from evidence with confidences."""
        evidence = Evidence.of(counts)
        confidences = evidence.require_confidences(self.name)
        votes = as_checked_counts(evidence.signs)
        absolute = 0.0
        if self.score == "mean":
            scores = confidences.total / np.maximum(votes, 1)
        elif self.score == "min":
            scores = confidences.least
        else:
            scores = np.maximum(confidences.log_product, _LOG_OF_ZERO)
            absolute = _ROUNDING  # of a logarithm is relative of the product
        return _leading_label(np.where(votes > 0, scores, -np.inf), absolute)


@dataclass(frozen=True)
class ConfidenceWeightedVote(WithoutFit):
    """Label with the largest sum of confidences; a tie if labels share it (within 1e-9, relative).

    `decide` takes `btdagg.votes.Evidence` with a confidence of every vote. An item without votes,
    or whose votes all have confidence 0, is a tie.

    References
    ----------
    Taubenfeld et al. (2025), Confidence improves self-consistency in LLMs; the paper's baseline
    CI-SC. As in the paper, and unlike Taubenfeld et al., confidences are not passed through a
    softmax.
    """

    needs: ClassVar[Needs] = Needs(confidences=True)

    name: str = "CI-SC"

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,), from evidence with confidences."""
        return _leading_label(Evidence.of(counts).require_confidences(self.name).total)


def _leading_label(scores: NDArray[np.float64], absolute: float = 0.0) -> NDArray[np.int8]:
    """Label with the highest of (n, 3) scores; 0 where two or three share it up to rounding."""
    best = scores.max(axis=1, initial=-np.inf, keepdims=True)
    finite = np.where(np.isfinite(best), best, 0.0)
    highest = scores >= best - np.maximum(absolute, _ROUNDING * np.abs(finite))
    alone = highest.sum(axis=1) == 1
    return np.where(alone, highest.argmax(axis=1) - 1, 0).astype(np.int8)


@dataclass(frozen=True)
class Decided(WithoutFit):
    """Decisions that come with the evidence, such as those of a generative aggregator.

    It breaks no ties. It is mirror-symmetric if the decisions are.

    Parameters
    ----------
    column : str
        Name of the decisions in the evidence, which is their column in tables of votes.
    name : str
        Name in tables; by default the column in capitals.
    some : bool
        Whether items may have no decision; evaluations then leave them out, for every method.

    References
    ----------
    The paper's baselines GSA (Li et al., 2025) and USC (Chen et al., 2023).
    """

    column: str
    name: str = ""
    some: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.column.upper())

    @property
    def needs(self) -> Needs:
        """The decisions of its column."""
        return Needs(decisions=self.column, some_decisions=self.some)

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Decision on each item, (n,); without one the item is named in an `InputError`."""
        return Evidence.of(counts).require_decisions(self.column)
