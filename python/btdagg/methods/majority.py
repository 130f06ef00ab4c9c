"""Self-consistency: the label with the most votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from btdagg._util.validation import as_whole_counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def majority_vote(counts: ArrayLike) -> NDArray[np.int8]:
    """Label with the most votes; a tie if two or three labels share the most.

    Parameters
    ----------
    counts : (n, 3) array of non-negative integers
        Votes per item in label order: minus, tie, plus.

    Returns
    -------
    (n,) array of int8
        -1, 0 or +1; 0 for an item without votes.

    Raises
    ------
    InputError
        If the shape is not (n, 3) or a count is not a non-negative integer.

    References
    ----------
    Self-consistency: Wang et al. (2023), the paper's baseline SC. The paper states
    no rule for labels that share the most votes; this one is mirror-symmetric.
    """
    minus, tie, plus = as_whole_counts(counts).T
    labels = np.zeros(len(minus), dtype=np.int8)
    labels[(plus > tie) & (plus > minus)] = 1
    labels[(minus > tie) & (minus > plus)] = -1
    return labels


@dataclass(frozen=True)
class MajorityVote:
    """`majority_vote` as an aggregator; a tie if labels share the most votes."""

    name: str = "majority vote"

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Return itself: there is nothing to learn."""
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,)."""
        return majority_vote(counts)
