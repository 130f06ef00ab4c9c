"""Positional bias: how often the response that is shown first wins, and what it does to errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg.evaluation.comparison import evaluate
from btdagg.evaluation.conditions import columns_to_go_by, fit_for, on_same_items
from btdagg.evaluation.intervals import Interval
from btdagg.evaluation.parts import Key, among_gold_ties, grouping
from btdagg.evaluation.protocol import DEFAULT, Protocol
from btdagg.tables import require
from btdagg.validation import as_integer
from btdagg.votes import Votes

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike

    from btdagg.aggregators import Aggregator
    from btdagg.evaluation.scores import Comparison
    from btdagg.labels import Labels

_SHOWN = "\0shown"  # no column of a source is called that


@dataclass(frozen=True)
class PositionalBias:
    """Votes by the place in which the preferred response was shown.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that were gone by.
    setting : str or None
        Value of the column that tells forced choice from ties allowed, if one was given.
    first, second, tie : int
        Votes for the response shown first, for the one shown second, and for neither.
    n_missing : int
        Votes that are missing; they are in none of the three.
    n_ab, n_ba : int
        Votes, other than missing ones, that were shown A first and B first. Where the two differ
        much, the bias is mixed with how much better A is.
    n_items : int
        Items with at least one vote.
    bias : float or None
        (first - second) / (first + second); None where both are 0.
    interval : Interval or None
        The bias with its 95% interval over items; None where fewer than two items have a vote that
        is no tie.
    """

    key: Key
    setting: str | None
    first: int
    second: int
    tie: int
    n_missing: int
    n_ab: int
    n_ba: int
    n_items: int
    bias: float | None
    interval: Interval | None


@dataclass(frozen=True, eq=False)
class OrderComparison:
    """Aggregators on votes of one order, of the other, and of both, at equal numbers of votes.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that were gone by.
    n_votes : int
        Votes per item in each of the three.
    first, second, balanced : Comparison
        Scores with votes that were shown A first alone, B first alone, and half of each; on the
        same items and splits.
    n_left_out : int
        Items left out, which have fewer than `n_votes` votes of either order.
    """

    key: Key
    n_votes: int
    first: Comparison
    second: Comparison
    balanced: Comparison
    n_left_out: int


@dataclass(frozen=True, eq=False)
class OrderComparisons:
    """What `compare_orders` found.

    Attributes
    ----------
    by : tuple of str
        Columns that were gone by.
    comparisons : tuple of OrderComparison
        One per value of those columns.
    skipped : tuple of (key, reason)
        Values of those columns that could not be evaluated.
    """

    by: tuple[str, ...]
    comparisons: tuple[OrderComparison, ...]
    skipped: tuple[tuple[Key, str], ...]


def positional_bias(
    votes: Votes,
    *,
    by: Sequence[str] | None = None,
    setting: str | None = None,
    gold_ties: Labels | None = None,
) -> tuple[PositionalBias, ...]:
    """Count votes for the first and the second response shown, and how much the first is favoured.

    A vote is from A's point of view; order AB shows A first, so that there +1 is a vote for the
    first, and under BA one for the second.

    Parameters
    ----------
    votes : Votes
        Long votes with a column `order`. For a bias that owes nothing to which response is better,
        every item wants as many votes of one order as of the other.
    by : sequence of str, optional
        Columns; each of their values is looked at by itself. `judge`, where there is such a
        column, unless given.
    setting : str, optional
        A further column, which tells forced-choice votes from those that allow a tie.
    gold_ties : Labels, optional
        Where given, only the items that these labels call a tie count, as in the paper.

    Returns
    -------
    tuple of PositionalBias
        In the order in which the values are first seen.

    Raises
    ------
    InputError
        If there is no such column, or no item with votes has a label that is a tie.

    Notes
    -----
    With f and s an item's votes for the first and the second, and b the bias, the interval is
    ``b ± 1.96 sqrt(m / (m - 1) sum((f - s - b (f + s))²)) / sum(f + s)`` over the m items with a
    vote that is no tie: that of a ratio of sums over independent items. Votes on the same item
    need not be independent. It is cut at -1 and 1, and has no width where all items agree.

    The formula is that of the paper's caption. Of 220, 199 and 253 ties it makes 5.0%, where the
    paper's table has 3.1%: that is (220 - 199) / 672, over ties too.

    References
    ----------
    The paper's table of positional bias with forced choice and with ties allowed, which has no
    intervals; Cochran (1977), Sampling Techniques, section 6.4, for that of a ratio.
    """
    if not isinstance(votes, Votes):
        raise InputError(f"votes is a {type(votes).__name__}, want single votes (read_votes)")
    chosen = grouping(votes, by, ("judge",))
    columns = chosen if setting is None else (*chosen, setting)
    require(votes, ["order", *columns])
    if gold_ties is not None:
        votes = among_gold_ties(votes, gold_ties)
    return tuple(
        _bias_of(part, key[: len(chosen)], None if setting is None else key[-1])
        for key, part in votes.partition(columns)
    )


def compare_orders(
    votes: Votes,
    labels: Labels,
    n_votes: int,
    *,
    by: Sequence[str] | None = None,
    aggregators: Sequence[Aggregator] | None = None,
    confidence: str | None = None,
    protocol: Protocol = DEFAULT,
    progress: Callable[[int], Callable[[], object]] | None = None,
) -> OrderComparisons:
    """Compare aggregators on votes of the first order, of the second, and of both in equal parts.

    Parameters
    ----------
    votes : Votes
        Long votes with a column `order`. An item takes part where it has `n_votes` votes, other
        than missing ones, of either order.
    labels : Labels
        Gold labels; items that share a `group` are split together.
    n_votes : int
        Votes per item, even; the paper has 12.
    by : sequence of str, optional
        Columns; each of their values is looked at by itself. Task and judge, where there are such
        columns, unless given.
    aggregators, confidence, protocol, progress
        See `evaluate`.

    Returns
    -------
    OrderComparisons

    Raises
    ------
    InputError
        If `n_votes` is not even and positive, there is no such column, or, wherever it is looked
        at, no item has enough votes or votes of several judges, templates or temperatures are
        pooled, so that the three would differ in more than order; and where `evaluate` raises one.

    References
    ----------
    The paper's positional bias mitigation with flipping orders.
    """
    import polars as pl

    n_votes = as_integer(n_votes, "n_votes", 2)
    if n_votes % 2:
        raise InputError(f"n_votes is {n_votes}, want an even number: half of each order")
    votes, chosen = columns_to_go_by(votes, labels, by, "order")
    require(votes, ["order"])
    votes, refused = fit_for(votes, chosen, _refuse_unlike)
    same = on_same_items(votes, chosen, "order", n_votes)
    frame = same.votes.frame
    shown = pl.when(pl.col("order") == "AB").then(pl.lit("first")).otherwise(pl.lit("second"))
    thrice = pl.concat(
        [
            frame.with_columns(shown.alias(_SHOWN)),
            frame.with_columns(pl.lit("balanced").alias(_SHOWN)),
        ]
    )
    found = evaluate(
        replace(same.votes, frame=thrice),
        labels,
        by=(*chosen, _SHOWN),
        n_votes=[n_votes],
        aggregators=aggregators,
        confidence=confidence,
        protocol=protocol,
        progress=progress,
    )
    by_key: dict[Key, dict[str, Comparison]] = {}
    for cell in found.cells:
        by_key.setdefault(cell.key[:-1], {})[cell.key[-1]] = cell.comparison
    return OrderComparisons(
        chosen,
        tuple(
            OrderComparison(key, n_votes, **scores, n_left_out=same.n_left_out[key])
            for key, scores in by_key.items()
            if len(scores) == 3  # what failed on the way is among those skipped
        ),
        (
            *refused,
            *same.empty,
            *{key[:-1]: (key[:-1], reason) for key, reason in found.skipped}.values(),
        ),
    )


def _refuse_unlike(part: Votes, key: Key) -> None:
    """Refuse votes of one order alone, and votes that differ in more than order."""
    where = f"{part.source}, {' '.join(key)}" if key else part.source
    if part.frame["order"].n_unique() < 2:
        raise InputError(f"{where}: all votes have order {part.frame['order'][0]}, want both")
    for column in ("judge", "template", "temperature"):
        if column in part.columns and part.frame[column].n_unique() > 1:
            raise InputError(
                f"{where}: votes of several values of {column} are pooled; filter by {column}, or "
                "go by it"
            )


def _bias_of(part: Votes, key: Key, setting: str | None) -> PositionalBias:
    import polars as pl

    shown = part.frame.drop_nulls("vote").with_columns(
        pl.when(pl.col("order") == "AB").then(pl.col("vote")).otherwise(-pl.col("vote"))
    )
    identity = [column for column in ("item", "task") if column in shown.columns]
    per_item = shown.group_by(identity, maintain_order=True).agg(
        first=_number(pl.col("vote") == 1),
        second=_number(pl.col("vote") == -1),
        tie=_number(pl.col("vote") == 0),
    )
    first, second, tie = (int(per_item[name].sum()) for name in ("first", "second", "tie"))
    n_ab = int((shown["order"] == "AB").sum())
    return PositionalBias(
        key,
        setting,
        first,
        second,
        tie,
        n_missing=part.n_missing,
        n_ab=n_ab,
        n_ba=shown.height - n_ab,
        n_items=per_item.height,
        bias=(first - second) / (first + second) if first + second else None,
        interval=_ratio_interval(per_item["first"].to_numpy(), per_item["second"].to_numpy()),
    )


def _number(condition: pl.Expr) -> pl.Expr:
    import polars as pl

    return condition.sum().cast(pl.Int64)


def _ratio_interval(first: ArrayLike, second: ArrayLike) -> Interval | None:
    """95% interval of ``sum(first - second) / sum(first + second)`` over items."""
    first, second = np.asarray(first), np.asarray(second)
    decisive = first + second
    n = int((decisive > 0).sum())
    if n < 2:
        return None
    bias = float((first - second).sum() / decisive.sum())
    rest = (first - second) - bias * decisive
    half = 1.96 * float(np.sqrt(n / (n - 1) * (rest**2).sum()) / decisive.sum())
    return Interval(bias, max(bias - half, -1.0), min(bias + half, 1.0))
