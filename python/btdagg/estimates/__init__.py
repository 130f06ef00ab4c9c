"""Shares and win rates over all items, with intervals that hold, from a few labels."""

from typing import TYPE_CHECKING

from btdagg.lazy import loader

if TYPE_CHECKING:
    from btdagg.estimates.differences import Difference
    from btdagg.estimates.non_inferiority import NonInferiority, not_worse
    from btdagg.estimates.prediction_powered import Estimates, estimate
    from btdagg.estimates.quantities import QUANTITIES, MeanEstimate
    from btdagg.estimates.sample_design import ChosenItems, choose
    from btdagg.estimates.systems import SystemEstimate, SystemEstimates, estimate_systems

__all__ = [
    "QUANTITIES",
    "ChosenItems",
    "Difference",
    "Estimates",
    "MeanEstimate",
    "NonInferiority",
    "SystemEstimate",
    "SystemEstimates",
    "choose",
    "estimate",
    "estimate_systems",
    "not_worse",
]

# Loaded when first asked for: commands that may estimate do not wait for SciPy's statistics.
_NAMES_BY_MODULE = {
    "differences": ("Difference",),
    "non_inferiority": ("NonInferiority", "not_worse"),
    "prediction_powered": ("Estimates", "estimate"),
    "quantities": ("QUANTITIES", "MeanEstimate"),
    "sample_design": ("ChosenItems", "choose"),
    "systems": ("SystemEstimate", "SystemEstimates", "estimate_systems"),
}
__getattr__ = loader(__name__, _NAMES_BY_MODULE)


def __dir__() -> list[str]:
    return __all__
