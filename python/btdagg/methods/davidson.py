"""The paper's method as an aggregator: plain, with a prior or neighbours, by absolute error."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.methods.base import Needs, not_fitted
from btdagg.model.absolute_error import MaeCalibration, calibrate_by_mae
from btdagg.model.calibration import Calibration, calibrate
from btdagg.model.calibration_set import Bounds
from btdagg.model.posterior import decisions_under, refitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.prior import Prior


class _Calibrated:
    """Decides by the model of its `calibration`; equal risks give a tie."""

    name: str
    calibration: Calibration | MaeCalibration | None

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,)."""
        if self.calibration is None:
            raise not_fitted(self.name)
        return self.calibration.model.decide(counts)


@readable
@dataclass(frozen=True)
class Davidson(_Calibrated):
    """Davidson model fitted by minimum DRPS; the label of least expected absolute error.

    Without a prior it is the paper's fit and named ``Davidson``, as in the paper; with one it is
    ``calibrated``. See `btdagg.calibrate`. The settings are frozen; `fit` sets `calibration`.
    """

    name: str = ""
    alpha: float = 1.0
    kappa: float = 1.0
    bounds: Bounds = field(default_factory=Bounds)
    calibration: Calibration | None = field(default=None, hash=False)
    prior: Prior | Literal["weak"] | None = None

    def __post_init__(self) -> None:
        if not self.name:
            name = "Davidson" if self.prior is None else "calibrated"
            object.__setattr__(self, "name", name)

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
        self, counts: ArrayLike, labels: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> Callable[[ArrayLike], NDArray[np.int8]]:
        """Fit with each row of weights; see `Refittable`."""
        items, smoothing = np.asarray(counts, dtype=np.float64), (self.alpha, self.kappa)
        parameters = refitted(items, labels, weights, self.prior, *smoothing, self.bounds)
        return lambda rows: decisions_under(
            parameters, *smoothing, np.asarray(rows, dtype=np.float64), 1
        )


@readable
@dataclass(frozen=True)
class Neighbours(_Calibrated):
    """Davidson model calibrated with a prior learned from neighbours.

    Evaluations choose the neighbours and leave out what they evaluate on; or give a prior. The
    settings are frozen; `fit` sets `calibration`.
    """

    name: str = "calibrated, neighbours"
    prior: Prior | None = None
    calibration: Calibration | None = field(default=None, hash=False)
    needs: ClassVar[Needs] = Needs(neighbours=True)

    def among(self, prior: Prior) -> Self:
        """Return the same aggregator with a prior, unless it has one."""
        return self if self.prior is not None else replace(self, prior=prior)

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, 3) counts and (n,) labels and return itself; see `btdagg.calibrate`."""
        if self.prior is None:
            raise InputError("neighbours needs votes of other tasks or judges, or a prior")
        object.__setattr__(self, "calibration", calibrate(counts, labels, prior=self.prior))
        return self


@readable
@dataclass(frozen=True)
class DavidsonMAE(_Calibrated):
    """Davidson model fitted by minimum absolute error, the paper's ablation.

    See `btdagg.model.calibrate_by_mae`. The settings are frozen; `fit` sets `calibration`.
    """

    needs: ClassVar[Needs] = Needs(time=True)

    name: str = "Davidson MAE"
    alpha: float = 1.0
    kappa: float = 1.0
    bounds: Bounds = field(default_factory=Bounds)
    calibration: MaeCalibration | None = field(default=None, hash=False)

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, 3) counts and (n,) labels and return itself."""
        calibration = calibrate_by_mae(
            counts, labels, alpha=self.alpha, kappa=self.kappa, bounds=self.bounds
        )
        object.__setattr__(self, "calibration", calibration)
        return self
