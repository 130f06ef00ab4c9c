"""Scores of predicted labels, and agreement of raters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.errors import forbid
from btdagg._util.validation import (
    as_labels,
    as_numbers,
    in_label_order,
    require_rows,
    same_index,
    same_length,
)
from btdagg.inference.intervals import share_interval as share_interval
from btdagg.result import Interval as Interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def mean_absolute_error(labels: ArrayLike, predicted: ArrayLike) -> float:
    """Mean of ``|predicted - label|`` of (n,) arrays of -1, 0, 1; 0 to 2, lower is better.

    A reversed preference costs 2; a tie taken for a preference, or the reverse, 1. The paper's MAE.
    `InputError` if lengths disagree, there are no items, or a value is no label.
    """
    gold, predictions = _pair(labels, predicted)
    return float(np.abs(gold - predictions).mean())


def pairwise_accuracy(labels: ArrayLike, predicted: ArrayLike) -> float:
    """Share of items whose predicted label is the gold label, 0 to 1; the paper's PA.

    Takes and raises what `mean_absolute_error` does.
    """
    gold, predictions = _pair(labels, predicted)
    return float((gold == predictions).mean())


def discrete_ranked_probability_score(
    labels: ArrayLike, probabilities: ArrayLike
) -> NDArray[np.float64]:
    """Score of each predicted distribution, (n,), 0 to 2; lower is better.

    Parameters
    ----------
    labels : (n,) array of -1, 0, 1
    probabilities : (n, 3) array
        Probabilities of -1, 0, +1; each row sums to 1. In a data frame the columns are `p_minus`,
        `p_tie`, `p_plus`, or the same without `p_`, in any order.

    References
    ----------
    The paper's equation for DRPS; Gneiting and Raftery (2007).
    """
    gold = as_labels(labels)
    named = in_label_order(probabilities, "probabilities", "p_")
    p = as_numbers(named, "probabilities").astype(np.float64)
    message = f"probabilities has shape {p.shape}, expected ({len(gold)}, 3)"
    forbid(p.shape != (len(gold), 3), message, "probabilities")
    same_index(labels=labels, probabilities=probabilities)
    good = (p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= 1e-6)  # of single precision
    require_rows(good, p, "probabilities", "three numbers of at least 0 that sum to 1")
    observed = np.stack([gold <= -1, gold <= 0], axis=1)
    cumulative = np.cumsum(p, axis=1)[:, :2]
    return np.asarray(((cumulative - observed) ** 2).sum(axis=1))


def krippendorff_alpha(items: ArrayLike, ratings: ArrayLike, *, ordinal: bool = False) -> float:
    """Agreement of raters beyond chance: 1 where they agree, 0 where they do as by chance.

    Parameters
    ----------
    items, ratings : (n,) arrays
        Item of each rating, and the ratings; NaN where a rater gave none.
    ordinal : bool
        Whether ratings are an order alone, as B, tie and A are; else they are grades, with squared
        differences.

    Returns
    -------
    float
        NaN if no item has two ratings, or all ratings are the same.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """
    values = np.asarray(ratings, dtype=np.float64)
    is_rated = ~np.isnan(values)
    values = values[is_rated]
    _, place, number = np.unique(
        np.asarray(items)[is_rated], return_inverse=True, return_counts=True
    )
    is_shared = number[place] > 1
    values, place = values[is_shared], place[is_shared]
    if len(np.unique(values)) < 2:
        return float("nan")  # 0 / 0
    if ordinal:
        # The squared difference of ranks in the middle of ties is that of ordinal ratings.
        _, order, ties = np.unique(values, return_inverse=True, return_counts=True)
        values = (np.cumsum(ties) - ties / 2)[order]
    means = np.bincount(place, values, len(number)) / number
    within = (values - means[place]) ** 2 * number[place] / (number[place] - 1)
    return float(1 - within.mean() / values.var(ddof=1))


def _pair(labels: ArrayLike, predicted: ArrayLike) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    gold, predictions = as_labels(labels), as_labels(predicted, "predicted")
    same_length("predicted", len(predictions), "labels", len(gold))
    same_index(labels=labels, predicted=predicted)
    forbid(len(gold) == 0, "labels is empty, expected at least one item")
    return gold, predictions
