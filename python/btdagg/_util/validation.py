"""Checks of arrays that users pass in: clean arrays, or a clear error.

Shape, type and column names are checked here. The core checks the values of counts while it reads
them, so that large arrays are read only once.

A data frame is recognized by its attributes, so that no data frame library is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_LABELS = "-1, 0 or 1"
# A column of counts goes by either name. In label order.
COUNT_COLUMNS = {"minus": "b", "tie": "same", "plus": "a"}


class CountsItself:
    """A table of votes, accepted wherever an array of counts is."""

    def counts(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return items and their counts."""
        raise NotImplementedError

    def evidence(self) -> tuple[NDArray[Any], Any]:
        """Return items and their evidence."""
        raise NotImplementedError

    def labelled(self, labels: Any) -> Any:
        """Return counts and labels of the items that also are in a table of labels."""
        raise NotImplementedError


def as_counts(counts: ArrayLike) -> NDArray[Any]:
    """Return counts as an (n, 3) array that the core reads in place.

    Arrays and lists are read by position: minus, tie, plus. A data frame (pandas, polars, PyArrow
    or narwhals) is read by column name; see `in_label_order`. Tables of votes are counted.

    Integers and floats of native byte order keep their type and memory layout and are not
    copied. Byte-swapped, unaligned, half or extended precision and object arrays are converted.

    Raises
    ------
    InputError
        If the shape is not (n, 3), a value is not a number, or the columns of a data frame have
        other names.
    """
    if isinstance(counts, CountsItself):
        counts = counts.counts()[1]
    array = as_numbers(in_label_order(counts, "counts"), "counts")
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    if array.ndim != 2 or array.shape[1] != 3:
        hint = "; for one item use decide_one or wrap it: [counts]" if array.shape == (3,) else ""
        raise InputError(
            f"counts has shape {array.shape}, expected (n, 3): minus, tie, plus of each item{hint}"
        )
    return array


def in_label_order(values: Any, name: str, prefix: str = "") -> Any:
    """Return a data frame with its columns in label order; return anything else unchanged.

    Parameters
    ----------
    values : object
        A data frame must have exactly the columns minus (or b), tie (or same) and plus (or a), in
        any order and case. The caller must select these three if there are more. Columns numbered
        0, 1, 2, as pandas numbers columns without names, are in label order.
    name : str
        What errors call the values.
    prefix : str
        Prefix that the names may have, such as ``p_`` for probabilities.

    Raises
    ------
    InputError
        If a column has another name, is missing, or occurs twice.
    """
    names = _column_names(values)
    if names is None or [str(column) for column in names] == ["0", "1", "2"]:
        return values
    known = {other: side for side, other in COUNT_COLUMNS.items()}
    sides = [str(column).strip().lower().removeprefix(prefix) for column in names]
    sides = [known.get(side, side) for side in sides]
    place = {side: sides.index(side) for side in COUNT_COLUMNS if side in sides}
    if len(place) < len(COUNT_COLUMNS) or len(sides) > len(place):
        shown = ", ".join(map(str, names[:10])) + (", ..." if len(names) > 10 else "")
        raise InputError(
            f"{name} has columns {shown or 'none'}, expected minus, tie, plus (or b, same, a) "
            "and no "
            "other, in any order"
        )
    if list(place.values()) == [0, 1, 2]:
        return values
    ordered = [names[column] for column in place.values()]
    return values.select(ordered) if hasattr(values, "select") else values[ordered]


def _column_names(values: Any) -> list[Any] | None:
    """Column names of a data frame in memory; None for anything else."""
    if isinstance(values, np.ndarray | list | tuple) or not hasattr(values, "__array__"):
        return None
    # The columns of a PyArrow table are arrays, and it has the names beside them.
    names = getattr(values, "column_names", None)
    names = getattr(values, "columns", None) if names is None else names
    return None if names is None else list(names)


def as_whole_counts(counts: ArrayLike) -> NDArray[Any]:
    """Return counts as `as_counts` does, and check every value.

    Raises
    ------
    InputError
        If the shape is not (n, 3) or a value is not a non-negative integer below 2**64; the message
        names it.
    """
    array = as_counts(counts)
    with np.errstate(invalid="ignore"):
        good = (array >= 0) & (array % 1 == 0)
        if array.dtype.kind == "f":
            good &= array < 2.0**64
    if not good.all():
        row, column = np.unravel_index(np.argmin(good), array.shape)
        value = array[row, column]
        limit = " below 2**64" if np.isfinite(value) and value >= 2.0**64 else ""
        raise InputError(
            f"counts[{row}, {column}] ({list(COUNT_COLUMNS)[column]}) is {value}, expected a "
            f"non-negative integer{limit}"
        )
    return array


def as_labels(labels: ArrayLike, name: str = "labels") -> NDArray[np.int8]:
    """Return labels or votes, an array, list or series, as an (n,) int8 array of -1, 0 and 1.

    Raises
    ------
    InputError
        If it is not one-dimensional (a data frame with one column is not), or a value is masked, a
        boolean or otherwise not -1, 0 or 1; the message names the row.
    """
    array = _label_array(labels, name, _LABELS)
    with np.errstate(invalid="ignore"):
        small = np.ascontiguousarray(array, dtype=np.int8)
    good = (small == array) & (small >= -1) & (small <= 1)
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(f"{name}[{row}] is {array[row]}, expected {_LABELS}")
    return small


def as_partial_labels(labels: ArrayLike, name: str = "labels") -> NDArray[np.float64]:
    """Return labels of which some may be missing as (n,) floats, NaN where there is none.

    NaN, None, missing values of pandas and masked values are missing.

    Raises
    ------
    InputError
        If it is not one-dimensional, or a value is neither missing nor -1, 0 or 1; the message
        names the row.
    """
    wanted = "-1, 0, 1, or NaN where there is no label"
    values: Any = labels
    if isinstance(values, np.ma.MaskedArray):
        values = values.tolist()  # None for what is masked
    elif not isinstance(values, list | tuple):
        values = np.asarray(values)
        if values.dtype.kind == "O" and values.ndim:
            values = values.tolist()
    if isinstance(values, list | tuple):
        values = [np.nan if is_missing(one) else one for one in values]
    array = _label_array(values, name, wanted).astype(np.float64)
    good = np.isnan(array) | np.isin(array, (-1, 0, 1))
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(f"{name}[{row}] is {array[row]:g}, expected {wanted}")
    return array


def as_outcomes(labels: ArrayLike, name: str = "labels") -> NDArray[np.float64]:
    """Return labels as (N, 3) shares of B, tie and A, rows of NaN where there is none.

    Labels of which some may be missing, (N,), become rows of one 1 and zeros. Shares of an item's
    raters, (N, 3), are checked.

    Raises
    ------
    InputError
        As `as_partial_labels` does, or if the shares of an item do not add up to 1; the message
        names the row.
    """
    values: Any = labels
    if isinstance(values, list | tuple) and len(values) and np.ndim(values[0]) == 1:
        values = as_numbers(values, name)
    if isinstance(values, list | tuple) or np.shape(values)[1:] != (3,):
        known = as_partial_labels(labels, name)
        outcomes = np.full((len(known), 3), np.nan)
        rows = np.flatnonzero(~np.isnan(known))
        outcomes[rows] = 0.0
        outcomes[rows, known[rows].astype(np.int64) + 1] = 1.0
        return outcomes
    shares = as_numbers(values, name).astype(np.float64)
    with np.errstate(invalid="ignore"):
        good = (shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) < 1e-6)
    good |= np.isnan(shares).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(
            f"{name}[{row}] is {shares[row]}, expected shares of B, tie and A that add up to 1, "
            "or NaN "
            "where there is no label"
        )
    return shares


def _label_array(labels: Any, name: str, wanted: str) -> NDArray[Any]:
    """Return labels as a one-dimensional array of numbers."""
    array = as_numbers(labels, name, wanted)
    refuse_booleans(labels, name, wanted)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one dimension")
    return array


def refuse_booleans(labels: Any, name: str, wanted: str) -> None:
    """Check that no label is a boolean, which NumPy takes for a number: False would be a tie.

    Raises
    ------
    InputError
        If one is; the message names the row.
    """
    values: Any = labels
    if not isinstance(values, list | tuple):
        values = np.asarray(values)
        if values.dtype == np.bool_:
            raise InputError(f"{name} has dtype bool, expected {wanted}")
        values = values.tolist() if values.dtype.kind == "O" and values.ndim else []
    if not {bool, np.bool_}.isdisjoint(map(type, values)):
        row = next(row for row, one in enumerate(values) if isinstance(one, bool | np.bool_))
        raise InputError(f"{name}[{row}] is {values[row]}, expected {wanted}")


def as_weights(weights: ArrayLike, soft: bool) -> NDArray[np.float64]:
    """Return weights as (n,) float64, or (n, 3) if they are `soft` labels.

    A data frame of soft labels is read by column name; see `in_label_order`.

    Raises
    ------
    InputError
        If the shape is wrong, a value is not a number, or the columns of a data frame have other
        names.
    """
    named = in_label_order(weights, "weights", "p_") if soft else weights
    array = np.ascontiguousarray(as_numbers(named, "weights"), dtype=np.float64)
    if soft and (array.ndim != 2 or array.shape[1] != 3):
        raise InputError(
            f"weights has shape {array.shape}, expected (n, 3), a weight for each label, "
            "where labels is None"
        )
    if not soft and array.ndim != 1:
        raise InputError(
            f"weights has shape {array.shape}, expected (n,); for soft labels of shape (n, 3) "
            "give labels=None"
        )
    return array


def as_losses(losses: ArrayLike, name: str, shape: str) -> NDArray[np.float64]:
    """Return losses as a contiguous float64 array of the dimensions that `shape` names.

    The core checks that they are finite while it reads them.

    Raises
    ------
    InputError
        If the shape is wrong or a value is not a number.
    """
    if isinstance(losses, list | tuple):
        for row, values in enumerate(losses):
            if np.ndim(losses[0]) == np.ndim(values) == 1 and len(values) != len(losses[0]):
                raise InputError(
                    f"{name}[{row}] has {len(values)} items, expected {len(losses[0])} as in "
                    f"{name}[0]"
                )
    array = as_numbers(losses, name)
    if array.ndim != shape.count(",") + (not shape.endswith(",)")):
        raise InputError(f"{name} has shape {array.shape}, expected {shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def as_groups(
    groups: ArrayLike, other: str, n_items: int, name: str = "groups"
) -> NDArray[np.int64]:
    """Return the group of each item as a number from 0, in the order of the groups' names.

    Errors call the groups by a name of the caller's.

    Raises
    ------
    InputError
        If there is not one group per item, a group is missing, or groups cannot be compared.
    """
    names = np.asarray(unmasked(groups, name))
    if names.ndim != 1:
        raise InputError(f"{name} has shape {names.shape}, expected one dimension")
    same_length(name, len(names), other, n_items)
    missing = names != names
    if names.dtype.kind == "O":
        missing |= np.array([one is None for one in names], dtype=np.bool_)
    if missing.any():
        what = "group" if name == "groups" else "value"
        row = int(np.argmax(missing))
        raise InputError(f"{name}[{row}] is {names[row]}, expected a {what} for every item")
    try:
        if names.dtype.kind == "O":
            # Names repeat; a look at each distinct one is faster than sorting all.
            each = names.tolist()
            number = {one: place for place, one in enumerate(sorted(set(each)))}
            numbers = np.fromiter((number[one] for one in each), np.int64, len(each))
        else:
            _, numbers = np.unique(names, return_inverse=True)
    except TypeError:
        raise InputError(
            f"{name} mixes values that cannot be compared, expected names of one type"
        ) from None
    return numbers.astype(np.int64, copy=False)


def as_probabilities(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return numbers from 0 to 1 as a float64 array of any shape with at least one number.

    Raises
    ------
    InputError
        If there is none, or a value is not a number from 0 to 1; the message names its place.
    """
    array = np.asarray(as_numbers(values, name), dtype=np.float64)
    if array.size == 0:
        raise InputError(f"{name} is empty, expected at least one number")
    good = (array >= 0) & (array <= 1)
    if not good.all():
        place = np.unravel_index(np.argmin(good), array.shape)
        where = f"[{', '.join(map(str, place))}]" if place else ""
        raise InputError(f"{name}{where} is {array[place]}, expected a number from 0 to 1")
    return array


def as_number(value: object, name: str) -> float:
    """Return a finite number as a float.

    Raises
    ------
    InputError
        If the value is not a finite number.
    """
    try:
        number = float(value)  # type: ignore[arg-type]  # whatever float() takes, but no text
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if isinstance(value, str | bytes) or not np.isfinite(number):
        # Python refuses to write out integers of thousands of digits.
        n_bits = value.bit_length() if isinstance(value, int) else 0
        shown = repr(value) if n_bits <= 4096 else f"an integer of {n_bits} bits"
        raise InputError(f"{name} is {shown}, expected a finite number")
    return number


def as_integer(value: object, name: str, least: int, most: int = 2**63 - 1) -> int:
    """Return an integer from `least` to `most` as an int.

    Raises
    ------
    InputError
        If the value is not an integer, or out of range.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if value > most:
            raise InputError(f"{name} is {value!r}, expected an integer of at most {most}")
        if value >= least:
            return int(value)
    raise InputError(f"{name} is {value!r}, expected an integer of at least {least}")


def names_of_judges(judges: object, n_judges: int | None = None) -> tuple[str, ...]:
    """Return the names of judges; their numbers from 1 where none are given.

    Raises
    ------
    InputError
        If they are no names, one comes twice, or there are not `n_judges`.
    """
    if judges is None and n_judges is not None:
        return tuple(str(number) for number in range(1, n_judges + 1))
    if isinstance(judges, str) or not isinstance(judges, Sequence | np.ndarray) or not len(judges):
        raise InputError(f"judges is {judges!r}, expected a sequence of names")
    names = tuple(judges)
    for place, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise InputError(f"a name of judges is {name!r}, expected text")
        if name in names[:place]:
            raise InputError(f"judges has {name!r} twice")
    if n_judges is not None and len(names) != n_judges:
        raise InputError(f"judges has {len(names)} names, and counts has {n_judges} judges")
    return tuple(map(str, names))


def same_length(name: str, got: int, other: str, wanted: int) -> None:
    """Check that two arguments have the same number of rows.

    Raises
    ------
    InputError
        If they do not.
    """
    if got != wanted:
        raise InputError(f"{name} has {got} rows, expected {wanted} as in {other}")


def same_index(**arguments: Any) -> None:
    """Check that pandas objects among the arguments have equal indexes.

    Rows are matched by position and the index is not used, so objects with different indexes may be
    misaligned.

    Raises
    ------
    InputError
        If they are not equal.
    """
    indexes: dict[str, Any] = {
        name: getattr(values, "index", None) for name, values in arguments.items()
    }
    indexed = [name for name, index in indexes.items() if hasattr(index, "equals")]
    for name in indexed[1:]:
        if not indexes[name].equals(indexes[indexed[0]]):
            raise InputError(
                f"{name} and {indexed[0]} have different indexes, but rows are matched by "
                "position: bring them into the same order, or pass arrays (.to_numpy())"
            )


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, masked or the missing value of pandas."""
    if value is None or value is np.ma.masked:
        return True
    return type(value).__name__ == "NAType" or (np.ndim(value) == 0 and bool(value != value))


def unmasked(values: Any, name: str) -> Any:
    """Return values as they are, an array or rows of one.

    Raises
    ------
    InputError
        If one is masked; the message names its place.
    """
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            place = np.argwhere(np.ma.getmaskarray(values))[0]
            where = f"[{', '.join(map(str, place))}]" if place.size else ""
            raise InputError(f"{name}{where} is masked, expected a value")
    elif isinstance(values, list | tuple):
        for row, value in enumerate(values):
            if isinstance(value, np.ma.MaskedArray):
                unmasked(value, f"{name}[{row}]")
    return values


def as_numbers(values: ArrayLike, name: str, wanted: str = "") -> NDArray[Any]:
    """Return values as an aligned array of booleans or numbers of native byte order.

    `wanted` describes what the error message asks for if a value is not a 64-bit number.

    Raises
    ------
    InputError
        If they are not a rectangular array of real numbers, or some are masked.
    """
    try:
        array = np.asarray(unmasked(values, name))
        if array.dtype.kind == "O" and array.ndim == 0:
            raise InputError(
                f"{name} is of type {type(values).__name__}, expected an array of numbers"
            )
        if array.dtype.kind == "O":
            array = _from_objects(array, name, wanted)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a rectangular array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} has dtype {array.dtype}, expected numbers")
    if array.dtype.kind == "f" and array.itemsize not in (4, 8):
        return array.astype(np.float64)
    if not (array.flags.aligned and array.dtype.isnative):
        return array.astype(array.dtype.newbyteorder("="))
    return array


def _from_objects(array: NDArray[Any], name: str, wanted: str) -> NDArray[Any]:
    """Objects as the numbers that they are."""
    found = np.asarray(array.tolist())
    if found.dtype.kind == "O" and found.shape == array.shape:
        for place, value in np.ndenumerate(array):
            real = isinstance(value, int | float | np.integer | np.floating)
            if not real or (isinstance(value, int) and not -(2**63) <= value < 2**64):
                where = ", ".join(map(str, place))
                limit = "of at least -2**63" if real and value < 0 else "below 2**64"
                raise InputError(
                    f"{name}[{where}] is {value!r}, expected {wanted or f'a number {limit}'}"
                )
    return found.reshape(array.shape) if array.size == 0 else found
