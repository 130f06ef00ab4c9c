"""The paper's method as an aggregator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg.fit.bounds import Bounds, box_of
from btdagg.fit.calibrate import Calibration, calibrate
from btdagg.readable import readable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.fit.prior import Prior


@readable
@dataclass(frozen=True)
class Davidson:
    """Davidson model fitted by minimum DRPS; the label of least expected absolute error.

    With a prior it is calibrated to few labels; see `btdagg.calibrate`. Equal risks give a tie. The
    settings are frozen; `fit` sets `calibration`.
    """

    name: str = "Davidson"
    alpha: float = 1.0
    kappa: float = 1.0
    bounds: Bounds = field(default_factory=Bounds)
    calibration: Calibration | None = field(default=None, hash=False)
    prior: Prior | Literal["weak"] | None = None

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

    def decide_refitted(
        self, counts: NDArray[np.int64], labels: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> NDArray[np.int8]:
        """Fit with each row of weights, (k, n), and return the labels of all items: (k, n)."""
        items = counts.astype(np.uint64)
        lower, upper = box_of(self.bounds)
        refits = _core.Refits(items, labels, self.alpha, self.kappa, lower.tolist(), upper.tolist())
        parameters = refits.fit(weights, 1)[0]
        return _core.decide_under(parameters, self.alpha, self.kappa, items, 1)

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
