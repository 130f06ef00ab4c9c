"""Intervals of means that have ends: shares, win rates, and their differences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Ends(NamedTuple):
    """The least and the greatest value that a mean can have."""

    least: float
    greatest: float


def within(
    value: float, variance: float, quantile: float, ends: Ends, n_independent: int
) -> tuple[float, float]:
    """Wilson's interval of a mean between two ends, on its effective number of labels.

    Parameters
    ----------
    value, variance : float
        The mean, and its variance.
    quantile : float
        Such as Student's t at the level and degrees of freedom wanted.
    ends : Ends
    n_independent : int
        Number of independent labels or groups: what the effective number is where no variance was
        seen, because all groups have the same mean.

    Notes
    -----
    The effective number is that of independent labels of only the two ends which would have that
    variance.

    References
    ----------
    Wilson (1927); Korn and Graubard (1998) for the effective number; Franco, Little, Louis and Slud
    (2019) compare such intervals for samples of groups.
    """
    span = ends.greatest - ends.least
    p = min(max((value - ends.least) / span, 0.0), 1.0)
    scaled = variance / span**2
    at_end = p * (1 - p) == 0
    n = n_independent if scaled == 0 or at_end else p * (1 - p) / scaled
    n = max(n, 1e-6)
    square = quantile**2
    centre = (p + square / (2 * n)) / (1 + square / n)
    half = quantile * np.sqrt(p * (1 - p) / n + square / (4 * n**2)) / (1 + square / n)
    low = 0.0 if p == 0 else max(centre - half, 0.0)
    high = 1.0 if p == 1 else min(centre + half, 1.0)
    return float(ends.least + span * low), float(ends.least + span * high)
