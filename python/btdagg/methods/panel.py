"""A panel of judges as an aggregator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from btdagg._util.readable import readable
from btdagg.methods.base import not_fitted
from btdagg.model.panel import PanelCalibration, calibrate_panel
from btdagg.votes.evidence import Evidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@readable
@dataclass(frozen=True)
class Panel:
    """The votes of several judges, each with parameters of its own; see `calibrate_panel`.

    It reads the evidence's counts by judge. The settings are frozen; `fit` sets `fitted`.
    """

    judges: tuple[str, ...]
    name: str = "panel"
    fitted: PanelCalibration | None = field(default=None, hash=False)

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to evidence with counts by judge and (n,) labels, and return itself."""
        fitted = calibrate_panel(self._side_by_side(counts), labels, judges=self.judges)
        object.__setattr__(self, "fitted", fitted)
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,), from evidence with counts by judge."""
        if self.fitted is None:
            raise not_fitted(self.name)
        return self.fitted.model.decide(self._side_by_side(counts))

    def _side_by_side(self, counts: ArrayLike) -> NDArray[np.int64]:
        evidence = Evidence.of(counts)
        return np.stack([evidence.require_judge(name) for name in self.judges], axis=1)
