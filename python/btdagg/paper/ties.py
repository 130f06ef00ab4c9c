"""How often judges call a tie, by any two columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.errors import expect, forbid
from btdagg._util.readable import Readable
from btdagg.evaluation import Interval, among_gold_ties, share_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg import Labels, Votes

_ALL = slice(None)


@dataclass(frozen=True, eq=False)
class TieRates(Readable):
    """Ties by two columns; a table of r rows and c columns, with averages.

    Attributes
    ----------
    row_names, column_names : tuple of str
        Values of the two columns, in the order in which they are first seen.
    ties, totals : (r, c) arrays of int64
        Votes that are ties, and all votes, without missing ones.
    n_items : (r, c) array of int64
        Items with at least one vote.
    n_missing : (r, c) array of int64
        Missing votes.
    """

    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    ties: NDArray[np.int64]
    totals: NDArray[np.int64]
    n_items: NDArray[np.int64]
    n_missing: NDArray[np.int64]

    def rate(self, row: int | slice = _ALL, column: int | slice = _ALL) -> Interval | None:
        """Rate and 95% interval of a cell, a row, a column or the table; None without a vote."""
        total = int(self.totals[row, column].sum())
        if not total:
            return None
        n_items = int(self.n_items[row, column].sum())
        return share_interval(int(self.ties[row, column].sum()) / total, n_items)


def tie_rates(
    votes: Votes,
    rows: str = "judge",
    columns: str = "template",
    *,
    gold_ties: Labels | None = None,
) -> TieRates:
    """Tabulate the share of ties by the values of two columns.

    Parameters
    ----------
    votes : Votes
        Long votes; missing ones do not count.
    rows, columns : str
        Columns of the votes.
    gold_ties : Labels, optional
        Count only items that these labels call a tie, as in the paper.

    Notes
    -----
    Intervals are Wilson's, of as many independent units as there are items: right if the votes on
    an item always agree, else too wide. The paper's figures imply this: 37.6% is 253 of 672 votes,
    two on each of 336 items, and ± 5.2% is the interval for 336. Averages pool cells; items add up.
    """
    expect(not votes.are_counts, "votes", "a table of counts", "single votes")
    forbid(rows == columns, f"rows and columns are both {rows!r}, expected two columns")
    if gold_ties is not None:
        votes = among_gold_ties(votes, gold_ties)
    parts = votes.partition([rows, columns])
    row_names = tuple(dict.fromkeys(key[0] for key, _ in parts))
    column_names = tuple(dict.fromkeys(key[1] for key, _ in parts))
    numbers = np.zeros((4, len(row_names), len(column_names)), dtype=np.int64)
    for (row, column), part in parts:
        counts = np.asarray(part.counts()[1])
        n_voted = int((counts.sum(axis=1) > 0).sum())
        place = (_ALL, row_names.index(row), column_names.index(column))
        numbers[place] = counts[:, 1].sum(), counts.sum(), n_voted, part.n_missing
    forbid(not numbers[1].any(), f"{votes.source}: all votes are missing")
    return TieRates(row_names, column_names, *numbers)
