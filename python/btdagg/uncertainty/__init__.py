"""How sure a fitted model is: intervals of its parameters and its error, and of each decision."""

from btdagg.uncertainty.asymptotics import Sandwich, sandwich
from btdagg.uncertainty.intervals import ParameterInterval
from btdagg.uncertainty.refit_file import Refits, load_refits
from btdagg.uncertainty.refitting import Bootstrap, bootstrap
from btdagg.uncertainty.stability import Stability

__all__ = [
    "Bootstrap",
    "ParameterInterval",
    "Refits",
    "Sandwich",
    "Stability",
    "bootstrap",
    "load_refits",
    "sandwich",
]
