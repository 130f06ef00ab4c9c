"""An estimate with its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from btdagg._core import InputError
from btdagg.fit.bounds import PARAMETERS
from btdagg.validation import as_number

if TYPE_CHECKING:
    from btdagg.fit.calibrate import Calibration


class ParameterInterval(NamedTuple):
    """An estimate and its interval. If there is none, its ends are NaN and `note` says why."""

    estimate: float
    low: float
    high: float
    note: str = ""

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.estimate:.4g} (no interval: {self.note})"
        remark = f" ({self.note})" if self.note else ""
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]{remark}"


def as_level(level: float) -> float:
    """Return a coverage above 0 and below 1.

    Raises
    ------
    InputError
        If it is another.
    """
    number = as_number(level, "level")
    if not 0 < number < 1:
        raise InputError(f"level is {number}, want a number above 0 and below 1")
    return number


def estimates(calibration: Calibration) -> dict[str, float]:
    """Return beta, nu and gamma of a calibration by name."""
    model = calibration.model
    return {name: getattr(model, name) for name in PARAMETERS}
