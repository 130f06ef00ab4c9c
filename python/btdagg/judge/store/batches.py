"""Batches: samples that are asked together, over hours and several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from btdagg.judge.store import schema
from btdagg.judge.store.database import Database
from btdagg.judge.store.records import Claimed, StoreError

# written: a file; sending: it may be at the endpoint; sent: it is. The others are of the past.
OPEN = ("written", "sending", "sent")


@dataclass(frozen=True)
class Batch:
    """A batch as the store has it.

    Attributes
    ----------
    id, owner, ask : int
        `owner` is the number under which its samples are claimed.
    state : ``written``, ``sending``, ``sent``, ``collected`` or ``dropped``
    n_requests : int
    file : str
        Path of the requests.
    endpoint : str
        Base URL without credentials.
    answer : str
        Form of its answers, as JSON.
    price_in, price_out : float or None
        Of a million tokens, as they are paid for.
    input_file, remote : str or None
        What the endpoint calls the file, and the batch.
    created : float
        Seconds since 1970.
    """

    id: int
    owner: int
    ask: int
    state: str
    n_requests: int
    file: str
    endpoint: str
    answer: str
    price_in: float | None
    price_out: float | None
    input_file: str | None
    remote: str | None
    created: float


_COLUMNS = [schema.batches.c[name] for name in Batch.__dataclass_fields__]


def batch_owners(connection: Connection) -> set[int]:
    """Return the numbers under which batches claim samples."""
    return set(connection.execute(sa.select(schema.batches.c.owner)).scalars())


def batches_of(connection: Connection, states: Collection[str] = OPEN) -> list[Batch]:
    """Return the batches of a store in some states, the oldest first."""
    table = schema.batches
    query = sa.select(*_COLUMNS).where(table.c.state.in_(list(states))).order_by(table.c.id)
    return [Batch(*row) for row in connection.execute(query)]


class Batches:
    """The batches of a store, as a process may change them.

    What is done here is durable once the owner has committed.

    Parameters
    ----------
    database, connection
        A transaction that the caller commits.
    me : int
        Number of the owner that is this process.
    is_dead : callable
        From the number of an owner to whether its process is gone.
    """

    def __init__(
        self,
        database: Database,
        connection: Connection,
        me: int,
        is_dead: Callable[[int], bool],
    ) -> None:
        self._db, self._connection = database, connection
        self._me, self._is_dead = me, is_dead

    def open(self) -> list[Batch]:
        """Return the batches that are not done with."""
        with self._db.plainly():
            return batches_of(self._connection)

    def add(self, ask: int, claimed: Sequence[Claimed], **told: Any) -> int:
        """Make a batch of samples that this process has claimed; it claims them from now on.

        Parameters
        ----------
        ask : int
        claimed : sequence of Claimed
        **told
            Columns `file`, `endpoint`, `answer`, `price_in` and `price_out`.

        Raises
        ------
        StoreError
            If another process has taken them over.
        """
        now = time.time()
        votes = schema.votes
        with self._db.plainly():
            owner = self._number(schema.owners.insert(), {"started": now})
            batch = self._number(
                schema.batches.insert(),
                {
                    "owner": owner,
                    "ask": ask,
                    "state": "written",
                    "n_requests": len(claimed),
                    "created": now,
                    **told,
                },
            )
            mine = votes.update().where(
                votes.c.ask == ask,
                votes.c.item == sa.bindparam("i"),
                votes.c.order == sa.bindparam("o"),
                votes.c.sample == sa.bindparam("s"),
                votes.c.owner == self._me,
            )
            rows = [{"i": each.item, "o": each.order, "s": each.sample} for each in claimed]
            if self._connection.execute(mine.values(owner=owner), rows).rowcount != len(rows):
                raise StoreError(f"{self._db.name}: another process has taken over our claims")
        return batch

    def hold(self, batch: int) -> Batch | None:
        """Let no other process at a batch; None where one is at it, or it is done with."""
        table = schema.batches
        query = sa.select(table.c.holder, *_COLUMNS).where(table.c.id == batch)
        with self._db.plainly():
            holder, *row = self._connection.execute(query.with_for_update()).one()
            found = Batch(*row)
            others = holder not in (None, self._me) and not self._is_dead(holder)
            if others or found.state not in OPEN:
                return None
            self.note(batch, holder=self._me)
        return found

    def note(self, batch: int, **values: Any) -> None:
        """Write down what has become of a batch, or that nobody is at it (``holder=None``)."""
        table = schema.batches
        with self._db.plainly():
            self._connection.execute(table.update().where(table.c.id == batch).values(**values))

    def claims(self, batch: Batch) -> list[Claimed]:
        """Return the samples of a batch."""
        votes = schema.votes
        query = sa.select(votes.c.item, votes.c.order, votes.c.sample, votes.c.attempts)
        with self._db.plainly():
            found = self._connection.execute(
                query.where(votes.c.ask == batch.ask, votes.c.owner == batch.owner)
            )
            return [Claimed(*row) for row in found]

    def close(self, batch: Batch, state: str) -> int:
        """Be done with a batch; samples that are still its own are free. Return how many."""
        votes = schema.votes
        mine = sa.and_(votes.c.ask == batch.ask, votes.c.owner == batch.owner)
        with self._db.plainly():
            new = self._connection.execute(votes.delete().where(mine, votes.c.status.is_(None)))
            old = self._connection.execute(votes.update().where(mine).values(owner=None))
            self.note(batch.id, state=state, holder=None)
        return int(new.rowcount + old.rowcount)

    def _number(self, statement: sa.Insert, values: dict[str, Any]) -> int:
        key = self._connection.execute(statement, values).inserted_primary_key
        assert key is not None
        return int(key[0])
