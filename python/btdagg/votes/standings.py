"""Standing: what a judge says of the same systems on other items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_names, same_length
from btdagg.votes.scale import PAIRS, Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_RIDGE = 1.0  # items of even votes that each system has beside its own


def standing(
    counts: ArrayLike,
    system_a: ArrayLike,
    system_b: ArrayLike | None = None,
    *,
    scale: Scale = PAIRS,
) -> Floats:
    """Return what a judge's votes of other items say of the systems of each item.

    It needs no labels, so pass all items, labelled or not, of one judge and one task. When votes
    are pairs it is a system's strength less the other's, in mean votes; when they are grades, the
    mean vote of the system's other items. A prompt, or any other grouping of grades, will do as
    well. The item's own votes never count.

    Parameters
    ----------
    counts : (n, J) array of non-negative numbers, or items
        Votes per item for each point of the scale: of pairs minus, tie, plus.
    system_a, system_b : (n,) arrays
        Whose responses A and B are; of grades the system, or another group, alone.
    scale : Scale
        Of the votes; that of pairs unless given.

    Returns
    -------
    (n,) array of float64
        To pass to ``btdagg.calibrate(..., covariates={"standing": x})``. NaN where a system has no
        other item with votes. 0 everywhere if A and B are the same two systems in every item: the
        standing is then a constant, of which labels tell nothing.

    Raises
    ------
    InputError
        If lengths differ, or `system_b` is given of grades or absent of pairs.

    Notes
    -----
    Strengths are those of least squares of the mean votes on system A less system B, with a ridge
    of 1. Leaving an item out changes its fitted value f to ``(f - h * y) / (1 - h)``, with y its
    mean vote and h its leverage. Swapping A and B, or reordering items, changes no bit.

    Examples
    --------
    >>> counts = [[0, 0, 2], [0, 0, 2], [1, 0, 1], [2, 0, 0]]
    >>> standing(counts, ["x", "x", "y", "y"], ["y", "z", "z", "x"]).round(2).tolist()
    [0.75, 0.62, -0.08, -0.75]
    """
    if (system_b is None) == scale.mirrored:
        came = "none" if system_b is None else "given"
        expected = "an array where votes are pairs" if scale.mirrored else "none of grades"
        raise InputError(argument="system_b", came=came, expected=expected)
    array = scale.counts(counts)
    names = [as_names(system_a, "system_a")]
    names += [] if system_b is None else [as_names(system_b, "system_b")]
    for side, own in zip(("system_a", "system_b"), names, strict=False):
        same_length(side, len(own), "counts", len(array))
    n = array.sum(axis=1, dtype=np.float64)
    means = array @ scale.floats / np.where(n > 0, n, 1)
    means[n == 0] = np.nan
    of = np.unique(np.concatenate(names), return_inverse=True)[1].reshape(len(names), -1)
    return _of_grades(means, of[0]) if system_b is None else _of_pairs(means, *of)


def _of_grades(means: Floats, of: NDArray[Any]) -> Floats:
    seen = ~np.isnan(means)
    others = np.bincount(of, seen)[of] - seen
    with np.errstate(invalid="ignore", divide="ignore"):
        total = _sums(of[seen], means[seen], of)
        return np.where(others > 0, (total - np.where(seen, means, 0)) / others, np.nan)


def _of_pairs(means: Floats, a: NDArray[Any], b: NDArray[Any]) -> Floats:
    if len(a) and (a == a[0]).all() and (b == b[0]).all():
        return np.zeros(len(a))
    seen = ~np.isnan(means) & (a != b)
    n_items = np.bincount(np.concatenate([a[seen], b[seen]]), minlength=max(a.max(), b.max()) + 1)
    meetings = np.diag(_RIDGE + n_items)
    np.subtract.at(meetings, (a[seen], b[seen]), 1.0)
    np.subtract.at(meetings, (b[seen], a[seen]), 1.0)
    inverse = np.linalg.inv(meetings)
    inverse = (inverse + inverse.T) / 2
    both, signed = np.concatenate([a[seen], b[seen]]), np.concatenate([means[seen], -means[seen]])
    strengths = inverse @ _sums(both, signed, np.arange(len(meetings)))
    fitted = strengths[a] - strengths[b]
    leverage = np.where(seen, inverse[a, a] + inverse[b, b] - 2 * inverse[a, b], 0.0)
    left_out = (fitted - leverage * np.where(seen, means, 0)) / (1 - leverage)
    has_others = np.minimum(n_items[a], n_items[b]) > seen
    return np.where(has_others | (a == b), left_out, np.nan)


def _sums(of: NDArray[Any], values: Floats, wanted: NDArray[Any]) -> Floats:
    """Return the sum of each group, which does not depend on the order of the values."""
    order = np.lexsort((values, of))
    sums = np.bincount(of[order], values[order], minlength=int(wanted.max(initial=-1)) + 1)
    return np.asarray(sums[wanted])
