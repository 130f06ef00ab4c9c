"""How scores and parts of an evaluation are written in tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from btdagg._util.errors import InputError
from btdagg._util.wording import MISSING, fixed, percent

if TYPE_CHECKING:
    from btdagg.evaluation.cells import Cell
    from btdagg.result import Interval


def with_error(interval: Interval | None, *, signed: bool = False, in_percent: bool = False) -> str:
    """Write a mean and the longer half of its interval."""
    if interval is None or not math.isfinite(interval.mean):
        return MISSING
    half = max(interval.high - interval.mean, interval.mean - interval.low)
    if in_percent:
        return f"{percent(interval.mean, signed=signed)} ±{fixed(100 * half, 1)}"
    return f"{fixed(interval.mean, signed=signed)} ±{fixed(half).removeprefix('0')}"


def votes_of(n_votes: int | None) -> str:
    """Write a number of votes per item, where None is all."""
    return "all" if n_votes is None else str(n_votes)


def key_of(key: Sequence[str]) -> str:
    """Write the values of the columns that a result goes by."""
    return ", ".join(key) if key else "all"


def not_evaluated(keys: Iterable[Sequence[str]]) -> str:
    """Name what could not be evaluated, as the end of a note."""
    names = list(dict.fromkeys(key_of(key) for key in keys))
    return f" Not evaluated: {'; '.join(names)}." if names else ""


class Basis(NamedTuple):
    """Basis of means, and of their ±, in words."""

    over: str
    error: str


def basis_of(cells: Iterable[Cell]) -> Basis:
    """Say what the means of cells are over."""
    cells = list(cells)
    if all(cell.methods[0].of_new_items is not None for cell in cells):
        return Basis(
            "the folds of a cross-validation by group",
            "± is the longer half of the 95% interval for new items, or new groups of items",
        )
    return Basis(
        random_splits(cell.n_splits for cell in cells),
        "± is half of the 95% interval of the mean over splits",
    )


def random_splits(numbers: Iterable[int]) -> str:
    """Write how many splits there are, one number or from the least to the most."""
    numbers = list(numbers)
    low, high = min(numbers), max(numbers)
    return f"{low} random splits" if low == high else f"{low} to {high} random splits"


def spread(name: str, interval: Interval | None) -> dict[str, object]:
    """Fields of a record for a mean and its interval."""
    mean, low, high = (None, None, None) if interval is None else interval
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def record(where: Mapping[str, str | None], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the columns that votes are grouped by, and then a result's own."""
    for column in where.keys() & fields:
        raise InputError(f"column {column!r} has the name of a field of the results; rename it")
    return {**where, **fields}


def capitalised(text: str) -> str:
    """Write words as a sentence."""
    return f"{text[0].upper()}{text[1:]}."
