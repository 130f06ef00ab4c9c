"""Labels: one row per item.

A label is written like a vote: -1, 0, +1 or B, tie, A. An item with an empty label is unlabelled:
it is counted, reported and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg.readable import readable
from btdagg.tables.schema import LABELS, ids, parse
from btdagg.tables.source import read_table
from btdagg.tables.table import Table, refuse_duplicates
from btdagg.tables.votes import ids_of

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from btdagg.tables.source import Source


@readable
@dataclass(frozen=True, eq=False)
class Labels(Table):
    """Labelled items: one row per item.

    Attributes
    ----------
    frame : polars.DataFrame
        The items that have a label. Columns `item` (text or Int64) and `label` (Int8); where the
        source has them `group` and `task` (text); and every other column as it came.
    source : str
        Name of these labels in errors.
    unlabelled : polars.DataFrame
        The same columns of the items that have none.
    """

    unlabelled: pl.DataFrame = field(kw_only=True)

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
        """Keep the items that have the given values, as :meth:`btdagg.tables.Table.filter` does."""
        everything = Table(self.frame.vstack(self.unlabelled), self.source)
        return _split(everything.filter(where))


def read_labels(source: Source, *, columns: Mapping[str, str] | None = None) -> Labels:
    """Read labels, one row per item.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.tables.read_table`. Columns `item` (or `id`, `item_id`) and `label` are
        required. A label is -1, 0 or 1 (+1: A is better), or A, tie or same, B in any case; an
        empty label leaves the item unlabelled. Optional are `task` and `group`; items of one group
        are split together. Other columns are kept. Spaces around ids, tasks and groups are ignored.
        With a column `rater`, an item may have a row per rater, as `btdagg label` writes them: its
        label is their majority, a tie if labels share the most (:func:`btdagg.majority_vote`), and
        other columns are those of its first row.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"label": "gold"}``.

    Returns
    -------
    Labels

    Raises
    ------
    InputError
        If the source cannot be read, a label is invalid, a group is empty, or an item occurs twice
        (in the same task, if there are tasks, and of the same rater, if there are raters).
    """
    rows = parse(read_table(source, LABELS.required, columns=columns), LABELS.kinds)
    if "rater" in rows.columns:
        rows = _by_majority(rows)
    refuse_duplicates(rows, LABELS.key_of(rows))
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
    majority = (
        pl.when((plus > tie) & (plus > minus))
        .then(1)
        .when((minus > tie) & (minus > plus))
        .then(-1)
        .when(label.count() > 0)
        .then(0)
        .cast(pl.Int8)
    )
    columns = [name for name in frame.columns if name not in ("rater", *key)]
    first = [majority.alias(name) if name == "label" else pl.col(name).first() for name in columns]
    return rows.renumbered(frame.group_by(key, maintain_order=True).agg(first))


def _split(rows: Table) -> Labels:
    known = rows.frame["label"].is_not_null()
    return Labels(rows.frame.filter(known), rows.source, unlabelled=rows.frame.filter(~known))
