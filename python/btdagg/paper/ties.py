"""How often judges call a tie, by any two columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.evaluation.intervals import Interval, proportion_interval, share_interval
from btdagg.evaluation.parts import among_gold_ties
from btdagg.methods import MajorityVote
from btdagg.votes.table import require
from btdagg.votes.votes import require_single

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.methods import Aggregator
    from btdagg.votes import Labels, Votes


@readable
@dataclass(frozen=True, eq=False)
class TieRates:
    """Ties by two columns; a table of r rows and c columns, with averages.

    Attributes
    ----------
    unit : str
        ``votes`` or ``items``: whether rates are shares of votes or of items.
    row_names, column_names : tuple of str
        Values of the two columns, in the order in which they are first seen.
    ties, totals : (r, c) arrays of int64
        Votes, or decisions on items, that are ties; and all of them, without missing ones.
    n_items : (r, c) array of int64
        Items with at least one vote, on which the intervals are based.
    n_missing : (r, c) array of int64
        Votes that are missing.
    """

    unit: str
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    ties: NDArray[np.int64]
    totals: NDArray[np.int64]
    n_items: NDArray[np.int64]
    n_missing: NDArray[np.int64]

    @property
    def cells(self) -> tuple[tuple[Interval | None, ...], ...]:
        """Rate and 95% interval of every cell, row by row; None where there is no vote."""
        return tuple(
            tuple(self._interval((row, column)) for column in range(len(self.column_names)))
            for row in range(len(self.row_names))
        )

    @property
    def row_averages(self) -> tuple[Interval | None, ...]:
        """Rate and 95% interval of every row, over all of its columns."""
        return tuple(self._interval((row, slice(None))) for row in range(len(self.row_names)))

    @property
    def column_averages(self) -> tuple[Interval | None, ...]:
        """Rate and 95% interval of every column, over all of its rows."""
        return tuple(
            self._interval((slice(None), column)) for column in range(len(self.column_names))
        )

    @property
    def overall(self) -> Interval | None:
        """Rate and 95% interval over the whole table."""
        return self._interval((slice(None), slice(None)))

    def _interval(self, where: tuple[int | slice, int | slice]) -> Interval | None:
        total = int(self.totals[where].sum())
        if not total:
            return None
        rate, n = int(self.ties[where].sum()) / total, int(self.n_items[where].sum())
        if rate in (0, 1):  # where the normal interval has no width
            return proportion_interval(round(rate * n), n)
        return share_interval(rate, n)


def tie_rates(
    votes: Votes,
    rows: str = "judge",
    columns: str = "template",
    *,
    unit: Literal["votes", "items"] = "votes",
    aggregator: Aggregator | None = None,
    gold_ties: Labels | None = None,
) -> TieRates:
    """Tabulate the share of ties by the values of two columns.

    Parameters
    ----------
    votes : Votes
        Long votes; missing ones do not count.
    rows, columns : str
        Columns of the votes.
    unit : "votes" or "items"
        Whether rates are over votes, or over items: one decision from all votes of an item in a
        cell.
    aggregator : Aggregator, optional
        Decides items; fitted, if it needs fitting. By default majority vote.
    gold_ties : Labels, optional
        Count only items that these labels call a tie, as in the paper.

    Returns
    -------
    TieRates

    Raises
    ------
    InputError
        If there is no such column, both are the same, an argument is out of range, an item is in
        several tasks, or nothing is left to count.

    Notes
    -----
    The interval of a rate p is ``p ± 1.96 sqrt(p (1 - p) / n)`` with n items, not votes. The
    paper's figures imply this: 37.6% is 253 of 672 votes, two on each of 336 items, and ± 5.2% is
    the interval for n = 336. Where no vote is a tie, or all are, it is Wilson's, since the normal
    one would have no width. It is right if the votes on an item always agree, and too wide if they
    do not. An average pools its cells and sums their n: ± 2.5% in the paper is the interval for n =
    3 · 336. With equal numbers per cell it is the mean of their rates. As in the paper, the
    interval of an average ignores that cells share items.

    References
    ----------
    The paper's table of tie rates for different models and prompts.
    """
    require_single(votes)
    if unit not in ("votes", "items"):
        raise InputError(f"unit is {unit!r}, expected 'votes' or 'items'")
    if aggregator is not None and unit == "votes":
        raise InputError("aggregator is given and unit is 'votes', expected unit='items'")
    require(votes, [rows, columns])
    if rows == columns:
        raise InputError(f"rows and columns are both {rows!r}, expected two columns")
    if gold_ties is not None:
        votes = among_gold_ties(votes, gold_ties)
    parts = votes.partition([rows, columns])
    if not parts:
        raise InputError(f"{votes.source}: no votes")
    row_names = tuple(dict.fromkeys(key[0] for key, _ in parts))
    column_names = tuple(dict.fromkeys(key[1] for key, _ in parts))
    found = np.zeros((4, len(row_names), len(column_names)), dtype=np.int64)
    method = MajorityVote() if aggregator is None else aggregator
    for (row, column), part in parts:
        _, evidence = part.evidence()
        voted = np.asarray(evidence.counts).sum(axis=1) > 0
        known = evidence[voted]
        if unit == "votes":
            ties, total = int(known.counts[:, 1].sum()), int(known.counts.sum())
        else:
            decided = method.decide(known.counts if known.is_plain else known)
            ties, total = int((decided == 0).sum()), len(known)
        place = (slice(None), row_names.index(row), column_names.index(column))
        found[place] = (ties, total, len(known), part.n_missing)
    if not found[1].any():
        raise InputError(f"{votes.source}: all votes are missing")
    ties_, totals, n_items, n_missing = found
    return TieRates(unit, row_names, column_names, ties_, totals, n_items, n_missing)
