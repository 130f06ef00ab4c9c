"""Strengths of systems with their covariance: intervals, and tests of their differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from btdagg.fit.intervals import ParameterInterval
from btdagg.readable import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDING = 1e-24  # of a variance
_ALIKE = "labelled groups are all alike"


@readable
@dataclass(frozen=True, eq=False)
class Standings:
    """Strengths and the logarithm of the tie parameter.

    Attributes
    ----------
    parameters : (S + 1,) array
        The last is minus infinity where there are no ties.
    covariance : (S + 1, S + 1) array
    weight : float
        Weight of the proxy, from 0 to 1.
    reference : int or None
        Number of the system with strength 0; None where strengths sum to 0.
    """

    parameters: NDArray[np.float64]
    covariance: NDArray[np.float64]
    weight: float
    reference: int | None = None

    @property
    def strengths(self) -> NDArray[np.float64]:
        """Strengths alone, (S,)."""
        return self.parameters[:-1]

    @property
    def has_ties(self) -> bool:
        """Whether two systems can tie."""
        return bool(np.isfinite(self.parameters[-1]))

    def relative_to(self, reference: int | None) -> Standings:
        """Return the same with the strength of one system at 0."""
        if reference is None:
            return self
        away = np.eye(len(self.parameters))
        away[:-1, reference] -= 1
        covariance = away @ self.covariance @ away.T
        # Without the rounding.
        covariance[reference] = covariance[:, reference] = 0.0
        parameters = self.parameters.copy()
        parameters[:-1] -= parameters[reference]
        return Standings(parameters, (covariance + covariance.T) / 2, self.weight, reference)

    def intervals(self, level: float, degrees_of_freedom: float) -> list[ParameterInterval]:
        """Return the interval of each strength, by Student's t."""
        errors = _errors_of(self.covariance.diagonal())
        halves = stats.t.ppf((1 + level) / 2, degrees_of_freedom) * errors
        found = []
        for place, value in enumerate(self.strengths.tolist()):
            if place == self.reference:
                found.append(ParameterInterval(0.0, 0.0, 0.0, "baseline"))
            else:
                found.append(_interval(value, float(halves[place])))
        return found

    def tie_parameter(self, level: float, degrees_of_freedom: float) -> ParameterInterval:
        """Return Davidson's nu with its interval, which is symmetric on the scale of logarithms."""
        if not self.has_ties:
            return ParameterInterval(0.0, np.nan, np.nan, "no ties")
        half = stats.t.ppf((1 + level) / 2, degrees_of_freedom) * _errors_of(
            self.covariance.diagonal()[-1:]
        )
        found = _interval(float(self.parameters[-1]), float(half[0]))
        value, low, high = np.exp(found[:3]).tolist()
        return ParameterInterval(value, low, high, found.note)

    def pvalues(self, degrees_of_freedom: float) -> NDArray[np.float64]:
        """Two-sided p-values of no difference, (S, S); 1 where groups do not vary."""
        covariance = self.covariance[:-1, :-1]
        variances = covariance.diagonal()
        errors = _errors_of(variances[:, None] + variances - 2 * covariance)
        away = np.abs(self.strengths[:, None] - self.strengths)
        t = np.divide(away, errors, out=np.zeros_like(away), where=errors > 0)
        # A p-value is never 0.
        least = np.finfo(np.float64).tiny
        found: NDArray[np.float64] = np.clip(2 * stats.t.sf(t, degrees_of_freedom), least, 1.0)
        return found


def _errors_of(variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standard errors, 0 where a variance is nothing but rounding."""
    found: NDArray[np.float64] = np.sqrt(np.where(variances > _ROUNDING, variances, 0.0))
    return found


def _interval(value: float, half: float) -> ParameterInterval:
    if half == 0:
        return ParameterInterval(value, np.nan, np.nan, _ALIKE)
    return ParameterInterval(value, value - half, value + half)
