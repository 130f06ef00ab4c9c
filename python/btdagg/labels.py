"""Labels and raters' votes, and how labels meet counts.

A label has the words of a vote: -1, 0, +1 or B, tie, A. An item without one is unlabelled: counted,
shown and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg.columns import item_ids, names, vote_values
from btdagg.sources import read_table
from btdagg.tables import Table, parse_columns, refuse, refuse_duplicates, without_repeats
from btdagg.validation import as_counts, same_index, same_length, unmasked
from btdagg.votes import ids_of

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike, NDArray

    from btdagg.sources import Source


@dataclass(frozen=True, eq=False)
class Labels(Table):
    """Labelled items: one row per item.

    Attributes
    ----------
    frame : polars.DataFrame
        The items that have a label. Columns `item` (text or Int64) and `label` (Int8); where the
        source has them `group` and `task` (text); and every other column as it came.
    source : str
        What errors call these labels.
    unlabelled : polars.DataFrame
        The same columns of the items that have none.
    """

    unlabelled: pl.DataFrame

    @property
    def n_missing(self) -> int:
        """Number of items of the source that have no label."""
        return self.unlabelled.height

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The labelled items: (n,) array of int64, or of object holding str."""
        return ids_of(self.frame["item"])

    @cached_property
    def labels(self) -> NDArray[np.int8]:
        """Their labels -1, 0, 1: (n,) array."""
        return self.frame["label"].to_numpy()

    @cached_property
    def groups(self) -> NDArray[np.object_] | None:
        """What each item shares with others, such as its prompt: (n,) array of str, or None."""
        if "group" not in self.columns:
            return None
        return np.array(self.frame["group"].to_list(), dtype=object)

    def filter(self, where: Mapping[str, object]) -> Labels:
        """Keep the items that have the given values, as :meth:`Table.filter` does."""
        everything = Table(self.frame.vstack(self.unlabelled), self.source)
        return _split(everything.filter(where))


@dataclass(frozen=True, eq=False)
class LabelledCounts:
    """Counts of the items that have both votes and a label, all in the same order.

    Attributes
    ----------
    ids : (n,) array of int64, or of object holding str
        The items, in the order of the votes.
    counts : (n, 3) array
        Votes per item in label order: minus, tie, plus; of the type that was given.
    rows : (n,) array
        Where the items stand among those that were given.
    labels : (n,) array of int8
        Labels -1, 0, 1.
    groups : (n,) array of object holding str, or None
        What each item shares with others, where the labels say it.
    n_unlabelled : int
        Number of items left out because they have votes but no label.
    n_without_votes : int
        Number of labels left out because their item has no votes.
    """

    ids: NDArray[Any]
    counts: NDArray[Any]
    rows: NDArray[np.intp]
    labels: NDArray[np.int8]
    groups: NDArray[np.object_] | None
    n_unlabelled: int
    n_without_votes: int


@dataclass(frozen=True, eq=False)
class Ratings(Table):
    """Votes of raters, one row per rater and item, seen as a table of items by raters.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns `item` and `rater` (text or Int64), `vote` (Int8; null where missing), and every
        other column as it came.
    source : str
        What errors call these ratings.
    """

    @cached_property
    def items(self) -> NDArray[Any]:
        """The items in the order in which they are first seen: (n_items,) array."""
        return ids_of(self.frame["item"].unique(maintain_order=True))

    @cached_property
    def raters(self) -> NDArray[Any]:
        """The raters in the order in which they are first seen: (n_raters,) array."""
        return ids_of(self.frame["rater"].unique(maintain_order=True))

    @cached_property
    def votes(self) -> NDArray[np.int8]:
        """Votes -1, 0, 1: (n_items, n_raters) array, 0 where there is none; see `present`."""
        return self._spread(self.frame["vote"].fill_null(0).to_numpy(), np.int8)

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Where there is a vote: (n_items, n_raters) array."""
        return self._spread(self.frame["vote"].is_not_null().to_numpy(), np.bool_)

    @property
    def n_missing(self) -> int:
        """Number of votes that are in the source but empty."""
        return self.frame["vote"].null_count()

    def counts(self) -> NDArray[np.int64]:
        """Count the raters' votes of each item.

        Returns
        -------
        (n_items, 3) array of int64
            In label order: minus, tie, plus.
        """
        return np.stack(
            [((self.votes == vote) & self.present).sum(axis=1) for vote in (-1, 0, 1)], axis=1
        )

    def _spread(self, values: NDArray[Any], dtype: type[Any]) -> NDArray[Any]:
        rows = _places(self.items.tolist(), self.frame["item"].to_list())
        columns = _places(self.raters.tolist(), self.frame["rater"].to_list())
        cells = np.zeros((len(self.items), len(self.raters)), dtype=dtype)
        cells[rows, columns] = values
        return cells


def read_labels(source: Source, *, columns: Mapping[str, str] | None = None) -> Labels:
    """Read labels, one row per item.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.sources.read_table`. Columns `item` (or `id`, `item_id`) and `label` are
        required. A label is -1, 0 or 1 (+1: A is better), or A, tie or same, B in any case; an
        empty one leaves the item unlabelled. Known too are `task` and `group`: what items share
        that must be split together. Other columns are kept. Blanks around ids, tasks and groups do
        not count.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"label": "gold"}``.

    Returns
    -------
    Labels

    Raises
    ------
    InputError
        If the source cannot be read, a label is none of these, a group is empty, or an item (of the
        same task, where there are tasks) is there twice.
    """
    table = read_table(source, ["item", "label"], columns=columns)
    parsers = {"item": item_ids, "label": vote_values, "group": _group_names, "task": names}
    rows = Table(parse_columns(table, parsers), table.source, row_numbers=table.row_numbers)
    refuse_duplicates(rows, [column for column in ("task", "item") if column in rows.columns])
    return _split(rows)


def read_ratings(source: Source, *, columns: Mapping[str, str] | None = None) -> Ratings:
    """Read the votes of raters, one row per item and rater.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.sources.read_table`. Columns `item` (or `id`, `item_id`), `rater` and
        `vote` are required; votes are as in :func:`btdagg.votes.read_votes`. Other columns are
        kept. Blanks around ids do not count.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"rater": "annotator"}``.

    Returns
    -------
    Ratings

    Raises
    ------
    InputError
        If the source cannot be read, a vote is none of these, or a rater has two different votes on
        an item; an equal one counts once.
    """
    table = read_table(source, ["item", "rater", "vote"], columns=columns)
    parsers = {"item": item_ids, "rater": item_ids, "vote": vote_values}
    frame = parse_columns(table, parsers)
    ratings = Ratings(frame, table.source, row_numbers=table.row_numbers)
    return without_repeats(ratings, ["item", "rater"], "vote")


def align(ids: ArrayLike, counts: ArrayLike, labels: Labels) -> LabelledCounts:
    """Bring together the counts and the labels of the same items.

    Parameters
    ----------
    ids : (n,) array of integers or str
        Items that have votes. Where ids are integers here and text in the labels, or the other way
        round, they are compared as text; blanks around it do not count.
    counts : (n, 3) array of integers
        Their votes in label order: minus, tie, plus; in a data frame in columns of these names.
    labels : Labels

    Returns
    -------
    LabelledCounts
        In the order of `ids`.

    Raises
    ------
    InputError
        If the shapes disagree, an item has labels in several tasks, or no item has both.
    """
    same_index(ids=ids, counts=counts)
    ids, counts = np.asarray(unmasked(ids, "ids")), as_counts(counts)
    if ids.ndim != 1:
        raise InputError(f"ids has shape {ids.shape}, want one dimension")
    same_length("counts", len(counts), "ids", len(ids))
    if not isinstance(labels, Labels):
        raise InputError(f"labels is a {type(labels).__name__}, want what read_labels returns")
    as_text = (ids.dtype.kind in "iu") != (labels.ids.dtype.kind in "iu")
    keys = _keys(ids, as_text)
    if len(set(keys)) < len(keys):
        raise InputError("ids has an item twice, want each once")
    if not len(labels.ids):
        raise InputError(f"{labels.source}: no item has a label")
    places = _places_of_labels(labels, as_text)
    found = np.array([places.get(key, -1) for key in keys], dtype=np.intp)
    both = found >= 0
    if not both.any():
        raise InputError(
            f"no item has both votes and a label: votes begin with {_first(ids)}, "
            f"labels of {labels.source} with {_first(labels.ids)}"
        )
    matched = found[both]
    return LabelledCounts(
        ids=ids[both],
        counts=counts[both],
        rows=np.flatnonzero(both),
        labels=labels.labels[matched],
        groups=None if labels.groups is None else labels.groups[matched],
        n_unlabelled=int((~both).sum()),
        n_without_votes=len(places) - len(np.unique(matched)),
    )


def _split(rows: Table) -> Labels:
    known = rows.frame["label"].is_not_null()
    return Labels(rows.frame.filter(known), rows.source, unlabelled=rows.frame.filter(~known))


def _group_names(table: Table, column: str) -> pl.Series:
    groups = names(table, column)
    refuse(table, groups.is_null(), column, "a group name")
    return groups


def _places(distinct: list[Any], values: list[Any]) -> list[int]:
    """Return where each value stands among the distinct ones."""
    place = {value: number for number, value in enumerate(distinct)}
    return [place[value] for value in values]


def _places_of_labels(labels: Labels, as_text: bool) -> dict[Any, int]:
    places: dict[Any, int] = {}
    for place, key in enumerate(_keys(labels.ids, as_text)):
        if key in places:
            raise InputError(
                f"{labels.source}: item {key!r} has labels in several tasks; filter by task first"
            )
        places[key] = place
    return places


def _keys(ids: NDArray[Any], as_text: bool) -> list[Any]:
    keys = [str(key) for key in ids.tolist()] if as_text else ids.tolist()
    return [key.strip() if isinstance(key, str) else key for key in keys]


def _first(ids: NDArray[Any]) -> str:
    return f"item {ids.tolist()[0]!r}" if ids.size else "no item"
