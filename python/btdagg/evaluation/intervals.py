"""95% intervals around means and shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import as_integer, as_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Standard errors on either side; the paper's two decimals.
_Z = 1.96


@readable
class Interval(NamedTuple):
    """A mean and its 95% interval."""

    mean: float
    low: float
    high: float


def mean_interval(values: ArrayLike) -> Interval:
    """Mean and normal 95% interval, ``mean ± 1.96 standard errors``.

    Over splits, as in the paper, it says how sure the mean over splits is. It is no interval for
    new items: the splits share theirs.

    Parameters
    ----------
    values : (n,) array of finite numbers, n at least 2
        Of paired differences the interval is that of the difference of the means.
    """
    array = as_numbers(values, "values").astype(np.float64)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise InputError("values want at least two finite numbers in one dimension")
    mean = float(array.mean())
    half = _Z * float(array.std(ddof=1)) / len(array) ** 0.5
    return Interval(mean, mean - half, mean + half)


def share_interval(share: float, n: int) -> Interval:
    """Share of independent items and its 95% interval, by Wilson's score.

    References
    ----------
    Wilson (1927); Brown, Cai and DasGupta (2001).
    """
    n = as_integer(n, "n", 1)
    if not 0 <= share <= 1:
        raise InputError(f"share is {share}, expected a number from 0 to 1")
    shrink = 1 + _Z**2 / n
    centre = (share + _Z**2 / (2 * n)) / shrink
    half = _Z * (share * (1 - share) / n + _Z**2 / (4 * n**2)) ** 0.5 / shrink
    # At 0 and 1 the end is exact but for rounding.
    low, high = (0.0 if share == 0 else centre - half), (1.0 if share == 1 else centre + half)
    return Interval(share, low, high)
