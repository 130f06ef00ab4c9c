"""How an aggregator decides all possible counts of n votes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.validation import as_integer
from btdagg.votes.provenance import ProvenanceWarning

if TYPE_CHECKING:
    from btdagg.methods.base import Aggregator


def voting_behaviour(aggregator: Aggregator, n_votes: int) -> np.ma.MaskedArray[Any, Any]:
    """Decision of a fitted aggregator for every number of votes for A and for B.

    Parameters
    ----------
    aggregator : Aggregator
        One that decides by counts alone, fitted where it has something to learn.
    n_votes : int
        Votes per item; those that are neither for A nor for B are ties.

    Returns
    -------
    (n_votes + 1, n_votes + 1) masked array of int8
        Entry ``[a, b]`` is the label of an item with `a` votes for A and `b` for B, masked where
        ``a + b`` is more than there are.

    Raises
    ------
    InputError
        If `n_votes` is negative, or the aggregator needs more than counts or is not fitted.

    References
    ----------
    The paper's figure of the behaviour of aggregation methods with 20 votes.
    """
    n_votes = as_integer(n_votes, "n_votes", 0)
    plus, minus = np.indices((n_votes + 1, n_votes + 1))
    possible = plus + minus <= n_votes
    labels = np.zeros(possible.shape, dtype=np.int8)
    counts = np.stack([minus, n_votes - plus - minus, plus], axis=-1)
    with warnings.catch_warnings():
        # The number of votes is what is asked about; these are no items that someone decides.
        warnings.simplefilter("ignore", ProvenanceWarning)
        labels[possible] = aggregator.decide(counts[possible])
    return np.ma.array(labels, mask=~possible)
