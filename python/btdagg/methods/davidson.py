"""The Davidson model as an aggregator: with a prior or neighbours, and as the paper fits it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.methods.base import Calibrated, Needs
from btdagg.model.absolute_error import MaeCalibration, calibrate_by_mae
from btdagg.model.calibration import WEAK, Calibration, calibrate, prior_beside
from btdagg.model.calibration_set import Bounds, quiet
from btdagg.model.posterior import decisions_under, refitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.prior import Prior


@readable
@dataclass(frozen=True)
class Davidson(Calibrated):
    """Davidson model that `btdagg.calibrate` fits; the label of least expected absolute error.

    With a prior, the weak one unless another is named, it is called ``calibrated``; with none,
    which is what `bounds` mean, it is the paper's fit and called ``Davidson``, as in the paper.
    With the prior ``"neighbours"`` evaluations choose them: the other tasks and
    judges, without what they evaluate on.
    """

    name: str = ""
    alpha: float = 1.0
    kappa: float = 1.0
    bounds: Bounds | None = None
    calibration: Calibration | None = field(default=None, hash=False)
    prior: Prior | Literal["weak", "neighbours"] | None = WEAK

    def __post_init__(self) -> None:
        named: Any = self.prior
        object.__setattr__(self, "prior", prior_beside(named, self.bounds))
        if not self.name:
            name = "Davidson" if self.prior is None else "calibrated"
            name += ", neighbours" if self.needs.neighbours else ""
            object.__setattr__(self, "name", name)

    @property
    def needs(self) -> Needs:
        """Neighbours, unless it has a prior."""
        return Needs(neighbours=self.prior == "neighbours")

    def among(self, prior: Prior) -> Self:
        """Return the same aggregator with a prior of neighbours."""
        return replace(self, prior=prior)

    def _calibrate(self, counts: ArrayLike, labels: ArrayLike) -> Any:
        if self.needs.neighbours:
            raise InputError("neighbours needs votes of other tasks or judges, or a prior")
        how: Any = {name: getattr(self, name) for name in ("prior", "alpha", "kappa", "bounds")}
        return quiet(calibrate)(counts, labels, **how)

    def refitted(
        self, counts: ArrayLike, labels: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> Callable[[ArrayLike], NDArray[np.int8]]:
        """Fit with each row of weights; see `Refittable`."""
        items, smoothing = np.asarray(counts, dtype=np.float64), (self.alpha, self.kappa)
        prior: Any = self.prior
        parameters = refitted(items, labels, weights, prior, *smoothing, self.bounds or Bounds())
        return lambda rows: decisions_under(
            parameters, *smoothing, np.asarray(rows, dtype=np.float64), 1
        )


@readable
@dataclass(frozen=True)
class DavidsonMAE(Calibrated):
    """Davidson model fitted by minimum absolute error, the paper's ablation.

    See `btdagg.model.calibrate_by_mae`.
    """

    needs: ClassVar[Needs] = Needs(time=True)

    name: str = "Davidson MAE"
    alpha: float = 1.0
    kappa: float = 1.0
    bounds: Bounds = field(default_factory=Bounds)
    calibration: MaeCalibration | None = field(default=None, hash=False)

    def _calibrate(self, counts: ArrayLike, labels: ArrayLike) -> MaeCalibration:
        how: Any = {name: getattr(self, name) for name in ("alpha", "kappa", "bounds")}
        return quiet(calibrate_by_mae)(counts, labels, **how)
