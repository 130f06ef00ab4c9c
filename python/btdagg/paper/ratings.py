"""Raters' votes: one row per rater and item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.lazy import pl
from btdagg.votes.grades import refuse_grades
from btdagg.votes.schema import RATINGS, parse
from btdagg.votes.source import read_table, with_item
from btdagg.votes.table import Table, ids_of, refuse, without_repeats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.votes.source import Source


@dataclass(frozen=True, eq=False)
class Ratings(Table):
    """Votes of raters, one row per rater and item, seen as a table of items by raters.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns `item` and `rater` (text or Int64), `vote` (Int8; null where missing), and every
        other column as it came.
    source : str
        Name of these ratings in errors.
    """

    @cached_property
    def items(self) -> NDArray[Any]:
        """The items in order of first appearance: (n_items,) array."""
        return ids_of(self.frame["item"].unique(maintain_order=True))

    @cached_property
    def raters(self) -> NDArray[Any]:
        """The raters in order of first appearance: (n_raters,) array."""
        return ids_of(self.frame["rater"].unique(maintain_order=True))

    @cached_property
    def votes(self) -> NDArray[np.int8]:
        """Votes -1, 0, 1: (n_items, n_raters) array, 0 if missing; see `present`."""
        return self._spread(self.frame["vote"].fill_null(0).to_numpy())

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Whether there is a vote: (n_items, n_raters) array."""
        return self._spread(self.frame["vote"].is_not_null().to_numpy())

    @property
    def n_missing(self) -> int:
        """Number of votes that are in the source but empty."""
        return self.frame["vote"].null_count()

    def counts(self) -> NDArray[np.int64]:
        """Count the raters' votes of each item: (n_items, 3) array in label order."""
        votes = [((self.votes == vote) & self.present).sum(axis=1) for vote in (-1, 0, 1)]
        return np.stack(votes, axis=1)

    def _spread(self, values: NDArray[Any]) -> NDArray[Any]:
        cells = np.zeros((len(self.items), len(self.raters)), dtype=values.dtype)
        items, raters = (
            {name: place for place, name in enumerate(names.tolist())}
            for names in (self.items, self.raters)
        )
        rows = [items[item] for item in self.frame["item"]]
        cells[rows, [raters[rater] for rater in self.frame["rater"]]] = values
        return cells


def read_ratings(source: Source, *, columns: Mapping[str, str] | None = None) -> Ratings:
    """Read the votes of raters, one row per item and rater.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.votes.read_table`. Required are `item` (or `id`, `item_id`), `rater` and
        `vote` (or `label`), as of :func:`btdagg.read_votes`. Other columns are kept. An item may
        not have several tasks or criteria.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"rater": "annotator"}``.
    """
    table = with_item(read_table(source, [], columns=columns))
    refuse_grades(table, "vote", "label")
    if "vote" not in table.columns and "label" in table.columns:
        table = table.with_data(table.data.rename({"label": "vote"}))
    rows = parse(read_table(table, RATINGS.required), RATINGS.kinds)
    for name in {"task", "criterion"}.intersection(rows.columns):
        several = pl.col(name).n_unique().over("item") > 1
        refuse(rows, several, name, f"items of one {name}: read each {name} by itself")
    ratings = Ratings(rows.data, rows.source, files=rows.files)
    return without_repeats(ratings, RATINGS.key_of(ratings), "vote")
