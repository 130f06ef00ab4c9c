"""Standard errors of the numbers of a fit, from the scores of its items by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def standard_errors(
    scores: Floats, information: Floats, groups: NDArray[np.int64] | None = None
) -> Floats:
    """Return standard errors of p numbers by the jackknife over groups, a Newton step each.

    Parameters
    ----------
    scores : (n, p) array
        Gradient of each item's log-likelihood, or of its negative loss.
    information : (n, p, p) array
        Curvature of each item's loss.
    groups : (n,) array of int, optional
        Group of each item, from 0; by default each item is its own.

    References
    ----------
    Liang and Zeger (1986); Bell and McCaffrey (2002) for the correction for few groups.
    """
    scores = scores - scores.mean(axis=0)
    whole = information.sum(axis=0)
    if groups is not None and (n_groups := int(groups.max()) + 1) < len(groups):
        sums = np.zeros((n_groups, scores.shape[1])), np.zeros((n_groups, *whole.shape))
        for total, values in zip(sums, (scores, information), strict=True):
            np.add.at(total, groups, values)
        scores, information = sums
    n_groups, p = scores.shape
    # A number that one group alone tells has no error: the ridge makes it huge.
    ridge = (1e-12 * np.trace(whole) + 1e-300) * np.eye(p)
    steps = np.linalg.solve(whole - information + ridge, scores[..., None])[..., 0]
    errors: Floats = np.sqrt((n_groups - 1) / n_groups * (steps**2).sum(axis=0))
    return errors
