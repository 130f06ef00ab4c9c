"""Sandwich intervals of a calibration, from the gradients and the curvature of the DRPS."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np

from btdagg.display import Displayed
from btdagg.fit.bounds import PARAMETERS, Bounds, box_of
from btdagg.fit.calibrate import Calibration
from btdagg.fit.intervals import ParameterInterval, as_level
from btdagg.readable import readable
from btdagg.uncertainty.resampling import FitOptions, estimates, labelled_items

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# A curvature so much smaller than the largest does not tell where the minimum is.
_FLAT = 1e-8


@readable
@dataclass(frozen=True, eq=False)
class Sandwich(Displayed):
    """Asymptotic uncertainty of a calibration.

    Attributes
    ----------
    calibration : Calibration
        The fit.
    beta, nu, gamma : ParameterInterval
        Normal intervals; that of nu is computed on the log scale. A parameter at a bound, or one
        that the labels do not identify, has no interval, and the note says so. The other intervals
        then treat it as fixed.
    mae : ParameterInterval
        Mean absolute error on the calibration items with fixed decisions. Unlike that of
        `bootstrap`, it ignores the optimism of scoring a fit on its own items.
    covariance : (3, 3) array of float64
        Covariance of beta, eta0 (the log of nu) and gamma; NaN if there is no interval.
    n_units : int
        Number of independent items or groups.
    level : float
        Nominal coverage of the intervals.
    """

    calibration: Calibration
    beta: ParameterInterval
    nu: ParameterInterval
    gamma: ParameterInterval
    mae: ParameterInterval
    covariance: NDArray[np.float64]
    n_units: int
    level: float

    def __str__(self) -> str:
        values = [(name, getattr(self, name)) for name in (*PARAMETERS, "mae")]
        return "\n".join(
            [
                f"{self.level:.0%} sandwich intervals of {self.n_units} units",
                *(f"{name} {value}" for name, value in values),
            ]
        )


def sandwich(
    counts: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    n_threads: int = 1,
    **options: Unpack[FitOptions],
) -> Sandwich:
    """Fit labelled counts and return sandwich intervals, by item or clustered by group.

    Parameters
    ----------
    counts, labels, weights, groups, level, alpha, kappa, bounds, n_threads
        As for `bootstrap`.

    Returns
    -------
    Sandwich

    Raises
    ------
    InputError
        Where `bootstrap` does.

    Notes
    -----
    The covariance is ``H^-1 J H^-1``, with H the second derivatives of the summed DRPS and J the
    sum over units of the outer product of their gradients, times ``units / (units - 1)``. It is
    valid whether or not the model is true. With only a few dozen items, prefer the bootstrap, which
    does not assume a quadratic loss.

    References
    ----------
    Huber (1967); Liang and Zeger (1986) for clusters.
    """
    level = as_level(level)
    items = labelled_items(
        counts,
        labels,
        weights,
        groups,
        n_threads=n_threads,
        **options,
    )
    model = items.calibration.model
    theta = np.array([model.beta, model.eta0, model.gamma])
    weights_of_cells = items.weights
    hessian = np.array(items.refits.hessian(theta.tolist(), weights_of_cells))
    hessian *= weights_of_cells.sum()
    by_kind = items.kinds @ items.refits.gradients(theta.tolist())
    spread = items.n_units / (items.n_units - 1)
    meat = spread * (by_kind.T * items.repeats) @ by_kind
    notes = _notes(items.calibration, items.bounds, hessian)
    free = np.array([note == "" for note in notes])
    covariance = np.full((3, 3), np.nan)
    if free.any():
        bread = np.linalg.inv(hessian[np.ix_(free, free)])
        covariance[np.ix_(free, free)] = bread @ meat[np.ix_(free, free)] @ bread
    z = _normal_quantile((1 + level) / 2)
    half = z * np.sqrt(np.diag(covariance))
    intervals = {
        name: _interval(name, estimate, theta[place], half[place], notes[place])
        for place, (name, estimate) in enumerate(estimates(items.calibration).items())
    }
    errors = items.errors(model.decide(items.counts))
    mae = float(errors @ weights_of_cells / weights_of_cells.sum())
    by_unit = items.kinds @ (errors - mae)
    error = math.sqrt(spread * float(items.repeats @ by_unit**2)) / float(weights_of_cells.sum())
    return Sandwich(
        calibration=items.calibration,
        mae=ParameterInterval(mae, max(mae - z * error, 0.0), min(mae + z * error, 2.0)),
        covariance=covariance,
        n_units=items.n_units,
        level=level,
        **intervals,
    )


def _notes(
    calibration: Calibration, bounds: Bounds, hessian: NDArray[np.float64]
) -> tuple[str, str, str]:
    """Say why beta, nu and gamma have no interval, empty for one that has."""
    lower, upper = box_of(bounds)
    notes = ["", "", ""]
    for place, name in enumerate(PARAMETERS):
        if name in calibration.at_bounds or lower[place] == upper[place]:
            notes[place] = "at a bound"
        elif hessian[place, place] == 0:
            notes[place] = "the labels do not identify it"
    free = np.array([note == "" for note in notes])
    if free.any():
        # Relative to the curvature along each parameter, so that units do not matter.
        inside = hessian[np.ix_(free, free)]
        scale = np.sqrt(np.abs(np.diag(inside)))
        curvatures = np.linalg.eigvalsh(inside / np.outer(scale, scale))
        if curvatures[0] < _FLAT * curvatures[-1] or (np.diag(inside) <= 0).any():
            notes = [note or "the loss is flat at its minimum" for note in notes]
    return notes[0], notes[1], notes[2]


def _interval(
    name: str, estimate: float, centre: float, half: float, note: str
) -> ParameterInterval:
    if note:
        return ParameterInterval(estimate, math.nan, math.nan, note)
    low, high = centre - half, centre + half
    if name == "nu":
        low, high = (float(np.exp(min(end, 709.0))) for end in (low, high))
    return ParameterInterval(estimate, float(low), float(high))


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)
