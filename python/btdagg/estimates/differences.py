"""Differences between the values of a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from btdagg.estimates.quantities import QUANTITIES, ends_of
from btdagg.significance import holm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.estimates.population import Domain


@dataclass(frozen=True)
class Difference:
    """A difference of two means, with its interval.

    Attributes
    ----------
    value : float
        The first less the second.
    low, high : float
        Its interval, which holds together with those of the other pairs.
    standard_error : float
    pvalue : float
        Of no difference, corrected for the number of pairs; NaN where the standard error is 0.
    """

    value: float
    low: float
    high: float
    standard_error: float
    pvalue: float

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f}), p {self.pvalue:.2g}"


def differences_of(
    parts: Mapping[Any, Domain], level: float
) -> dict[tuple[Any, Any], dict[str, Difference]]:
    """Compare every two domains that each have labels of two groups.

    Parameters
    ----------
    parts : mapping of value to Domain
        Means of each, with the errors of their groups: what pairs them are groups in both.
    level : float
        At which all intervals of a quantity hold together.

    Notes
    -----
    Intervals are put together from those of the two means, which stay inside and need not be
    symmetric (MOVER), and allow for their correlation. Degrees of freedom are Satterthwaite's.

    References
    ----------
    Zou and Donner (2008); Holm (1979).
    """
    known = {value: part for value, part in parts.items() if part.sample.n_groups > 1}
    pairs = list(combinations(known, 2))
    if not pairs:
        return {}
    each = 1 - (1 - level) / len(pairs)
    found: dict[tuple[Any, Any], dict[str, Difference]] = {pair: {} for pair in pairs}
    for quantity in QUANTITIES:
        shared = _covariances(list(known.values()), quantity)
        place = {value: number for number, value in enumerate(known)}
        limits = {
            value: part.limits(quantity, part.means[quantity], each)
            for value, part in known.items()
        }
        rows = [
            _difference(
                known[first],
                known[second],
                quantity,
                float(shared[place[first], place[second]]),
                (limits[first], limits[second]),
            )
            for first, second in pairs
        ]
        tested = [number for number, row in enumerate(rows) if not np.isnan(row[4])]
        corrected = np.full(len(rows), np.nan)
        if tested:
            corrected[tested] = holm([rows[number][4] for number in tested])
        for pair, row, pvalue in zip(pairs, rows, corrected.tolist(), strict=True):
            found[pair][quantity] = Difference(*row[:4], pvalue)
    return found


def _difference(
    first: Domain,
    second: Domain,
    quantity: str,
    covariance: float,
    limits: tuple[tuple[float, float], tuple[float, float]],
) -> tuple[float, float, float, float, float]:
    one, other = first.means[quantity], second.means[quantity]
    ends = ends_of(quantity)
    a, b = (min(max(mean.value, ends.least), ends.greatest) for mean in (one, other))
    (low_a, high_a), (low_b, high_b) = limits
    product = float(np.sqrt(one.variance * other.variance))
    r = min(max(covariance / product, -1.0), 1.0) if product > 0 else 0.0

    def half(up: float, down: float) -> float:
        return float(np.sqrt(max(up**2 + down**2 - 2 * r * up * down, 0.0)))

    low, high = a - b - half(a - low_a, high_b - b), a - b + half(high_a - a, b - low_b)
    variance = max(one.variance + other.variance - 2 * covariance, 0.0)
    if variance == 0:
        return a - b, low, high, 0.0, np.nan
    error = float(np.sqrt(variance))
    pvalue = 2 * float(stats.t.sf(abs(a - b) / error, _degrees_of_freedom(first, second, quantity)))
    return a - b, low, high, error, pvalue


def _degrees_of_freedom(first: Domain, second: Domain, quantity: str) -> float:
    variances = np.array([part.means[quantity].variance for part in (first, second)])
    degrees = np.array([part.degrees_of_freedom for part in (first, second)])
    spread = float((variances**2 / degrees).sum())
    return float(variances.sum() ** 2 / spread) if spread > 0 else np.inf


def _covariances(parts: list[Domain], quantity: str) -> NDArray[np.float64]:
    """Covariances of the means of domains, (domains, domains), by the groups that they share."""
    from scipy.sparse import csr_array

    names, values, rows = [], [], []
    for row, part in enumerate(parts):
        mean = part.means[quantity]
        errors, of = [mean.errors], [part.sample.names]
        if quantity in part.proxies and len(part.proxies[quantity].names):
            errors.append(mean.weight * part.proxies[quantity].rest)
            of.append(part.proxies[quantity].names)
        names += of
        values += errors
        rows += [np.full(len(one), row) for one in of]
    column = np.concatenate(names)
    size = (len(parts), int(column.max()) + 1)
    matrix = csr_array((np.concatenate(values), (np.concatenate(rows), column)), shape=size)
    covariances: NDArray[np.float64] = (matrix @ matrix.T).toarray()
    return covariances
