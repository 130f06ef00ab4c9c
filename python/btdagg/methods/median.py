"""Rounded median, which the paper uses for two greedy samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from btdagg._util.validation import as_whole_counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def rounded_median(counts: ArrayLike) -> NDArray[np.int8]:
    """Median vote, a half rounded away from zero.

    Of two votes, a 0 and a 1 give 1, a 0 and a -1 give -1, a -1 and a 1 give 0.

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
    The paper's baselines greedy decoding and few-shot.
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
class RoundedMedian:
    """`rounded_median` as an aggregator; a half is rounded away from zero."""

    name: str = "rounded median"

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Return itself: there is nothing to learn."""
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,)."""
        return rounded_median(counts)
