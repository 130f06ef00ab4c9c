"""Majority vote and the rounded median: counts alone, nothing to learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.validation import as_whole_counts
from btdagg.methods.base import WithoutFit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def majority_vote(counts: ArrayLike) -> NDArray[np.int8]:
    """Label with the most votes, (n,) int8; a tie if two or three labels share the most.

    Parameters
    ----------
    counts : (n, 3) array of non-negative integers
        Votes per item in label order: minus, tie, plus. An item without votes is a tie.

    References
    ----------
    Self-consistency: Wang et al. (2023), the paper's baseline SC. The paper states no rule for
    labels that share the most votes; this one is mirror-symmetric.
    """
    minus, tie, plus = as_whole_counts(counts).T
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
        return majority_vote(counts)


def rounded_median(counts: ArrayLike) -> NDArray[np.int8]:
    """Median vote, a half rounded away from zero; takes and returns what `majority_vote` does.

    Of two votes, a 0 and a 1 give 1, a 0 and a -1 give -1, a -1 and a 1 give 0. The paper uses it
    for two greedy samples.
    """
    minus, tie, plus = as_whole_counts(counts).T
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
        return rounded_median(counts)
