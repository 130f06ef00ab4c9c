"""Votes and counts of votes, from a file or a data frame to arrays.

A vote is -1, 0 or +1 from A's point of view, or B, tie, A in words. An answer that could not be
parsed is an empty vote: it is missing, never a tie, so it is counted and shown but not tallied.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg.columns import (
    amounts,
    confidences,
    fractions,
    item_ids,
    names,
    orders,
    vote_values,
    whole_numbers,
)
from btdagg.evidence import Evidence
from btdagg.sources import read_table
from btdagg.tables import (
    Table,
    listing,
    parse_columns,
    refuse_duplicates,
    require,
    without_repeats,
)
from btdagg.tallies import CONFIDENCE, column_of_decisions, confidences_of, decisions_of, tallied
from btdagg.validation import (
    COUNT_COLUMNS,
    as_integer,
    as_labels,
    refuse_wide_ids,
    same_index,
    same_length,
    unmasked,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from numpy.typing import ArrayLike, NDArray

    from btdagg.sources import Source

# What makes a sample the same sample: the columns of these that the votes have.
_VOTE_KEY = ("item", "judge", "order", "sample", "template", "temperature", "task")
_VOTE_PARSERS = {
    "item": item_ids,
    "vote": vote_values,
    "judge": names,
    "order": orders,
    "sample": whole_numbers,
    "confidence": confidences,
    "template": names,
    "task": names,
}


@dataclass(frozen=True, eq=False)
class Votes(Table):
    """Long votes: one row per vote.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns `item` (text or Int64) and `vote` (Int8; null where missing); where the source has
        them `judge`, `template`, `task` (text), `order` (``AB`` or ``BA``), `sample` (Int64),
        `confidence` (Float64, 0 to 1; as it came where it holds anything else); and every other
        column as it came.
    source : str
        What errors call these votes.
    """

    @property
    def n_missing(self) -> int:
        """Number of votes that are missing."""
        return self.frame["vote"].null_count()

    def counts(self, n_votes: int | None = None) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Count the votes of each item.

        Parameters
        ----------
        n_votes : int, optional
            Count only the first so many votes of each item that are not missing; an item with fewer
            keeps those it has. First means by `sample` where there is such a column, then by row.
            With an `order` column the votes are taken from AB, BA, AB, ... in turn, from the one
            that is left when the other runs out, so an odd number has one more of AB.

        Returns
        -------
        ids : (n,) array of int64, or of object holding str
            The items, in the order in which they are first seen. One whose votes are all missing is
            among them.
        counts : (n, 3) array of int64
            Votes per item in label order: minus, tie, plus.

        Raises
        ------
        InputError
            If `n_votes` is not positive, or an item is in more than one task.
        """
        self._refuse_shared_items()
        rows = tallied(self.frame, self._first(self.frame, n_votes))
        return ids_of(rows["item"]), counts_of(rows)

    def evidence(
        self,
        n_votes: int | None = None,
        *,
        confidence: str | None = None,
        decisions: Sequence[str] = (),
    ) -> tuple[NDArray[Any], Evidence]:
        """Count the votes of each item as `counts` does, and sum up all else that decides it.

        Parameters
        ----------
        n_votes : int, optional
            Count only the first so many votes of each item; see `counts`.
        confidence : str, optional
            Column of the confidences of votes, finite numbers of at least 0, and in the column
            `confidence` up to 1. That column, where it is there, unless given; if it then holds
            anything else, that is an error of whoever asks for confidences, and of nobody else. The
            confidence of a missing vote does not count.
        decisions : sequence of str
            Columns of what others have decided, such as a generative aggregator, on an item: the
            words of a vote, the same in every row of an item that is not empty. With `n_votes` it
            is the column ``gsa_4`` that holds the decisions of ``gsa`` on four votes.

        Returns
        -------
        ids : (n,) array
            As of `counts`.
        evidence : Evidence
            Decisions go by the names given, without the number of votes.

        Raises
        ------
        InputError
            If there is no such column; if it holds anything else (the message names the row); if
            two rows of an item hold different decisions; and where `counts` does.
        """
        self._refuse_shared_items()
        frame, no_confidences = self.frame, ""
        column = confidence
        if column is None and "confidence" in self.columns:
            column = "confidence"
        if column is not None:
            parse = fractions if column == "confidence" else amounts
            try:
                frame = frame.with_columns(parse(self, column).alias(CONFIDENCE))
            except InputError as error:
                if confidence is not None:
                    raise
                no_confidences = str(error)
        rows = tallied(frame, self._first(frame, n_votes))
        decided = {
            name: decisions_of(self, column_of_decisions(name, n_votes), rows["item"])
            for name in decisions
        }
        summary = confidences_of(rows) if CONFIDENCE in frame.columns else None
        ids = ids_of(rows["item"])
        return ids, Evidence(counts_of(rows), summary, decided, ids, no_confidences)

    def _first(self, frame: pl.DataFrame, n_votes: int | None) -> pl.DataFrame:
        import polars as pl

        if n_votes is None:
            return frame
        n_votes = as_integer(n_votes, "n_votes", 1)
        votes = frame.filter(pl.col("vote").is_not_null())
        if "sample" in self.columns:
            votes = votes.sort("sample", maintain_order=True)
        if "order" in self.columns:
            place = pl.int_range(pl.len()).over("item", "order")
            votes = votes.sort(2 * place + (pl.col("order") == "BA"), maintain_order=True)
        return votes.filter(pl.int_range(pl.len()).over("item") < n_votes)

    def _refuse_shared_items(self) -> None:
        """Refuse to add up two items of different tasks that have the same id."""
        import polars as pl

        if "task" not in self.columns:
            return
        pairs = self.frame.select("item", "task").unique(maintain_order=True)
        shared = pairs.filter(pl.col("item").is_duplicated())
        if shared.height:
            item = shared["item"][0]
            tasks = shared.filter(pl.col("item") == item)["task"].to_list()
            raise InputError(
                f"{self.source}: item {item!r} is in task {tasks[0]!r} and in task {tasks[1]!r}; "
                "filter or partition by task first"
            )


@dataclass(frozen=True, eq=False)
class VoteCounts(Table):
    """Wide counts: one row per item.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns `item` (text or Int64), `minus`, `tie`, `plus` (Int64) and every other column as it
        came.
    source : str
        What errors call these counts.
    """

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The items: (n,) array of int64, or of object holding str."""
        return ids_of(self.frame["item"])

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Votes per item in label order minus, tie, plus: (n, 3) array."""
        return counts_of(self.frame)

    def evidence(self, *, decisions: Sequence[str] = ()) -> tuple[NDArray[Any], Evidence]:
        """Ids and counts, with what others have decided: columns that hold the words of a vote.

        Raises
        ------
        InputError
            If there is no such column or it holds anything else; the message names the row.
        """
        decided = {name: decisions_of(self, name, self.frame["item"]) for name in decisions}
        return self.ids, Evidence(self.counts, decisions=decided, ids=self.ids)


def read_votes(source: Source, *, columns: Mapping[str, str] | None = None) -> Votes:
    """Read long votes, one row per vote.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.sources.read_table`. Columns `item` (or `id`, `item_id`) and `vote` are
        required. A vote is -1, 0 or 1 from A's point of view (+1: A is better), or A, tie or same,
        B in any case; an empty one is missing. Known too are `judge`, `order` (AB or BA), `sample`
        (a whole number), `confidence` (0 to 1 or empty, looked at by whoever uses it), `template`,
        `temperature`, `task`. Other columns are kept. Blanks around ids, judges, templates and
        tasks do not count.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"item": "qid"}``.

    Returns
    -------
    Votes

    Raises
    ------
    InputError
        If the source cannot be read; if a value is not of its column's kind: the message names the
        row, the column, the value and what was wanted; or if one sample has two different votes.

    Notes
    -----
    With a column `sample`, rows that agree in item, judge, order, sample, template, temperature and
    task (those of these that there are) are one sample. Repeated with an equal vote it counts once,
    and its first row is kept; a missing vote beside one that is not does not count. Without a
    column `sample` every row is one more vote. In a stream, which cannot be refused,
    :class:`btdagg.online.OnlineTally` counts a sample with different votes for none.
    """
    return _votes_of(read_table(source, ["item", "vote"], columns=columns))


def read_votes_or_counts(
    source: Source, *, columns: Mapping[str, str] | None = None
) -> Votes | VoteCounts:
    """Read long votes where there is a column `vote`, wide counts otherwise.

    Parameters
    ----------
    source, columns
        As `read_votes` and `read_counts` take them.

    Returns
    -------
    Votes or VoteCounts

    Raises
    ------
    InputError
        As `read_votes` and `read_counts` do.
    """
    table = read_table(source, ["item"], columns=columns)
    if "vote" in table.columns:
        return _votes_of(table)
    if not any(name in table.columns for pair in COUNT_COLUMNS.items() for name in pair):
        found = listing(table.columns)
        raise InputError(
            f"{table.source}: no column 'vote', nor 'minus', 'tie', 'plus'; found {found}"
        )
    return _counts_of(table)


def _votes_of(table: Table) -> Votes:
    frame = parse_columns(table, _VOTE_PARSERS)
    votes = Votes(frame, table.source, row_numbers=table.row_numbers)
    if "sample" not in votes.columns:
        return votes
    return without_repeats(votes, [c for c in _VOTE_KEY if c in votes.columns], "vote")


def read_counts(source: Source, *, columns: Mapping[str, str] | None = None) -> VoteCounts:
    """Read wide counts, one row per item.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.sources.read_table`. Columns `item` (or `id`, `item_id`), `minus` (or
        `b`), `tie` (or `same`) and `plus` (or `a`) are required; counts are whole numbers below
        2**53. Other columns are kept.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"item": "qid"}``.

    Returns
    -------
    VoteCounts

    Raises
    ------
    InputError
        If the source cannot be read, a count is not a whole number of at least 0, an item (of the
        same task and judge, where there are such columns) is there twice, or a count column is
        there under both of its names.
    """
    return _counts_of(read_table(source, ["item"], columns=columns))


def _counts_of(table: Table) -> VoteCounts:
    sides = {_count_column(table, side): side for side in COUNT_COLUMNS}
    frame = parse_columns(
        table,
        {"item": item_ids, "task": names, "judge": names, **dict.fromkeys(sides, whole_numbers)},
    )
    counts = VoteCounts(frame.rename(sides), table.source, row_numbers=table.row_numbers)
    refuse_duplicates(counts, [c for c in ("item", "task", "judge") if c in counts.columns])
    return counts


def _count_column(table: Table, name: str) -> str:
    """Return which of its two names a count column has in the table."""
    other = COUNT_COLUMNS[name]
    if other not in table.columns:
        require(table, [name])
        return name
    if name in table.columns:
        raise InputError(f"{table.source}: columns {name!r} and {other!r} mean the same")
    return other


def tally(items: ArrayLike, votes: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Gather long votes into counts by item.

    Parameters
    ----------
    items : (m,) array of integers or strings
        Item of each vote. None is masked; blanks count, as in any Python string.
    votes : (m,) array of -1, 0, 1
        Votes from A's point of view. A missing vote is to be left out; it is no tie. Each is one
        more vote: where samples may be repeated use `read_votes` or `btdagg.online.OnlineTally`.

    Returns
    -------
    ids : (n,) array
        Items in the order in which they are first seen: of the type of integer ids, of NumPy's
        fixed-width string type where that came, of object holding str for other strings.
    counts : (n, 3) array of int64
        Votes per item in label order: minus, tie, plus.

    Raises
    ------
    InputError
        If lengths disagree, an item is masked or neither integer nor string, a vote is not -1, 0 or
        1 (the message names the row), or two pandas series have different indexes.

    Examples
    --------
    >>> ids, counts = tally(["x", "y", "x"], [1, 0, -1])
    >>> ids.tolist(), counts.tolist()
    (['x', 'y'], [[1, 0, 1], [0, 1, 0]])
    """
    known, cast = _as_items(items), as_labels(votes, "votes")
    same_length("votes", len(cast), "items", len(known))
    same_index(items=items, votes=votes)
    if known.dtype.kind in "iu":
        # Of 64 bits either way: unsigned ids keep their bits on the way in and out.
        signed = np.ascontiguousarray(known.astype(f"{known.dtype.kind}8", copy=False))
        found, counts = _core.tally_integers(signed.view(np.int64), cast)
        return found.view(signed.dtype).astype(known.dtype, copy=False), counts
    names, counts = _core.tally_strings(known.tolist(), cast)
    return np.array(names, dtype=known.dtype if known.dtype.kind == "U" else object), counts


def _as_items(items: ArrayLike) -> NDArray[Any]:
    if isinstance(items, list | tuple) and items and isinstance(items[0], str):
        # Objects, because NumPy's own strings lose trailing NULs.
        array = np.empty(len(items), dtype=object)
        array[:] = items
    else:
        array = np.asarray(unmasked(items, "items"))
    if array.ndim != 1:
        raise InputError(f"items has shape {array.shape}, want one dimension")
    if isinstance(items, list | tuple) and array.dtype.kind == "U":
        raise InputError("items mixes strings and numbers, want one kind")
    if array.dtype.kind in "OT" and array.size and not isinstance(array[0], str):
        refuse_wide_ids(array.tolist(), unsigned=True)
        array = np.asarray(array.tolist())  # integers that came as objects
        if array.dtype.kind == "O":
            raise InputError("items has dtype object, want integers or strings")
    if array.dtype.kind == "f" and isinstance(items, list | tuple):
        refuse_wide_ids(items, unsigned=True)  # of either sign and too far apart
    if array.size == 0 and array.dtype.kind == "f":
        return array.astype(np.int64)  # an empty list
    if array.dtype.kind not in "iuUOT":
        raise InputError(f"items has dtype {array.dtype}, want integers or strings")
    return array


# Arrays of columns


def ids_of(items: pl.Series) -> NDArray[Any]:
    """Return items as an array of int64, or of object holding str."""
    return items.to_numpy() if items.dtype.is_integer() else np.array(items.to_list(), dtype=object)


def counts_of(frame: pl.DataFrame) -> NDArray[np.int64]:
    """Return the columns minus, tie, plus as an (n, 3) array."""
    return frame.select(list(COUNT_COLUMNS)).to_numpy(order="c")
