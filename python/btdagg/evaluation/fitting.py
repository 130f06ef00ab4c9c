"""Fitting an aggregator again and again."""

from __future__ import annotations

import warnings
from copy import copy
from typing import TYPE_CHECKING, TypeVar

from btdagg.aggregators import Aggregator
from btdagg.calibration import CalibrationWarning

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Fitted = TypeVar("Fitted", bound=Aggregator)


def quiet_fit(aggregator: Fitted, counts: ArrayLike, labels: ArrayLike) -> Fitted:
    """Return a fitted copy, without the warnings of a calibration.

    A hundred splits would warn a hundred times, and the next one fits the same aggregator again.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return copy(aggregator).fit(counts, labels)
