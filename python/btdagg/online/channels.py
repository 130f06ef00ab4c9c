"""Judges and orders of votes, as the numbers by which the compiled tallies know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import same_length, unmasked

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def number_channels(
    judges: ArrayLike | str, orders: ArrayLike | str, n_rows: int, known: dict[tuple[str, str], int]
) -> NDArray[np.uint32] | None:
    """Return the number of each row's judge and order, or None where it is 0 throughout.

    Pairs that are not `known` are added to it.

    Raises
    ------
    InputError
        If there is not one string for each row.
    """
    columns = []
    for name, values in (("judges", judges), ("orders", orders)):
        if isinstance(values, str):
            columns.append((np.zeros(n_rows, dtype=np.int64), [values]))
            continue
        array = np.asarray(unmasked(values, name))
        if array.ndim != 1:
            raise InputError(f"{name} has shape {array.shape}, expected one dimension")
        same_length(name, len(array), "items", n_rows)
        strings = array.astype(object)
        wrong = next((row for row, x in enumerate(strings) if not isinstance(x, str)), None)
        if wrong is not None:
            raise InputError(f"{name}[{wrong}] is {strings[wrong]!r}, expected a string")
        names, codes = np.unique(array.astype(str), return_inverse=True)
        columns.append((codes, names.tolist()))
    (judge, judge_names), (order, order_names) = columns
    pairs, inverse = np.unique(judge * len(order_names) + order, return_inverse=True)
    numbers = [
        known.setdefault(
            (judge_names[pair // len(order_names)], order_names[pair % len(order_names)]),
            len(known),
        )
        for pair in pairs.tolist()
    ]
    if not any(numbers):
        return None
    return np.array(numbers, dtype=np.uint32)[inverse]
