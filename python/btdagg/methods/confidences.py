"""Votes weighed by their confidences: the paper's baselines CI-SC and Soft-SC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_whole_counts
from btdagg.methods.base import Needs, WithoutFit
from btdagg.votes.evidence import Evidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Score = Literal["mean", "min", "product"]

# Below every logarithm of a product that is not 0, and above minus infinity.
_LOG_OF_ZERO = -1e300

# Scores that differ by less, relatively, are the same up to the rounding of their sums.
_ROUNDING = 1e-9


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
        votes = as_whole_counts(evidence.counts)
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
