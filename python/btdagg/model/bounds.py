"""The box in which a fit looks for its parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARAMETERS = ("beta", "nu", "gamma")


@dataclass(frozen=True)
class Bounds:
    """Box constraints of a fit, each a (lower, upper) pair; the paper's unless given.

    Raises
    ------
    InputError
        If a pair is not two finite numbers in ascending order, or nu's are not above 0.
    """

    beta: tuple[float, float] = (1e-3, 5.0)
    nu: tuple[float, float] = (1e-4, 1e3)
    gamma: tuple[float, float] = (-10.0, 10.0)

    def __post_init__(self) -> None:
        for name in PARAMETERS:
            pair: Any = getattr(self, name)
            try:
                lower, upper = (as_number(value, f"bounds of {name}") for value in pair)
            except (TypeError, ValueError):
                lower, upper = math.nan, math.nan
            if not lower <= upper or (name == "nu" and lower <= 0):
                above = " above 0" if name == "nu" else ""
                raise InputError(
                    f"bounds of {name} are {pair!r}, expected two finite numbers{above} in "
                    "ascending order"
                )
            object.__setattr__(self, name, (lower, upper))


def box_of(bounds: Bounds) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds of beta, eta0, gamma, each (3,)."""
    pairs = [bounds.beta, tuple(math.log(nu) for nu in bounds.nu), bounds.gamma]
    lower, upper = np.array(pairs, dtype=np.float64).T
    return lower, upper
