"""The paper's method as an aggregator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.model.bounds import Bounds, box_of
from btdagg.model.calibration import Calibration, calibrate
from btdagg.model.few_labels import refitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.prior import Prior


def name_with_prior(prior: object) -> str:
    """Return what tables call a model that is calibrated with a prior, or by the paper's fit."""
    if prior is None:
        return "Davidson"
    return "Davidson, weak prior" if prior == "weak" else "Davidson, neighbours"


@readable
@dataclass(frozen=True)
class Davidson:
    """Davidson model fitted by minimum DRPS; the label of least expected absolute error.

    Without a prior it is the paper's fit, named ``Davidson``; with one it is named after it:
    ``Davidson, weak prior``. See `btdagg.calibrate`. Equal risks give a tie. The settings are
    frozen; `fit` sets `calibration`.
    """

    name: str = ""
    alpha: float = 1.0
    kappa: float = 1.0
    bounds: Bounds = field(default_factory=Bounds)
    calibration: Calibration | None = field(default=None, hash=False)
    prior: Prior | Literal["weak"] | None = None

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", name_with_prior(self.prior))

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, 3) counts and (n,) labels and return itself; see `btdagg.calibrate`."""
        calibration = calibrate(
            counts,
            labels,
            prior=self.prior,
            alpha=self.alpha,
            kappa=self.kappa,
            bounds=self.bounds,
        )
        object.__setattr__(self, "calibration", calibration)
        return self

    def refitted(
        self, counts: NDArray[np.int64], labels: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> Callable[[NDArray[np.int64]], NDArray[np.int8]]:
        """Fit with each row of weights; see `Refittable`."""
        items, smoothing = counts.astype(np.uint64), (self.alpha, self.kappa)
        if self.prior is None:
            lower, upper = (ends.tolist() for ends in box_of(self.bounds))
            parameters = _core.Refits(items, labels, *smoothing, lower, upper).fit(weights, 1)[0]
        else:
            parameters = refitted(items, labels, weights, self.prior, *smoothing)
        return lambda rows: _core.decide_under(parameters, *smoothing, rows.astype(np.uint64), 1)

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,).

        Raises
        ------
        InputError
            If it is not fitted, or a count is not a non-negative integer.
        """
        if self.calibration is None:
            raise InputError("Davidson is not fitted: call fit with labelled counts first")
        return self.calibration.model.decide(counts)
