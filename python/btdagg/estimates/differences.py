"""Differences between the values of a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.readable import readable
from btdagg.estimates.quantities import QUANTITIES, ends_of
from btdagg.evaluation.significance import holm, t_pvalues

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.estimates.population import Domain


@readable
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
        Of no difference, corrected for the number of pairs.
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

    Notes
    -----
    Intervals are put together from those of the two means, which stay inside and need not be
    symmetric (MOVER), and allow for their correlation. Degrees of freedom are Satterthwaite's.

    References
    ----------
    Zou and Donner (2008); Holm (1979).
    """
    known = {value: part for value, part in parts.items() if part.sample.n_groups > 1}
    if len(known) < 2:
        return {}
    domains = list(known.values())
    first, second = np.triu_indices(len(known), 1)
    each = 1 - (1 - level) / len(first)
    values = list(known)
    pairs = [(values[i], values[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    found: dict[tuple[Any, Any], dict[str, Difference]] = {pair: {} for pair in pairs}
    degrees = np.array([part.degrees_of_freedom for part in domains])
    own_degrees = np.array([part.sample.degrees_of_freedom for part in domains])
    for quantity in QUANTITIES:
        ends = ends_of(quantity)
        means = [part.means[quantity] for part in domains]
        value = np.clip([mean.value for mean in means], *ends)
        limits = np.array([part.limits(quantity, part.means[quantity], each) for part in domains])
        down, up = value - limits[:, 0], limits[:, 1] - value
        covariances = _covariances(domains, quantity)
        covariance = covariances[first, second]
        variance = np.array([mean.variance for mean in means])
        product = np.sqrt(variance[first] * variance[second])
        with np.errstate(divide="ignore", invalid="ignore"):
            r = np.clip(np.where(product > 0, covariance / product, 0.0), -1.0, 1.0)
            both = variance[first] + variance[second]
            spread = variance[first] ** 2 / degrees[first] + variance[second] ** 2 / degrees[second]
            freedom = np.where(spread > 0, both**2 / spread, np.inf)
            away = value[first] - value[second]
            error = np.sqrt(np.maximum(both - 2 * covariance, 0.0))
        # Without any spread the signs of the groups of the smaller domain are all there is.
        fewest = np.minimum(own_degrees[first], own_degrees[second])
        p = holm(t_pvalues(away, error, np.where(error > 0, freedom, fewest)))

        def half(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
            squares = one**2 + other**2 - 2 * r * one * other  # noqa: B023
            return np.sqrt(np.maximum(squares, 0.0))

        low, high = away - half(down[first], up[second]), away + half(up[first], down[second])
        rows = np.stack([away, low, high, error, p], axis=1).tolist()
        for pair, row in zip(pairs, rows, strict=True):
            found[pair][quantity] = Difference(*row)
    return found


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
