"""A lower bound of a share from labels of items that were not all as likely to be labelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LOGS = np.linspace(-14, 8, 200)
_FAR = 6  # standard deviations from 0, where the chance is sure and the inversion is not
_TOLERANCE = 1e-4


def weighted_bound(
    agrees: Floats, weights: Floats, groups: NDArray[np.int64], of_all: Floats, confidence: float
) -> float:
    """Return Gaffke's lower bound of the mean agreement of a set of items, valid by conjecture.

    `agrees`, `weights` and `groups` (from 0), (n,), are those of its labelled items; `of_all` the
    weights of all its items, unknown ones as great as any. With equal weights it is Clopper and
    Pearson's: an agreement is refuted by failures with exponential weights of the units and of one
    more of the greatest weight. Weights are capped where a sample without a heavier label has
    probability 1 - confidence; what is cut off counts as failures.
    """
    n = int(groups.max()) + 1
    ordered = np.sort(of_all)[::-1]
    drawn = 1 / ordered
    heavier = drawn.cumsum() / drawn.sum()
    cap = ordered[min(np.searchsorted(heavier, -np.log(1 - confidence) / n), len(ordered) - 1)]
    cut = float(np.maximum(ordered - cap, 0) @ drawn / drawn.sum()) * len(groups) / n
    wrong = np.bincount(groups, np.minimum(weights, cap) * (1 - agrees))
    failures = np.append(wrong, cap * np.bincount(groups).max()) + cut
    successes = np.append(np.bincount(groups, weights * agrees), 0.0)

    def excess(agreement: float) -> float:
        surplus = agreement * failures - (1 - agreement) * successes
        return _chance_below_zero(surplus) - confidence

    if excess(_TOLERANCE) < 0:
        return 0.0
    return float(brentq(excess, _TOLERANCE, 1, xtol=_TOLERANCE))


def _chance_below_zero(coefficients: Floats) -> float:
    """Probability that a sum of standard exponentials is below 0 (Gil-Pelaez, 1951), over logs."""
    mean, size = coefficients.sum(), np.linalg.norm(coefficients)
    if abs(mean) > _FAR * size:
        return float(mean < 0)
    values, number = np.unique(coefficients / np.abs(coefficients).max(), return_counts=True)
    points = np.exp(_LOGS)
    products = values[:, None] * points
    angle = number @ np.arctan(products)
    modulus = np.exp(-0.5 * (number @ np.log1p(products**2)))
    below_first = points[0] * (number @ values)
    step = _LOGS[1] - _LOGS[0]
    return float(0.5 - (step * np.sum(np.sin(angle) * modulus) + below_first) / np.pi)
