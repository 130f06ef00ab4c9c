"""Fitting the model by least empirical absolute error: the direct way, as an ablation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Displayed
from btdagg._util.readable import readable
from btdagg._util.validation import as_labels, as_whole_counts, labelled
from btdagg.evaluation.metrics import mean_absolute_error
from btdagg.model.bounds import Bounds, box_of
from btdagg.model.calibration import calibrate
from btdagg.model.calibration_set import calibration_set
from btdagg.model.davidson import DavidsonModel
from btdagg.model.regions import items_of, least_errors
from btdagg.model.warnings import CalibrationWarning

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

# Distinct items with more corners than anyone wants to wait for.
_MOST_ITEMS = 300
# Where 0 is a bound of gamma, the items that meet there would be no general position.
_INWARD = 1e-6


@readable
@dataclass(frozen=True)
class MaeCalibration(Displayed):
    """Outcome of `calibrate_by_mae`.

    Attributes
    ----------
    model : DavidsonModel
        The fitted model.
    mae : float
        Its mean absolute error on the calibration set.
    bound : float
        No parameters in the box have a lower one.
    drps : float
        Mean discrete ranked probability score of the model on the calibration set.
    n_labels : int
        Labelled items.
    """

    model: DavidsonModel
    mae: float
    bound: float
    drps: float
    n_labels: int

    @property
    def is_optimal(self) -> bool:
        """Whether the model is proven to have the least error within the bounds."""
        return self.mae <= self.bound


def calibrate_by_mae(
    counts: ArrayLike,
    labels: ArrayLike,
    *,
    alpha: float = 1.0,
    kappa: float = 1.0,
    bounds: Bounds | None = None,
) -> MaeCalibration:
    """Fit the Davidson model to labelled vote counts by minimum absolute error of its decisions.

    The error is constant on each of finitely many regions of the parameters. Every region has a
    corner where decisions of items change, or bounds are reached, all at once; all corners are
    found and the least error next to any of them is a bound that no parameters beat. Parameters
    are then chosen next to the corners that promise it, and what they reach is counted by the
    model's own decisions: `mae` equal to `bound` is a proof. They can differ where the best region
    is narrower than about 1e-9, and then a warning says so.

    Of equally good parameters those that `calibrate` finds are taken, which have the least DRPS
    of all; where they are not equally good, those of least DRPS among the points found next to
    the corners and the means of such points of the same decisions.

    Parameters
    ----------
    counts, labels, alpha, kappa, bounds
        As for `btdagg.calibrate`. A bound of 0 on gamma is moved inwards by 1e-6.

    Returns
    -------
    MaeCalibration

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range, or more than 300 distinct pairs of margin and
        share of ties matter: the number of corners grows with the third power.

    Warns
    -----
    CalibrationWarning
        If the least error is not proven.

    References
    ----------
    The paper's first fitting equation, empirical MAE, which it advises against.
    """
    counts, labels, _ = labelled(counts, labels)
    bounds = Bounds() if bounds is None else bounds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        usual = calibrate(counts, labels, alpha=alpha, kappa=kappa, bounds=bounds)
    rows, gold = as_whole_counts(counts), as_labels(labels)
    n = len(gold)
    items = items_of(rows, gold, alpha, kappa, with_ties=bounds.gamma != (0.0, 0.0))
    if len(items.s) > _MOST_ITEMS:
        raise InputError(
            f"counts have {len(items.s)} distinct pairs of margin and share of ties, expected at "
            "most "
            f"{_MOST_ITEMS} to fit by absolute error"
        )
    model, scores = usual.model, calibration_set(rows, gold, None, alpha=alpha, kappa=kappa)
    errors = round(n * mean_absolute_error(gold, model.decide(rows)))
    least, theta = least_errors(items, *_box(bounds), enough=errors)
    best = usual.drps
    for point in theta:
        beta, eta0, gamma = point.tolist()
        candidate = replace(usual.model, beta=beta, eta0=eta0, gamma=gamma)
        found = round(n * mean_absolute_error(gold, candidate.decide(rows)))
        drps = scores.loss(point, 1)[0]
        if (found, drps) < (errors, best):
            errors, best, model = found, drps, candidate
    if errors > least:
        warnings.warn(
            f"absolute error {errors} on {n} labels, and {least} is not ruled out",
            CalibrationWarning,
            stacklevel=2,
        )
    return MaeCalibration(
        model=model,
        mae=errors / n,
        bound=min(errors, least) / n,
        drps=best,
        n_labels=n,
    )


def _box(bounds: Bounds) -> tuple[Floats, Floats]:
    lower, upper = box_of(bounds)
    if lower[2] < upper[2]:
        lower[2] = _INWARD if lower[2] == 0 else lower[2]
        upper[2] = -_INWARD if upper[2] == 0 else upper[2]
    return lower, upper
