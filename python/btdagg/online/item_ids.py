"""Ids of items as the compiled tallies take them, without a copy where there is a way."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.ids import as_id_array
from btdagg._util.readable import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray


@readable
class Texts(NamedTuple):
    """Texts one after the other: UTF-8 bytes, where the first begins and where each ends."""

    data: NDArray[np.uint8]
    start: int
    ends: NDArray[np.int64]


def as_ids(items: Any) -> NDArray[np.int64] | Texts:
    """Return ids as an array of int64 or as `Texts`.

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
    if library == "pandas":
        items = items.to_numpy()
    array = as_id_array(items, unsigned=False)
    if array.dtype.kind in "OT":
        return as_texts(array.tolist())
    if array.dtype.kind == "U":
        if not array.size:
            return as_texts([])
        native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        data, ends = _core.pack_wide(native.view(np.uint32).reshape(len(native), -1))
        return Texts(data, 0, ends)
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        row = int(array.argmax())
        raise InputError(f"items[{row}] is {array[row]}, expected an integer below 2**63")
    return np.ascontiguousarray(array, dtype=np.int64)


def as_texts(items: list[Any]) -> Texts:
    """Return a list of str as `Texts`.

    Raises
    ------
    InputError
        If one is another object or has a lone surrogate; the message names the row.
    """
    data, ends = _core.pack_texts(items)
    return Texts(data, 0, ends)


def _of_arrow(items: Any) -> NDArray[np.int64] | Texts:
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
    kind = items.type
    text = pa.types.is_string(kind) or pa.types.is_string_view(kind)
    if not (text or pa.types.is_large_string(kind)):
        raise InputError(f"items has type {kind}, expected integers or strings")
    if text:
        items = items.cast(pa.large_string())
    if not len(items):
        return Texts(np.empty(0, dtype=np.uint8), 0, np.empty(0, dtype=np.int64))
    _, offsets, data = items.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[items.offset : items.offset + len(items) + 1]
    bytes_of = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)
    return Texts(bytes_of, int(bounds[0]), bounds[1:])


def as_strings(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return texts as an array of str."""
    text = data.tobytes()
    found = np.empty(len(ends), dtype=object)
    start = 0
    for place, end in enumerate(ends.tolist()):
        found[place] = text[start:end].decode()
        start = end
    return found


def check_id(item: object) -> None:
    """Refuse an id that is no text and no integer of 64 bits.

    Raises
    ------
    InputError
    """
    if isinstance(item, bool) or not isinstance(item, int | str | np.integer):
        raise InputError(f"item is {item!r}, expected an integer or a string")
    if isinstance(item, str):
        try:
            item.encode()
        except UnicodeEncodeError:
            raise InputError(f"item is {item!r}, which has a lone surrogate") from None
    elif not -(2**63) <= item < 2**63:
        raise InputError(f"item is {item}, expected an integer from -2**63 to below 2**63")


def rows_of(ids: NDArray[np.int64] | Texts, kept: NDArray[np.intp]) -> NDArray[np.int64] | Texts:
    """Return the ids of some rows."""
    if not isinstance(ids, Texts):
        return ids[kept]
    return as_texts([_text(ids, row) for row in kept.tolist()])


def shown_id(ids: NDArray[np.int64] | Texts, row: int) -> str:
    """Write the id of a row for a message."""
    return repr(_text(ids, row)) if isinstance(ids, Texts) else str(ids[row])


def _text(ids: Texts, row: int) -> str:
    start = ids.ends[row - 1] if row else ids.start
    return ids.data[start : ids.ends[row]].tobytes().decode()


def ids_as_array(ids: Any) -> NDArray[Any]:
    """Return ids, as the compiled tallies give them, as one array."""
    return as_strings(*ids) if isinstance(ids, tuple) else ids
