"""Asking: claims on samples, and what came of them."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from btdagg.judge.calls import Messages, Order
from btdagg.judge.store import schema
from btdagg.judge.store.batches import Batches, batch_owners
from btdagg.judge.store.database import Database, in_parts
from btdagg.judge.store.locks import FileLocks, OwnerLocks, SessionLocks
from btdagg.judge.store.records import Answered, Claimed, StoreError

CLAIMING = 0x636C616D  # advisory lock: one claims at a time
BATCHED = "batched"


class Owner:
    """Someone who asks: claims samples, and writes what came of them.

    What its methods do is done, and durable, once `commit` has returned.
    """

    def __init__(self, database: Database, connection: Connection, keep_exchanges: bool) -> None:
        self._db = database
        self._keep_exchanges = keep_exchanges
        self._connection = connection
        self._dead: set[int] = set()
        self._batches: set[int] = set()  # owners that are batches
        self._locks: OwnerLocks
        if database.path is None:
            self._locks = SessionLocks(connection)
        else:
            self._locks = FileLocks(database.path)
        with connection.begin():
            # Numbered before it is locked; nobody looks for the lock before it has claims.
            made = connection.execute(schema.owners.insert(), {"started": time.time()})
            assert made.inserted_primary_key is not None
            self.id = int(made.inserted_primary_key[0])
        with connection.begin():
            self._locks.hold(self.id)

    def know_items(self, known: Sequence[tuple[str, str, str | None]]) -> None:
        """Write down items with the digest of their texts, and the task where there is one.

        An empty digest says that the texts are not known. The first that come are then its texts.

        Raises
        ------
        StoreError
            If an item is there with other texts; the message names it.
        """
        if not known:
            return
        table = schema.items
        with self._db.plainly():
            # In order, so that two processes do not wait for each other's rows.
            in_order = sorted(known, key=itemgetter(0))
            rows = [{"item": item, "digest": mark, "task": task} for item, mark, task in in_order]
            self._connection.execute(self._db.insert(table).on_conflict_do_nothing(), rows)
            query = sa.select(table.c.item, table.c.digest)
            named = [item for item, _, _ in known]
            there = dict(in_parts(self._connection, query, table.c.item, named))
            found = [
                {"i": item, "mark": mark} for item, mark, _ in known if mark and not there[item]
            ]
            if found:
                unknown = sa.and_(table.c.item == sa.bindparam("i"), table.c.digest == "")
                statement = table.update().where(unknown).values(digest=sa.bindparam("mark"))
                self._connection.execute(statement, found)
                there = dict(in_parts(self._connection, query, table.c.item, named))
        for item, mark, _ in known:
            if mark and there[item] != mark:
                raise StoreError(
                    f"{self._db.name}: item {item!r} is there with other texts; give it another "
                    "id, or use another store"
                )

    def claim(
        self,
        ask: int,
        wanted: Mapping[str, Sequence[tuple[Order, int]]],
        again: Collection[str] = (),
    ) -> tuple[list[Claimed], dict[str, list[tuple[Order, int]]], dict[str, int]]:
        """Claim samples that nobody has, and nobody else is asking for.

        Parameters
        ----------
        ask : int
            What `ask_of` returned.
        wanted : mapping of item to (order, sample)
        again : collection of statuses
            Those to ask for again.

        Returns
        -------
        claimed : list of Claimed
        elsewhere : dict of item to list of (order, sample)
            Samples that others are asking for at the moment.
        there : dict of status to int
            Samples that are there and stay; those in batches under way as `BATCHED`.
        """
        votes = schema.votes
        claimed: list[Claimed] = []
        new: list[dict[str, Any]] = []
        taken: list[dict[str, Any]] = []
        elsewhere: dict[str, list[tuple[Order, int]]] = defaultdict(list)
        there: dict[str, int] = defaultdict(int)
        with self._db.plainly():
            if self._db.path is None:
                self._db.lock(self._connection, CLAIMING)
            query = sa.select(
                votes.c.item,
                votes.c.order,
                votes.c.sample,
                votes.c.status,
                votes.c.owner,
                votes.c.attempts,
            ).where(votes.c.ask == ask)
            found = {
                (row[0], row[1], row[2]): (row[3], row[4], row[5])
                for row in in_parts(self._connection, query, votes.c.item, list(wanted))
            }
            if any(owner is not None for _, owner, _ in found.values()):
                self._batches = batch_owners(self._connection)
            for item, samples in wanted.items():
                for order, sample in samples:
                    row = found.get((item, order, sample))
                    if row is None:
                        claimed.append(Claimed(item, order, sample, 0))
                        new.append(self._new_row(ask, item, order, sample))
                        continue
                    status, owner, attempts = row
                    if owner == self.id:
                        continue
                    if owner in self._batches:
                        there[BATCHED] += 1
                    elif owner is not None and not self._is_dead(owner):
                        elsewhere[item].append((order, sample))
                    elif owner is not None or status is None or status in again:
                        claimed.append(Claimed(item, order, sample, attempts))
                        taken.append({"i": item, "o": order, "s": sample})
                    else:
                        there[status] += 1
            if new:
                self._connection.execute(votes.insert(), new)
            if taken:
                self._connection.execute(_take(ask, self.id), taken)
        return claimed, elsewhere, there

    def save(self, ask: int, answered: Sequence[Answered], owner: int | None = None) -> None:
        """Write what came of samples that this owner claimed, or a batch.

        Raises
        ------
        StoreError
            If they are not this owner's any more: it lost its lock, with the connection that held
            it, and another has taken them over.
        """
        now = time.time()
        rows = [
            {
                "k_item": each.item,
                "k_order": each.order,
                "k_sample": each.sample,
                "owner": None,
                "attempts": each.attempts,
                "status": each.status,
                "vote": each.vote,
                "confidence": each.confidence,
                "reason": each.reason,
                "prompt_tokens": each.prompt_tokens,
                "completion_tokens": each.completion_tokens,
                "reasoning_tokens": each.reasoning_tokens,
                "cost": each.cost,
                "latency": each.latency,
                "finished": now,
            }
            for each in answered
        ]
        with self._db.plainly():
            finish = _finish(ask, self.id if owner is None else owner)
            if rows and self._connection.execute(finish, rows).rowcount != len(rows):
                raise StoreError(f"{self._db.name}: another process has taken over our claims")
            if self._keep_exchanges and rows:
                self._connection.execute(
                    self._upsert_exchange(),
                    [
                        {
                            "ask": ask,
                            "item": each.item,
                            "order": each.order,
                            "sample": each.sample,
                            "model": each.model,
                            "finish_reason": each.finish_reason,
                            "reasoning": each.reasoning,
                            "answer": each.answer,
                        }
                        for each in answered
                    ],
                )

    def know_endpoint(self, ask: int, endpoint: str) -> None:
        """Write down where votes come from, if it is not known."""
        if endpoint:
            values = {"ask": ask, "endpoint": endpoint}
            with self._db.plainly():
                insert = self._db.insert(schema.endpoints).on_conflict_do_nothing()
                self._connection.execute(insert, values)

    def keep_messages(self, ask: int, sent: Mapping[tuple[str, Order], Messages]) -> None:
        """Keep what is sent of items, if exchanges are kept."""
        if not self._keep_exchanges or not sent:
            return
        rows = [
            {
                "ask": ask,
                "item": item,
                "order": order,
                "messages": json.dumps([dict(m) for m in messages], ensure_ascii=False),
            }
            for (item, order), messages in sorted(sent.items())
        ]
        with self._db.plainly():
            insert = self._db.insert(schema.requests).on_conflict_do_nothing()
            self._connection.execute(insert, rows)

    def give_back(self, ask: int, claimed: Iterable[Claimed]) -> None:
        """Give back claims that were not asked for."""
        rows = [{"i": each.item, "o": each.order, "s": each.sample} for each in claimed]
        if rows:
            votes = schema.votes
            mine = sa.and_(_is_row(ask), votes.c.owner == self.id)
            with self._db.plainly():
                self._connection.execute(votes.delete().where(mine, votes.c.status.is_(None)), rows)
                self._connection.execute(votes.update().where(mine).values(owner=None), rows)

    @property
    def batches(self) -> Batches:
        """The batches of the store, as this owner may change them."""
        return Batches(self._db, self._connection, self.id, self._is_dead)

    def begin(self) -> None:
        """Begin a transaction, if there is none: wait for others who write."""
        if not self._connection.in_transaction():
            with self._db.plainly():
                self._connection.begin()

    def commit(self) -> None:
        """Make durable what was done since the last time."""
        with self._db.plainly():
            self._connection.commit()

    def roll_back(self) -> None:
        """Undo what was done since the last time."""
        with suppress(DBAPIError):  # without a connection there is nothing left to undo
            self._connection.rollback()

    def leave(self) -> None:
        """Let go of the lock: claims that are left are anyone's."""
        self.roll_back()
        with suppress(DBAPIError):  # with the connection the lock is gone too
            self._locks.release(self.id)
            self._connection.commit()

    def _is_dead(self, owner: int) -> bool:
        if owner not in self._dead and self._locks.is_dead(owner):
            self._dead.add(owner)
        return owner in self._dead

    def _new_row(self, ask: int, item: str, order: Order, sample: int) -> dict[str, Any]:
        return {
            "ask": ask,
            "item": item,
            "order": order,
            "sample": sample,
            "owner": self.id,
            "attempts": 0,
            "reason": "",
        }

    def _upsert_exchange(self) -> Any:
        statement = self._db.insert(schema.exchanges)
        kept = ("model", "finish_reason", "reasoning", "answer")
        return statement.on_conflict_do_update(
            index_elements=["ask", "item", "order", "sample"],
            set_={name: statement.excluded[name] for name in kept},
        )


# Statements over many rows


def _is_row(ask: int) -> sa.ColumnElement[bool]:
    votes = schema.votes
    return sa.and_(
        votes.c.ask == ask,
        votes.c.item == sa.bindparam("i"),
        votes.c.order == sa.bindparam("o"),
        votes.c.sample == sa.bindparam("s"),
    )


def _take(ask: int, owner: int) -> sa.Update:
    return schema.votes.update().where(_is_row(ask)).values(owner=owner)


def _finish(ask: int, owner: int) -> sa.Update:
    votes = schema.votes
    return votes.update().where(
        votes.c.ask == ask,
        votes.c.item == sa.bindparam("k_item"),
        votes.c.order == sa.bindparam("k_order"),
        votes.c.sample == sa.bindparam("k_sample"),
        votes.c.owner == owner,
    )
