"""How many votes per item would make an interval narrower."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.estimates.population import Domain

_N_DRAWS = 8
_N_OTHERS = 2000  # items without a label that are thinned


def votes_wanted(
    estimated: Callable[[NDArray[np.int64]], Domain],
    counts: NDArray[np.int64],
    quantity: str,
    variance: float,
    seed: int,
) -> int | None:
    """Return how many votes per item would give a variance; None where none would.

    Parameters
    ----------
    estimated : callable
        Estimates the means from other counts of the same items.
    counts : (n, 3) or (n, judges, 3) array of int
    quantity : str
    variance : float
        What is wanted of the part of the mean's variance that comes from labels.
    seed : int
        Of the votes that are left out.

    Notes
    -----
    What a judge takes off the variance of labels alone grows with the number m of votes as
    ``m / (m + c)``, as reliability grows with the length of a test. Both constants are found by
    leaving out half of the votes of each item at random, several times.

    References
    ----------
    Spearman (1910); Brown (1910).
    """
    n_votes = float(counts.sum(axis=-1).mean())
    rng = np.random.default_rng(seed)
    now = estimated(counts)
    if quantity not in now.proxies:
        return None
    alone, mean = now.alone[quantity].variance, now.means[quantity].of_labels
    if variance >= mean:
        return int(np.ceil(n_votes))
    halves = [estimated(_half_of(counts, rng)).means[quantity].of_labels for _ in range(_N_DRAWS)]
    gain, of_half = alone - mean, alone - float(np.mean(halves))
    if n_votes < 2 or not 0 < of_half < gain:
        return None
    # One over the gain is linear in one over the number of votes.
    slope = (1 / of_half - 1 / gain) * n_votes
    most = 1 / gain - slope / n_votes
    left = 1 / (alone - variance) - max(most, 1 / alone)
    return int(np.ceil(slope / left)) if variance > 0 and left > 0 else None


def some_of(is_labelled: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    """Return the labelled items and some of the others."""
    others = np.flatnonzero(~is_labelled)
    if len(others) > _N_OTHERS:
        others = np.random.default_rng(seed).choice(others, _N_OTHERS, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(is_labelled), others]))


def _half_of(counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Leave out half of the votes of each item, and of each judge, at random."""
    minus, tie, plus = counts.reshape(-1, 3).T
    kept = (minus + tie + plus + 1) // 2
    of_minus = rng.hypergeometric(minus, tie + plus, kept)
    of_tie = rng.hypergeometric(tie, plus, kept - of_minus)
    found = np.stack([of_minus, of_tie, kept - of_minus - of_tie], axis=1)
    return found.reshape(counts.shape)
