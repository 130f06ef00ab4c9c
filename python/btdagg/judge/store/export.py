"""What is in a store: as a table of votes, and summed up."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from btdagg._core import InputError
from btdagg._util.files import TABLE_SUFFIXES, write_table
from btdagg.judge.client import STATUSES, Asked
from btdagg.judge.store import schema
from btdagg.judge.store.store import VoteStore

if TYPE_CHECKING:
    import polars as pl

_ROWS = 10_000  # fetched at a time
_WAY = ("judge", "template", "temperature", "reasoning_effort", "method")
_VOTE = (
    *("item", "order", "sample", "vote", "status", "confidence", "reason", "attempts"),
    *("prompt_tokens", "completion_tokens", "reasoning_tokens", "cost", "latency", "finished"),
)
_EXCHANGE = ("model", "finish_reason", "messages", "reasoning", "answer")


@dataclass(frozen=True)
class Summary:
    """What a store has of one judge, asked in one way.

    Attributes
    ----------
    statuses : dict of status to int
        Samples; ``asking`` are those that a run asks for now, or asked for when it was killed.
    minus, tie, plus : int
        Votes, from A's point of view.
    first, second : int
        Votes for the response shown first, and for the one shown second.
    n_ab, n_ba : int
        Votes by order.
    latency : float or None
        Mean seconds of a call.
    """

    judge: str
    template: str
    method: str
    temperature: float | None
    reasoning_effort: str | None
    n_items: int
    statuses: dict[str, int]
    minus: int
    tie: int
    plus: int
    first: int
    second: int
    n_ab: int
    n_ba: int
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cost: float | None
    latency: float | None

    @property
    def n_votes(self) -> int:
        """Samples with a vote."""
        return self.minus + self.tie + self.plus

    @property
    def tie_rate(self) -> float | None:
        """Share of ties among votes."""
        return self.tie / self.n_votes if self.n_votes else None

    @property
    def positional_bias(self) -> float | None:
        """``(first - second) / (first + second)``."""
        decisive = self.first + self.second
        return (self.first - self.second) / decisive if decisive else None

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        shares = ("n_votes", "tie_rate", "positional_bias")
        return asdict(self) | {name: getattr(self, name) for name in shares}


def summaries(store: VoteStore) -> list[Summary]:
    """Sum up a store by judge, template and method, in the order in which they were first asked."""
    votes, asks, func = schema.votes, schema.asks, sa.func

    def votes_of(vote: int | None = None, order: str | None = None) -> sa.ColumnElement[int]:
        is_one = sa.and_(
            votes.c.vote.is_not(None) if vote is None else votes.c.vote == vote,
            sa.true() if order is None else votes.c.order == order,
        )
        return func.coalesce(func.sum(sa.case((is_one, 1), else_=0)), 0)

    sums = {
        "n_items": func.count(sa.distinct(votes.c.item)),
        "minus": votes_of(-1),
        "tie": votes_of(0),
        "plus": votes_of(1),
        "first": votes_of(1, "AB") + votes_of(-1, "BA"),
        "second": votes_of(-1, "AB") + votes_of(1, "BA"),
        "n_ab": votes_of(order="AB"),
        "n_ba": votes_of(order="BA"),
        "prompt_tokens": func.coalesce(func.sum(votes.c.prompt_tokens), 0),
        "completion_tokens": func.coalesce(func.sum(votes.c.completion_tokens), 0),
        "reasoning_tokens": func.coalesce(func.sum(votes.c.reasoning_tokens), 0),
        "cost": func.sum(votes.c.cost),
        "latency": func.avg(votes.c.latency),
    }
    ways = [asks.c[name] for name in _WAY]
    query = (
        sa.select(asks.c.id, *ways, *(column.label(name) for name, column in sums.items()))
        .outerjoin(votes)
        .group_by(asks.c.id, *ways)
        .order_by(asks.c.id)
    )
    by_status = sa.select(votes.c.ask, votes.c.status, func.count())
    with store.reading() as connection:
        numbers = Counter(
            {
                (ask, status or "asking"): n
                for ask, status, n in connection.execute(
                    by_status.group_by(votes.c.ask, votes.c.status)
                )
            }
        )
        rows = [dict(row) for row in connection.execute(query).mappings()]
    made = []
    for row in rows:
        ask = row.pop("id")
        statuses = {s: numbers[ask, s] for s in (*STATUSES, "asking") if numbers[ask, s]}
        made.append(Summary(**row, statuses=statuses))
    return made


def votes_frame(
    store: VoteStore,
    *,
    methods: Collection[str] = ("sample",),
    exchanges: bool = False,
    asked: Asked | None = None,
) -> pl.DataFrame:
    """Votes of a store, one row per sample, as `read_votes` takes them.

    Parameters
    ----------
    methods : collection of str
        Votes of these methods. What other methods decided is in columns of their own, such as
        ``gsa_8``, the same in every row of an item, judge and template.
    exchanges : bool
        Whether to add what was sent and answered.
    asked : Asked, optional
        Only votes that were asked for like this, by whatever method.

    Returns
    -------
    polars.DataFrame
        Columns `item`, `task` where it is known, `judge`, `template`, `temperature`,
        `reasoning_effort` and `method`, and those of docs/store.md. `vote` is null where there is
        none. Where one judge was asked in ways that go by the same name, the name of the template
        is followed by a part of the prompt's digest.
    """
    import polars as pl

    votes, asks, items = schema.votes, schema.asks, schema.items
    source: Any = votes.join(asks).outerjoin(items, items.c.item == votes.c.item)
    columns = [votes.c.ask, items.c.task, *(votes.c[name] for name in _VOTE)]
    if exchanges:
        kept, sent = schema.exchanges, schema.requests
        source = source.outerjoin(kept, _same(kept, "ask", "item", "order", "sample"))
        source = source.outerjoin(sent, _same(sent, "ask", "item", "order"))
        columns += [sent.c.messages if name == "messages" else kept.c[name] for name in _EXCHANGE]
    is_wanted: sa.ColumnElement[bool]
    if asked is None:
        is_wanted = asks.c.method.in_(list(methods))
    else:
        is_wanted = sa.and_(asks.c.judge == asked.judge, asks.c.prompt == asked.prompt)
    query = (
        sa.select(*columns)
        .select_from(source)
        .where(votes.c.status.is_not(None), is_wanted)
        .order_by(votes.c.ask, votes.c.item, votes.c.sample, votes.c.order)
    )
    with store.reading() as connection:
        frame = _frame(connection, query)
        ways = _frame(connection, sa.select(asks))
        decisions = _frame(connection, sa.select(schema.decisions))
    named = pl.struct(*_WAY).is_duplicated()
    ways = ways.select(
        pl.col("id").alias("ask"),
        "template_digest",
        *(name for name in _WAY if name != "template"),
        template=pl.when(named)
        .then(pl.col("template") + "#" + pl.col("prompt").str.slice(0, 8))
        .otherwise("template"),
    )
    frame = frame.join(ways, on="ask", how="left", maintain_order="left")
    order = ["item", "task", "judge", "template", "temperature", "reasoning_effort", "method"]
    order = [
        name
        for name in order
        if name not in ("task", "reasoning_effort") or frame[name].null_count() < frame.height
    ]
    key = ["judge", "template_digest", "item"]
    for name in sorted(decisions["name"].unique()):
        decided = decisions.filter(name=name).select(
            *key, pl.col("decision").cast(pl.Int8).alias(name)
        )
        frame = frame.join(decided, on=key, how="left", maintain_order="left")
        order.append(name)
    order += [name for name in (*_VOTE, *(_EXCHANGE if exchanges else ())) if name not in order]
    return frame.select(order).with_columns(pl.col("vote").cast(pl.Int8))


def export(frame: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write votes to a file, of a kind that its name says."""
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(f"{name}: expected a name in {', '.join(TABLE_SUFFIXES)}")
    try:
        write_table(frame, Path(name), suffix)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror or error}") from None


def _same(table: sa.Table, *names: str) -> sa.ColumnElement[bool]:
    return sa.and_(*(schema.votes.c[name] == table.c[name] for name in names))


def _frame(connection: sa.Connection, query: sa.Select[Any]) -> pl.DataFrame:
    """Rows of a query, fetched a part at a time, with the types of their columns."""
    import polars as pl

    kinds = {sa.Integer: pl.Int64, sa.SmallInteger: pl.Int64, sa.Float: pl.Float64}
    types = {
        column.name: kinds.get(type(column.type), pl.String) for column in query.selected_columns
    }
    parts = [pl.DataFrame(schema=types)]
    for rows in connection.execution_options(yield_per=_ROWS).execute(query).partitions():
        parts.append(pl.DataFrame([tuple(row) for row in rows], schema=types, orient="row"))
    return pl.concat(parts)
