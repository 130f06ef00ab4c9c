"""Values that no run has written. A store is a file, which may be edited, or damaged."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from btdagg._util.errors import shown
from btdagg.judge.calls import ORDERS, STATUSES
from btdagg.judge.store import schema
from btdagg.judge.store.records import VOTES, StoreError


def refuse_unsound(connection: Connection, name: str, tables: Iterable[sa.Table]) -> None:
    """Refuse a store in which a column has a value of another type, or one that it never has.

    Parameters
    ----------
    connection : sqlalchemy.Connection
    name : str
        What errors call the store.
    tables : iterable of sqlalchemy.Table
        Those to look at.

    Raises
    ------
    StoreError
        Naming the first row, its value and what was wanted.
    """
    for table in tables:
        rules = list(_rules(table, connection.dialect.name == "sqlite"))
        if not rules:
            continue
        broken = [sa.not_(rule) for _, rule, _ in rules]
        flags = [each.label(f"broken_{number}") for number, each in enumerate(broken)]
        row = connection.execute(sa.select(table, *flags).where(sa.or_(*broken)).limit(1)).first()
        if row is None:
            continue
        told = row._mapping
        column, _, wanted = next(
            rule for number, rule in enumerate(rules) if told[f"broken_{number}"]
        )
        key = ", ".join(f"{each.name} {shown(told[each.name])}" for each in table.primary_key)
        raise StoreError(
            f"{name}: {table.name}, {key}: {column.name} is {shown(told[column.name])}, "
            f"want {wanted}"
        )


def _rules(
    table: sa.Table, is_sqlite: bool
) -> Iterator[tuple[sa.Column[object], sa.ColumnElement[bool], str]]:
    """Columns, what holds of each where it is no null, and that in words."""
    for column in table.columns:
        if isinstance(column.type, sa.Float):
            largest = sys.float_info.max
            yield column, column.between(-largest, largest), "a finite number"
        elif not is_sqlite:
            continue
        # SQLite takes any type in any column. To compare is faster than to ask for the type:
        # numbers come before text, and text before bytes.
        elif isinstance(column.type, sa.Integer):
            yield column, column == sa.cast(column, sa.Integer), "an integer"
        else:
            yield column, column < sa.literal(b"", sa.LargeBinary), "text"
    if table is schema.votes:
        vote, status = table.c.vote, table.c.status
        yield vote, vote.in_(VOTES), "-1, 0 or 1, or nothing"
        yield table.c.order, table.c.order.in_(ORDERS), " or ".join(ORDERS)
        yield table.c.sample, table.c.sample >= 0, "at least 0"
        yield status, status.in_(STATUSES), f"one of {', '.join(STATUSES)}, or nothing"
        is_ok = sa.func.coalesce(status == "ok", False)
        yield vote, is_ok == vote.is_not(None), "one where the status is ok, and none elsewhere"
    if table is schema.decisions:
        yield table.c.decision, table.c.decision.in_(VOTES), "-1, 0 or 1"
