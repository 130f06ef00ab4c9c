"""A process that asks: its claims on samples, what came of them, and its batches."""
# There are no leases: an owner holds a lock that the system takes back when its process dies, in
# PostgreSQL an advisory lock of the writing session, beside SQLite a lock on a file.

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from btdagg.judge.client import ChatReply, Messages, Order, Verdict
from btdagg.judge.prices import Prices, cost_of
from btdagg.judge.store import database as schema
from btdagg.judge.store.database import Database, StoreError, in_parts

_CLAIMING = 0x636C616D  # advisory lock: one claims at a time
_OURS = 0x62746461  # what sets our advisory locks apart from those of others
BATCHED = "batched"
_OPEN = ("written", "sending", "sent")  # a file; it may be at the endpoint; it is


class Claimed(NamedTuple):
    """A sample that this owner is to ask for; `attempts` calls were made for it before."""

    item: str
    order: Order
    sample: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of a sample; `prices` apply to tokens that the endpoint does not price."""

    claimed: Claimed
    reading: Verdict
    attempts: int
    reply: ChatReply | None = None
    prices: Prices | None = None

    def vote(self) -> dict[str, Any]:
        """Columns of the votes; tokens and cost are of the whole request. See docs/store.md."""
        *columns, probabilities = self.reading
        vote = dict(zip(Verdict._fields, columns, strict=False))
        vote |= zip(schema.PROBABILITIES, probabilities or (None,) * 3, strict=True)
        usage = self.reply.usage if self.reply else None
        return vote | {
            "attempts": self.claimed.attempts + self.attempts,
            "reason": _clean(self.reading.reason),
            "prompt_tokens": usage and usage.prompt,
            "completion_tokens": usage and usage.completion,
            "reasoning_tokens": usage and usage.reasoning,
            "cost": cost_of(usage, self.prices),
            "latency": self.reply.latency if self.reply else None,
        }

    def exchange(self) -> dict[str, str]:
        """Columns of what came back."""
        reply = self.reply or ChatReply("", finish_reason="")
        texts = reply.model, reply.finish_reason, reply.reasoning, reply.text
        return dict(zip(schema.EXCHANGE, map(_clean, texts), strict=True))


def _clean(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


_KEY = ("item", "order", "sample")


def _key(claimed: Claimed) -> dict[str, Any]:
    return dict(zip(_KEY, claimed, strict=False))


@dataclass(frozen=True)
class Batch:
    """A batch of requests as the store has it; see `btdagg.judge.store.database`.

    `owner` is the number under which its samples are claimed, `answer` the form of its answers as
    JSON; `input_file` and `remote` are what the endpoint calls the file and the batch.
    """

    id: int
    owner: int
    ask: int
    state: str
    n_requests: int
    file: str
    provider: str
    endpoint: str
    answer: str
    price_in: float | None
    price_out: float | None
    input_file: str | None
    remote: str | None
    created: float


_BATCH = [schema.batches.c[name] for name in Batch.__dataclass_fields__]


def open_batches(connection: Connection) -> list[Batch]:
    """Return the batches of a store that are not done with, the oldest first."""
    query = (
        sa.select(*_BATCH).where(schema.batches.c.state.in_(_OPEN)).order_by(schema.batches.c.id)
    )
    return [Batch(*row) for row in connection.execute(query)]


class Owner:
    """A process that claims samples, asks for them, and writes what came of them."""

    def __init__(self, database: Database, connection: Connection, keep_exchanges: bool) -> None:
        self._db, self._connection = database, connection
        self._keep_exchanges = keep_exchanges
        self._locks: _FileLocks | _SessionLocks
        self._locks = _FileLocks(database.path) if database.path else _SessionLocks(connection)
        with connection.begin():
            # Numbered before it is locked; nobody looks for the lock before it has claims.
            self.id = self._insert(schema.owners, started=time.time())
        with connection.begin():
            self._locks.hold(self.id)

    def know_items(self, items: Sequence[tuple[Any, ...]]) -> None:
        """Write down items with the digest of their texts; an item with other texts is refused."""
        if not items:
            return
        table = schema.items
        # In order, so that two processes do not wait for each other's rows.
        in_order = sorted(items, key=itemgetter(0))
        names = [column.name for column in table.columns]
        rows = [dict(zip_longest(names, row)) for row in in_order]
        self._connection.execute(self._db.insert(table).on_conflict_do_nothing(), rows)
        query = sa.select(table.c.item, table.c.digest)
        ids = [item for item, *_ in items]
        stored = dict(in_parts(self._connection, query, table.c.item, ids))
        for item, digest, *_ in items:
            if stored[item] != digest:
                raise StoreError(
                    f"{self._db.name}: item {item!r} is stored with other texts; give it another "
                    "id, or use another store"
                )

    def claim(
        self,
        ask: int,
        wanted: Mapping[str, Sequence[tuple[Order, int]]],
        again: Collection[str] = (),
    ) -> tuple[list[Claimed], dict[str, list[tuple[Order, int]]], dict[str, int]]:
        """Claim samples that nobody has, or that have a status to ask again."""
        # Returns the claims; by item the samples others ask for now; by status how many stay as
        # they are, those in batches as `BATCHED`.
        votes = schema.votes
        claimed: list[Claimed] = []
        taken: dict[int | None, list[Claimed]] = defaultdict(list)  # by owner
        elsewhere: dict[str, list[tuple[Order, int]]] = defaultdict(list)
        stored: dict[str, int] = defaultdict(int)
        key = votes.c.item, votes.c.order, votes.c.sample
        query = sa.select(*key, votes.c.status, votes.c.owner, votes.c.attempts)
        if self._db.path is None:
            self._db.lock(self._connection, _CLAIMING)
        samples = in_parts(
            self._connection, query.where(votes.c.ask == ask), votes.c.item, list(wanted)
        )
        rows = {tuple(row[:3]): row[3:] for row in samples}
        batches = set(self._connection.execute(sa.select(schema.batches.c.owner)).scalars())
        is_dead = cache(self._locks.is_dead)
        for item, keys in wanted.items():
            for order, sample in keys:
                if (item, order, sample) not in rows:
                    claimed.append(Claimed(item, order, sample, 0))
                    continue
                status, owner, attempts = rows[item, order, sample]
                if owner == self.id:
                    continue
                if owner in batches:
                    stored[BATCHED] += 1
                elif owner is not None and not is_dead(owner):
                    elsewhere[item].append((order, sample))
                elif owner is not None or status is None or status in again:
                    taken[owner].append(Claimed(item, order, sample, attempts))
                else:
                    stored[status] += 1
        if claimed:
            new = {"ask": ask, "owner": self.id, "reason": ""}
            self._connection.execute(votes.insert(), [c._asdict() | new for c in claimed])
        for owner, of_owner in taken.items():
            self._change(votes.update().values(owner=self.id), ask, of_owner, owner)
            claimed += of_owner
        return claimed, elsewhere, stored

    def save(self, ask: int, answered: Sequence[Answered], owner: int | None = None) -> None:
        """Write the results of samples claimed by this owner or a batch."""
        # Refused if another took them over, since the owner's lock was lost with its connection.
        if not answered:
            return
        claimed = [sample.claimed for sample in answered]
        finish = schema.votes.update().values(owner=None, finished=time.time())
        values = [sample.vote() for sample in answered]
        self._change(finish, ask, claimed, self.id if owner is None else owner, values)
        if self._keep_exchanges:
            insert = self._db.insert(schema.exchanges)
            update = insert.on_conflict_do_update(
                index_elements=["ask", *_KEY],
                set_={name: insert.excluded[name] for name in schema.EXCHANGE},
            )
            rows = [{"ask": ask, **_key(row.claimed), **row.exchange()} for row in answered]
            self._connection.execute(update, rows)

    def keep_messages(self, ask: int, sent: Mapping[tuple[str, Order], Messages]) -> None:
        """Keep what is sent of items, if exchanges are kept."""
        if not self._keep_exchanges or not sent:
            return
        rows = []
        for (item, order), messages in sorted(sent.items()):
            written = json.dumps([dict(m) for m in messages], ensure_ascii=False)
            rows.append({"ask": ask, "item": item, "order": order, "messages": written})
        insert = self._db.insert(schema.requests).on_conflict_do_nothing()
        self._connection.execute(insert, rows)

    def give_back(self, ask: int, claimed: Iterable[Claimed]) -> None:
        """Give back claims that were not asked for."""
        rows, votes = list(claimed), schema.votes
        never_asked = votes.delete().where(votes.c.status.is_(None))
        self._execute(never_asked, ask, rows, self.id)
        self._execute(votes.update().values(owner=None), ask, rows, self.id)

    # Batches

    def remotes(self) -> set[str]:
        """Endpoints' names of the batches that were sent."""
        remote = schema.batches.c.remote
        sent = self._connection.execute(sa.select(remote).where(remote.is_not(None)))
        return set(sent.scalars())

    def open_batches(self, ask: int, endpoint: str) -> list[Batch]:
        """Return the batches of an ask at an endpoint that are not done with."""
        batches = open_batches(self._connection)
        self.commit()
        return [b for b in batches if b.ask == ask and b.endpoint == endpoint]

    def add_batch(self, ask: int, claimed: Sequence[Claimed], **columns: Any) -> int:
        """Make a batch of samples that this process has claimed; it claims them from now on."""
        created = {"state": "written", "n_requests": len(claimed), "created": time.time()}
        owner = self._insert(schema.owners, started=time.time())
        batch = self._insert(schema.batches, owner=owner, ask=ask, **created, **columns)
        self._change(schema.votes.update().values(owner=owner), ask, claimed, self.id)
        return batch

    def hold_batch(self, batch: int) -> Batch | None:
        """Let no other process at a batch; None where one is at it, or it is done with."""
        table = schema.batches
        query = sa.select(table.c.holder, *_BATCH).where(table.c.id == batch)
        holder, *row = self._connection.execute(query.with_for_update()).one()
        held_batch = Batch(*row)
        is_elsewhere = holder not in (None, self.id) and not self._locks.is_dead(holder)
        if is_elsewhere or held_batch.state not in _OPEN:
            return None
        self.note_batch(batch, holder=self.id)
        return held_batch

    def note_batch(self, batch: int, **values: Any) -> None:
        """Write down what has become of a batch, or that nobody is at it (``holder=None``)."""
        table = schema.batches
        self._connection.execute(table.update().where(table.c.id == batch).values(**values))

    def has_answers(self, ask: int) -> bool:
        """Whether a sample of an ask was ever answered."""
        votes = schema.votes
        is_answer = votes.c.ask == ask, votes.c.status != "failed"
        return bool(self._connection.execute(sa.select(sa.exists().where(*is_answer))).scalar())

    def claims_of(self, batch: Batch) -> list[Claimed]:
        """Return the samples of a batch."""
        votes = schema.votes
        query = sa.select(*(votes.c[name] for name in Claimed._fields))
        mine = votes.c.ask == batch.ask, votes.c.owner == batch.owner
        return [Claimed(*row) for row in self._connection.execute(query.where(*mine))]

    def close_batch(self, batch: Batch, state: str) -> int:
        """Be done with a batch; samples that are still its own are free. Return how many."""
        votes = schema.votes
        mine = sa.and_(votes.c.ask == batch.ask, votes.c.owner == batch.owner)
        new = self._connection.execute(votes.delete().where(mine, votes.c.status.is_(None)))
        old = self._connection.execute(votes.update().where(mine).values(owner=None))
        self.note_batch(batch.id, state=state, holder=None)
        return int(new.rowcount + old.rowcount)

    # Transactions

    def begin(self) -> None:
        """Begin a transaction, if there is none: wait for others who write."""
        if not self._connection.in_transaction():
            self._connection.begin()

    def commit(self) -> None:
        """Make durable what was done since the last time."""
        self._connection.commit()

    def roll_back(self) -> None:
        """Undo what was done since the last time."""
        with suppress(StoreError):  # without a connection there is nothing left to undo
            self._connection.rollback()

    def leave(self) -> None:
        """Let go of the lock: claims that are left are anyone's."""
        self.roll_back()
        with suppress(StoreError):  # with the connection the lock is gone too
            self._locks.release(self.id)
            self._connection.commit()

    def _insert(self, table: sa.Table, **values: Any) -> int:
        key = self._connection.execute(table.insert(), values).inserted_primary_key
        assert key is not None
        return int(key[0])

    def _change(
        self,
        statement: Any,
        ask: int,
        claimed: Sequence[Claimed],
        owner: int | None,
        values: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if self._execute(statement, ask, claimed, owner, values) != len(claimed):
            raise StoreError(
                f"{self._db.name}: another process now holds the samples of this one; run the "
                "command again"
            )

    def _execute(
        self,
        statement: Any,
        ask: int,
        claimed: Sequence[Claimed],
        owner: int | None,
        values: Sequence[Mapping[str, Any]] = (),
    ) -> int:
        if not claimed:
            return 0
        votes = schema.votes
        statement = statement.where(
            votes.c.ask == ask,
            votes.c.owner.is_(None) if owner is None else votes.c.owner == owner,
            *(votes.c[name] == sa.bindparam(f"of_{name}") for name in _KEY),
        )
        rows: list[dict[str, Any]] = [dict(more) for more in values or [{}] * len(claimed)]
        for row, sample in zip(rows, claimed, strict=True):
            row |= {f"of_{name}": part for name, part in _key(sample).items()}
        return int(self._connection.execute(statement, rows).rowcount)


class _SessionLocks:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def hold(self, owner: int) -> None:
        self._call("pg_advisory_lock", owner)

    def is_dead(self, owner: int) -> bool:
        is_free = bool(self._call("pg_try_advisory_lock", owner))
        if is_free:
            self.release(owner)
        return is_free

    def release(self, owner: int) -> None:
        self._call("pg_advisory_unlock", owner)

    def _call(self, function: str, owner: int) -> object:
        query = sa.text(f"SELECT {function}(:ours, :owner)")
        return self._connection.execute(query, {"ours": _OURS, "owner": owner}).scalar()


class _FileLocks:
    def __init__(self, database: str) -> None:
        try:
            import fcntl
        except ImportError:
            raise StoreError(
                f"{database}: a vote store in a file needs file locks that Windows does not have; "
                "use postgresql://… or Linux (WSL)"
            ) from None
        self._fcntl = fcntl
        self._database = os.path.realpath(database)  # the same file by whatever name
        self._files: dict[int, int] = {}

    def hold(self, owner: int) -> None:
        file = os.open(self._path(owner), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        self._fcntl.flock(file, self._fcntl.LOCK_EX)
        self._files[owner] = file

    def is_dead(self, owner: int) -> bool:
        try:
            file = os.open(self._path(owner), os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            return True
        try:
            self._fcntl.flock(file, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(file)
        # Numbers are never given again, so a file that nobody holds is of no more use.
        with suppress(OSError):
            os.unlink(self._path(owner))
        return True

    def release(self, owner: int) -> None:
        file = self._files.pop(owner)
        with suppress(OSError):
            os.unlink(self._path(owner))
        os.close(file)

    def _path(self, owner: int) -> str:
        return f"{self._database}-owner-{owner}"
