"""Tables of the vote store. What no run may write, the database itself refuses."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, Column, ForeignKey, Integer, SmallInteger, Text
from sqlalchemy.dialects import sqlite

from btdagg.judge.client import ORDERS, STATUSES

VERSION = 3

# Strict tables of SQLite know few types.
Real = sa.Float().with_variant(sqlite.REAL(), "sqlite")
Vote = SmallInteger().with_variant(Integer(), "sqlite")

metadata = sa.MetaData()


def table(name: str, *columns: Any, metadata: sa.MetaData = metadata, **options: Any) -> sa.Table:
    """Return a table in which SQLite, too, takes no value of another type."""
    return sa.Table(f"btdagg_{name}", metadata, *columns, sqlite_strict=True, **options)


def _among(column: str, values: tuple[str, ...]) -> CheckConstraint:
    return CheckConstraint(f'"{column}" IN ({", ".join(map(repr, values))})')


# One row, the version of these tables.
about = table("store", Column("version", Integer, nullable=False))

# Setups: who judges, and how.
asks = table(
    "asks",
    Column("id", Integer, primary_key=True),
    Column("judge", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("template", Text, nullable=False),
    Column("template_digest", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("temperature", Real),
    Column("reasoning_effort", Text),
    Column("settings", Text, nullable=False),
    sa.UniqueConstraint("judge", "prompt"),
)

# The texts of an item by their digest, so that other texts do not go by the same id.
items = table(
    "items",
    Column("item", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("task", Text),
)

# Runs that ask. Each holds a lock while it lives; see owner.py.
owners = table(
    "owners",
    Column("id", Integer, primary_key=True),
    Column("started", Real, nullable=False),
    sqlite_autoincrement=True,
)

# Requests that are asked together, by a file. What is in one is claimed by a number of its own, as
# if by an owner, but one that does not live and so does not die: hours pass between processes that
# send and collect it. `holder` is the process that is at it; the price is what its tokens cost.
batches = table(
    "batches",
    Column("id", Integer, primary_key=True),
    Column("owner", Integer, ForeignKey(owners.c.id), nullable=False, unique=True),
    Column("ask", Integer, ForeignKey(asks.c.id), nullable=False),
    Column("state", Text, nullable=False),
    Column("holder", Integer),
    Column("n_requests", Integer, nullable=False),
    Column("file", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("price_in", Real),
    Column("price_out", Real),
    Column("input_file", Text),
    Column("remote", Text),
    Column("created", Real, nullable=False),
    _among("state", ("written", "sending", "sent", "collected", "dropped")),
    sqlite_autoincrement=True,
)


def _key() -> tuple[Any, ...]:
    return (
        Column("ask", Integer, ForeignKey(asks.c.id), primary_key=True, autoincrement=False),
        Column("item", Text, primary_key=True),
        Column("order", Text, primary_key=True),
        Column("sample", Integer, primary_key=True, autoincrement=False),
    )


# A vote. While a call for it is under way it has an owner; until there is an answer, no status.
votes = table(
    "votes",
    *_key(),
    Column("owner", Integer),
    Column("attempts", Integer, nullable=False),
    Column("status", Text),
    Column("vote", Vote),
    Column("confidence", Real),
    Column("reason", Text, nullable=False),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("cost", Real),
    Column("latency", Real),
    Column("finished", Real),
    _among("order", ORDERS),
    _among("status", STATUSES),
    CheckConstraint("sample >= 0"),
    CheckConstraint("vote IN (-1, 0, 1)"),
    CheckConstraint("(vote IS NOT NULL) = (status IS NOT NULL AND status = 'ok')"),
    sqlite_with_rowid=False,
)

# What was sent, once for all samples of an item and order; and what came back. Kept if asked for.
requests = table("requests", *_key()[:3], Column("messages", Text, nullable=False))
exchanges = table(
    "exchanges",
    *_key(),
    Column("model", Text, nullable=False),
    Column("finish_reason", Text, nullable=False),
    Column("reasoning", Text, nullable=False),
    Column("answer", Text, nullable=False),
)

# What a method other than voting decided on an item, under the name that tables have for it.
decisions = table(
    "decisions",
    Column("judge", Text, primary_key=True),
    Column("template_digest", Text, primary_key=True),
    Column("item", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("decision", Vote, CheckConstraint("decision IN (-1, 0, 1)"), nullable=False),
)
