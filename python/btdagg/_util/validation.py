"""Checks of arrays that users pass in: clean arrays, or an `InputError` that names the place."""
# The core checks the values of counts as it reads them. No data frame library is imported.

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import InputError, expect, forbid, reworded, within
from btdagg._util.numbers import as_integer as as_integer
from btdagg._util.numbers import as_number as as_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# A column of counts goes by either name. In label order.
COUNT_COLUMNS = {"minus": "b", "tie": "same", "plus": "a"}
_LABELS = "-1, 0 or 1"


class CountsItself:
    if TYPE_CHECKING:

        def counts(self) -> tuple[NDArray[Any], NDArray[Any]]:
            """Return items and their counts."""

        def items(self) -> Any:
            """Return items with their counts, and whatever else decides them."""

        def labelled(self, labels: Any) -> Any:
            """Return counts and labels of the items that also are in a table of labels."""


def as_list(values: object, name: str, expected: str, least: int = 1) -> list[Any]:
    """Return what is in a sequence of at least so many values, which is no text."""
    is_other = isinstance(values, str | bytes | Mapping | Set)
    listed = [*values] if isinstance(values, Iterable) and not is_other else []
    expect(len(listed) >= least, name, values, expected)
    return listed


# Arrays of numbers


def as_numbers(values: ArrayLike, name: str, expected: str = "a 64-bit number") -> NDArray[Any]:
    values = unmasked(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            numbers = np.asarray(array.tolist() if array.size else np.empty(array.shape))
            array = array if numbers.dtype.kind == "O" else numbers
    except (TypeError, ValueError) as error:
        message = f"{name} is not a rectangular array of numbers: {error}"
        raise InputError(message, argument=name) from None
    if array.dtype.kind == "O":
        real = np.frompyfunc(lambda x: isinstance(x, float) or _fits(x), 1, 1)(array)
        require_rows(np.asarray(real, dtype=np.bool_), array, name, expected)
    if array.dtype.kind not in "biuf":  # the text of a dtype takes longer than a decision
        raise InputError(f"{name} has dtype {array.dtype}, expected numbers", argument=name)
    if array.dtype.kind == "f" and array.itemsize not in (4, 8):
        return array.astype(np.float64)
    if not (array.flags.aligned and array.dtype.isnative):
        return array.astype(array.dtype.newbyteorder("="))
    return array


def _fits(value: object) -> bool:
    return isinstance(value, int | np.number) and bool(-(2**63) <= value < 2**64)


def unmasked(values: Any, name: str) -> Any:
    if np.ma.is_masked(values) and isinstance(values, np.ma.MaskedArray):
        place = np.argwhere(np.ma.getmaskarray(values))[0]
        where = f"[{', '.join(map(str, place))}]" if place.size else ""
        raise InputError(f"{name}{where} is masked, expected a value", argument=name)
    if isinstance(values, list | tuple):
        for row, value in enumerate(values):
            if isinstance(value, np.ma.MaskedArray):
                unmasked(value, f"{name}[{row}]")
    return values


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, masked or the missing value of pandas."""
    if value is None or value is np.ma.masked:
        return True
    return type(value).__name__ == "NAType" or (np.ndim(value) == 0 and bool(value != value))


def shaped(array: NDArray[Any], name: str, of_item: tuple[int, ...], expected: str) -> NDArray[Any]:
    if array.ndim == 0 or array.shape[1:] != of_item:
        raise InputError(f"{name} has shape {array.shape}, expected {expected}", argument=name)
    return array


def require_rows(good: Any, array: NDArray[Any], name: str, expected: str) -> None:
    if not good.all():
        place = tuple(map(int, np.unravel_index(np.argmin(good), good.shape)))
        got = np.asarray(array[place]).tolist()
        row = place[0] if len(place) == 1 else place or None
        raise InputError(argument=name, row=row, got=got, expected=expected)


# Counts


def counts_alone(counts: Any) -> Any:
    """Return counts for a model or a rule, which decides arrays; tables and items are refused."""
    if type(counts) is np.ndarray:
        return counts
    if isinstance(counts, CountsItself) or hasattr(type(counts), "by_judge"):
        expected = (
            "an array of counts, such as items.by_judge; btdagg.decisions(votes, model) decides "
            "tables and items"
        )
        raise InputError(argument="counts", got=type(counts).__name__, expected=expected)
    return counts


def as_counts(counts: ArrayLike) -> NDArray[Any]:
    """Return counts as an (n, 3) array that the core reads in place."""
    # Arrays are read by position, data frames by column name (`in_label_order`), tables are
    # counted. Numbers of native byte order are not copied, and most counts come as such.
    if type(counts) is np.ndarray and counts.ndim == 2 and counts.shape[1] == 3:
        is_native = counts.dtype.isnative and counts.flags.aligned
        if is_native and counts.dtype.kind in "iu":
            return counts
    if isinstance(counts, CountsItself):
        scale = getattr(counts, "scale", None)
        expect(scale is None or scale.mirrored, "counts", f"votes of {scale}", "votes of pairs")
        counts = counts.counts()[1]
    return as_columns(in_label_order(counts, "counts"), 3, "minus, tie, plus of each item")


def as_columns(counts: ArrayLike, n_columns: int, meaning: str) -> NDArray[Any]:
    array = as_numbers(counts, "counts")
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    if array.ndim == 3 and array.shape[1] == 1:  # one judge is a panel of one
        array = array[:, 0]
    is_item = array.shape == (n_columns,)
    hint = "; for one item use decide_one or wrap it: [counts]" if is_item else ""
    return shaped(array, "counts", (n_columns,), f"(n, {n_columns}): {meaning}{hint}")


def as_checked_counts(counts: ArrayLike) -> NDArray[Any]:
    return finite_counts(as_counts(counts))


def finite_counts(array: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(invalid="ignore"):
        good = (array >= 0) & np.isfinite(array)
    require_rows(good, array, "counts", "a finite number of at least 0")
    is_whole = array.dtype.kind in "iu" or bool((array % 1 == 0).all())
    fits = not array.size or array.max() < 2**63
    return array.astype(np.int64 if is_whole and fits else np.float64, copy=False)


def in_label_order(values: Any, name: str, prefix: str = "") -> Any:
    """Return a data frame with its columns in label order; return anything else unchanged."""
    # It has exactly the columns minus (or b), tie (or same) and plus (or a), in any case, with or
    # without the `prefix`, or columns numbered 0, 1, 2.
    if type(values) is np.ndarray:
        return values
    refuse_tables(values, name, "btdagg.read_votes(frame)")
    names = column_names(values)
    if names is None or [str(column) for column in names] == ["0", "1", "2"]:
        return values
    sides_by_name = {other: side for side, other in COUNT_COLUMNS.items()}
    sides = [str(column).strip().lower().removeprefix(prefix) for column in names]
    sides = [sides_by_name.get(side, side) for side in sides]
    if sorted(sides) != sorted(COUNT_COLUMNS):
        shown = ", ".join(map(str, names[:10])) + (", ..." if len(names) > 10 else "")
        raise InputError(
            f"{name} has columns {shown or 'none'}, expected minus, tie, plus (or b, same, a), in "
            "any order, and no other columns",
            argument=name,
        )
    if sides == list(COUNT_COLUMNS):
        return values
    return with_columns(values, [names[sides.index(side)] for side in COUNT_COLUMNS])


def is_source(values: Any) -> bool:
    """Whether it is the path of a table, or a list of its rows."""
    if isinstance(values, list):
        return bool(values) and isinstance(values[0], Mapping)
    return isinstance(values, str | os.PathLike)


def refuse_tables(values: Any, name: str, reader: str) -> None:
    """Refuse a table with ids of items for who takes arrays alone, and say what reads it."""
    is_lazy = hasattr(values, "collect_schema")
    names = values.collect_schema().names() if is_lazy else column_names(values) or ()
    has_ids = "item" in [str(column).strip().lower() for column in names]
    is_table = hasattr(values, "unlabelled")  # labels as they were read
    if has_ids or is_table or is_source(values) or isinstance(values, Mapping):
        expected = f"an array; {reader} reads a table, for btdagg.decisions and all questions"
        raise InputError(argument=name, got=type(values).__name__, expected=expected)


def column_names(values: Any) -> list[Any] | None:
    if isinstance(values, np.ndarray | list | tuple) or not hasattr(values, "__array__"):
        return None
    # The columns of a PyArrow table are arrays, and it has the names beside them.
    names = getattr(values, "column_names", None)
    names = getattr(values, "columns", None) if names is None else names
    return None if names is None else list(names)


def has_index(values: Any) -> bool:
    """Whether values have an index of pandas."""
    return hasattr(getattr(values, "index", None), "equals")


def is_series(values: Any) -> bool:
    """Whether it is a column of a library of data frames."""
    library = type(values).__module__.partition(".")[0]
    return library in ("pandas", "polars", "pyarrow") and np.ndim(values) == 1


def with_columns(frame: Any, names: list[Any]) -> Any:
    return frame.select(names) if hasattr(frame, "select") else frame[names]


# Labels, weights, losses and groups


def as_labels(labels: ArrayLike, name: str = "labels", expected: str = _LABELS) -> NDArray[np.int8]:
    """Return labels or votes, an array, list or series, as an (n,) int8 array of -1, 0 and 1."""
    array = label_array(labels, name, expected)
    with np.errstate(invalid="ignore"):
        small = np.ascontiguousarray(array, dtype=np.int8)
    require_rows((small == array) & (small >= -1) & (small <= 1), array, name, expected)
    return small


def numbers_or_missing(labels: ArrayLike, name: str, expected: str) -> NDArray[np.float64]:
    """Return numbers as (n,) floats; NaN, None, pandas' missing and masked values are NaN."""
    values: Any = labels
    if isinstance(values, np.ma.MaskedArray):
        values = values.tolist()  # None for what is masked
    elif not isinstance(values, list | tuple):
        values = np.asarray(values)
        if values.dtype.kind == "O" and values.ndim:
            values = values.tolist()
    if isinstance(values, list | tuple):
        values = [np.nan if is_missing(value) else value for value in values]
    return label_array(values, name, expected).astype(np.float64)


def label_array(labels: Any, name: str, expected: str) -> NDArray[Any]:
    refuse_tables(labels, name, "btdagg.read_labels(frame)")
    array = as_numbers(labels, name, expected)
    refuse_booleans(labels, name, expected)
    return shaped(array, name, (), "one dimension")


def refuse_booleans(labels: Any, name: str, expected: str) -> None:
    """Refuse booleans, which NumPy takes for numbers: False would be a tie."""
    values: Any = labels
    if not isinstance(values, list | tuple):
        values = np.asarray(values)
        forbid(values.dtype == np.bool_, f"{name} has dtype bool, expected {expected}", name)
        values = values.tolist() if values.dtype.kind == "O" and values.ndim else []
    if not {bool, np.bool_}.isdisjoint(map(type, values)):
        row = next(row for row, value in enumerate(values) if isinstance(value, bool | np.bool_))
        raise InputError(argument=name, row=row, got=values[row], expected=expected)


def as_weights(weights: ArrayLike, soft: bool) -> NDArray[np.float64]:
    """Return weights as (n,) float64, or (n, 3) if they are `soft` labels, also of a frame."""
    named = in_label_order(weights, "weights", "p_") if soft else weights
    array = np.ascontiguousarray(as_numbers(named, "weights"), dtype=np.float64)
    if soft:
        return shaped(array, "weights", (3,), "(n, 3), a weight for each label (and labels=None)")
    return shaped(array, "weights", (), "(n,); for soft labels of shape (n, 3) give labels=None")


def has_judges(counts: Any) -> bool:
    """Whether counts are those of several judges; what is no array is refused where it is read."""
    try:
        return np.ndim(counts) == 3 and np.shape(counts)[1] != 1
    except ValueError:  # rows of several lengths
        return False


def as_panel_counts(counts: ArrayLike, judges: Sequence[str] | None = None) -> NDArray[Any]:
    """Return counts as an (n, judges, 3) array; errors name the judge and the row."""
    array = as_numbers(counts, "counts")
    n_judges = math.prod(array.shape[1:2]) if judges is None else len(judges)
    if judges is not None and n_judges == 1 and array.ndim == 2:  # a panel of one
        array = array[:, None]
    if array.shape[1:] != (n_judges, 3) or n_judges == 0:
        expected = f"(n, {'judges' if judges is None else n_judges}, 3)"
        raise InputError(f"counts has shape {array.shape}, expected {expected}", argument="counts")
    columns = []
    for place, name in enumerate(names_of_judges(judges, n_judges)):
        with within(f"judge {name!r}: "):
            columns.append(as_checked_counts(array[:, place]))
    return np.stack(columns, axis=1)


def effective_weights(weights: ArrayLike | None, n_items: int) -> NDArray[np.float64]:
    """Return (n,) weights, 1 unless given, that sum to the effective number of items."""
    if weights is None:
        return np.ones(n_items)
    array = as_weights(weights, soft=False)
    same_length("weights", len(array), "counts", n_items)
    good = np.isfinite(array) & (array >= 0)
    require_rows(good, array, "weights", "a finite number of at least 0")
    forbid(
        n_items and not array.any(), "weights are all 0, expected at least one above 0", "weights"
    )
    array = array / (array.max() if n_items else 1)
    return np.asarray(array * (array.sum() / (array**2).sum()))


def as_losses(losses: ArrayLike, name: str, shape: str) -> NDArray[np.float64]:
    """Return losses as contiguous float64 of the shape; the core checks that they are finite."""
    array = np.ascontiguousarray(as_numbers(losses, name), dtype=np.float64)
    forbid(
        array.ndim != len(shape.strip("(,)").split(",")),
        f"{name} has shape {array.shape}, expected {shape}",
        name,
    )
    return array


def as_names(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return names as an (n,) array, in which what is missing in a list is no text."""
    names = np.asarray(unmasked(values, name))
    texts: Any = values if isinstance(values, list | tuple) and names.dtype.kind == "U" else ()
    if any(not isinstance(value, str) and is_missing(value) for value in texts):
        names = np.array(texts, dtype=object)  # NumPy writes NaN out as text
    return shaped(names, name, (), "one dimension")


def as_groups(
    groups: ArrayLike, other: str, n_items: int, name: str = "groups"
) -> NDArray[np.int64]:
    """Return the group of each item as a number from 0, in the order of the groups' names."""
    names = as_names(groups, name)
    same_length(name, len(names), other, n_items)
    if names.dtype.kind == "O":
        has = (isinstance(value, str | int) or not is_missing(value) for value in names)
        present = np.fromiter(has, np.bool_, len(names))
    else:
        present = names == names
    what = "group" if name == "groups" else "value"
    require_rows(np.asarray(present), names, name, f"a {what} for every item")
    message = f"{name} mixes values that cannot be compared, expected names of one type"
    with reworded(TypeError, message, name):
        if names.dtype.kind != "O":
            return np.unique(names, return_inverse=True)[1].astype(np.int64, copy=False)
        # Names repeat; a look at each distinct one is faster than sorting all.
        values = names.tolist()
        number = {value: place for place, value in enumerate(sorted(set(values)))}
        return np.fromiter((number[value] for value in values), np.int64, len(values))


def as_probabilities(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return numbers from 0 to 1 as a float64 array of any shape with at least one number."""
    array = np.asarray(as_numbers(values, name), dtype=np.float64)
    forbid(array.size == 0, f"{name} is empty, expected at least one number", name)
    require_rows(np.asarray((array >= 0) & (array <= 1)), array, name, "a number from 0 to 1")
    return array


# Names of judges


def names_of_judges(judges: object, n_judges: int | None = None) -> tuple[str, ...]:
    """Return the distinct names of judges; their numbers from 1 where none are given."""
    if judges is None and n_judges is not None:
        return tuple(str(number) for number in range(1, n_judges + 1))
    names = tuple(as_list(judges, "judges", "a sequence of names"))
    for place, name in enumerate(names):
        expect(isinstance(name, str) and name, "judges", name, "text", row=place)
        forbid(name in names[:place], f"judges has {name!r} twice", "judges")
    if n_judges is not None and len(names) != n_judges:
        raise InputError(
            f"judges has {len(names)} names, and counts has {n_judges} judges", argument="judges"
        )
    return tuple(map(str, names))


# Ids and rows


def as_id_array(items: Any, *, name: str = "items") -> NDArray[Any]:
    """Return ids as integers, fixed-width strings, or objects, which the core checks."""
    if isinstance(items, list | tuple) and items and isinstance(items[0], str):
        array = np.empty(len(items), dtype=object)  # NumPy's own strings lose trailing NULs
        array[:] = items
        return array
    array = shaped(np.asarray(unmasked(items, name)), name, (), "one dimension")
    if array.dtype.kind in "OT":
        if not array.size or isinstance(array[0], str):
            return array
        items = array.tolist()
        array = shaped(np.asarray(items), name, (), "one dimension")
    if isinstance(items, list | tuple) and array.dtype.kind == "U":
        raise InputError(
            f"{name} mixes strings and numbers, expected all strings or all numbers", argument=name
        )
    if not array.size and array.dtype.kind != "U":
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iuU":
        dtype = array.dtype
        raise InputError(f"{name} has dtype {dtype}, expected integers or strings", argument=name)
    return array


def totals(array: NDArray[Any]) -> NDArray[Any]:
    """Sums along the last axis, which `sum` takes long for where it is short."""
    first, *others = np.moveaxis(array, -1, 0)
    wide = {"i": np.int64, "u": np.uint64, "b": np.int64}.get(array.dtype.kind, array.dtype)
    return reduce(np.add, others, first.astype(wide))


def distinct_rows(*columns: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Distinct rows of (n,) columns, in order: where each is first, and the number of every row."""
    number, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        # Counts are codes by themselves, which spares sorting them.
        if column.dtype.kind in "iu" and len(column) and 0 <= column.min() <= column.max() < 2**31:
            codes, n = column.astype(np.int64, copy=False), int(column.max()) + 1
        else:
            values, codes = np.unique(column, return_inverse=True)
            n = len(values)
        if size * n >= 2**62:
            values, number = np.unique(number, return_inverse=True)
            size = len(values)
        number, size = number * n + codes, size * n
    if size > max(4 * len(number), 1 << 12):
        _, first, number = np.unique(number, return_index=True, return_inverse=True)
        return first, number
    firsts = np.full(size, -1)
    firsts[number[::-1]] = np.arange(len(number))[::-1]
    occurs = firsts >= 0
    return firsts[occurs], (np.cumsum(occurs) - 1)[number]


# Arguments together


def same_length(name: str, n_rows: int, other: str, expected: int) -> None:
    forbid(n_rows != expected, f"{name} has {n_rows} rows, expected {expected} as in {other}", name)


def same_index(**arguments: Any) -> None:
    """Check that pandas objects have equal indexes: rows are matched by position."""
    indexes = {name: values.index for name, values in arguments.items() if has_index(values)}
    indexed = [*indexes]
    for name in indexed[1:]:
        if not indexes[name].equals(indexes[indexed[0]]):
            raise InputError(
                f"{name} and {indexed[0]} have different indexes, but rows are matched by "
                f"position: bring them into one order, such as {indexed[0]}.loc[{name}.index], or "
                "pass data frames with a column item, which are joined",
                argument=name,
            )


def columns_of(
    covariates: Any, n_items: int, names: Sequence[str] | None = None
) -> dict[str, NDArray[np.float64]]:
    """Return the columns of covariates by name, (n,) float64 each, NaN where one is missing."""
    # An (n, d) array's are named by place unless `names` are given, which a frame has to have.
    columns = list(covariates) if isinstance(covariates, Mapping) else column_names(covariates)
    if columns is None:
        array = as_numbers(covariates, "covariates")
        if array.ndim != 2 or (names is not None and array.shape[1] != len(names)):
            d = "d" if names is None else len(names)
            got, expected = f"an array of shape {array.shape}", f"(n, {d}), or columns by name"
            raise InputError(argument="covariates", got=got, expected=expected)
        columns = [f"x{place}" for place in range(array.shape[1])] if names is None else [*names]
        covariates = dict(zip(columns, array.T, strict=True))
    elif names is not None and {*columns} != {*names}:
        expected = f"exactly {', '.join(names)}, as in the model"
        raise InputError(argument="covariates", got=[*map(str, columns)], expected=expected)
    read = {}
    for name in columns if names is None else names:
        values = as_numbers(covariates[name], f"covariates[{name!r}]").astype(np.float64)
        same_length(f"covariates[{name!r}]", len(values), "counts", n_items)
        expected = "a number, or NaN where it is missing"
        require_rows(~np.isinf(values), values, f"covariates[{name!r}]", expected)
        read[str(name)] = values
    return read
