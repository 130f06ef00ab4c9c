"""Confidence-informed self-consistency: votes weighted by their confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from btdagg.methods.base import Needs
from btdagg.methods.leading import leading_label
from btdagg.votes.evidence import Evidence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def confidence_weighted_vote(evidence: Evidence) -> NDArray[np.int8]:
    """Label with the largest sum of confidences; a tie if labels share it.

    Sums within 1e-9 (relative) of the largest share it.

    Parameters
    ----------
    evidence : Evidence
        With a confidence of every vote, which is the weight of the vote.

    Returns
    -------
    (n,) array of int8
        -1, 0 or +1; 0 for an item without votes, or whose votes all have confidence 0.

    Raises
    ------
    InputError
        If the evidence is plain counts, or a confidence is missing.

    References
    ----------
    Taubenfeld et al. (2025), Confidence improves self-consistency in LLMs; the paper's baseline
    CI-SC. As in the paper, and unlike Taubenfeld et al., confidences are not passed through a
    softmax.
    """
    return leading_label(Evidence.of(evidence).require_confidences("CI-SC").total)


@dataclass(frozen=True)
class ConfidenceWeightedVote:
    """`confidence_weighted_vote` as an aggregator; a tie if labels share the largest sum."""

    needs: ClassVar[Needs] = Needs(confidences=True)

    name: str = "CI-SC"

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Return itself: there is nothing to learn."""
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,), from evidence with confidences."""
        return confidence_weighted_vote(Evidence.of(counts))
