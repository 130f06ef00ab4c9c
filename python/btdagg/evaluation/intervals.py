"""95% intervals around means and shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.readable import readable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Standard errors on either side; the paper's two decimals.
_Z = 1.96


@readable
class Interval(NamedTuple):
    """A mean and its 95% interval."""

    mean: float
    low: float
    high: float


def mean_interval(values: ArrayLike) -> Interval:
    """Mean of (n,) finite numbers and normal 95% interval, ``mean ± 1.96 standard errors``.

    Over splits, as in the paper, it says how sure the mean over splits is. It is no interval for
    new items: the splits share theirs.
    """
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    half = _Z * float(array.std(ddof=1)) / len(array) ** 0.5
    return Interval(mean, mean - half, mean + half)


def share_interval(share: float, n: int) -> Interval:
    """Share of n independent items and its 95% interval, by Wilson's score."""
    (low,), (high,) = wilson(share, np.array([n]), _Z)
    return Interval(share, float(low), float(high))


def wilson(
    share: float, n: NDArray[Any], quantile: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high ends of Wilson's interval of a share of n independent items.

    `n` is a (k,) array, above 0, and `quantile` such as Student's t at a level and degrees of
    freedom. Wilson (1927); Brown, Cai and DasGupta (2001).
    """
    square = quantile**2
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = quantile * np.sqrt(share * (1 - share) / n + square / (4 * n**2)) / (1 + square / n)
    # Exactly at an end but for rounding where the share is.
    low = np.zeros_like(centre) if share == 0 else np.maximum(centre - half, 0.0)
    high = np.ones_like(centre) if share == 1 else np.minimum(centre + half, 1.0)
    return low, high
