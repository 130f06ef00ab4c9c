"""Intervals of means that have ends: shares, win rates, and their differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Ends(NamedTuple):
    """The least and the greatest value that a mean can have."""

    least: float
    greatest: float


def effective_number(value: float, variance: float, ends: Ends) -> float:
    """Return how many independent labels, each one of two ends, would have a variance.

    Parameters
    ----------
    value : float
        Their mean. Where it is nearer to an end than one standard error, it is taken to be that
        far from it: a mean that is corrected can come to lie anywhere there by chance.
    variance : float
        Above 0.
    ends : Ends
    """
    span = ends.greatest - ends.least
    error = min(variance**0.5 / span, 0.5)
    p = min(max((value - ends.least) / span, error), 1 - error)
    return float(p * (1 - p) / error**2)


def wilson(
    value: float, n: NDArray[np.float64], quantile: float, ends: Ends
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval of a mean between two ends.

    Parameters
    ----------
    value : float
        The mean.
    n : (k,) array, above 0
        Effective numbers of labels.
    quantile : float
        Such as Student's t at the level and degrees of freedom wanted.
    ends : Ends

    Returns
    -------
    tuple of two (k,) arrays
        Low and high ends.

    References
    ----------
    Wilson (1927); Korn and Graubard (1998) for effective numbers; Franco, Little, Louis and Slud
    (2019) compare such intervals for samples of groups.
    """
    span, square = ends.greatest - ends.least, quantile**2
    p = min(max((value - ends.least) / span, 0.0), 1.0)
    centre = (p + square / (2 * n)) / (1 + square / n)
    half = quantile * np.sqrt(p * (1 - p) / n + square / (4 * n**2)) / (1 + square / n)
    # Exactly at an end but for rounding where the mean is.
    low = np.zeros_like(centre) if p == 0 else np.maximum(centre - half, 0.0)
    high = np.ones_like(centre) if p == 1 else np.minimum(centre + half, 1.0)
    return ends.least + span * low, ends.least + span * high
