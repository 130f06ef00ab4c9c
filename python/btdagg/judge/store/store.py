"""The vote store: what was asked, what is under way, what came back."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from btdagg._util.errors import shown
from btdagg.judge.calls import Asked, Order, Status
from btdagg.judge.store import schema
from btdagg.judge.store.batches import OPEN, Batch, batches_of
from btdagg.judge.store.database import Database, in_parts
from btdagg.judge.store.owner import Owner
from btdagg.judge.store.records import VOTES, StoreError


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
        values = {
            "judge": asked.judge,
            "prompt": asked.prompt,
            "template": asked.template,
            "template_digest": asked.template_digest,
            "method": asked.method,
            "temperature": asked.temperature,
            "reasoning_effort": asked.reasoning_effort,
            "settings": json.dumps(dict(asked.settings), sort_keys=True, default=str),
        }
        table = schema.asks
        with self.plainly(), self._engine.begin() as connection:
            connection.execute(self.insert(table).on_conflict_do_nothing(), values)
            found = connection.execute(
                sa.select(table.c.id).where(
                    table.c.judge == asked.judge, table.c.prompt == asked.prompt
                )
            )
            return int(found.scalar_one())

    def require_endpoint(self, ask: int, endpoint: str, same: bool) -> None:
        """Refuse to mix votes of several endpoints, unless they are said to be one judge.

        Parameters
        ----------
        ask : int
            What `ask_of` returned.
        endpoint : str
            Address without credentials; empty for one that has none.
        same : bool
            Whether it is said to be the same judge as those of the votes that are there.

        Raises
        ------
        StoreError
            If there are votes of another endpoint; the message names it.
        """
        table = schema.endpoints
        with self.reading() as connection:
            query = sa.select(table.c.endpoint).where(table.c.ask == ask)
            known = list(connection.execute(query.order_by(table.c.endpoint)).scalars())
        if known and endpoint and endpoint not in known and not same:
            raise StoreError(
                f"{self.name}: has votes of this judge from {', '.join(known)}, and {endpoint} is "
                "asked now; --same-endpoint says that they are one judge, and --judge NAME keeps "
                "them apart"
            )

    # Asking

    @contextmanager
    def owner(self) -> Iterator[Owner]:
        """Someone who asks; its methods are for one thread at a time."""
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
        """Answers that hold a vote, by item, for methods that go over them again.

        Returns
        -------
        dict of item to list of (order, sample, vote, answer)
            By sample and order. Empty where exchanges are not kept.
        """
        votes, exchanges = schema.votes, schema.exchanges
        columns = ("ask", "item", "order", "sample")
        joined = sa.and_(*(votes.c[name] == exchanges.c[name] for name in columns))
        query = (
            sa.select(votes.c.item, votes.c.order, votes.c.sample, votes.c.vote, exchanges.c.answer)
            .join(schema.asks, schema.asks.c.id == votes.c.ask)
            .join(exchanges, joined)
            .where(
                schema.asks.c.judge == asked.judge,
                schema.asks.c.prompt == asked.prompt,
                votes.c.status == "ok",
            )
            .order_by(votes.c.sample, votes.c.order)
        )
        found: dict[str, list[tuple[Order, int, int, str]]] = defaultdict(list)
        with self.reading() as connection:
            for row in in_parts(connection, query, votes.c.item, items):
                self._refuse_vote(row[3], row)
                found[row[0]].append((row[1], row[2], row[3], row[4]))
        return dict(found)

    def samples_of(
        self, asked: Asked, items: Iterable[str]
    ) -> dict[str, dict[tuple[Order, int], tuple[Status | None, int | None]]]:
        """Status and vote of each sample that is there, by item.

        The status is None while there is no answer, and the vote unless the status is ``ok``.
        """
        votes = schema.votes
        query = (
            sa.select(votes.c.item, votes.c.order, votes.c.sample, votes.c.status, votes.c.vote)
            .join(schema.asks, schema.asks.c.id == votes.c.ask)
            .where(schema.asks.c.judge == asked.judge, schema.asks.c.prompt == asked.prompt)
        )
        found: dict[str, dict[tuple[Order, int], tuple[Status | None, int | None]]] = {}
        with self.reading() as connection:
            for row in in_parts(connection, query, votes.c.item, items):
                self._refuse_vote(row[4], row)
                found.setdefault(row[0], {})[row[1], row[2]] = (row[3], row[4])
        return found

    def batches(self, states: Collection[str] = OPEN) -> list[Batch]:
        """Batches in some states, the oldest first; unless given, those that are not done with."""
        with self.reading() as connection:
            if not sa.inspect(connection).has_table(schema.batches.name):
                return []  # a store of before
            return batches_of(connection, states)

    def votes_of(self, asked: Asked, items: Iterable[str]) -> dict[str, list[int]]:
        """Votes by item."""
        return {
            item: [vote for _, vote in samples.values() if vote is not None]
            for item, samples in self.samples_of(asked, items).items()
        }

    def answer_tokens_of(self, judge: str) -> float | None:
        """Mean number of tokens of a judge's answers, thinking included; None without any."""
        votes, asks = schema.votes, schema.asks
        query = (
            sa.select(sa.func.avg(votes.c.completion_tokens))
            .join(asks, asks.c.id == votes.c.ask)
            .where(asks.c.judge == judge)
        )
        with self.reading() as connection:
            mean = connection.execute(query).scalar()
        if mean is not None and not 0 <= mean < 2**63:
            raise StoreError(
                f"{self.name}: numbers of tokens add up to {mean}, expected whole numbers"
            )
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

        Parameters
        ----------
        asked : Asked
            Of its judge and template: exports join decisions to votes by these.
        name : str
            Column of the decisions in tables, such as ``gsa_8``.
        decided : mapping of item to -1, 0, 1
        undecided : collection of str
            Items of which an earlier decision no longer holds.
        """
        rows = [
            {
                "judge": asked.judge,
                "template_digest": asked.template_digest,
                "item": item,
                "name": name,
                "decision": int(decision),
            }
            for item, decision in sorted(decided.items())
        ]
        table = schema.decisions
        earlier = sa.delete(table).where(
            table.c.judge == asked.judge,
            table.c.template_digest == asked.template_digest,
            table.c.name == name,
            table.c.item.in_(sorted(undecided)),
        )
        statement = self.insert(table)
        statement = statement.on_conflict_do_update(
            index_elements=["judge", "template_digest", "item", "name"],
            set_={"decision": statement.excluded.decision},
        )
        with self.plainly(), self._engine.begin() as connection:
            if undecided:
                connection.execute(earlier)
            if rows:
                connection.execute(statement, rows)

    def _refuse_vote(self, vote: object, row: Sequence[Any]) -> None:
        """Refuse what is no vote before it is counted; `refuse_unsound` looks at all columns."""
        if vote is not None and vote not in VOTES:
            item, order, sample = row[:3]
            raise StoreError(
                f"{self.name}: item {item!r}, order {order}, sample {sample}: vote is "
                f"{shown(vote)}, expected -1, 0 or 1, or nothing"
            )
