"""The paper's model fitted by absolute error, an ablation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.methods.base import Needs
from btdagg.model.absolute_error import MaeCalibration, calibrate_by_mae
from btdagg.model.bounds import Bounds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@readable
@dataclass(frozen=True)
class DavidsonMAE:
    """Davidson model fitted by minimum absolute error; the label of least expected absolute error.

    Equal risks give a tie. The settings are frozen; `fit` sets `calibration`.
    """

    needs: ClassVar[Needs] = Needs(time=True)

    name: str = "Davidson MAE"
    alpha: float = 1.0
    kappa: float = 1.0
    bounds: Bounds = field(default_factory=Bounds)
    calibration: MaeCalibration | None = field(default=None, hash=False)

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, 3) counts and (n,) labels and return itself; see `calibrate_by_mae`."""
        calibration = calibrate_by_mae(
            counts, labels, alpha=self.alpha, kappa=self.kappa, bounds=self.bounds
        )
        object.__setattr__(self, "calibration", calibration)
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,).

        Raises
        ------
        InputError
            If it is not fitted, or a count is not a non-negative integer.
        """
        if self.calibration is None:
            raise InputError("Davidson MAE is not fitted: call fit with labelled counts first")
        return self.calibration.model.decide(counts)
