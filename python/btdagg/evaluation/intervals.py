"""95% intervals around means, differences and proportions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_groups,
    as_integer,
    as_losses,
    as_number,
    as_numbers,
    same_length,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Standard errors on either side; the paper's two decimals.
_Z = 1.96

# Numbers that a bootstrap draws at once.
_DRAWN = 1 << 20


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

    Raises
    ------
    InputError
        If there are fewer than two values or one is not finite.
    """
    array = as_numbers(values, "values").astype(np.float64)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise InputError("values want at least two finite numbers in one dimension")
    mean = float(array.mean())
    half = _Z * float(array.std(ddof=1)) / len(array) ** 0.5
    return Interval(mean, mean - half, mean + half)


def difference_interval(a: ArrayLike, b: ArrayLike) -> Interval:
    """Mean of the paired differences ``a - b`` and its normal 95% interval.

    The differences' own standard error: what both have in common cancels.

    Parameters
    ----------
    a, b : (n,) arrays of finite numbers, n at least 2
        Losses of two methods on the same items, or their scores on the same splits.

    Raises
    ------
    InputError
        If lengths disagree, there are fewer than two values or one is not finite.
    """
    return mean_interval(_finite(a, "a") - _paired(a, b))


def proportion_interval(
    successes: int, total: int, *, rule: Literal["wilson", "normal"] = "wilson"
) -> Interval:
    """Proportion of independent items and its 95% interval.

    Parameters
    ----------
    successes, total : int
        ``0 <= successes <= total``, and `total` at least 1.
    rule : {"wilson", "normal"}
        Wilson's score interval, which stays within 0 and 1 and holds near them; or
        ``p ± 1.96 sqrt(p (1 - p) / total)``, which the paper gives for tie rates.

    Raises
    ------
    InputError
        If a number is out of range or the rule is none.

    References
    ----------
    Wilson (1927); Brown, Cai and DasGupta (2001). The paper's table of tie rates.
    """
    n = as_integer(total, "total", 1)
    count = as_integer(successes, "successes", 0)
    if count > n:
        raise InputError(f"successes is {count}, expected at most {n} as in total")
    p = count / n
    if rule == "normal":
        return share_interval(p, n)
    if rule != "wilson":
        raise InputError(f"rule is {rule!r}, expected 'wilson' or 'normal'")
    shrink = 1 + _Z**2 / n
    centre = (p + _Z**2 / (2 * n)) / shrink
    half = _Z * (p * (1 - p) / n + _Z**2 / (4 * n**2)) ** 0.5 / shrink
    # Exactly 0 or 1 but for rounding where there are none or nothing else.
    return Interval(p, 0.0 if count == 0 else centre - half, 1.0 if count == n else centre + half)


def bootstrap_interval(
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Mean over items, or of the paired differences ``a - b``, and its 95% bootstrap interval.

    Percentiles 2.5 and 97.5 of the mean over items drawn with replacement. It is an interval for
    new items of the kind, or, with `groups`, for new groups.

    Parameters
    ----------
    a : (n,) array of finite numbers
        Losses per item.
    b : (n,) array of finite numbers, optional
        Losses of another method on the same items.
    groups : (n,) array, optional
        What items share, such as their prompt. Whole groups are drawn; the mean stays that over
        items.
    n_resamples : int
        How often to draw.
    seed : int
        The same seed gives the same interval.

    Raises
    ------
    InputError
        If lengths disagree, there are no items, fewer than two groups, a value is not finite, or
        an argument is out of range.

    References
    ----------
    Efron (1979); Field and Welsh (2007) for whole groups.
    """
    values = _finite(a, "a")
    if b is not None:
        values = values - _paired(a, b)
    n_resamples = as_integer(n_resamples, "n_resamples", 1)
    rng = np.random.default_rng(as_integer(seed, "seed", 0))
    group = np.arange(len(values)) if groups is None else as_groups(groups, "a", len(values))
    sums, sizes = np.bincount(group, weights=values), np.bincount(group)
    order = np.lexsort((sizes, sums))  # that of the rows changes nothing
    sums, sizes = sums[order], sizes[order]
    if len(sums) < 2:
        what = "a has 1 row" if groups is None else "groups has 1 group"
        raise InputError(f"{what}, expected at least two")
    means = np.empty(n_resamples)
    step = max(1, _DRAWN // len(sums))
    for start in range(0, n_resamples, step):
        shape = (min(step, n_resamples - start), len(sums))
        drawn = rng.integers(len(sums), size=shape)
        means[start : start + step] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(values.mean()), float(low), float(high))


def _finite(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = as_losses(values, name, "(n,)")
    if len(array) == 0:
        raise InputError(f"{name} is empty, expected at least one item")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise InputError(f"{name}[{row}] is {array[row]}, expected a finite number")
    return array


def _paired(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Values of b, one for each of a."""
    first, second = _finite(a, "a"), _finite(b, "b")
    same_length("b", len(second), "a", len(first))
    return second


def share_interval(share: float, n: int) -> Interval:
    """Share and its normal 95% interval, ``p ± 1.96 sqrt(p (1 - p) / n)``.

    The interval may reach past 0 or 1, and has no width at either.

    Parameters
    ----------
    share : float
        The proportion p, from 0 to 1.
    n : int
        Number of independent units that it is of.

    Raises
    ------
    InputError
        If an argument is out of range.
    """
    n, share = as_integer(n, "n", 1), as_number(share, "share")
    if not 0 <= share <= 1:
        raise InputError(f"share is {share}, expected a number from 0 to 1")
    half = _Z * (share * (1 - share) / n) ** 0.5
    return Interval(share, share - half, share + half)
