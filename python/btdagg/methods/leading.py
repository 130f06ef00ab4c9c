"""The label with the highest score, and a tie if several share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Scores that differ by less are the same up to the rounding of their sums.
ROUNDING = 1e-9


def leading_label(scores: NDArray[np.float64], absolute: float = 0.0) -> NDArray[np.int8]:
    """Label with the highest score; a tie if two or three share it.

    Scores within 1e-9 (relative) of the highest share it, because they are rounded sums. The rule
    is mirror-symmetric.

    Parameters
    ----------
    scores : (n, 3) array of numbers
        In label order; minus infinity for a label that is impossible.
    absolute : float
        Scores within this absolute difference share it too.

    Returns
    -------
    (n,) array of int8
        -1, 0 or +1; 0 if every label is impossible.
    """
    best = scores.max(axis=1, initial=-np.inf, keepdims=True)
    finite = np.where(np.isfinite(best), best, 0.0)
    highest = scores >= best - np.maximum(absolute, ROUNDING * np.abs(finite))
    alone = highest.sum(axis=1) == 1
    return np.where(alone, highest.argmax(axis=1) - 1, 0).astype(np.int8)
