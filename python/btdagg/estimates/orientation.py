"""Which systems items compare, and items turned towards one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import is_missing, same_length, unmasked
from btdagg.estimates.proxy import DistinctCounts, Predictions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.estimates.population import Domain, Population


def systems_of(
    system_a: ArrayLike, system_b: ArrayLike, n_items: int
) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return names of all systems in order, and the numbers of the two of each item.

    Raises
    ------
    InputError
        If a name is missing, or both systems of an item are the same.
    """
    columns = []
    for name, values in (("system_a", system_a), ("system_b", system_b)):
        array = np.asarray(unmasked(values, name))
        if array.ndim != 1:
            raise InputError(f"{name} has shape {array.shape}, expected one dimension")
        same_length(name, len(array), "counts", n_items)
        each = array.tolist()
        missing = {one for one in set(each) if is_missing(one)}
        if missing:
            row = next(row for row, one in enumerate(each) if one in missing)
            raise InputError(f"{name}[{row}] is {each[row]}, expected a system for every item")
        columns.append(each)
    try:
        names = sorted({*columns[0], *columns[1]})
    except TypeError:
        raise InputError(
            "system_a and system_b mix values that cannot be compared, expected names of one type"
        ) from None
    number = {name: place for place, name in enumerate(names)}
    a, b = (np.fromiter((number[one] for one in each), np.int64, n_items) for each in columns)
    same = a == b
    if same.any():
        row = int(np.argmax(same))
        raise InputError(
            f"system_b[{row}] is {names[b[row]]!r} as system_a[{row}] is, expected two systems for "
            "every item"
        )
    return names, a, b


def place_of(baseline: Any, names: list[Any]) -> int | None:
    """Return the number of the baseline among the names of systems.

    Raises
    ------
    InputError
        If it is none of them.
    """
    if baseline is None:
        return None
    if baseline not in names:
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        raise InputError(f"baseline is {baseline!r}, expected one of the systems {shown}")
    return names.index(baseline)


def turned_domain(
    population: Population,
    inside: NDArray[np.bool_],
    is_b: NDArray[np.bool_],
) -> Domain:
    """Return the means over some items, turned so that a system is A of each.

    Parameters
    ----------
    population : Population
    inside : (N,) array of bool
        The items.
    is_b : (N,) array of bool
        Where the system is B.
    """
    rows = np.flatnonzero(inside)
    k = len(population.items.rows)
    used, place = np.unique(population.items.place[rows] + k * is_b[rows], return_inverse=True)
    counts, tables = population.items.rows[used % k], population.predictions.tables[:, used % k]
    turned = used >= k
    counts[turned], tables[:, turned] = counts[turned, ..., ::-1], tables[:, turned, ::-1]
    own = inside[population.labelled]
    labelled, outcomes = population.labelled[own], population.outcomes[own]
    part = replace(
        population,
        items=DistinctCounts(counts, place.reshape(-1)),
        labelled=np.searchsorted(rows, labelled),
        outcomes=np.where(is_b[labelled, None], outcomes[:, ::-1], outcomes),
        groups=None if population.groups is None else population.groups[rows],
        weights=None if population.weights is None else population.weights[own],
        predictions=Predictions(tables, population.predictions.fold[own]),
    )
    return part.domain()
