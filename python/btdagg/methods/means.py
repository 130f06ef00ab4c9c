"""Mean votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_labels, as_whole_counts, labelled, same_index, same_length

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def mean_votes(counts: ArrayLike) -> NDArray[np.float64]:
    """Return the mean vote of each item, (n,); 0 of one without votes."""
    minus, tie, plus = as_whole_counts(counts).T.astype(np.float64)
    return np.asarray((plus - minus) / np.maximum(minus + tie + plus, 1))


def labelled_means(
    counts: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return the mean vote and the label of each item of a calibration set, (n,) each.

    Raises
    ------
    InputError
        If shapes disagree, there are no items, or a value is out of range.
    """
    counts, labels, _ = labelled(counts, labels)
    means, gold = mean_votes(counts), as_labels(labels)
    same_length("labels", len(gold), "counts", len(means))
    same_index(counts=counts, labels=labels)
    if not len(gold):
        raise InputError("labels is empty, expected at least one item")
    return means, gold
