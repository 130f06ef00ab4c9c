"""Votes and labels as users have them, matched by the ids of items where they have some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import InputError
from btdagg._util.validation import CountsItself, as_checked_counts, column_names
from btdagg.votes.items import Items
from btdagg.votes.join import join
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.scale import Scale
from btdagg.votes.source import ITEM_NAMES
from btdagg.votes.table import Table
from btdagg.votes.votes import read_votes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IDS = {"item", *ITEM_NAMES}


def as_tables(
    counts: Any, labels: Any, scale: Scale | None = None, label_scale: Scale | None = None
) -> tuple[Any, Any]:
    """Return data frames with ids of items as tables, and a series beside a table as labels by id.

    The ids are a column `item` (or `id`, `item_id`), or the index of pandas. Items with labels in a
    table are joined with them, and the labels returned are None. Arrays stay as they are: rows are
    matched by position.
    """
    is_series = _is_series(labels)
    is_table = isinstance(labels, Labels) or (_has_ids(labels) and not is_series)
    if _has_ids(counts) and (is_table or (is_series and not _is_indexed(counts))):
        counts = read_votes(_with_ids(counts), scale=scale)
    is_items = isinstance(counts, Items)
    by_id = isinstance(counts, CountsItself) or (is_items and counts.has_ids)
    usual = label_scale or scale or (getattr(counts, "scale", None) if by_id else None)
    if _has_ids(labels) and (by_id or not _is_indexed(labels)):
        labels = read_labels(_with_ids(labels), scale=usual)
    elif by_id and is_series:
        raise InputError(
            "labels is a series without ids of items, expected them in its index since the votes "
            'have ids: frame.set_index("item")["label"], or read_labels(frame) with a column item',
            argument="labels",
        )
    if is_items and isinstance(labels, Labels):
        counts, labels = join(counts.facts.votes, labels, counts), None
    return counts, labels


def matched_items(
    counts: Any, labels: Any, scale: Scale | None = None, label_scale: Scale | None = None
) -> Items:
    """Return items of votes and labels, by id where both have ids."""
    has_labels = labels is not None
    counts, labels = as_tables(counts, labels, scale, label_scale)
    if has_labels and labels is None:
        counts = counts.labelled()
    return Items.of(counts, labels, scale=scale, label_scale=label_scale)


def labelled_items(
    counts: Any, labels: Any, scale: Scale | None = None, label_scale: Scale | None = None
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Return checked counts, (n, 3), and labels -1, 0 and 1, (n,), of at least one item."""
    items = matched_items(counts, labels, scale, label_scale)
    return as_checked_counts(items.pooled), items.label_scale.sides(items.label)


def _is_series(values: Any) -> bool:
    library = type(values).__module__.partition(".")[0]
    return library in ("pandas", "polars", "pyarrow") and np.ndim(values) == 1


def _is_indexed(values: Any) -> bool:
    """Whether ids are in an index of pandas, and in no column."""
    names = _columns(values)
    return hasattr(getattr(values, "index", None), "equals") and names.isdisjoint(_IDS)


def _has_ids(values: Any) -> bool:
    if not _is_indexed(values):
        return not _columns(values).isdisjoint(_IDS)
    # An index of integers without a name is, or was, that of row numbers.
    index = values.index
    names = {str(name).strip().lower() for name in index.names}
    return not names.isdisjoint(_IDS) or (index.nlevels == 1 and index.dtype.kind not in "biufMm")


def _columns(values: Any) -> set[str]:
    if isinstance(values, Table | Items):
        return set()
    names = list(values) if isinstance(values, Mapping) else column_names(values)
    if names is None and hasattr(values, "collect_schema"):
        names = values.collect_schema().names()
    return {str(name).strip().lower() for name in names or ()}


def _with_ids(values: Any) -> Any:
    """Return a data frame whose ids are in a column."""
    if not _is_indexed(values):
        return values
    frame = values.to_frame("label") if np.ndim(values) == 1 else values
    return (frame.rename_axis("item") if frame.index.nlevels == 1 else frame).reset_index()
