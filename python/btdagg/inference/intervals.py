"""Intervals of means and shares: Student's t, Wilson's, and p-values that agree with them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from btdagg.result import Interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]

Ends: TypeAlias = tuple[float, float]

# Standard errors on either side; the paper's two decimals.
_Z = 1.96

ROUNDING = 1e-12
"""A difference of mean losses, or its standard error, up to this may be rounding alone."""


def t_quantile(level: float, degrees_of_freedom: float) -> float:
    """Half the width of a two-sided interval in standard errors; infinite degrees are normal."""
    from scipy.special import ndtri, stdtrit

    p = (1 + level) / 2
    return float(ndtri(p) if np.isinf(degrees_of_freedom) else stdtrit(degrees_of_freedom, p))


def t_tail(quantile: ArrayLike, degrees_of_freedom: ArrayLike) -> NDArray[np.float64]:
    """Probability beyond each end of an interval that is so many standard errors to each side."""
    from scipy.special import ndtr, stdtr

    quantile, freedom = np.asarray(quantile, dtype=np.float64), np.asarray(degrees_of_freedom)
    is_normal = np.isinf(freedom)
    tail = np.where(is_normal, ndtr(-quantile), stdtr(np.where(is_normal, 1, freedom), -quantile))
    return np.asarray(tail)


def effective_number(value: Any, variance: Any, ends: Ends) -> Any:
    """Return how many independent labels, each one of two ends, would have a variance above 0."""
    # A mean nearer to an end than one standard error is taken to be that far from it: corrected
    # means can lie there by chance.
    span = ends[1] - ends[0]
    error = np.minimum(np.sqrt(variance) / span, 0.5)
    p = np.clip((value - ends[0]) / span, error, 1 - error)
    return p * (1 - p) / error**2


def limits_of(value: Any, n: Any, quantile: Any, ends: Any) -> tuple[Floats, Floats]:
    """Low and high ends of Wilson's interval of a mean, at (k,) effective numbers of labels."""
    # Korn and Graubard (1998); Franco, Little, Louis and Slud (2019).
    least, span = ends[0], np.maximum(ends[1] - ends[0], 1e-300)
    low, high = wilson(np.clip((value - least) / span, 0.0, 1.0), n, quantile)
    return least + span * low, least + span * high


def mean_interval(values: ArrayLike) -> Interval:
    """Mean of (n,) finite numbers and normal 95% interval, ``mean ± 1.96 standard errors``."""
    # Over splits, as in the paper, it is no interval for new items: the splits share theirs.
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    half = _Z * float(array.std(ddof=1)) / len(array) ** 0.5
    return Interval(mean, mean - half, mean + half)


def share_interval(share: float, n: int) -> Interval:
    """Share of n independent items and its 95% interval, by Wilson's score."""
    (low,), (high,) = wilson(share, np.array([n]), _Z)
    return Interval(share, float(low), float(high))


def wilson(
    share: Any, n: NDArray[Any], quantile: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high ends of Wilson's interval of a share of (k,) `n` independent items, above 0."""
    # Wilson (1927); Brown, Cai and DasGupta (2001). Student's t is a `quantile` too.
    square = quantile**2
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = quantile * np.sqrt(share * (1 - share) / n + square / (4 * n**2)) / (1 + square / n)
    # Exactly at an end but for rounding where the share is.
    low = np.where(share == 0, 0.0, np.maximum(centre - half, 0.0))
    high = np.where(share == 1, 1.0, np.minimum(centre + half, 1.0))
    return low, high


def of_one_look(level: float) -> str:
    """Say that a level is for one look at the labels, and how two looks share its error."""
    return (
        f"{100 * level:.4g}% is for one look: to look again at more labels, use "
        f"{100 * (1 + level) / 2:.4g}% in both looks"
    )


def of_every_look(level: float, instead: str) -> str:
    """Say that a level is for one look at the labels, and what is for as many as one likes."""
    return f"{100 * level:.4g}% is for one look; {instead} holds after every label"


def number_to_tell(n: int, half: float, distance: float) -> int | None:
    """About how many items narrow an interval to a distance; None from a hundred times n on."""
    return math.ceil(n * (half / distance) ** 2) if distance > half / 10 else None
