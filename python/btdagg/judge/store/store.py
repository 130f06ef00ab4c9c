"""The vote store: what was asked, what is under way, what came back."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from btdagg.judge.client import Asked, Order, Status
from btdagg.judge.store import schema
from btdagg.judge.store.database import Database, StoreError, in_parts
from btdagg.judge.store.owner import OPEN, Batch, Owner, batches_of


class VoteStore(Database):
    """Votes in SQLite or PostgreSQL.

    Parameters
    ----------
    place : str or path
        File of an SQLite database, which is made if it is not there; or a URL, such as
        ``postgresql://user@host/database``.
    create : bool
        Whether to make what is not there. Without it a store is opened for reading: neither the
        file nor its folder need be writable.
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

    # What is asked

    def ask_of(self, asked: Asked) -> int:
        """Return the number of what is asked; it is written down when it is new."""
        settings = json.dumps(dict(asked.settings), sort_keys=True, default=str)
        names = (
            *("judge", "prompt", "template", "template_digest", "method", "temperature"),
            "reasoning_effort",
        )
        values = {name: getattr(asked, name) for name in names} | {"settings": settings}
        with self.plainly(), self._engine.begin() as connection:
            insert = self.insert(schema.asks).on_conflict_do_nothing()
            connection.execute(insert, values)
            query = sa.select(schema.asks.c.id).where(_is_asked(asked))
            return int(connection.execute(query).scalar_one())

    def require_endpoint(self, ask: int, endpoint: str, same: bool) -> None:
        """Refuse to mix votes of several endpoints, unless they are said to be the same judge."""
        table = schema.endpoints
        query = sa.select(table.c.endpoint).where(table.c.ask == ask).order_by(table.c.endpoint)
        with self.reading() as connection:
            stored = list(connection.execute(query).scalars())
        if stored and endpoint and endpoint not in stored and not same:
            raise StoreError(
                f"{self.name}: has votes of this judge from {', '.join(stored)}, and {endpoint} is "
                "asked now; same_endpoint says that they are one judge, and another name of the "
                "judge keeps them apart"
            )

    @contextmanager
    def owner(self) -> Iterator[Owner]:
        """A process that asks; its methods are for one thread at a time."""
        with self.plainly(), self._engine.connect() as connection:
            owner = Owner(self, connection, self.keep_exchanges)
            try:
                yield owner
            finally:
                owner.leave()

    # Reading

    def answers_of(
        self, asked: Asked, items: Iterable[str]
    ) -> dict[str, list[tuple[Order, int, int, str]]]:
        """Order, sample, vote and answer of each sample with a vote, by item.

        Empty where exchanges are not kept.
        """
        votes, exchanges = schema.votes, schema.exchanges
        key = ("ask", "item", "order", "sample")
        query = (
            _of(asked, votes.c.order, votes.c.sample, votes.c.vote, exchanges.c.answer)
            .join(exchanges, sa.and_(*(votes.c[name] == exchanges.c[name] for name in key)))
            .where(votes.c.status == "ok")
            .order_by(votes.c.sample, votes.c.order)
        )
        answers: dict[str, list[tuple[Order, int, int, str]]] = defaultdict(list)
        with self.reading() as connection:
            for item, *answer in in_parts(connection, query, votes.c.item, items):
                answers[item].append(tuple(answer))
        return dict(answers)

    def samples_of(
        self, asked: Asked, items: Iterable[str]
    ) -> dict[str, dict[tuple[Order, int], tuple[Status | None, int | None]]]:
        """Status and vote of each sample that is there, by item.

        The status is None while there is no answer, and the vote unless the status is ``ok``.
        """
        votes = schema.votes
        query = _of(asked, votes.c.order, votes.c.sample, votes.c.status, votes.c.vote)
        samples: dict[str, dict[Any, Any]] = defaultdict(dict)
        with self.reading() as connection:
            for item, order, sample, status, vote in in_parts(
                connection, query, votes.c.item, items
            ):
                samples[item][order, sample] = (status, vote)
        return dict(samples)

    def batches(self, states: Collection[str] = OPEN) -> list[Batch]:
        """Batches in some states, the oldest first; unless given, those that are not done with."""
        with self.reading() as connection:
            return batches_of(connection, states)

    def votes_of(self, asked: Asked, items: Iterable[str]) -> dict[str, list[int]]:
        """Votes by item."""
        return {
            item: [vote for _, vote in samples.values() if vote is not None]
            for item, samples in self.samples_of(asked, items).items()
        }

    def answer_tokens_of(self, judge: str) -> float | None:
        """Mean number of tokens of a judge's answers, thinking included; None without any."""
        query = sa.select(sa.func.avg(schema.votes.c.completion_tokens)).join(schema.asks)
        with self.reading() as connection:
            mean = connection.execute(query.where(schema.asks.c.judge == judge)).scalar()
        return None if mean is None else float(mean)

    # Decisions

    def write_decisions(
        self,
        asked: Asked,
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
        key = {"judge": asked.judge, "template_digest": asked.template_digest, "name": name}
        rows = [
            {**key, "item": item, "decision": int(decision)}
            for item, decision in sorted(decided.items())
        ]
        is_ours = sa.and_(*(table.c[column] == value for column, value in key.items()))
        insert = self.insert(table)
        update = insert.on_conflict_do_update(
            index_elements=[*key, "item"], set_={"decision": insert.excluded.decision}
        )
        with self.plainly(), self._engine.begin() as connection:
            if undecided:
                earlier = table.c.item.in_(sorted(undecided))
                connection.execute(table.delete().where(is_ours, earlier))
            if rows:
                connection.execute(update, rows)


def _is_asked(asked: Asked) -> sa.ColumnElement[bool]:
    asks = schema.asks
    return sa.and_(asks.c.judge == asked.judge, asks.c.prompt == asked.prompt)


def _of(asked: Asked, *columns: sa.Column[Any]) -> sa.Select[Any]:
    """Items, and columns of their votes that were asked for like this."""
    votes = schema.votes
    query = sa.select(votes.c.item, *columns).select_from(votes).join(schema.asks)
    return query.where(_is_asked(asked))
