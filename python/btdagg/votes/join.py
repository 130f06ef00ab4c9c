"""Votes and labels as arrays: whoever needs both, from tables, gets them here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import (
    CountsItself,
    as_checked_counts,
    as_counts,
    as_labels,
    same_index,
    same_length,
    shaped,
    unmasked,
)
from btdagg.votes.labels import RATERS, Labels, n_disputed, rater_remarks, shares_in
from btdagg.votes.scale import PAIRS, Scale, require_alike
from btdagg.votes.table import AnyTable, Table, as_text, listing, text

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike, NDArray


@readable
@dataclass(frozen=True, eq=False)
class LabelledCounts:
    """Counts of the items that have both votes and a label, in the order of the votes.

    Attributes
    ----------
    ids : (n,) array of int64, or of object holding str
    counts : (n, 3) array
        Votes per item in label order: minus, tie, plus; of the type that was given.
    rows : (n,) array
        Row of each item in the input.
    labels : (n,) array of int8, or of grades
    groups : (n,) array of object holding str, or None
        Group of each item, if the labels have groups.
    n_unlabelled, n_without_votes : int
        Numbers of items left out because they have no label, and of labels without votes.
    remarks : tuple of str
        On how many of the items raters disagree, and what their label is; on items without votes.
    scale, label_scale : Scale
        Of the votes and of the labels.
    ratings : (n, labels) array, or None
        How many raters gave each label, where some item has several.
    """

    ids: NDArray[Any]
    counts: NDArray[Any]
    rows: NDArray[np.intp]
    labels: NDArray[Any]
    groups: NDArray[np.object_] | None
    n_unlabelled: int
    n_without_votes: int
    remarks: tuple[str, ...] = ()
    scale: Scale = PAIRS
    label_scale: Scale = PAIRS
    ratings: NDArray[np.int64] | None = None


@readable
@dataclass(frozen=True, eq=False)
class JoinedItems:
    """Every item that has votes, and what the labels say of it: n rows in the order of the votes.

    Attributes
    ----------
    ids : (n,) array of int64, or of object holding str
    counts : (n, ...) array or Evidence
        As they were counted.
    shares : (n, 3) array of float64, or (n, K) of grades
        `Labels.shares` of the items; NaN without a label.
    told : polars.DataFrame
        The columns of the labels, such as `label`, `group` and `probability`; null where the labels
        do not name the item.
    n_without_votes : int
        Number of labels, of the tasks of the votes, whose item has no votes.
    scale, label_scale : Scale
        Of the votes and of the labels.
    remarks : tuple of str
        On items without a vote, which have no mean grade and are left out.
    """

    ids: NDArray[Any]
    counts: Any
    shares: NDArray[np.float64]
    told: pl.DataFrame
    n_without_votes: int
    _labels: Labels = field(repr=False)
    _why_no_label: str = field(repr=False)
    scale: Scale = PAIRS
    label_scale: Scale = PAIRS
    remarks: tuple[str, ...] = ()

    def labelled(self) -> LabelledCounts:
        """Return the items that have a label, of which there has to be one."""
        label = self.told["label"]
        rows = np.flatnonzero(label.is_not_null().to_numpy())
        if not len(rows):
            raise InputError(self._why_no_label)
        groups = self.told["group"] if "group" in self.told.columns else None
        ratings = None
        if RATERS in self.told.columns and self._labels.raters != "drop":
            number = self.told[RATERS].to_numpy()[rows, None]
            ratings = np.rint(shares_in(self.told[rows]) * number).astype(np.int64)
        return LabelledCounts(
            ids=self.ids[rows],
            counts=self.counts[rows],
            rows=rows,
            labels=label.drop_nulls().to_numpy(),
            groups=None if groups is None else np.array(groups.to_list(), dtype=object)[rows],
            n_unlabelled=len(self.ids) - len(rows),
            n_without_votes=self.n_without_votes,
            remarks=(*self.remarks, *rater_remarks(self._labels, n_disputed(self.told), len(rows))),
            scale=self.scale,
            label_scale=self.label_scale,
            ratings=ratings,
        )


def join(votes: Table | None, labels: Labels, counted: tuple[NDArray[Any], Any]) -> JoinedItems:
    """Find the label of every item that has votes.

    Everything that calibrates, evaluates or estimates from tables gets its arrays here.

    Parameters
    ----------
    votes : Votes or None
        Where they have tasks, items are joined with the labels of these tasks.
    labels : Labels
    counted : tuple of (ids, counts)
        As `Votes.counts`, `Votes.evidence` or `panel_counts` return them.

    Examples
    --------
    >>> from btdagg import read_labels, read_votes
    >>> votes = read_votes({"item": ["x", "x", "y"], "vote": ["A", "tie", "B"]})
    >>> labels = read_labels({"item": ["y", "z"], "label": ["B", "A"]})
    >>> items = join(votes, labels, votes.counts())
    >>> items.shares.tolist()
    [[nan, nan, nan], [1.0, 0.0, 0.0]]
    >>> items.labelled().labels.tolist(), items.n_without_votes
    ([-1], 1)
    """
    import polars as pl

    ids, counts = counted
    scale = getattr(counts if votes is None else votes, "scale", PAIRS)
    require_alike(scale, labels.scale)
    remarks: tuple[str, ...] = ()
    if not scale.mirrored:
        has_votes = np.asarray(counts).reshape(len(ids), -1).any(axis=1)
        if not has_votes.all():
            n_empty, ids, counts = int((~has_votes).sum()), ids[has_votes], counts[has_votes]
            remarks = (f"items without a vote that could be read are left out: {n_empty}",)
    of_tasks = labels if votes is None else labels_of(labels, votes)
    n_labels = len(of_tasks.frame)
    everything = pl.concat([of_tasks.frame, of_tasks.unlabelled])
    is_integer = ids.dtype.kind in "iu"
    as_text = is_integer != everything["item"].dtype.is_integer()
    items = pl.Series(ids) if is_integer else pl.Series(list(map(str, ids)), dtype=pl.String)
    voted, named = _keys(items, as_text), _keys(everything["item"], as_text)
    if voted["key"].is_duplicated().any():
        raise InputError("ids has an item twice, expected each once", argument="ids")
    twice = named[:n_labels].filter(named["key"][:n_labels].is_duplicated())
    if twice.height:
        raise InputError(
            f"{labels.source}: item {twice['key'][0]!r} has labels in several tasks; filter by "
            "task first"
        )
    named = named.unique("key", keep="first")
    row = voted.join(named, on="key", how="left", maintain_order="left")["row_right"]
    shares = np.full((len(everything) + 1, len(labels.scale.points)), np.nan)
    shares[:n_labels] = of_tasks.shares
    shares = shares[row.fill_null(len(everything)).to_numpy()]
    n_without_votes = n_labels - int((row < n_labels).sum())
    told = everything.select(pl.all().gather(row))
    why = _why_no_label(votes, labels, ids) if n_without_votes == n_labels else ""
    scales = scale, labels.scale
    return JoinedItems(ids, counts, shares, told, n_without_votes, labels, why, *scales, remarks)


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
    """
    same_index(ids=ids, counts=counts)
    ids, counts = np.asarray(unmasked(ids, "ids")), as_counts(counts)
    shaped(ids, "ids", (), "one dimension")
    same_length("counts", len(counts), "ids", len(ids))
    return join(None, labels, (ids, counts)).labelled()


def labelled(
    counts: Any, labels: Any, groups: Any = None, weights: Any = None, scale: Scale = PAIRS
) -> tuple[Any, Any, Any]:
    """Return counts, labels and groups of the same items, of tables or of arrays.

    Tables of votes and labels are joined. Arrays, and labels that are None, are returned unchanged.
    Tables have votes of the scale.
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
    if items.scale != scale:
        expected = "votes of pairs; btdagg.calibrate takes grades"
        raise InputError(argument="counts", came=f"votes of {items.scale}", expected=expected)
    return items.counts, items.labels, items.groups if groups is None else groups


def scales_of(
    counts: Any, labels: Any, scale: Scale | None, label_scale: Scale | None
) -> tuple[Scale, Scale]:
    """Return the scales of votes and labels: those of tables, which may be said again.

    Of arrays they are as said, by default of pairs, and labels have that of the votes.
    """
    of_counts, of_labels = (getattr(table, "scale", None) for table in (counts, labels))
    usual = scale or of_counts or PAIRS
    for name, own, said in (
        ("scale", of_counts, scale),
        ("label_scale", of_labels, label_scale),
    ):
        if not isinstance(said, Scale | None):
            raise InputError(argument=name, came=said, expected="a btdagg.Scale")
        if said is not None and own is not None and own != said:
            raise InputError(argument=name, came=str(said), expected=f"{own}, as it was read")
    both = usual, label_scale or of_labels or usual
    require_alike(*both)
    return both


def labelled_items(counts: Any, labels: Any) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Return checked counts, (n, 3), and labels, (n,), of at least one item."""
    counts, labels, _ = labelled(counts, labels)
    checked, gold = as_checked_counts(counts), as_labels(labels)
    same_length("labels", len(gold), "counts", len(checked))
    same_index(counts=counts, labels=labels)
    if not len(gold):
        raise InputError("labels is empty, expected at least one item", argument="labels")
    return checked, gold


def require_labels(labels: object) -> None:
    """Check that labels are a table."""
    if not isinstance(labels, Labels):
        raise InputError(f"labels is a {type(labels).__name__}, expected what read_labels returns")


def labels_of(labels: Labels, votes: Table) -> Labels:
    """Return the labels of the tasks of some votes, if both have tasks; else all labels."""
    import polars as pl

    if "task" not in labels.columns or "task" not in votes.columns:
        return labels
    is_of_task = pl.col("task").is_in(votes.values("task").drop_nulls().to_list())
    parts = labels.frame.filter(is_of_task), labels.unlabelled.filter(is_of_task)
    return replace(labels, data=parts[0], unlabelled=parts[1])


def with_task(votes: AnyTable, labels: Labels) -> AnyTable:
    """Return votes with a column `task` from the labels, if only the labels have one."""
    require_labels(labels)
    if "task" in votes.columns or "task" not in labels.columns:
        return votes
    items, tasks = text(labels, "item"), text(labels, "task")
    if items.is_duplicated().any():
        item = items.filter(items.is_duplicated())[0]
        raise InputError(
            f"{labels.source}: item {item!r} has labels in several tasks, and the votes do not say "
            "which task they belong to"
        )
    task = as_text(votes, "item").replace_strict(items, tasks, default=None).alias("task")
    return votes.with_columns([task])


def _keys(items: pl.Series, as_text: bool) -> pl.DataFrame:
    """What items are compared by, and where they stand."""
    import polars as pl

    keys = items.cast(pl.String) if as_text else items
    keys = keys.str.strip_chars() if keys.dtype == pl.String else keys.cast(pl.Int128)
    return keys.alias("key").to_frame().with_row_index("row")


def _why_no_label(votes: Table | None, labels: Labels, ids: NDArray[Any]) -> str:
    """Say why no item has both votes and a label."""
    if not len(labels.frame):
        agreed = " on which its raters agree" if labels.n_disputed else ""
        return f"{labels.source}: no item has a label{agreed}"
    if votes is not None and not len(labels_of(labels, votes).frame):
        task, tasks = votes.values("task").drop_nulls()[:1].to_list(), labels.values("task")
        return f"{labels.source}: no row has task {''.join(task)!r}; found {listing(tasks)}"
    voted = f"item {ids[:1].tolist()[0]!r}" if len(ids) else "no item"
    return (
        f"no item has both votes and a label: votes begin with {voted}, labels of {labels.source} "
        f"with item {labels.frame['item'][0]!r}"
    )
