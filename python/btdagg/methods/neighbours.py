"""The paper's model, calibrated with other tasks and judges as neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.methods.base import Needs
from btdagg.model.calibration import Calibration, calibrate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.prior import Prior


@readable
@dataclass(frozen=True)
class Neighbours:
    """Davidson model calibrated with a prior learned from neighbours.

    Which neighbours there are is for the evaluation to say, which leaves out what it evaluates on;
    or give a prior. The settings are frozen; `fit` sets `calibration`.
    """

    name: str = "Davidson, neighbours"
    prior: Prior | None = None
    calibration: Calibration | None = field(default=None, hash=False)
    needs: ClassVar[Needs] = Needs(neighbours=True)

    def among(self, prior: Prior) -> Self:
        """Return the same aggregator with a prior, unless it has one."""
        return self if self.prior is not None else replace(self, prior=prior)

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, 3) counts and (n,) labels and return itself; see `btdagg.calibrate`.

        Raises
        ------
        InputError
            If there are no neighbours.
        """
        if self.prior is None:
            raise InputError("neighbours wants votes of other tasks or judges, or a prior")
        object.__setattr__(self, "calibration", calibrate(counts, labels, prior=self.prior))
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,).

        Raises
        ------
        InputError
            If it is not fitted, or a count is not a non-negative integer.
        """
        if self.calibration is None:
            raise InputError("neighbours is not fitted: call fit with labelled counts first")
        return self.calibration.model.decide(counts)
