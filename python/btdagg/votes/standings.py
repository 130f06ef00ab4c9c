"""Standing: what a judge says of the same systems on other items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.errors import InputError, expect
from btdagg._util.lazy import pl
from btdagg._util.validation import CountsItself, as_names, as_panel_counts, has_judges, same_length
from btdagg.votes.scale import PAIRS, Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_RIDGE = 1.0  # items of even votes that each system has beside its own


def standing(
    counts: ArrayLike,
    system_a: ArrayLike,
    system_b: ArrayLike | None = None,
    *,
    scale: Scale = PAIRS,
) -> Floats:
    """Return what a judge's votes of other items say of the systems of each item.

    It needs no labels: pass all items of one judge and one task. Of pairs it is a system's strength
    less the other's, in mean votes; of grades the mean vote of the other items of a system, prompt
    or other grouping. The item's own votes never count.

    Parameters
    ----------
    counts : (n, J) array of non-negative numbers, or items
        Votes per item for each point; of a panel (n, judges, 3), which is pooled. Systems of items
        are in the order of their `ids`.
    system_a, system_b : (n,) arrays
        Systems that wrote A and B; for grades the system, or another group, alone.
    scale : Scale
        Scale of the votes; by default pairs.

    Returns
    -------
    (n,) array of float64
        To pass to ``btdagg.calibrate(..., covariates={"standing": x})``; NaN where a system has no
        other item with votes. Constant with one system, or the same two in every item.

    Raises
    ------
    InputError
        If lengths differ, or `system_b` is given of grades or absent of pairs.

    Notes
    -----
    Strengths are those of least squares of the mean votes on system A less system B, with a ridge
    of 1. Leaving an item out changes its fitted value f to ``(f - h * y) / (1 - h)``, with y its
    mean vote and h its leverage. Swapping A and B, or reordering items, changes no bit.

    Examples
    --------
    >>> counts = [[0, 0, 2], [0, 0, 2], [1, 0, 1], [2, 0, 0]]
    >>> standing(counts, ["x", "x", "y", "y"], ["y", "z", "z", "x"]).round(2).tolist()
    [0.75, 0.62, -0.08, -0.75]
    """
    if isinstance(counts, CountsItself):
        expected = "btdagg.read_votes(frame).items(), whose rows are in the order of its ids"
        raise InputError(argument="counts", got=type(counts).__name__, expected=expected)
    return _standing(counts, system_a, system_b, scale)[0]


def _standing(
    counts: Any, system_a: Any, system_b: Any, scale: Scale
) -> tuple[Floats, dict[str, float]]:
    """Return the standing of each item, and of each system without leaving an item out."""
    given = {"system_a": system_a} | ({} if system_b is None else {"system_b": system_b})
    if len(given) != len(scale.systems):
        got, expected = "given", "none for grades"
        if system_b is None:
            got, expected = "none", "an array, since votes are pairs"
        raise InputError(argument="system_b", got=got, expected=expected)
    counts = as_panel_counts(counts).sum(axis=1) if has_judges(counts) else counts
    array = scale.counts(counts)
    names = [as_names(column, side) for side, column in given.items()]
    for side, side_names in zip(given, names, strict=True):
        same_length(side, len(side_names), "counts", len(array))
    n = array.sum(axis=1, dtype=np.float64)
    means = array @ scale.floats / np.where(n > 0, n, 1)
    means[n == 0] = np.nan
    systems, of = np.unique(np.concatenate(names), return_inverse=True)
    of = of.reshape(len(names), -1)
    of_items, of_systems = _of_grades(means, of[0]) if system_b is None else _of_pairs(means, *of)
    both = zip(systems.tolist(), of_systems.tolist(), strict=True)
    return of_items, {str(system): value for system, value in both if not np.isnan(value)}


def _of_grades(means: Floats, of: NDArray[Any]) -> tuple[Floats, Floats]:
    seen = ~np.isnan(means)
    n_items = np.bincount(of, seen)
    total, n_others = _sums(of[seen], means[seen], len(n_items)), n_items[of] - seen
    with np.errstate(invalid="ignore", divide="ignore"):
        if len(n_items) == 1:  # whose mean without an item is but that item's votes, turned round
            return np.repeat(total / n_items, len(of)), total / n_items
        left_out = (total[of] - np.where(seen, means, 0)) / n_others
        return np.where(n_others > 0, left_out, np.nan), total / n_items


def _of_pairs(means: Floats, a: NDArray[Any], b: NDArray[Any]) -> tuple[Floats, Floats]:
    if not len(a) or ((a == a[0]).all() and (b == b[0]).all()):
        return np.zeros(len(a)), np.zeros(len(np.unique([a, b])))
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    seen, n = ~np.isnan(means) & (a != b), int(max(a.max(), b.max())) + 1
    both, signed = np.concatenate([a[seen], b[seen]]), np.concatenate([means[seen], -means[seen]])
    sums, n_items = _sums(both, signed, n), np.bincount(both, minlength=n)
    # Systems that never meet, even through others, are solved apart: there may be thousands.
    meetings = coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
    n_parts, part = connected_components(meetings, directed=False)
    strengths, leverage, place = np.zeros(n), np.zeros(len(a)), np.zeros(n, dtype=np.int64)
    for systems, rows in zip(_members(part, n_parts), _members(part[a], n_parts), strict=True):
        place[systems] = np.arange(len(systems))
        first, second = place[a[rows]], place[b[rows]]
        is_seen = seen[rows]
        matrix = np.diag(_RIDGE + n_items[systems])
        np.subtract.at(matrix, (first[is_seen], second[is_seen]), 1.0)
        np.subtract.at(matrix, (second[is_seen], first[is_seen]), 1.0)
        inverse = np.linalg.inv(matrix)
        inverse = (inverse + inverse.T) / 2
        strengths[systems] = inverse @ sums[systems]
        leverage[rows] = is_seen * (
            inverse[first, first] + inverse[second, second] - 2 * inverse[first, second]
        )
    fitted = strengths[a] - strengths[b]
    left_out = (fitted - leverage * np.where(seen, means, 0)) / (1 - leverage)
    has_others = np.minimum(n_items[a], n_items[b]) > seen
    return np.where(has_others | (a == b), left_out, np.nan), strengths


def _members(group: NDArray[Any], n: int) -> list[NDArray[Any]]:
    order = np.argsort(group, kind="stable")
    return np.split(order, np.searchsorted(group[order], np.arange(1, n)))


def _sums(of: NDArray[Any], values: Floats, n: int) -> Floats:
    # Sums do not depend on the order of the values.
    order = np.lexsort((values, of))
    return np.asarray(np.bincount(of[order], values[order], minlength=n), dtype=np.float64)


class KnownColumns(NamedTuple):
    """Covariates of items by name, and standings by covariate of the systems they are of."""

    columns: dict[str, Floats]
    standings: dict[str, dict[str, float]]


def known_columns(items: Any, names: Any, model: Any = None) -> KnownColumns:
    """Return what is known of items: by name, or all that they have if that is "auto"."""
    # Standings are of each task alone, or of the systems that a model was fitted with.
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    made = {name: make(items) for name, make in _KNOWN.items()}
    found = {name: values for name, values in made.items() if values is not None}
    columns: dict[str, Floats] = {}
    standings: dict[str, dict[str, float]] = {}
    of_model = {} if model is None else {c.name: c.standings for c in model.covariates}
    for name in [*found] if wanted == ["auto"] else wanted:
        values = items.covariates.get(name)
        # The model's standings are taken in place of those that the items' own votes gave.
        standings_used = items.origin.standings
        if values is not None and (name not in standings_used or of_model.get(name) is None):
            columns[name] = values
            continue
        values = found[name] if name in found else _column(items, name)
        if values is None:
            has = (
                ", ".join([*found, *items.covariates])
                or "none, since the items have no columns for them"
            )
            expected = f"{has}, or a column {', or '.join(sources_of(name, items.scale))}"
            raise InputError(argument="covariates", got=name, expected=expected)
        if name in found and name in STANDINGS:
            values, known = _by_task(items, values, of_model.get(name))
            if known is not None and name == "standing":
                standings[name] = known
        columns[name] = values
    return KnownColumns(columns, standings)


FACTS = ("system", "system_a", "system_b", "chars", "chars_a", "chars_b")
"""Columns that say whose responses they are, and how long."""


def sources_of(name: str, scale: Scale, *, kept: bool = True) -> dict[str, list[str]]:
    """Return the columns of a covariate, in words and as lists; a `kept` standing has systems."""
    stems = {"standing": ["system"] * kept, "group-standing": [], "length": ["chars", "response"]}
    made = [[stem + side for side in scale.mode.sides] for stem in stems.get(name, [name])]
    return {" and ".join(columns): columns for columns in [[name], *made]}


def columns_needed(model: Any) -> list[str]:
    """Return the covariates of a model, and the columns that they are made of."""
    of_each = [sources_of(c.name, model.scale, kept=c.standings is not None)
               for c in model.covariates]  # fmt: skip
    return list(dict.fromkeys(chain(*chain(*(sources.values() for sources in of_each)))))


def known_by_itself(
    items: Any, covariates: Any, model: Any = None, *, is_table: bool = False
) -> Any:
    """Return items with covariates, of which none is made of the votes of other items."""
    if isinstance(covariates, str) and covariates == "auto":
        made = ((name, make(items)) for name, make in _KNOWN.items() if name not in STANDINGS)
        known = {name: values for name, values in made if values is not None}
        return items.known_by(known)
    if covariates is not None:
        items = items.with_covariates(covariates, model=model, is_table=is_table)
    for name in items.covariates:
        expected = (
            "covariates that an item has by itself; a standing depends on the votes of other items"
        )
        expect(name not in STANDINGS, "covariates", name, expected)
    return items


def _by_task(
    items: Any, names: NDArray[Any], standings: Mapping[str, float] | None
) -> tuple[Floats, dict[str, float] | None]:
    if standings is not None:
        values = np.array([[standings.get(str(name), np.nan) for name in row] for row in names])
        return np.subtract.reduce(values, axis=1), None  # of grades there is one
    tasks = np.zeros(len(items), dtype=np.int64)
    if "task" in items.facts:
        tasks = np.unique(items.facts["task"], return_inverse=True)[1]
    values, known = np.full(len(items), np.nan), None
    for task in np.unique(tasks):
        rows = tasks == task
        a, b = [*names[rows].T, None][:2]
        values[rows], known = _standing(items.pooled[rows], a, b, items.scale)
    return values, known if len(np.unique(tasks)) == 1 else None


def _column(items: Any, name: str) -> Floats | None:
    """Return a user's column; of pairs also that of A less that of B, if each side has its own."""
    values = _numbers(items.column(name), name)
    sides = items.scale.mode.sides
    if values is None:
        columns = [_numbers(items.column(f"{name}{side}"), f"{name}{side}") for side in sides]
        known = [column for column in columns if column is not None]
        return np.asarray(np.subtract.reduce(known)) if len(known) == len(sides) else None
    for stem in {name.removesuffix(side) for side in sides} - {name}:
        if all(items.column(f"{stem}{side}") is not None for side in sides):
            expected = f"{stem}, which is {stem}_a minus {stem}_b"
            raise InputError(argument="covariates", got=name, expected=expected)
    return values


def _numbers(facts: Any, name: str) -> Floats | None:
    if facts is None:
        return None
    numbers = facts.cast(pl.Float64, strict=False)
    bad = facts.filter(numbers.is_null() & facts.is_not_null())
    if len(bad):
        raise InputError(argument="covariates", got=bad[0], expected=f"a number in column {name}")
    values: Floats = numbers.fill_null(float("nan")).to_numpy()
    return values


def _prompts(items: Any) -> NDArray[Any] | None:
    return None if items.scale.mirrored or items.group is None else items.group[:, None]


def _lengths(items: Any) -> Floats | None:
    """Return the logarithm of 1 and the characters of each response, of pairs the difference."""
    logs = []
    for side in items.scale.mode.sides:
        n_chars = _numbers(items.column(f"chars{side}"), f"chars{side}")
        if n_chars is None:
            texts = items.column(f"response{side}")
            if texts is None:
                return None
            n_chars = texts.str.len_chars().to_numpy().astype(np.float64)
        logs.append(np.log1p(n_chars))
    return np.asarray(np.subtract.reduce(logs))


STANDINGS: dict[str, Callable[[Any], Any]] = {
    "standing": attrgetter("systems"),
    "group-standing": _prompts,
}
_KNOWN = {**STANDINGS, "length": _lengths}
