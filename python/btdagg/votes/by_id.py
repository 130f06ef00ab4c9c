"""Votes and labels as users have them, matched by the ids of items where they have some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial as applied
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import InputError, expect
from btdagg._util.validation import (
    CountsItself,
    as_checked_counts,
    as_losses,
    as_names,
    as_panel_counts,
    column_names,
    has_index,
    is_series,
    is_source,
    same_index,
    same_length,
)
from btdagg.votes.facts import Confidences
from btdagg.votes.ids import ID_COLUMNS, index_has_ids
from btdagg.votes.items import Draw, Items
from btdagg.votes.join import with_labels
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.scale import PAIRS, Scale, scales_of
from btdagg.votes.table import Table
from btdagg.votes.votes import read_votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_PER_ITEM: dict[str, Any] = {  # arguments with a row for each item, and how they are read
    "groups": applied(as_names, name="groups"),
    "weights": np.asarray,
    "probabilities": applied(as_losses, name="probabilities", shape="(n,)"),
    "units": applied(as_names, name="units"),
    "strata": applied(np.asarray, dtype=object),
}


def as_tables(
    counts: Any,
    labels: Any,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    *,
    drawn: bool = False,
) -> tuple[Any, Any]:
    """Read what names its items as tables: the door of all that takes counts and labels.

    Tables are data frames, mappings and lists of rows with a column `item` (or `id`, `item_id`),
    data frames and series of pandas with ids in their index, and paths. Rows of arrays are matched
    by position, with arrays alone.

    Parameters
    ----------
    counts, labels : tables or arrays
    scale, label_scale : Scale, optional
    drawn : bool
        Whether to estimate from the labels that `Items` are joined with; see `join`.

    Returns
    -------
    tuple
        `Votes`, `Items` or an array; and `Labels`, an array, or None where the items hold them.
        Items and labels in a table are joined.

    Raises
    ------
    InputError
        If votes have ids of items and labels have none, or the reverse.
    """
    is_table = isinstance(labels, Labels) or is_source(labels) or _has_ids(labels)
    if is_source(counts) or (_has_ids(counts) and (is_table or not _is_indexed(counts))):
        counts = read_votes(_with_ids(counts), scale=scale)
    is_items = isinstance(counts, Items)
    by_id = isinstance(counts, CountsItself) or (is_items and counts.has_ids)
    usual = label_scale or scale or (getattr(counts, "scale", None) if by_id else None)
    if is_source(labels) or (_has_ids(labels) and (by_id or not _is_indexed(labels))):
        labels = read_labels(_with_ids(labels), scale=usual)
    if is_items and isinstance(labels, Labels):
        return with_labels(counts, labels, drawn=drawn), None
    if labels is not None and not isinstance(labels, Labels) and by_id:
        if is_series(labels) or not is_items or counts.origin.source:
            expected = (
                "labels with ids of items, since the votes have ids: btdagg.read_labels(frame) "
                'with a column item, or a series with them in its index, frame.set_index("item")'
                '["label"]; arrays go by position with items.by_judge as counts'
            )
            raise InputError(argument="labels", got=type(labels).__name__, expected=expected)
    elif isinstance(labels, Labels) and not by_id:
        raise InputError(
            "labels are a table but counts is an array: pass the votes, btdagg.read_votes(frame), "
            "or the arrays of btdagg.align(ids, counts, labels)",
            argument="counts",
        )
    return counts, labels


def as_items(
    counts: Any,
    labels: Any = None,
    groups: Any = None,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    partial: bool = False,
    drawn: bool = False,
    panel: str | None = None,
    weights: Any = None,
    covariates: Any = None,
    probabilities: Any = None,
    units: Any = None,
    strata: Any = None,
    least_probability: float | None = None,
    by: Any = None,
    systems: Sequence[str] | None = None,
    judges: Sequence[str] | None = None,
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
        Group of each item; tables have their own. These, `weights`, `covariates`, `probabilities`,
        `units` and `strata` are matched by id where they are series of pandas with the ids in their
        index, and have the order of ``items.ids`` otherwise. Beside tables arrays are refused.
    scale, label_scale : Scale, optional
        Scales of arrays; by default pairs, and that of the votes.
    partial : bool
        Whether items may lack a label: NaN or None in an array. Tables then keep those items.
    drawn : bool
        Whether to estimate from the labels; see `join`.
    panel : str, optional
        Column of the judges of a panel; counts are then an (n, judges, 3) array.
    weights : (n,) array, optional
        Weight of each item, the fact ``"weights"``.
    covariates : optional
        See `Items.with_covariates`.
    probabilities, units, strata, least_probability : optional
        How the labelled items were drawn, see `Draw`.
    by : (n,) array, or with tables the name of a column; optional
        What estimates are split by.
    systems, judges, n_votes : optional
        With tables and `drawn`, as in `Votes.items`; arrays have no use for the first two.
    confidences : Confidences, optional
        Confidences of the votes.
    decisions : mapping of str to (n,) array, optional
        Decisions made elsewhere: -1, 0, 1, or NaN where there is none.
    """
    counts, labels = as_tables(counts, labels, scale, label_scale, drawn=drawn)
    if panel is not None:
        scales_of(counts, labels, scale, label_scale)[0].require_sides("a panel")
    is_table = isinstance(labels, Labels)
    per_item = {"groups": groups, "weights": weights, "probabilities": probabilities}
    per_item |= {"units": units, "strata": strata}
    per_item = {name: of for name, of in per_item.items() if of is not None}
    items: Items
    if is_table:
        scales_of(counts, labels, scale, label_scale)
        how: Any = {"n_votes": n_votes, "judges": judges, "panel": panel}
        if drawn:
            expect(isinstance(by, str | None), "by", by, "the name of a column of the votes")
            how |= {"by": by, "systems": systems}
        if drawn or partial:
            items = counts.items(labels, drawn=drawn, **how)
        else:
            items = counts.labelled(labels, **how)
        by = None
    else:
        expect(n_votes is None, "n_votes", n_votes, "None without a table of votes")
        if isinstance(by, str) and isinstance(counts, Items):
            counts, by = counts.with_columns_of({"by": by}), None
        if not isinstance(counts, Items) or not counts.has_ids:
            same_index(counts=counts, labels=labels, by=by, covariates=covariates, **per_item)
        items = _of_arrays(counts, labels, scale, label_scale, partial, panel)
    matched = {name: items.matched(name, of, is_table=is_table) for name, of in per_item.items()}
    given = {name: read(matched[name]) for name, read in _PER_ITEM.items() if name in matched}
    if least_probability is not None:
        given["least_probability"] = least_probability
    if "groups" in given:
        items = replace(items, group=given["groups"])
    draw = {name: of for name, of in given.items() if name in Draw._fields}
    if draw:
        items = replace(items, sampling=items.sampling._replace(**draw))
    columns: dict[str, Any] = {} if confidences is None else {"confidences": confidences}
    columns |= {} if by is None else {"by": as_names(by, "by")}
    columns |= {"weights": given["weights"]} if "weights" in given else {}
    for name, decided in (decisions or {}).items():
        places = PAIRS.places(decided, f"decisions of {name}", partial=True)
        columns[f"decision {name}"] = np.where(places < 0, np.nan, places - 1.0)
    items = items.with_facts(columns) if columns else items
    return items if covariates is None else items.with_covariates(covariates, is_table=is_table)


def _of_arrays(
    counts: Any,
    labels: Any,
    scale: Scale | None,
    label_scale: Scale | None,
    partial: bool,
    panel: str | None,
) -> Items:
    scale, label_scale = scales_of(counts, labels, scale, label_scale)
    if labels is not None and partial:
        labels = label_scale.shares(labels)
    items: Items = counts
    if isinstance(counts, CountsItself):
        items = counts.items()
    elif not isinstance(counts, Items):
        items = Items(counts=counts if panel is None else as_panel_counts(counts), scale=scale)
    if labels is None:
        return items
    if not partial:
        items.scale.require_votes(items.scale.counts(items.pooled))
        places = label_scale.places(labels)
        expect(len(places), "labels", [], "at least one item")
        labels = label_scale.labels[places]
    same_length("labels", len(labels), "counts", len(items))
    return replace(items, labels=labels, label_scale=label_scale)


def counts_and_sides(
    counts: Any, labels: Any, scale: Scale | None = None, label_scale: Scale | None = None
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Return checked counts, (n, 3), and labels -1, 0 and 1, (n,), of at least one item."""
    items = as_items(counts, labels, scale=scale, label_scale=label_scale)
    return as_checked_counts(items.pooled), items.label_scale.sides(items.label)


def _is_indexed(values: Any) -> bool:
    """Whether ids are in an index of pandas, and in no column."""
    names = _columns(values)
    return has_index(values) and names.isdisjoint(ID_COLUMNS)


def _has_ids(values: Any) -> bool:
    if not _is_indexed(values):
        return not _columns(values).isdisjoint(ID_COLUMNS)
    return index_has_ids(values.index)


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
