"""Votes and labels as users have them, matched by the ids of items where they have some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import InputError, expect
from btdagg._util.validation import (
    CountsItself,
    as_checked_counts,
    as_losses,
    as_names,
    column_names,
    same_index,
    same_length,
)
from btdagg.votes.items import Confidences, Draw, Items
from btdagg.votes.join import join
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.scale import PAIRS, Scale, scales_of
from btdagg.votes.schema import ITEM_NAMES
from btdagg.votes.table import Table
from btdagg.votes.votes import read_votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

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
    is_alone = labels is None and not _is_indexed(counts)
    if _has_ids(counts) and (is_table or is_alone or (is_series and not _is_indexed(counts))):
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


def as_items(
    counts: Any,
    labels: Any = None,
    groups: Any = None,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    partial: bool = False,
    weights: Any = None,
    covariates: Any = None,
    probabilities: Any = None,
    units: Any = None,
    strata: Any = None,
    least_probability: float | None = None,
    by: Any = None,
    systems: Sequence[str] | None = None,
    judges: Sequence[str] = (),
    n_votes: int | None = None,
    confidences: Confidences | None = None,
    decisions: Mapping[str, ArrayLike] | None = None,
) -> Items:
    """Return items unchanged, or make them of tables, data frames or arrays.

    Parameters
    ----------
    counts : Items, Votes, data frame, or (n, J) or (n, judges, J) array
    labels : Labels, data frame or series with ids, (n,) array of points, (n, K) of shares, or None
        Tables are joined with the votes by id; arrays have a row for each item. None with items
        that hold their own.
    groups : (n,) array, optional
        Group of each item; tables have their own.
    scale, label_scale : Scale, optional
        Scales of arrays; by default pairs, and that of the votes.
    partial : bool
        Whether items may lack a label: NaN or None in an array. Tables then keep those items.
    weights : (n,) array, optional
        Weight of each item, the fact ``"weights"``.
    covariates : optional
        See `Items.with_covariates`.
    probabilities, units, strata, least_probability : optional
        How the labelled items were drawn, see `Draw`.
    by : (n,) array, or with tables the name of a column; optional
        What estimates are split by.
    systems, judges, n_votes : optional
        With tables and `partial`, as in `Votes.items`; arrays have no use for the first two.
    confidences : Confidences, optional
        Confidences of the votes.
    decisions : mapping of str to (n,) array, optional
        Decisions made elsewhere: -1, 0, 1, or NaN where there is none.
    """
    items: Items
    counts, labels = as_tables(counts, labels, scale, label_scale)
    if isinstance(labels, Labels):
        scales_of(counts, labels, scale, label_scale)
        votes = tables_only(counts, weights)
        if partial:
            expect(isinstance(by, str | None), "by", by, "the name of a column of the votes")
            items = votes.items(labels, by=by, systems=systems, judges=judges, n_votes=n_votes)
        else:
            items = votes.labelled(labels) if covariates is None else votes.with_labels(labels)
        by = None
    else:
        expect(n_votes is None, "n_votes", n_votes, "None without a table of votes")
        aligned = {"groups": groups, "by": by, "weights": weights, "probabilities": probabilities}
        aligned |= {"units": units, "strata": strata, "covariates": covariates}
        same_index(counts=counts, labels=labels, **aligned)
        items = _of_arrays(counts, labels, scale, label_scale, partial)
    if groups is not None:
        items = replace(items, group=as_names(groups, "groups"))
    if any(value is not None for value in (probabilities, units, strata, least_probability)):
        draw = Draw(
            None if probabilities is None else as_losses(probabilities, "probabilities", "(n,)"),
            None if units is None else as_names(units, "units"),
            None if strata is None else np.asarray(strata, dtype=object),
            least_probability,
        )
        items = replace(items, sampling=draw)
    columns: dict[str, Any] = {} if confidences is None else {"confidences": confidences}
    columns |= {} if by is None else {"by": as_names(by, "by")}
    columns |= {} if weights is None else {"weights": np.asarray(weights)}
    for name, decided in (decisions or {}).items():
        places = PAIRS.places(decided, f"decisions of {name}", partial=True)
        columns[f"decision {name}"] = np.where(places < 0, np.nan, places - 1.0)
    items = items.with_facts(columns) if columns else items
    return items if covariates is None else items.with_covariates(covariates)


def _of_arrays(
    counts: Any, labels: Any, scale: Scale | None, label_scale: Scale | None, partial: bool
) -> Items:
    scale, label_scale = scales_of(counts, labels, scale, label_scale)
    if labels is not None and partial:
        labels = label_scale.shares(labels)
    items: Items = counts
    if isinstance(counts, CountsItself):
        items = counts.items()
    elif not isinstance(counts, Items):
        items = Items(counts=counts, scale=scale)
    if labels is None:
        return items
    if not partial:
        items.scale.require_votes(items.scale.counts(items.pooled))
        places = label_scale.places(labels)
        expect(len(places), "labels", [], "at least one item")
        labels = label_scale.labels[places]
    same_length("labels", len(labels), "counts", len(items))
    return replace(items, labels=labels, label_scale=label_scale)


def tables_only(counts: Any, weights: Any = None) -> Any:
    """Return votes that are a table, as labels are."""
    if not isinstance(counts, CountsItself) or weights is not None:
        name = "counts" if weights is None else "weights"
        raise InputError(
            f"labels are a table but {name} is an array: pass the votes from read_votes, or the "
            "arrays of btdagg.align(ids, counts, labels)",
            argument=name,
        )
    return counts


def counts_and_sides(
    counts: Any, labels: Any, scale: Scale | None = None, label_scale: Scale | None = None
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Return checked counts, (n, 3), and labels -1, 0 and 1, (n,), of at least one item."""
    items = as_items(counts, labels, scale=scale, label_scale=label_scale)
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
