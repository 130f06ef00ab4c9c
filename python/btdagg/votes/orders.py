"""Votes of one order that were not turned round to A's side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import remarks
from btdagg._util.lazy import pl

if TYPE_CHECKING:
    from btdagg.remarks import Remark
    from btdagg.votes.labels import Labels
    from btdagg.votes.table import Table

_DISAGREES, _AGREES = 0.01, 0.05  # one-sided levels of the two orders: by chance once in a thousand
_CONTRADICTS = 0.001  # one-sided level of a correlation of the orders
_BY_POSITION = -0.3  # correlation of the orders that a judge may have who goes by position
_FEWEST = 8  # items, or groups of items
_ROUNDING = 1e-9


def about_orders(votes: Table, labels: Labels | None = None) -> tuple[Remark, ...]:
    """Say of which judges the votes of one order seem not to be turned round.

    Labels show it if votes covary with them positively in one order and negatively in the other
    (t tests by groups): a preference for a position shifts votes, and leaves the sign of a
    covariance as it is. Else both orders of the same items show it, if their correlation is below
    -0.3 (Fisher's z), which few judges reach who go by position. Judges share the levels.
    """
    if not {"order", "vote"} <= {*votes.columns}:
        return ()
    judge = [name for name in ("judge",) if name in votes.columns]
    key = [name for name in ("task", "item") if name in votes.columns]
    rows = votes.data.lazy().drop_nulls(["order", "vote"])
    means = votes.collect(rows.group_by(*judge, *key, "order").agg(pl.col("vote").mean()))
    if not {"AB", "BA"} <= {*means["order"]}:
        return ()
    item = pl.col("item").cast(pl.String).str.strip_chars()
    wide = means.pivot("order", index=[*judge, *key], values="vote").with_columns(item)
    group = item
    if labels is not None:
        shared = [name for name in key if name in labels.columns]
        more = [name for name in ("label", "group") if name in labels.columns]
        gold = labels.frame.select(*shared, *more).with_columns(item)
        wide = wide.join(gold, on=shared, how="left")
        group = pl.coalesce("group", "item") if "group" in more else group
    wide = wide.with_columns(group=group).sort(*judge, *key)
    parts = wide.partition_by(judge, as_dict=True, maintain_order=True) if judge else {(): wide}
    said = (_about(part, name, len(parts)) for name, part in parts.items())
    return tuple(filter(None, said))


def _about(part: pl.DataFrame, judge: tuple[Any, ...], n_judges: int) -> Remark | None:
    from scipy.special import ndtr  # which takes a second to import

    who = "".join(map(str, judge))
    if "label" in part.columns:
        of_order = {order: part.drop_nulls([order, "label"]) for order in ("AB", "BA")}
        tails = {order: _tails(rows, order) for order, rows in of_order.items()}
        for bad, good in (("AB", "BA"), ("BA", "AB")):
            if tails[bad][0] < _DISAGREES / n_judges and tails[good][1] < _AGREES:
                agreement = {order: _agreement(of_order[order], order) for order in (good, bad)}
                return remarks.order_not_turned(agreement).within(who)
        if max(upper for _, upper in tails.values()) < _AGREES:
            return None
    both = part.drop_nulls(["AB", "BA"])
    a, b = (both[order].to_numpy() for order in ("AB", "BA"))
    if len(both) < _FEWEST or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    r = float(np.corrcoef(a, b)[0, 1])
    z = np.arctanh([np.clip(r, -1 + _ROUNDING, 1 - _ROUNDING), _BY_POSITION])
    if ndtr((z[0] - z[1]) * np.sqrt(len(both) - 3)) >= _CONTRADICTS / n_judges:
        return None
    return remarks.orders_contradict(r, len(both)).within(who)


def _tails(rows: pl.DataFrame, order: str) -> tuple[float, float]:
    """Return p-values of a negative and of a positive covariance of votes with labels."""
    from scipy.special import stdtr

    if rows["group"].n_unique() < _FEWEST:
        return 1.0, 1.0
    votes, labels = (rows[name].cast(pl.Float64).to_numpy() for name in (order, "label"))
    products = (votes - votes.mean()) * (labels - labels.mean())
    _, group = np.unique(rows["group"].to_numpy(), return_inverse=True)
    sums = np.bincount(group, products)
    squares, n = float((sums**2).sum()), len(sums)
    if not squares:
        return 1.0, 1.0
    t = float(sums.sum()) / np.sqrt(squares * n / (n - 1))
    return float(stdtr(n - 1, t)), float(stdtr(n - 1, -t))


def _agreement(rows: pl.DataFrame, order: str) -> float:
    sides = rows.filter((pl.col(order) != 0) & (pl.col("label") != 0))
    if not len(sides):
        return 0.0
    return float(np.mean((sides[order] > 0).to_numpy() == (sides["label"] > 0).to_numpy()))
