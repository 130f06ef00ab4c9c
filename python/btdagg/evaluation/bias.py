"""Positional bias: how often the response shown first wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.lazy import pl
from btdagg._util.readable import Readable
from btdagg.evaluation.parts import Key, among_gold_ties, grouping
from btdagg.result import Interval
from btdagg.votes.table import require
from btdagg.votes.votes import require_single

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.votes.labels import Labels
    from btdagg.votes.votes import Votes


@dataclass(frozen=True)
class PositionalBias(Readable):
    """Votes by the place in which the preferred response was shown.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that votes are grouped by.
    first, second, tie : int
        Votes for the response shown first, for the one shown second, and for neither.
    n_missing : int
        Missing votes, which are in none of the three.
    n_ab, n_ba : int
        Votes with A and with B shown first. If the two differ much, the bias also reflects how much
        better A is.
    n_items : int
        Items with at least one vote.
    bias : float or None
        (first - second) / (first + second); None where both are 0.
    interval : Interval or None
        With its 95% interval over items; None if fewer than two have a vote that is not a tie.
    """

    key: Key
    first: int
    second: int
    tie: int
    n_missing: int
    n_ab: int
    n_ba: int
    n_items: int
    bias: float | None
    interval: Interval | None


def positional_bias(
    votes: Votes,
    *,
    by: Sequence[str] | None = None,
    gold_ties: Labels | None = None,
) -> tuple[PositionalBias, ...]:
    """Count votes for the first and the second response shown, and how much the first is favoured.

    A vote is from A's point of view. Under order AB, +1 is a vote for the response shown first;
    under BA it is one for the second.

    Parameters
    ----------
    votes : Votes
        Long votes with a column `order`. The bias does not depend on which response is better only
        if every item has as many votes in each order.
    by : sequence of str, optional
        Columns that votes are grouped by; by default `judge`, where there is such a column.
    gold_ties : Labels, optional
        Count only items that these labels call a tie, as in the paper.

    Returns
    -------
    tuple of PositionalBias
        In the order in which the values are first seen.

    Notes
    -----
    With f and s an item's votes for the first and the second, and b the bias, the interval is
    ``b ± 1.96 sqrt(m / (m - 1) sum((f - s - b (f + s))²)) / sum(f + s)`` over the m items with a
    vote that is not a tie (a ratio of sums over independent items), cut at -1 and 1. For 220 and
    199 votes and 253 ties the paper's formula gives 5.0%; its table has 3.1%, which counts ties in
    the denominator.

    References
    ----------
    The paper's table of positional bias; Cochran (1977), Sampling Techniques, section 6.4, for the
    interval of a ratio.
    """
    votes.scale.require_sides("the bias of positions")
    require_single(votes)
    columns = grouping(votes, by, ("judge",))
    require(votes, ["order", *columns])
    if gold_ties is not None:
        votes = among_gold_ties(votes, gold_ties)
    return tuple(_bias_of(part, key) for key, part in votes.partition(columns))


def _bias_of(part: Votes, key: Key) -> PositionalBias:
    minus, middle, plus = part.scale.points
    turned = minus + plus - pl.col("vote")
    shown = part.frame.drop_nulls("vote").with_columns(
        pl.when(pl.col("order") == "AB").then(pl.col("vote")).otherwise(turned)
    )
    identity = [column for column in ("item", "task") if column in shown.columns]
    sides = {"first": plus, "second": minus, "tie": middle}
    of_items = shown.group_by(identity, maintain_order=True).agg(
        (pl.col("vote") == vote).sum().cast(pl.Int64).alias(name) for name, vote in sides.items()
    )
    first, second, tie = (int(of_items[name].sum()) for name in sides)
    n_ab = int((shown["order"] == "AB").sum())
    return PositionalBias(
        key,
        first,
        second,
        tie,
        n_missing=part.n_missing,
        n_ab=n_ab,
        n_ba=shown.height - n_ab,
        n_items=of_items.height,
        bias=(first - second) / (first + second) if first + second else None,
        interval=_ratio_interval(of_items["first"].to_numpy(), of_items["second"].to_numpy()),
    )


def _ratio_interval(first: NDArray[Any], second: NDArray[Any]) -> Interval | None:
    decisive = first + second
    n = int((decisive > 0).sum())
    if n < 2:
        return None
    bias = float((first - second).sum() / decisive.sum())
    rest = (first - second) - bias * decisive
    half = 1.96 * float(np.sqrt(n / (n - 1) * (rest**2).sum()) / decisive.sum())
    return Interval(bias, max(bias - half, -1.0), min(bias + half, 1.0))
