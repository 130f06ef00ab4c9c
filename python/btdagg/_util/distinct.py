"""Distinct rows of a table: items repeat, rows of counts less so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SMALL = 2**31
_LARGEST = 2**62


def distinct_rows(*columns: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the distinct rows of a table, in ascending order of its columns.

    Parameters
    ----------
    *columns : (n,) arrays of one length, at least one

    Returns
    -------
    first : (k,) array
        Where each distinct row is first.
    number : (n,) array
        The number of every row among the distinct ones.
    """
    number, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        # Counts are codes by themselves, which spares sorting them.
        if column.dtype.kind in "iu" and len(column) and 0 <= column.min() <= column.max() < _SMALL:
            codes, n = column.astype(np.int64, copy=False), int(column.max()) + 1
        else:
            values, codes = np.unique(column, return_inverse=True)
            n = len(values)
        if size * n >= _LARGEST:
            values, number = np.unique(number, return_inverse=True)
            size = len(values)
        number, size = number * n + codes, size * n
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    return first, number
