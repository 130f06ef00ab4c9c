"""Soft self-consistency: the label whose votes are most confident."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_whole_counts
from btdagg.methods.base import Needs
from btdagg.methods.leading import ROUNDING, leading_label
from btdagg.votes.evidence import Evidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Score = Literal["mean", "min", "product"]

# Below every logarithm of a product that is not 0, and above minus infinity.
_LOG_OF_ZERO = -1e300


def soft_self_consistency(evidence: Evidence, score: Score = "mean") -> NDArray[np.int8]:
    """Label whose votes score highest by the mean, minimum or product of their confidences.

    A label without votes has no score. If labels share the highest score (within 1e-9, relative)
    the item is a tie; so is an item without votes.

    Parameters
    ----------
    evidence : Evidence
        With a confidence of every vote.
    score : "mean", "min" or "product"

    Returns
    -------
    (n,) array of int8
        -1, 0 or +1.

    Raises
    ------
    InputError
        If the score is unknown, the evidence is plain counts, or a confidence is missing.

    References
    ----------
    Wang et al. (2024), Soft self-consistency improves language model agents; the paper's baseline
    Soft-SC. Neither states a rule for equal scores; this one is mirror-symmetric.
    """
    if score not in get_args(Score):
        raise InputError(f"score is {score!r}, expected one of {', '.join(get_args(Score))}")
    found = Evidence.of(evidence)
    confidences = found.require_confidences(f"Soft-SC {score}")
    counts = as_whole_counts(found.counts)
    absolute = 0.0
    if score == "mean":
        scores = confidences.total / np.maximum(counts, 1)
    elif score == "min":
        scores = confidences.least
    else:
        scores = np.maximum(confidences.log_product, _LOG_OF_ZERO)
        absolute = ROUNDING  # of a logarithm is relative of the product
    return leading_label(np.where(counts > 0, scores, -np.inf), absolute)


@dataclass(frozen=True)
class SoftSelfConsistency:
    """`soft_self_consistency` as an aggregator; a tie if labels share the highest score."""

    needs: ClassVar[Needs] = Needs(confidences=True)

    score: Score = "mean"
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"Soft-SC {self.score}")

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Return itself: there is nothing to learn."""
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,), from evidence with confidences."""
        return soft_self_consistency(Evidence.of(counts), self.score)
