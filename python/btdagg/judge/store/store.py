"""The vote store: what was asked, and what came of it, as samples, as a table and summed up."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from btdagg.judge.client import ORDERS, STATUSES, Order, Setup, Status, batched
from btdagg.judge.store import database as schema
from btdagg.judge.store.database import Database, StoreError, in_parts
from btdagg.judge.store.owner import Batch, Owner, open_batches
from btdagg.votes.scale import points_of, written

if TYPE_CHECKING:
    import polars as pl

_ROWS = 10_000  # fetched at a time
_WAY = ("judge", "template", "temperature", "reasoning_effort", "method")
_STRENGTH = ("margin", *schema.PROBABILITIES)
_VOTE = (
    *("item", "order", "sample", "vote", "grade", "status", "confidence"),
    *(*_STRENGTH, "reason", "attempts"),
    *("prompt_tokens", "completion_tokens", "reasoning_tokens", "cost", "latency", "finished"),
)
_OF_ITEMS = ("task", "criterion", "name", *schema.SYSTEMS)
_EXCHANGE = ("model", "finish_reason", "messages", "reasoning", "answer")
_TOKENS = ("prompt_tokens", "completion_tokens", "reasoning_tokens")
_LABELS = ("minus", "tie", "plus")


class VoteStore(Database):
    """Votes in SQLite or PostgreSQL.

    Parameters
    ----------
    place : str or path
        File of an SQLite database; or a URL, such as ``postgresql://user@host/database``.
    create : bool
        Whether to make what is not there. Without it a store is opened for reading.
    keep_exchanges : bool
        Whether to keep what is sent and answered, not only the votes.

    Raises
    ------
    StoreError
        If it cannot be opened, is of another version, or is a database of something else.
    """

    def __init__(
        self, place: str | os.PathLike[str], *, create: bool = True, keep_exchanges: bool = True
    ) -> None:
        super().__init__(place, create=create)
        self.keep_exchanges = keep_exchanges

    def ask_of(self, setup: Setup) -> int:
        """Return the number of a setup; it is written down when it is new."""
        settings = json.dumps(dict(setup.settings), sort_keys=True, default=str)
        grades = None if setup.scale.mirrored else written(setup.scale.points)
        values = {**vars(setup), "prompt": setup.prompt, "settings": settings, "grades": grades}
        del values["scale"]
        with self._engine.begin() as connection:
            for points in connection.execute(sa.select(schema.asks.c.grades).limit(1)).scalars():
                if points != grades:
                    which = f"grades on {points}" if points else "votes on pairs"
                    raise StoreError(
                        f"{self.name} is a store of {which}; use another store for these"
                    )
            insert = self.insert(schema.asks).on_conflict_do_nothing()
            connection.execute(insert, values)
            query = sa.select(schema.asks.c.id).where(_has_setup(setup))
            return int(connection.execute(query).scalar_one())

    @contextmanager
    def owner(self) -> Iterator[Owner]:
        """A process that asks; its methods are for one thread at a time."""
        with self._engine.connect() as connection:
            owner = Owner(self, connection, self.keep_exchanges)
            try:
                yield owner
            finally:
                owner.leave()

    # Reading

    @property
    def grades(self) -> str | None:
        """The scale of the grades that it has, such as ``1-5``; None of votes on pairs."""
        with self.reading() as connection:
            points: str | None
            points = connection.execute(sa.select(schema.asks.c.grades).limit(1)).scalar()
        return points

    def samples_of(
        self, setup: Setup, items: Iterable[str], *more: str
    ) -> dict[str, dict[tuple[Order, int], tuple[Status | None, int | None, *tuple[Any, ...]]]]:
        """Status and vote of each sample that is there, and more columns, by item.

        The status is None while there is no answer, and the vote unless the status is ``ok``. The
        column `answer` is None where exchanges are not kept.
        """
        votes, answer = schema.votes, schema.exchanges.c.answer
        names = ("item", "order", "sample", "status", "vote", *more)
        query = sa.select(*(answer if name == "answer" else votes.c[name] for name in names))
        query = query.select_from(votes).join(schema.asks).where(_has_setup(setup))
        if "answer" in more:
            same = _same(schema.exchanges, "ask", "item", "order", "sample")
            query = query.outerjoin(schema.exchanges, same)
        samples: dict[str, dict[Any, Any]] = defaultdict(dict)
        with self.reading() as connection:
            for item, order, sample, *rest in in_parts(connection, query, votes.c.item, items):
                samples[item][order, sample] = tuple(rest)
        return dict(samples)

    def batches(self) -> list[Batch]:
        """Batches that are not done with, the oldest first."""
        with self.reading() as connection:
            return open_batches(connection)

    def answer_tokens_of(self, judge: str) -> float | None:
        """Mean number of tokens of a judge's answers, thinking included; None without any."""
        query = sa.select(sa.func.avg(schema.votes.c.completion_tokens)).join(schema.asks)
        with self.reading() as connection:
            mean = connection.execute(query.where(schema.asks.c.judge == judge)).scalar()
        return None if mean is None else float(mean)

    # Decisions

    def write_decisions(
        self,
        setup: Setup,
        name: str,
        decided: Mapping[str, int],
        *,
        undecided: Collection[str] = (),
    ) -> None:
        """Write what a method decided on items, in place of what it decided before.

        `name` is the column of the decisions in tables, such as ``gsa_8``; of the `undecided` items
        an earlier decision no longer holds. Exports join by judge and template.
        """
        table = schema.decisions
        key = {"judge": setup.judge, "template_digest": setup.template_digest, "name": name}
        rows = [{**key, "item": item, "decision": int(decided[item])} for item in decided]
        earlier = table.delete().where(*(table.c[column] == value for column, value in key.items()))
        with self._engine.begin() as connection:
            for items in batched([*decided, *undecided], _ROWS):
                connection.execute(earlier.where(table.c.item.in_(items)))
            if rows:
                connection.execute(table.insert(), rows)


def _has_setup(setup: Setup) -> sa.ColumnElement[bool]:
    asks = schema.asks
    return sa.and_(asks.c.judge == setup.judge, asks.c.prompt == setup.prompt)


# As a table, and summed up


def read_store(place: str) -> tuple[pl.DataFrame, str]:
    """Votes of the store at a path or URL, and the store's name."""
    with VoteStore(place, create=False) as store:
        return votes_frame(store), store.name


def votes_frame(
    store: VoteStore,
    *,
    methods: Collection[str] = ("sample",),
    exchanges: bool = False,
    setup: Setup | None = None,
) -> pl.DataFrame:
    """Votes of a store, one row per sample, with the columns of docs/store.md."""
    # Decisions of methods not in `methods` are columns such as ``gsa_8``. `setup` selects one
    # setup. Margins and probabilities are there if any vote has them. Setups of one name are told
    # apart by a part of the prompt's digest after the template's name.
    import polars as pl

    votes, asks, items = schema.votes, schema.asks, schema.items
    source: Any = votes.join(asks).outerjoin(items, items.c.item == votes.c.item)
    columns = [votes.c.ask, *(items.c[name] for name in _OF_ITEMS)]
    columns += [votes.c[name] for name in _VOTE]
    if exchanges:
        kept, sent = schema.exchanges, schema.requests
        source = source.outerjoin(kept, _same(kept, "ask", "item", "order", "sample"))
        source = source.outerjoin(sent, _same(sent, "ask", "item", "order"))
        columns += [sent.c.messages if name == "messages" else kept.c[name] for name in _EXCHANGE]
    is_wanted = asks.c.method.in_(list(methods)) if setup is None else _has_setup(setup)
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
    key = ["judge", "template_digest", "item"]
    names = sorted(decisions["name"].unique())
    for name in names:
        decided = decisions.filter(name=name).select(
            *key, pl.col("decision").cast(pl.Int8).alias(name)
        )
        frame = frame.join(decided, on=key, how="left", maintain_order="left")
    frame = frame.with_columns(pl.coalesce("name", "item").alias("item"))
    order = ["item", "task", "criterion", *schema.SYSTEMS, *_WAY, *names, *_VOTE]
    order += _EXCHANGE if exchanges else ()
    optional = ("task", "criterion", *schema.SYSTEMS, "reasoning_effort", *_STRENGTH)
    unused = [name for name in optional if frame[name].null_count() == frame.height]
    frame = frame.select(name for name in dict.fromkeys(order) if name not in unused)
    if (points := store.grades) is None:
        return frame.drop("grade").with_columns(pl.col("vote").cast(pl.Int8))
    is_whole = all(isinstance(point, int) for point in points_of(points))
    score = pl.col("grade").cast(pl.Int64) if is_whole else pl.col("grade")
    frame = frame.drop("order", "vote").with_columns(score, grades=pl.lit(points))
    return frame.rename({"grade": "score"})


def summaries(store: VoteStore) -> list[dict[str, Any]]:
    """Sum up a store by judge, template and method, in the order in which they were first asked."""
    # `statuses` counts samples (``asking``: a run asks, or was killed); votes are from A's point of
    # view, for the response shown first and second, and by order; `positional_bias` is ``(first -
    # second) / (first + second)``.
    votes, asks, items, func = schema.votes, schema.asks, schema.items, sa.func
    status, vote, order = votes.c.status, votes.c.vote, votes.c.order

    def n_of(*conditions: Any) -> Any:
        return func.count(sa.case((sa.and_(*conditions), 1)))

    columns: dict[str, Any] = {
        "n_items": func.count(sa.distinct(func.coalesce(items.c.name, votes.c.item))),
        "n_votes": func.count(func.coalesce(vote, votes.c.grade)),
        "mean_grade": func.avg(votes.c.grade),
        **{name: n_of(status == name) for name in STATUSES},
        "asking": n_of(votes.c.item.is_not(None), status.is_(None)),
        **{name: n_of(vote == value) for name, value in zip(_LABELS, (-1, 0, 1), strict=True)},
        "first": n_of(order == "AB", vote == 1) + n_of(order == "BA", vote == -1),
        "second": n_of(order == "AB", vote == -1) + n_of(order == "BA", vote == 1),
        **{f"n_{name.lower()}": n_of(order == name, vote.is_not(None)) for name in ORDERS},
        **{name: func.coalesce(func.sum(votes.c[name]), 0) for name in _TOKENS},
        "cost": func.sum(votes.c.cost),
        "latency": func.avg(votes.c.latency),
    }
    query = (
        sa.select(*(asks.c[name] for name in _WAY), *(x.label(n) for n, x in columns.items()))
        .outerjoin(votes)
        .outerjoin(items, items.c.item == votes.c.item)
        .group_by(*(asks.c[name] for name in ("id", *_WAY)))
        .order_by(asks.c.id)
    )
    with store.reading() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    for row in rows:
        statuses = {name: row.pop(name) for name in (*STATUSES, "asking")}
        row["statuses"] = {name: n for name, n in statuses.items() if n}
        n_pairs = row["minus"] + row["tie"] + row["plus"]
        row["tie_rate"] = row["tie"] / n_pairs if n_pairs else None
        n_wins = row["first"] + row["second"]
        row["positional_bias"] = (row["first"] - row["second"]) / n_wins if n_wins else None
    return rows


def _same(table: sa.Table, *names: str) -> sa.ColumnElement[bool]:
    return sa.and_(*(schema.votes.c[name] == table.c[name] for name in names))


def _frame(connection: sa.Connection, query: sa.Select[Any]) -> pl.DataFrame:
    import polars as pl

    kinds = {sa.Integer: pl.Int64, sa.SmallInteger: pl.Int64, sa.Float: pl.Float64}
    types = {
        column.name: kinds.get(type(column.type), pl.String) for column in query.selected_columns
    }
    parts = [pl.DataFrame(schema=types)]
    for rows in connection.execution_options(yield_per=_ROWS).execute(query).partitions():
        parts.append(pl.DataFrame([tuple(row) for row in rows], schema=types, orient="row"))
    return pl.concat(parts)
