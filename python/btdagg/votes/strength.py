"""How strong a vote is: of strength w it is w of a win and 1 - w of a tie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.errors import InputError
from btdagg._util.validation import as_number, as_numbers, refuse_booleans

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Strengths are multiples of this, so that their sums are exact in any order.
_STEP = 2.0**-10


def as_full_margin(full_margin: object) -> float:
    """Return the margin of a whole win as a float, a number above 0."""
    number = as_number(full_margin, "full_margin")
    if number <= 0:
        raise InputError(argument="full_margin", came=full_margin, expected="a number above 0")
    return number


def as_strengths(
    votes: ArrayLike, full_margin: float | None, name: str = "votes"
) -> NDArray[np.int8] | NDArray[np.float64]:
    """Return votes or margins as strengths from -1 to 1, of int8 where all are -1, 0 or 1.

    Margins are divided by the full margin, and those beyond it are cut. Without one, a vote beyond
    -1 and 1 is an `InputError`.
    """
    expected = "-1, 0 or 1" if full_margin is None else "a finite margin"
    array = as_numbers(votes, name, expected)
    refuse_booleans(votes, name, expected)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one dimension", argument=name)
    strengths = array.astype(np.float64)
    if full_margin is None:
        good = np.abs(strengths) <= 1
        expected = "-1, 0 or 1, a strength between them, or a margin and its full_margin"
    else:
        good = np.isfinite(strengths)
        strengths = np.clip(strengths / as_full_margin(full_margin), -1, 1)
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(argument=name, row=row, came=array[row], expected=expected)
    rounded = np.copysign(np.floor(np.abs(strengths) / _STEP + 0.5) * _STEP, strengths)
    is_whole = bool((rounded % 1 == 0).all())
    return rounded.astype(np.int8) if is_whole else rounded
