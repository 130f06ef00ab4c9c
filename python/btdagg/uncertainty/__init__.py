"""How sure a fitted model is: intervals of its parameters and its error, and of each decision."""

from btdagg.fit.intervals import ParameterInterval, Stability
from btdagg.uncertainty.refit_file import Refits, load_refits
from btdagg.uncertainty.refitting import Bootstrap, bootstrap

__all__ = [
    "Bootstrap",
    "ParameterInterval",
    "Refits",
    "Stability",
    "bootstrap",
    "load_refits",
]
