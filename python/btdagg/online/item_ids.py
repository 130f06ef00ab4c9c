"""Ids of items as the compiled tallies take them, without a copy where there is a way."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.ids import as_id_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Integers, or texts as UTF-8 bytes, where the first begins, and where each ends.
Ids: TypeAlias = "NDArray[np.int64] | tuple[NDArray[np.uint8], int, NDArray[np.int64]]"


def as_ids(items: Any) -> Ids:
    """Return ids as the core takes them.

    Parameters
    ----------
    items : (m,) array of integers or strings
        A list, a NumPy array of integers or of any kind of strings, a pandas or polars series or a
        PyArrow array. Large Arrow strings are read in place.

    Raises
    ------
    InputError
        If the ids are anything else or one is missing.
    """
    library = type(items).__module__.partition(".")[0]
    if library == "polars":
        if items.dtype.is_integer():
            items, library = items.to_numpy(), ""
        elif find_spec("pyarrow") is None:
            items, library = items.to_list(), ""
        else:
            items, library = items.rechunk().to_arrow(), "pyarrow"
    if library == "pyarrow":
        return _of_arrow(items)
    array = as_id_array(items.to_numpy() if library == "pandas" else items, unsigned=False)
    if array.dtype.kind in "OTU":
        data, ends = _core.pack_texts(array.tolist())
        return data, 0, ends
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        row = int(array.argmax())
        raise InputError(
            argument="items", row=row, came=int(array[row]), expected="an integer below 2**63"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def _of_arrow(items: Any) -> Ids:
    import pyarrow as pa

    if isinstance(items, pa.ChunkedArray):
        items = items.combine_chunks()
    if items.null_count:
        row = int(np.flatnonzero(items.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(f"items[{row}] is null, expected an integer or a string")
    if pa.types.is_integer(items.type):
        return as_ids(items.to_numpy(zero_copy_only=False))
    if pa.types.is_dictionary(items.type):
        items = items.dictionary_decode()
    if pa.types.is_string(items.type) or pa.types.is_string_view(items.type):
        items = items.cast(pa.large_string())
    if not pa.types.is_large_string(items.type):
        raise InputError(f"items has type {items.type}, expected integers or strings")
    if not len(items):
        return np.empty(0, dtype=np.uint8), 0, np.empty(0, dtype=np.int64)
    _, offsets, data = items.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[items.offset : items.offset + len(items) + 1]
    texts = np.frombuffer(data if data is not None else b"", dtype=np.uint8)
    return texts, int(bounds[0]), bounds[1:]
