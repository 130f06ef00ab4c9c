"""Labels: one row per item.

An item with an empty label is unlabelled: it is counted, reported and left out. An item that
several raters label has the shares of their labels, whose mean estimates use, and one merged label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import as_outcomes
from btdagg.votes.schema import LABELS, ids, parse
from btdagg.votes.source import read_table
from btdagg.votes.table import Table, ids_of, listing, refuse_duplicates

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from btdagg.votes.source import Source


_SHARES = "label_shares"  # column of what raters gave; lists, in label order


@readable
@dataclass(frozen=True, eq=False)
class Labels(Table):
    """Labelled items: one row per item.

    Attributes
    ----------
    frame : polars.DataFrame
        The items that have a label. Columns `item` (text or Int64) and `label` (Int8); where the
        source has them `group` and `task` (text); and every other column as it came.
    unlabelled : polars.DataFrame
        The same columns of the items that have none.
    """

    unlabelled: pl.DataFrame = field(kw_only=True)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Shares of an item's raters that gave each label, in label order: (n, 3) array."""
        if _SHARES in self.columns:
            return np.array(self.frame[_SHARES].to_list(), dtype=np.float64).reshape(-1, 3)
        return as_outcomes(self.frame["label"].to_list())

    @property
    def remarks(self) -> tuple[str, ...]:
        """On how many items raters disagree, and what their one label is."""
        return merged_remarks(self.shares)

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
        """Group of each item, such as its prompt: (n,) array of str, or None."""
        if "group" not in self.columns:
            return None
        return np.array(self.frame["group"].to_list(), dtype=object)

    def filter(self, where: Mapping[str, object]) -> Labels:
        """Keep the items that have the given values, as :meth:`btdagg.votes.Table.filter` does."""
        everything = Table(self.frame.vstack(self.unlabelled), self.source)
        return _split(everything.filter(where))


def read_labels(source: Source, *, columns: Mapping[str, str] | None = None) -> Labels:
    """Read labels, one row per item.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.votes.read_table`. Required are `item` (or `id`, `item_id`) and `label`:
        -1, 0 or 1 (+1: A is better), or A, tie or same, B in any case; an empty label leaves the
        item unlabelled. Optional are `task` and `group`; items of one group are split together.
        With a column `rater`, labels may be called `vote`, and an item may have a row per rater:
        its label is their majority, a tie if labels share the most, and other columns are those of
        its first row.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"label": "gold"}``.

    Raises
    ------
    InputError
        If the source cannot be read, a label is invalid, a group is empty, or an item occurs twice
        (in the same task, if there are tasks, and of the same rater, if there are raters).
    """
    table = read_table(source, ["item"], columns=columns)
    if "label" not in table.columns and "vote" in table.columns:
        if "rater" not in table.columns:
            raise InputError(
                f"{table.source}: no column 'label', and votes do not say whose they are; "
                "columns={'rater': 'NAME'} reads who they are from a column NAME; found "
                f"{listing(table.columns)}",
                argument="columns",
            )
        table = read_table(table, [], columns={"label": "vote"})
    rows = parse(read_table(table, LABELS.required), LABELS.kinds)
    if "rater" in rows.columns:
        rows = _by_majority(rows)
    remedy = (
        "; where several people labelled it, columns={'rater': 'NAME'} reads who they are from a "
        f"column NAME; found {listing(rows.columns)}"
    )
    refuse_duplicates(rows, LABELS.key_of(rows), remedy, argument="columns")
    return _split(rows)


def _by_majority(rows: Table) -> Table:
    """Return one row per item where raters have one each."""
    import polars as pl

    rows = parse(rows, {"rater": ids})
    key = LABELS.key_of(rows)
    refuse_duplicates(rows, [*key, "rater"])
    frame, label = rows.numbered(), pl.col("label")
    if frame.select(pl.struct(key).is_unique().all()).item():
        return rows
    minus, tie, plus = ((label == value).sum() for value in (-1, 0, 1))
    leads = [plus > pl.max_horizontal(tie, minus), minus > pl.max_horizontal(tie, plus)]
    decided = pl.when(leads[0]).then(1).when(leads[1]).then(-1).otherwise(0)
    majority = pl.when(label.count() > 0).then(decided).cast(pl.Int8)
    columns = [name for name in frame.columns if name not in ("rater", *key)]
    first = [majority.alias(name) if name == "label" else pl.col(name).first() for name in columns]
    first.append(pl.concat_list(side / label.count() for side in (minus, tie, plus)).alias(_SHARES))
    return rows.with_data(frame.group_by(key, maintain_order=True).agg(first))


def merged_remarks(
    shares: NDArray[np.float64],
    treatment: str = "has the label of most of its raters, a tie where labels share the most",
) -> tuple[str, ...]:
    """Say on how many items raters disagree, and what is made of it."""
    n_disputed = int((shares.max(axis=1, initial=0.0) < 1).sum())
    if not n_disputed:
        return ()
    return (f"raters disagree on {n_disputed} of {len(shares)} labelled items: each {treatment}",)


def mean_remarks(shares: NDArray[np.float64]) -> tuple[str, ...]:
    """Say on how many items raters disagree where each is the mean of its raters."""
    return merged_remarks(shares, "counts as the mean of its raters")


def _split(rows: Table) -> Labels:
    has_label = rows.frame["label"].is_not_null()
    unlabelled = rows.frame.filter(~has_label)
    return Labels(rows.frame.filter(has_label), rows.source, unlabelled=unlabelled)
