"""Tables of the vote store."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)

VERSION = 1

metadata = MetaData()

# One row, the version of these tables.
about = Table("btdagg_store", metadata, Column("version", Integer, nullable=False))

# Who is asked, and how.
asks = Table(
    "btdagg_asks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("judge", String, nullable=False),
    Column("prompt", String(64), nullable=False),
    Column("template", String, nullable=False),
    Column("template_digest", String(64), nullable=False),
    Column("method", String, nullable=False),
    Column("temperature", Float),
    Column("reasoning_effort", String),
    Column("settings", Text, nullable=False),
    UniqueConstraint("judge", "prompt"),
)

# Where votes were asked for: addresses without credentials, of which all but the first were said to
# be the same judge. Stores of before have none.
endpoints = Table(
    "btdagg_endpoints",
    metadata,
    Column("ask", Integer, ForeignKey(asks.c.id), primary_key=True, autoincrement=False),
    Column("endpoint", String, primary_key=True),
)

# The texts of an item by their digest, so that other texts do not go by the same id. The digest is
# empty while the texts of imported votes are not known.
items = Table(
    "btdagg_items",
    metadata,
    Column("item", String, primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("task", String),
)

# Runs that ask. Each holds a lock while it lives; see locks.py.
owners = Table(
    "btdagg_owners",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("started", Float, nullable=False),
    sqlite_autoincrement=True,
)

# Requests that are asked together, by a file. What is in one is claimed by a number of its own, as
# if by an owner, but one that does not live and so does not die: hours pass between processes that
# send and collect it. `holder` is the process that is at it; the price is what its tokens cost.
batches = Table(
    "btdagg_batches",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("owner", Integer, ForeignKey(owners.c.id), nullable=False, unique=True),
    Column("ask", Integer, ForeignKey(asks.c.id), nullable=False),
    Column("state", String(10), nullable=False),
    Column("holder", Integer),
    Column("n_requests", Integer, nullable=False),
    Column("file", String, nullable=False),
    Column("endpoint", String, nullable=False),
    Column("answer", Text, nullable=False),
    Column("price_in", Float),
    Column("price_out", Float),
    Column("input_file", String),
    Column("remote", String),
    Column("created", Float, nullable=False),
    sqlite_autoincrement=True,
)


def _key() -> tuple[Column[int], Column[str], Column[str], Column[int]]:
    return (
        Column("ask", Integer, ForeignKey(asks.c.id), primary_key=True, autoincrement=False),
        Column("item", String, primary_key=True),
        Column("order", String(2), primary_key=True),
        Column("sample", Integer, primary_key=True, autoincrement=False),
    )


# A vote. While a call for it is under way it has an owner; until there is an answer, no status.
votes = Table(
    "btdagg_votes",
    metadata,
    *_key(),
    Column("owner", Integer),
    Column("attempts", Integer, nullable=False),
    Column("status", String(10)),
    Column("vote", SmallInteger),
    Column("confidence", Float),
    Column("reason", String, nullable=False),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("cost", Float),
    Column("latency", Float),
    Column("finished", Float),
    sqlite_with_rowid=False,
)

# What was sent, once for all samples of an item and order; and what came back. Kept if asked for.
requests = Table("btdagg_requests", metadata, *_key()[:3], Column("messages", Text, nullable=False))
exchanges = Table(
    "btdagg_exchanges",
    metadata,
    *_key(),
    Column("model", String, nullable=False),
    Column("finish_reason", String, nullable=False),
    Column("reasoning", Text, nullable=False),
    Column("answer", Text, nullable=False),
)

# What a method other than voting decided on an item, under the name that tables have for it.
decisions = Table(
    "btdagg_decisions",
    metadata,
    Column("judge", String, primary_key=True),
    Column("template_digest", String(64), primary_key=True),
    Column("item", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("decision", SmallInteger, nullable=False),
)
