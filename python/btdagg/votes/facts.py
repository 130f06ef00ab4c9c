"""Facts of items: columns made for them, and columns of their tables, read when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.errors import InputError, forbid
from btdagg._util.lazy import pl
from btdagg._util.readable import readable
from btdagg.votes.labels import RATERS, n_disputed, shares_in
from btdagg.votes.provenance import Provenance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.votes.table import Table

_ROUNDING = 1e-6


@readable
class Confidences(NamedTuple):
    """Confidences of the votes, summed up by item and label; columns in label order -1, 0, +1.

    A label without votes has total 0, least infinity and log product 0. If the confidence of a vote
    is missing, all three are NaN.

    Attributes
    ----------
    total, least, log_product : (n, 3) arrays of float64
        Their sum, the smallest, and the sum of their logarithms.
    """

    total: NDArray[np.float64]
    least: NDArray[np.float64]
    log_product: NDArray[np.float64]


class Facts(Mapping[str, Any]):
    """Named columns of items, each with a row for every item, kept through every selection.

    `facts[name]` is a column made for the items: ``"signs"`` (votes without their strength, (n,
    J)), ``"confidences"``, ``"by"`` (what estimates are split by), ``"task"``, ``"system"`` or
    ``"system_a"`` and ``"system_b"``, ``"weights"``, ``"ratings"``, ``"covariate NAME"`` and
    ``"decision NAME"`` (made elsewhere, -1, 0, 1 or NaN). `read` also finds the columns of the
    tables that the items are from.

    Parameters
    ----------
    columns : mapping of str to array or Confidences
        Text in place of a column is the error of whoever asks for it.
    votes : Table, optional
        The votes that are counted.
    label_rows : polars.DataFrame, optional
        A row for each item: that of its label, with nulls where the labels do not name it.
    """

    def __init__(
        self,
        columns: Mapping[str, Any] | None = None,
        votes: Table | None = None,
        label_rows: pl.DataFrame | None = None,
    ) -> None:
        self.columns = dict(columns or {})
        self._votes, self._label_rows = votes, label_rows
        self._read: dict[str, pl.Series] = {}

    def __getitem__(self, name: str) -> Any:
        values = self.columns[name]
        if isinstance(values, str):
            raise InputError(values)
        return values

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Facts({', '.join(self.columns)})"

    def read(self, name: str, keys: pl.DataFrame) -> pl.Series | None:
        """Read a column by its name: made for the items, or of their votes or their labels.

        Parameters
        ----------
        name : str
        keys : polars.DataFrame
            Columns `item`, and `task` where tasks tell items apart.

        Returns
        -------
        polars.Series or None
            A value for each item, as text if it is of a table; None if nothing is called that.

        Raises
        ------
        InputError
            If votes of one item have several values.
        """
        if name in self.columns:
            values = self[name]
            return pl.Series(name, values.tolist()) if np.ndim(values) == 1 else None
        if (voted := self.voted(name, keys)) is not None:
            return voted
        if self._label_rows is not None and name in self._label_rows.columns:
            return self._label_rows[name].cast(pl.String)
        return None

    def voted(self, name: str, keys: pl.DataFrame) -> pl.Series | None:
        """Read a column of the votes, a value for each item; None if they have no such column."""
        if self._votes is None or name not in self._votes.columns:
            return None
        if name not in self._read:
            self._read[name] = facts_of(self._votes, keys, [name])[name]
        return self._read[name]

    def named(self, kind: str) -> dict[str, Any]:
        """Return the columns of a kind, ``"covariate"`` or ``"decision"``, by their own names."""
        prefix = f"{kind} "
        return {name[len(prefix) :]: self[name] for name in self.columns if name.startswith(prefix)}

    def with_columns(self, columns: Mapping[str, Any], *, without: str = "") -> Facts:
        """Return the facts with more columns, and without those that begin with a word."""
        kept = {
            name: values
            for name, values in self.columns.items()
            if not without or name.partition(" ")[0] != without
        }
        return Facts({**kept, **columns}, self._votes, self._label_rows)

    def with_label_rows(self, label_rows: pl.DataFrame) -> Facts:
        """Return the facts with the rows of other labels."""
        return Facts(self.columns, self._votes, label_rows)

    def of_task(self, task: str) -> Facts:
        """Return the facts with the votes of one task alone."""
        votes = None if self._votes is None else self._votes.filter({"task": task})
        return Facts(self.columns, votes, self._label_rows)

    def rows(self, rows: NDArray[Any]) -> Facts:
        """Return the facts of some items."""
        columns = {name: rows_of(values, rows) for name, values in self.columns.items()}
        return Facts(columns, self._votes, rows_of(self._label_rows, rows))

    def detached(self, *, labels_alone: bool = False) -> Facts:
        """Return the columns alone, without tables; or without the rows of the labels alone."""
        return Facts(self.columns, self._votes if labels_alone else None)

    @property
    def provenance(self) -> Provenance:
        """Where the votes are from, as their table says."""
        return Provenance() if self._votes is None else Provenance.of(self._votes)

    @property
    def n_disputed(self) -> int | None:
        """Number of items on which raters disagree; None if the items are of no labels."""
        return None if self._label_rows is None else n_disputed(self._label_rows)

    @property
    def ratings(self) -> NDArray[np.int64] | None:
        """How many raters gave an item each label, (n, K); zeros where that is not known."""
        if self._label_rows is None or RATERS not in self._label_rows.columns:
            return None
        has_label = self._label_rows[RATERS].is_not_null().to_numpy()
        labelled = self._label_rows.filter(has_label)
        if not len(labelled):
            return None
        given = shares_in(labelled) * labelled[RATERS].to_numpy()[:, None]
        whole = np.rint(given)
        # Whose mean is known alone, and lies between points: who said what is not.
        whole[np.abs(whole - given).max(axis=1) > _ROUNDING] = 0
        ratings = np.zeros((len(has_label), whole.shape[1]), dtype=np.int64)
        ratings[has_label] = whole
        return ratings


def facts_of(votes: Table, keys: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return what columns of the votes, one value for each item, say of items: text or null."""
    key = [name for name in keys.columns if name in votes.columns]
    rows = keys.select(key)
    names = [
        pl.col(name).cast(pl.String).fill_null("") if name == "task" else pl.col(name)
        for name in key
    ]
    for name in dict.fromkeys(columns):
        forbid(
            name == "item",
            f"{votes.source}: column item has the ids of items, expected a column that "
            "describes items",
        )
        value = pl.col(name).cast(pl.String)
        values = votes.collect(votes.data.lazy().select(*names, value).unique(maintain_order=True))
        values = values.drop_nulls(name)
        twice = values.filter(values.select(key).is_duplicated())
        if twice.height:
            item = twice["item"][0]
            first, second = twice.join(twice.select(key)[:1], on=key, how="semi")[name].sort()[:2]
            raise InputError(
                f"{votes.source}, column {name}: item {item!r} has {first!r} and {second!r}, "
                "expected a column of items, with one value for all votes of an item"
            )
        rows = rows.join(values, on=key, how="left", maintain_order="left")
    return rows


def no_labels(n: int, n_labels: int) -> NDArray[np.float64]:
    """Return labels of items that have none, which take no memory."""
    return np.broadcast_to(np.array(np.nan), (n, n_labels))


def are_no_labels(labels: Any) -> bool:
    """Whether labels are those of `no_labels`."""
    return isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.strides == (0, 0)


def rows_of(values: Any, rows: NDArray[Any]) -> Any:
    """Return some rows of a column, by their numbers or a mask."""
    if values is None or isinstance(values, str):
        return values
    if isinstance(values, Confidences):
        return Confidences(*(sums[rows] for sums in values))
    if not isinstance(values, np.ndarray) and rows.dtype == np.bool_:
        rows = np.flatnonzero(rows)
    if are_no_labels(values):
        n = int(rows.sum()) if rows.dtype == np.bool_ else len(rows)
        return no_labels(n, values.shape[1])
    return values[rows]
