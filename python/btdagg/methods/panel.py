"""A panel of judges as an aggregator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from btdagg._util.readable import readable
from btdagg.methods.base import Calibrated, Needs
from btdagg.model.calibration_set import quiet
from btdagg.model.panel import PanelCalibration, calibrate_panel
from btdagg.votes.evidence import Evidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@readable
@dataclass(frozen=True)
class Panel(Calibrated):
    """The votes of several judges, each with parameters of its own; see `calibrate_panel`.

    It reads the evidence's counts by judge.
    """

    needs: ClassVar[Needs] = Needs(time=True, judges=True)

    judges: tuple[str, ...]
    name: str = "panel"
    calibration: PanelCalibration | None = field(default=None, hash=False)

    def _calibrate(self, counts: ArrayLike, labels: ArrayLike) -> PanelCalibration:
        return quiet(calibrate_panel)(self._counts(counts), labels, judges=self.judges)

    def _counts(self, counts: ArrayLike) -> NDArray[np.int64]:
        evidence = Evidence.of(counts)
        return np.stack([evidence.require_judge(name) for name in self.judges], axis=1)
