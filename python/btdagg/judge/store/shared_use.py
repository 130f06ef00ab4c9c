"""Rates and caps that all processes which ask a judge keep to together.

One row of the store says until when the rate is taken, so a place is a moment: the first that no
process has. This is the generic cell rate algorithm (ITU-T I.371) without bursts. The row is locked
for as long as places are taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from btdagg.judge.limits import Limits, Reserved, Spent
from btdagg.judge.store import schema
from btdagg.judge.store.database import Database
from btdagg.judge.store.records import StoreError

# Seconds for which places are taken ahead: those of a process that dies are lost to the others.
_AHEAD = 1.0
_LOOK_AGAIN = 0.25  # seconds at least between looks

_RATES = ("requests_per_minute", "tokens_per_minute")
_USES = tuple(each.name for each in fields(Spent))


@dataclass(frozen=True, slots=True)
class Places:
    """What came of asking for places.

    Attributes
    ----------
    seconds : list of float
        From now to the moment of each call that got a place, first come, first served.
    again : float
        Seconds after which to ask for the others.
    reached : str
        The cap that leaves no room for the next, now or later; empty where none does.
    """

    seconds: list[float]
    again: float = 0.0
    reached: str = ""


class SharedUse:
    """What processes have used of the limits that they share for a judge.

    Parameters
    ----------
    database, connection
        A transaction that the caller commits.
    owner : int
    is_dead : callable
        From the number of an owner to whether its process is gone.
    judge : str
        Name of the judge.
    limits : Limits

    Raises
    ------
    StoreError
        If a process that is at work shares other rates.
    """

    def __init__(
        self,
        database: Database,
        connection: Connection,
        owner: int,
        is_dead: Callable[[int], bool],
        judge: str,
        limits: Limits,
    ) -> None:
        self._db, self._connection = database, connection
        self._owner, self._is_dead = owner, is_dead
        self._judge, self._limits = judge, limits
        rates = {name: getattr(limits, name) for name in _RATES}
        begun = {"judge": judge, **rates, "next_request": 0.0, "next_token": 0.0}
        nothing = {"judge": judge, "owner": owner, **asdict(Spent())}
        with database.plainly():
            connection.execute(
                database.insert(schema.shared_limits).on_conflict_do_nothing(), begun
            )
            known = self._locked()
            if rates != {name: known[name] for name in _RATES}:
                self._change(rates, known)
            connection.execute(schema.shared_use.insert(), nothing)

    def take(self, calls: Sequence[Reserved], spent: Spent, tokens: float) -> Places:
        """Take places for calls, as far as caps leave room for each at its largest.

        Parameters
        ----------
        calls : sequence of Reserved
        spent : Spent
            What has changed of this process's use since the last time.
        tokens : float
            That earlier calls had more (or fewer) than was expected of them.
        """
        with self._db.plainly():
            return self._take(calls, spent, tokens)

    def _take(self, calls: Sequence[Reserved], spent: Spent, tokens: float) -> Places:
        known = self._locked()
        used, total = self._uses(spent)
        now = self._now()
        per_request, per_token = (60 / known[name] if known[name] else 0.0 for name in _RATES)
        next_request = known["next_request"]
        next_token = known["next_token"] + tokens * per_token
        found: list[float] = []
        places = Places(found)
        for call in calls:
            if total.reaches(self._limits, call):
                places = self._full(found, used, total, call)
                break
            free = max(now, next_request, next_token)
            if free > now + _AHEAD:
                places = Places(found, max(free - now - _AHEAD, _LOOK_AGAIN))
                break
            found.append(free - now)
            next_request = max(next_request, free) + per_request
            next_token = max(next_token, free) + call.expected * per_token
            used.take(call)
            total.take(call)
        table = schema.shared_limits
        self._connection.execute(
            table.update().where(table.c.judge == self._judge),
            {"next_request": next_request, "next_token": next_token},
        )
        table = schema.shared_use
        mine = sa.and_(table.c.judge == self._judge, table.c.owner == self._owner)
        self._connection.execute(table.update().where(mine), asdict(used))
        return places

    def _locked(self) -> Any:
        """The row of the judge, which nobody else changes until the transaction ends."""
        table = schema.shared_limits
        query = sa.select(table).where(table.c.judge == self._judge).with_for_update()
        return self._connection.execute(query).mappings().one()

    def _change(self, rates: dict[str, float | None], known: Any) -> None:
        """Set other rates, unless somebody keeps to those that are there."""
        if any(not self._is_dead(owner) for owner in self._others()):
            name = next(name for name in _RATES if rates[name] != known[name])
            raise StoreError(
                f"{self._db.name}: {name} is {_shown(rates[name])}, want {_shown(known[name])}: "
                f"other running processes share that limit of {self._judge}"
            )
        table = schema.shared_limits
        self._connection.execute(table.update().where(table.c.judge == self._judge), rates)

    def _uses(self, spent: Spent) -> tuple[Spent, Spent]:
        """What this process has used, and what all have."""
        table = schema.shared_use
        query = sa.select(table).where(table.c.judge == self._judge)
        used, total = replace(spent), replace(spent)
        for row in self._connection.execute(query).mappings():
            for each in (used, total) if row["owner"] == self._owner else (total,):
                for name in _USES:
                    setattr(each, name, getattr(each, name) + row[name])
        return used, total

    def _full(self, found: list[float], used: Spent, total: Spent, call: Reserved) -> Places:
        """Say that a cap is reached, or to look again while calls in flight may leave room."""
        if used.reserved_tokens or any(not self._is_dead(each) for each in self._others(True)):
            return Places(found, _LOOK_AGAIN)
        # Of calls that were in flight when their process died nobody knows what they used.
        tokens, cost = total.tokens + total.reserved_tokens, total.cost + total.reserved_cost
        reached = Spent(total.calls, tokens, cost).reaches(self._limits, call)
        return Places(found, reached=f"{reached}; all processes share the cap")

    def _others(self, in_flight: bool = False) -> list[int]:
        """Other processes, or those that had calls in flight when they were last heard of."""
        table = schema.shared_use
        query = sa.select(table.c.owner).where(
            table.c.judge == self._judge, table.c.owner != self._owner
        )
        if in_flight:
            query = query.where(table.c.reserved_tokens > 0)
        return list(self._connection.execute(query).scalars())

    def _now(self) -> float:
        """Seconds since 1970 by the clock of the database: those of machines differ."""
        if self._db.is_file:
            return time.time()
        now = sa.text("SELECT extract(epoch FROM clock_timestamp())")
        return float(self._connection.execute(now).scalar_one())


def _shown(rate: float | None) -> str:
    return "none" if rate is None else f"{rate:g}"
