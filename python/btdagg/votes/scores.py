"""Tables of the losses or scores of items, of several systems: one column each, or long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.lazy import pl
from btdagg._util.readable import Readable
from btdagg.remarks import Remark
from btdagg.votes.schema import ITEM_NAMES, Parser, checked, finite_numbers
from btdagg.votes.source import read_table
from btdagg.votes.table import NUMBER, Table, as_text, listing, plain_text, refuse, require
from btdagg.votes.words import PASS_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.votes.source import Source

    Floats = NDArray[np.float64]

SYSTEM_NAMES = ("system", "method", "model", "version", "experiment", "run", "judge")
VALUE_NAMES = ("score", "loss", "value", "grade", "label")
_MEAN = "mean"


def scores(table: Table, column: str) -> Parser:
    """Finite numbers, or words such as pass, false or yes as 1 and 0; empty cells are null."""
    parser = finite_numbers(table, column)
    of_word = plain_text(table, column).replace_strict(
        PASS_WORDS, default=None, return_dtype=pl.Float64
    )
    value = pl.coalesce(of_word, parser.value)
    checks = [(bad & of_word.is_null(), expected) for bad, expected in parser.checks]
    return Parser(parser.plain, parser.is_plain, value, checks)


@dataclass(frozen=True, eq=False)
class SystemScores(Readable):
    """Losses or scores of items by system.

    Attributes
    ----------
    names : tuple of str
        The systems, in order of first appearance.
    values : (systems, n) array
        NaN where a system has no value of an item.
    items : (n,) array of str
    groups : (n,) array of str, or None
    remarks : tuple of Remark
    """

    names: tuple[str, ...]
    values: Floats
    items: NDArray[Any]
    groups: NDArray[Any] | None
    remarks: tuple[Remark, ...] = ()

    def shared(self, *names: str) -> SystemScores:
        """Return the items of which all of these systems have a value; by default of all."""
        names = names or self.names
        for name in names:
            expect(name in self.names, "systems", name, f"one of {listing(self.names)}")
        values = self.values[[self.names.index(name) for name in names]]
        has_all = ~np.isnan(values).any(axis=0)
        text = f"no item has a value of each of {listing(names)}, expected items of all of them"
        forbid(not has_all.any(), text, "systems")
        n_out = int((~np.isnan(values)).any(axis=0).sum() - has_all.sum())
        about = (*self.remarks, *([remarks.incomplete_items(n_out)] if n_out else []))
        groups = None if self.groups is None else self.groups[has_all]
        return SystemScores(tuple(names), values[:, has_all], self.items[has_all], groups, about)


def read_scores(
    source: Source,
    *,
    systems: Sequence[str] | None = None,
    value: str | None = None,
    system: str | None = None,
    item: str | None = None,
    group: str | None = None,
) -> SystemScores:
    """Read losses or scores of items: a column for each system, or a row for each value.

    Parameters
    ----------
    source : path, data frame, mapping or list of rows
        As `btdagg.read_votes` takes it.
    systems : sequence of str, optional
        Columns of numbers, one for each system; rows are items.
    value, system : str, optional
        Of a table with a row for each item and system, the columns of values and of names; by
        default the first there is of score, loss, value, grade and label, and of system, method,
        model, version, experiment, run and judge. Values are numbers, or true and false, pass and
        fail, yes and no. Several rows of an item and system count as their mean.
    item : str, optional
        Column of the items; by default ``item``, ``id`` or ``item_id``, and of a table with a
        column for each system rows.
    group : str, optional
        Column of the groups, by default ``group`` if there is one.
    """
    table = read_table(source, [])
    group = "group" if group is None and "group" in table.columns else group
    items = [name for name in ("item", *ITEM_NAMES) if name in table.columns]
    item = (items or [None])[0] if item is None else item  # type: ignore[list-item]
    columns = () if isinstance(systems, str) else systems or ()
    require(table, [name for name in (item, group, *columns) if name is not None])
    if systems is not None:
        good = not isinstance(systems, str) and len({*systems}) == len(systems) > 1
        expect(good, "systems", systems, "two columns or more, each once")
        for argument, got in (("value", value), ("system", system)):
            expect(got is None, argument, got, "None with the columns of systems")
        kept = [name for name in systems if name in (item, group)]
        expect(not kept, "systems", listing(kept), "other columns than those of items and groups")
        return _wide(table, systems, item, group)
    system = _first(table, system, SYSTEM_NAMES, "system")
    value = _first(table, value, VALUE_NAMES, "value")
    if item is None:
        text = f"{table.source}: no column item; found {listing(table.columns)}"
        raise InputError(text, argument="item")
    return _long(table, item, system, value, group)


def _first(table: Table, given: str | None, names: Sequence[str], argument: str) -> str:
    if given is not None:
        require(table, [given])
        return given
    for name in names:
        if name in table.columns:
            return name
    raise InputError(
        f"{table.source}: no column {' or '.join(names)}; found {listing(table.columns)}; name the "
        f"columns of the systems, or the column of the {argument}",
        argument=argument,
    )


def _wide(
    table: Table, systems: Sequence[str], item: str | None, group: str | None
) -> SystemScores:
    texts = [as_text(table, name) for name in dict.fromkeys((item, group)) if name is not None]
    kinds = dict.fromkeys(systems, scores)
    numbers = [of.alias(name) for name, of in zip(systems, checked(table, kinds), strict=True)]
    frame = table.collect(table.data.lazy().select(*texts, *numbers))
    names = frame[item].to_list() if item is not None else [*map(str, range(len(frame)))]
    groups = None if group is None else _groups(frame[group].to_list(), names)
    repeated = [name for name, n in Counter(names).items() if n > 1]
    text = f"{table.source}: {len(repeated)} items have several rows, such as {repeated[:1]}, "
    forbid(bool(repeated), f"{text}expected one row for each, with a column for each system")
    values = frame.select(systems).to_numpy().T.astype(np.float64)
    return SystemScores(
        tuple(systems), np.ascontiguousarray(values), np.array(names, object), groups
    )


def _long(table: Table, item: str, system: str, value: str, group: str | None) -> SystemScores:
    columns = {"item": item, "system": system, "group": group}
    texts = [
        as_text(table, name).str.strip_chars().alias(as_)
        for as_, name in columns.items()
        if name is not None
    ]
    (number,) = checked(table, {value: scores})
    rows = table.rows.select(NUMBER, *texts, number.alias(_MEAN))
    frame = table.collect(rows.filter(pl.col(_MEAN).is_not_null()).sort(NUMBER))
    for name in ("item", "system"):
        refuse(
            table, as_text(table, columns[name] or name).is_null(), columns[name] or name, "a name"
        )
    systems = frame["system"].unique(maintain_order=True).to_list()
    expected = f"{table.source}, column {system}: {listing(systems)}, expected at least two systems"
    forbid(len(systems) < 2, expected)
    names = frame["item"].unique(maintain_order=True).to_list()
    place = {name: row for row, name in enumerate(names)}
    sums, numbers = np.zeros((2, len(systems), len(names)))
    at = (
        np.array([systems.index(name) for name in frame["system"].to_list()]),
        np.array([place[name] for name in frame["item"].to_list()]),
    )
    np.add.at(sums, at, frame[_MEAN].to_numpy())
    np.add.at(numbers, at, 1)
    with np.errstate(invalid="ignore"):
        values = sums / numbers
    groups = None
    if group is not None:
        of_item = frame.group_by("item", maintain_order=True).agg(
            pl.col("group").first(), n=pl.col("group").n_unique()
        )
        twice = of_item.filter(pl.col("n") > 1)["item"].to_list()
        text = f"{table.source}: item {(twice or [''])[0]!r} is of two groups"
        forbid(bool(twice), f"{text}, expected one")
        groups = _groups(of_item["group"].to_list(), names)
    n_repeated = int(np.maximum(numbers - 1, 0).sum())
    about = (remarks.averaged_rows(n_repeated),) if n_repeated else ()
    return SystemScores(tuple(systems), values, np.array(names, object), groups, about)


def _groups(groups: Sequence[str | None], names: Sequence[str]) -> NDArray[Any]:
    """Return groups, of which an item without one is its own."""
    both = zip(groups, names, strict=True)
    return np.array([f" {name}" if group is None else group for group, name in both], dtype=object)
