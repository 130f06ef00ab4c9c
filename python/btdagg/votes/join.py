"""Joins of votes with the labels of their items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import CountsItself, as_counts, same_index, same_length, unmasked
from btdagg.votes.labels import Labels, merged_remarks
from btdagg.votes.table import AnyTable, Table, as_text, counts_of, ids_of, text

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike, NDArray


@readable
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
        Row of each item in the input.
    labels : (n,) array of int8
        Labels -1, 0, 1.
    groups : (n,) array of object holding str, or None
        Group of each item, if the labels have groups.
    n_unlabelled : int
        Number of items left out because they have votes but no label.
    n_without_votes : int
        Number of labels left out because their item has no votes.
    remarks : tuple of str
        On how many of the items raters disagree, and what their label is.
    """

    ids: NDArray[Any]
    counts: NDArray[Any]
    rows: NDArray[np.intp]
    labels: NDArray[np.int8]
    groups: NDArray[np.object_] | None
    n_unlabelled: int
    n_without_votes: int
    remarks: tuple[str, ...] = ()


def align(ids: ArrayLike, counts: ArrayLike, labels: Labels) -> LabelledCounts:
    """Join counts and labels by item.

    Parameters
    ----------
    ids : (n,) array of integers or str
        Items that have votes. If ids are integers here and text in the labels, or the other way
        round, they are compared as text, without spaces around it.
    counts : (n, 3) array of integers
        Their votes in label order: minus, tie, plus; in a data frame, columns with these names.
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
    import polars as pl

    same_index(ids=ids, counts=counts)
    ids, counts = np.asarray(unmasked(ids, "ids")), as_counts(counts)
    if ids.ndim != 1:
        raise InputError(f"ids has {ids.ndim} dimensions, expected one", argument="ids")
    same_length("counts", len(counts), "ids", len(ids))
    require_labels(labels)
    is_integer = ids.dtype.kind in "iu"
    items = pl.Series(ids) if is_integer else pl.Series(list(map(str, ids)), dtype=pl.String)
    return _joined(items, ids, counts, labels)


def labelled_counts(tallied: pl.DataFrame, labels: Labels) -> LabelledCounts:
    """Join tallied votes and labels by item, in the order of the votes."""
    return _joined(tallied["item"], ids_of(tallied["item"]), counts_of(tallied), labels)


def labelled(
    counts: Any, labels: Any, groups: Any = None, weights: Any = None
) -> tuple[Any, Any, Any]:
    """Return counts, labels and groups of the same items, of tables or of arrays.

    Tables of votes and labels are joined. Arrays, and labels that are None, are returned unchanged.
    """
    if not isinstance(labels, Labels):
        return counts, labels, groups
    if not isinstance(counts, CountsItself) or weights is not None:
        name = "counts" if weights is None else "weights"
        raise InputError(
            f"labels are a table and {name} an array: pass what read_votes returned, or the arrays "
            "of btdagg.align(ids, counts, labels)",
            argument=name,
        )
    items = counts.labelled(labels)
    return items.counts, items.labels, items.groups if groups is None else groups


def require_labels(labels: object) -> None:
    """Check that labels are a table."""
    if not isinstance(labels, Labels):
        raise InputError(f"labels is a {type(labels).__name__}, expected what read_labels returns")


def labels_of(labels: Labels, votes: Table) -> Labels:
    """Return the labels of the tasks of some votes, if both have tasks; else all labels."""
    if "task" not in labels.columns or "task" not in votes.columns:
        return labels
    labelled_tasks = set(labels.values("task"))
    tasks = votes.values("task").drop_nulls().to_list()
    # A single task without labels is an error here; several are checked one by one later.
    return labels.filter({"task": [task for task in tasks if task in labelled_tasks] or tasks})


def with_task(votes: AnyTable, labels: Labels) -> AnyTable:
    """Return votes with a column `task` from the labels, if only the labels have one."""
    require_labels(labels)
    if "task" in votes.columns or "task" not in labels.columns:
        return votes
    items = text(labels, "item")
    if items.is_duplicated().any():
        item = items.filter(items.is_duplicated())[0]
        raise InputError(
            f"{labels.source}: item {item!r} has labels in several tasks, and the votes do not say "
            "which task they belong to"
        )
    items, tasks = text(labels, "item"), text(labels, "task")
    task = as_text(votes, "item").replace_strict(items, tasks, default=None).alias("task")
    return votes.with_columns([task])


def _joined(
    items: pl.Series, ids: NDArray[Any], counts: NDArray[Any], labels: Labels
) -> LabelledCounts:
    if not len(labels.frame):
        raise InputError(f"{labels.source}: no item has a label")
    rows, matched = matching(items, labels)
    if not len(rows):
        raise InputError(
            f"no item has both votes and a label: votes begin with {_first(items)}, "
            f"labels of {labels.source} with {_first(labels.frame['item'])}"
        )
    return LabelledCounts(
        ids=ids[rows],
        counts=counts[rows],
        rows=rows,
        labels=labels.labels[matched],
        groups=None if labels.groups is None else labels.groups[matched],
        n_unlabelled=len(counts) - len(rows),
        n_without_votes=len(labels.ids) - len(rows),
        remarks=merged_remarks(labels.shares[matched]),
    )


def matching(items: pl.Series, labels: Labels) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where items that have a row among the labels stand, and where that row does."""
    import polars as pl

    labelled = labels.frame["item"]
    as_text = items.dtype.is_integer() != labelled.dtype.is_integer()
    voted = _keys(items, as_text, "row")
    if voted["key"].is_duplicated().any():
        raise InputError("ids has an item twice, expected each once")
    gold = _keys(labelled, as_text, "label")
    twice = gold.filter(pl.col("key").is_duplicated())
    if twice.height:
        raise InputError(
            f"{labels.source}: item {twice['key'][0]!r} has labels in several tasks; filter by "
            "task first"
        )
    both = voted.join(gold, on="key", maintain_order="left")
    rows, matched = (both[name].to_numpy().astype(np.intp) for name in ("row", "label"))
    return rows, matched


def _keys(items: pl.Series, as_text: bool, name: str) -> pl.DataFrame:
    """What items are compared by, and where they stand."""
    import polars as pl

    keys = items.cast(pl.String) if as_text else items
    keys = keys.str.strip_chars() if keys.dtype == pl.String else keys.cast(pl.Int128)
    return keys.alias("key").to_frame().with_row_index(name)


def _first(items: pl.Series) -> str:
    return f"item {items[0]!r}" if len(items) else "no item"
