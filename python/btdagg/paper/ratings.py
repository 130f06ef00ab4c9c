"""Raters' votes: one row per rater and item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import PAIRS, InputError, read_votes
from btdagg._util.lazy import pl
from btdagg.votes import Table, read_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEY = ("item", "rater")
_NUMBER, _FIRST = "\0number", "\0first"  # no column of a source is called that


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
        return _ids(self.frame["item"])

    @cached_property
    def raters(self) -> NDArray[Any]:
        """The raters in order of first appearance: (n_raters,) array."""
        return _ids(self.frame["rater"])

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


def _ids(values: pl.Series) -> NDArray[Any]:
    """Distinct ids in order of first appearance, as an array of int64, or of object holding str."""
    ids = values.unique(maintain_order=True)
    return ids.to_numpy() if ids.dtype.is_integer() else np.array(ids.to_list(), dtype=object)


def read_ratings(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    words: Mapping[str, object] | None = None,
) -> Ratings:
    """Read the votes of raters, one row per item and rater.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.votes.read_table`. Required are `item` (or `id`, `item_id`), `rater` and
        `vote` (or `label`), as of :func:`btdagg.read_votes`. Other columns are kept. An item may
        not have several tasks or criteria.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"rater": "annotator"}``.
    words : mapping of str to A, tie, B or "missing"; optional
        Meaning of votes in words.
    """
    table = read_table(source, ["item", "rater"], columns=columns)
    if "vote" not in table.columns and "label" in table.columns:
        table = read_table(table, [], columns={"vote": "label"})
    others = {*table.columns} - {*_KEY, "vote"}
    others -= set() if "vote" in table.columns else {"score"}  # of which `read_votes` says more
    rows = {
        name: read_votes(
            read_table(table.with_data(table.data.drop(others)), [], columns={"item": name}),
            words=words,
            scale=PAIRS,
            strength="none",
        ).frame
        for name in _KEY
    }
    parsed = [rows["item"]["vote"], *(rows[name]["item"].alias(name) for name in _KEY)]
    table = table.with_columns(parsed)
    for name in {"task", "criterion"}.intersection(table.columns):
        _refuse(table, pl.col(name).n_unique().over("item") > 1, name)
    return _without_repeats(Ratings(table.data, table.source, files=table.files))


def _numbered(table: Table) -> pl.DataFrame:
    """Return the rows with a column `number`, which they have in their source."""
    frame = table.numbered()
    return table.frame.with_columns(frame.drop(table.columns).to_series().alias(_NUMBER))


def _refuse(table: Table, several: pl.Expr, column: str) -> None:
    for row in _numbered(table).filter(several).head(1).iter_rows(named=True):
        source, number = table.place(row[_NUMBER])
        expected = f"items of one {column}: read each {column} by itself"
        raise InputError(
            source=source, row=number, column=column, got=row[column], expected=expected
        )


def _without_repeats(ratings: Ratings) -> Ratings:
    """Keep one row of each rater and item, the first with a vote; refuse different votes."""
    frame, first = _numbered(ratings), pl.col("vote", _NUMBER).first().over(_KEY)
    present = frame.drop_nulls("vote").with_columns(first.name.prefix(_FIRST))
    differing = present.filter(pl.col("vote") != pl.col(f"{_FIRST}vote")).head(1)
    for row in differing.iter_rows(named=True):
        where = ratings.where(row[f"{_FIRST}{_NUMBER}"], row[_NUMBER])
        raise InputError(
            f"{where}: both have item {row['item']!r}, rater {row['rater']!r}, with votes "
            f"{row[f'{_FIRST}vote']} and {row['vote']}"
        )
    in_order = pl.int_range(pl.len()).min().over(_KEY), pl.col("vote").is_null()
    kept = frame.sort(*in_order, maintain_order=True).unique(_KEY, maintain_order=True)
    return ratings.with_data(kept.drop(_NUMBER))
