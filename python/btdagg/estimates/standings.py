"""Strengths of systems with their covariance: intervals, and tests of their differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from btdagg._util.readable import readable
from btdagg.evaluation.significance import t_pvalues
from btdagg.model.intervals import ParameterInterval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.estimates.davidson import SystemPairs
    from btdagg.estimates.quantities import MeanEstimate

_ROUNDING = 1e-24  # of a variance
_WIDEST = 600.0  # of a logarithm whose exponential is finite
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

    def tie_parameter(
        self, ties: MeanEstimate, pairs: SystemPairs, items: NDArray[np.int64]
    ) -> ParameterInterval:
        """Return Davidson's nu, with the interval that one of the share of ties becomes.

        Where ties are rare nu is far from normal on any scale and its sandwich variance is a guess,
        while the interval of a share holds. At given strengths nu increases with the share of ties.
        Those that were found differ by more than the true ones do, by the variance of their
        differences, which is taken off.

        Parameters
        ----------
        ties : MeanEstimate
            Share of ties over all items.
        pairs : SystemPairs
        items : (P,) array
            Items of each pair.
        """
        value = float(np.exp(self.parameters[-1]))
        design = pairs.design
        half = design @ self.strengths
        noise = (design @ self.covariance[:-1, :-1] * design.toarray()).sum(axis=1)
        cosh = np.cosh(np.sqrt(np.maximum(half**2 - noise, 0.0)))

        def nu_of(share: float) -> float:
            def away(eta: float) -> float:
                tie = 1 / (1 + 2 * cosh * np.exp(-eta))
                return float(items @ tie / items.sum()) - share

            if share <= 0:
                return 0.0
            return np.inf if share >= 1 else float(np.exp(brentq(away, -_WIDEST, _WIDEST)))

        low, high = nu_of(ties.low), nu_of(ties.high)
        return ParameterInterval(
            value, min(low, value), max(high, value), "" if self.has_ties else "no ties"
        )

    def pvalues(self, degrees_of_freedom: float) -> NDArray[np.float64]:
        """Two-sided p-values of no difference, (S, S)."""
        covariance = self.covariance[:-1, :-1]
        variances = covariance.diagonal()
        errors = _errors_of(variances[:, None] + variances - 2 * covariance)
        away = self.strengths[:, None] - self.strengths
        return t_pvalues(away, errors, degrees_of_freedom)


def _errors_of(variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standard errors, 0 where a variance is nothing but rounding."""
    found: NDArray[np.float64] = np.sqrt(np.where(variances > _ROUNDING, variances, 0.0))
    return found


def _interval(value: float, half: float) -> ParameterInterval:
    if half == 0:
        return ParameterInterval(value, np.nan, np.nan, _ALIKE)
    return ParameterInterval(value, value - half, value + half)
