"""Labelled counts, checked and handed to the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.validation import (
    as_counts,
    as_labels,
    as_weights,
    labelled,
    same_index,
    same_length,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def calibration_set(
    counts: ArrayLike,
    labels: ArrayLike | None,
    weights: ArrayLike | None,
    *,
    alpha: float,
    kappa: float,
) -> _core.CalibrationSet:
    """Gather labelled counts into their distinct rows.

    Parameters
    ----------
    counts : (n, 3) array of non-negative integers
        Votes per item in label order.
    labels : (n,) array of -1, 0, 1, or None
        Gold labels; None where `weights` are soft labels.
    weights : (n,) array, or (n, 3) where labels is None, optional
        Weight of each item, or of each label of each item.
    alpha, kappa : float
        Smoothing constants.

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range (the message names its row), or no weight is
        above 0.
    """
    counts, labels, _ = labelled(counts, labels, weights=weights)
    checked = as_counts(counts)
    if labels is None:
        if weights is None:
            raise InputError("labels is None and weights is None, expected one of them")
        soft = as_weights(weights, soft=True)
        same_length("weights", len(soft), "counts", len(checked))
        same_index(counts=counts, weights=weights)
        return _core.CalibrationSet.soft(checked, soft, alpha, kappa)
    known = as_labels(labels)
    same_length("labels", len(known), "counts", len(checked))
    by_item = None if weights is None else as_weights(weights, soft=False)
    if by_item is not None:
        same_length("weights", len(by_item), "counts", len(checked))
    same_index(counts=counts, labels=labels, weights=weights)
    return _core.CalibrationSet(checked, known, by_item, alpha, kappa)
