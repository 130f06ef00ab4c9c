"""Arrays of item ids: integers or texts, from any kind of array."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import unmasked

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_id_array(items: Any, *, unsigned: bool, name: str = "items") -> NDArray[Any]:
    """Return ids as an array of integers, of NumPy's fixed-width strings, or of objects.

    Whether each object is a str is left to the compiled code that takes them, which names the row.
    ``unsigned`` integers may go up to 2**64 where none is negative.
    """
    is_list = isinstance(items, list | tuple)
    if is_list and items and isinstance(items[0], str):
        array = np.empty(len(items), dtype=object)  # NumPy's own strings lose trailing NULs
        array[:] = items
        return array
    array = np.asarray(unmasked(items, name))
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one dimension")
    if is_list and array.dtype.kind == "U":
        raise InputError(f"{name} mixes strings and numbers, expected one kind")
    if array.dtype.kind in "OT":
        ids = array.tolist()
        if not ids or isinstance(ids[0], str):
            return array
        if not all(_is_integer(item) for item in ids):
            raise InputError(f"{name} has dtype object, expected integers or strings")
        _refuse_wide(ids, name, unsigned=unsigned)
        array = np.asarray(ids)
    if is_list and array.dtype.kind == "f":
        _refuse_wide(items, name, unsigned=unsigned)  # of either sign and too far apart
    if array.size == 0 and array.dtype.kind != "U":
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iuU":
        raise InputError(f"{name} has dtype {array.dtype}, expected integers or strings")
    return array


def _is_integer(item: object) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def _refuse_wide(ids: Iterable[object], name: str, *, unsigned: bool) -> None:
    """Raise an `InputError` for the first integer that does not fit in 64 bits with the others."""
    integers = {row: item for row, item in enumerate(ids) if isinstance(item, int)}
    n_bits = 64 if unsigned and min(integers.values(), default=0) >= 0 else 63
    for row, item in integers.items():
        if not -(2**63) <= item < 2**n_bits:
            limit = "of at least -2**63" if item < 0 else f"below 2**{n_bits}"
            raise InputError(argument=name, row=row, came=item, expected=f"an integer {limit}")
