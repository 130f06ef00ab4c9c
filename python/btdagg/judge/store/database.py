"""The database of a store, SQLite or PostgreSQL, and its tables."""
# The database itself refuses rows that no run may write. Its errors are put in one line.

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Self
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, Column, ForeignKey, Integer, SmallInteger, Text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError

from btdagg._util.addresses import shown_address
from btdagg._util.errors import InputError
from btdagg._util.extras import needs
from btdagg.judge.client import ORDERS, STATUSES, batched

_VARIABLES = 500  # values that one query asks for
_CREATING = 0x63726561  # advisory lock: one makes the tables
# Views and triggers of a file from elsewhere would compute what they like.
_ACTING = """
SELECT 1 FROM sqlite_master
WHERE type IN ('view', 'trigger') AND (tbl_name LIKE 'btdagg%' OR name LIKE 'btdagg%')
"""
_BUSY_SECONDS = 60  # for which a writer waits for others

# Tables

VERSION = 6
SYSTEMS = ("system", "system_a", "system_b")
PROBABILITIES = ("p_minus", "p_tie", "p_plus")
EXCHANGE = ("model", "finish_reason", "reasoning", "answer")

# Strict tables of SQLite know few types.
Real = sa.Float().with_variant(sqlite.REAL(), "sqlite")
Vote = SmallInteger().with_variant(Integer(), "sqlite")

metadata = sa.MetaData()


def table(name: str, *columns: Any, **options: Any) -> sa.Table:
    """Return a table in which SQLite, too, takes no value of another type."""
    return sa.Table(f"btdagg_{name}", metadata, *columns, sqlite_strict=True, **options)


def _columns(kind: Any, *names: str, **options: Any) -> Iterator[Column[Any]]:
    return (Column(name, kind, **options) for name in names)


def _among(column: str, values: tuple[str, ...]) -> CheckConstraint:
    return CheckConstraint(f'"{column}" IN ({", ".join(map(repr, values))})')


# One row, the version of these tables.
about = table("store", Column("version", Integer, nullable=False))

# Setups: who judges, and how; of votes that are grades their scale.
asks = table(
    "asks",
    Column("id", Integer, primary_key=True),
    *_columns(Text, "judge", "prompt", "template", "template_digest", "method", nullable=False),
    Column("temperature", Real),
    Column("reasoning_effort", Text),
    Column("settings", Text, nullable=False),
    Column("grades", Text),
    sa.UniqueConstraint("judge", "prompt"),
)

# The texts of an item by their digest, so that other texts do not go by the same id. Under a
# criterion it is an item of its own, whose `name` is what others call it.
items = table(
    "items",
    Column("item", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    *_columns(Text, "task", "criterion", "name", *SYSTEMS),
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
    *_columns(Text, "file", "provider", "endpoint", "answer", nullable=False),
    *_columns(Real, "price_in", "price_out"),
    *_columns(Text, "input_file", "remote"),
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


# A vote or a grade. While a call for it is under way it has an owner; until there is an answer, no
# status.
votes = table(
    "votes",
    *_key(),
    Column("owner", Integer),
    Column("attempts", Integer, nullable=False),
    Column("status", Text),
    Column("vote", Vote),
    *_columns(Real, "grade", "confidence"),
    Column("margin", Real, CheckConstraint("margin >= 0")),
    *(Column(name, Real, CheckConstraint(f"{name} BETWEEN 0 AND 1")) for name in PROBABILITIES),
    Column("reason", Text, nullable=False),
    *_columns(Integer, "prompt_tokens", "completion_tokens", "reasoning_tokens"),
    *_columns(Real, "cost", "latency", "finished"),
    _among("order", ORDERS),
    _among("status", STATUSES),
    CheckConstraint("sample >= 0"),
    CheckConstraint("vote IN (-1, 0, 1)"),
    CheckConstraint("grade BETWEEN -1e9 AND 1e9"),
    CheckConstraint("vote IS NULL OR grade IS NULL"),
    CheckConstraint("(coalesce(vote, grade) IS NOT NULL) = (status IS NOT NULL AND status = 'ok')"),
    sqlite_with_rowid=False,
)

# What was sent, once for all samples of an item and order; and what came back. Kept if asked for.
requests = table("requests", *_key()[:3], Column("messages", Text, nullable=False))
exchanges = table("exchanges", *_key(), *_columns(Text, *EXCHANGE, nullable=False))

# What a method other than voting decided on an item, under the name that tables have for it.
decisions = table(
    "decisions",
    *_columns(Text, "judge", "template_digest", "item", "name", primary_key=True),
    Column("decision", Vote, CheckConstraint("decision IN (-1, 0, 1)"), nullable=False),
)

# What a rater said of an item, by a criterion or by none (""). No label is a skip. `sides` is AB
# where A was the first response.
labels = table(
    "labels",
    *_columns(Text, "item", "rater", "criterion", primary_key=True),
    Column("label", Real),
    Column("seconds", Real, nullable=False),
    *_columns(Text, "note", "sides", "texts", nullable=False),
    _among("sides", ORDERS),
    sa.Index("btdagg_labels_rater", "rater"),
)


class StoreError(InputError):
    """The store cannot be opened, read or written; the message is one line."""


class NoStoreError(StoreError):
    """There is no store, and none was to be made."""


class Database:
    """SQLite or PostgreSQL with the tables of a vote store."""

    # Without `create` a database is opened for reading. `name` is as messages show it, without a
    # password; `path` the SQLite file; `insert` the dialect's, with ``on_conflict_do_nothing``.

    def __init__(self, place: str | os.PathLike[str], *, create: bool = True) -> None:
        url = url_of(os.fspath(place))
        self.name = shown_address(url.render_as_string(hide_password=False))
        self.path = None
        if url.get_backend_name() == "sqlite":
            self.name = self.path = url.database or ""
            if self.path in ("", ":memory:"):
                raise StoreError(
                    f"{os.fspath(place)!r} is no file, expected one that keeps the votes"
                )
            if not create and not os.path.exists(self.path):
                raise NoStoreError(f"{self.path}: no such file")
        self._engine = self._engine_of(url, create)
        sa.event.listen(self._engine, "handle_error", self._in_one_line)
        self.insert: Any = sqlite.insert if self.path is not None else postgresql.insert
        try:
            if create:
                with self._engine.begin() as connection:
                    self._make(connection)
                    self._check_version(connection)
                if self.path is not None:
                    self._write_ahead()
            else:
                with self.reading() as connection:
                    self._check_version(connection)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reading(self) -> Connection:
        """A connection that does not write."""
        return self._engine.execution_options(btdagg_reads=True).connect()

    @staticmethod
    def lock(connection: Connection, number: int) -> None:
        """Let one transaction at a time in, until it ends; SQLite does so by itself."""
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})

    def _in_one_line(self, context: sa.ExceptionContext) -> StoreError | None:
        error = context.original_exception
        # SQLite quotes what is in a damaged file.
        if not isinstance(error, UnicodeDecodeError | context.dialect.loaded_dbapi.Error):
            return None
        return StoreError(f"{self.name}: {' '.join(str(error).split())}")

    def _engine_of(self, url: URL, create: bool) -> Engine:
        if self.path is None:
            return sa.create_engine(url)
        options: dict[str, Any] = {"timeout": _BUSY_SECONDS}
        if create:
            engine = sa.create_engine(url, connect_args=options)
            sa.event.listen(engine, "connect", _prepare_to_write)
        else:
            uri = _readable(os.path.realpath(self.path))  # beside this the log is
            options |= {"uri": True, "check_same_thread": False}
            engine = sa.create_engine(url, creator=partial(sqlite3.connect, uri, **options))
        # Transactions of a new connection are left to `_begin`.
        sa.event.listen(engine, "connect", lambda made, _: setattr(made, "isolation_level", None))
        sa.event.listen(engine, "begin", _begin)
        return engine

    def _make(self, connection: Connection) -> None:
        tables = sa.inspect(connection).get_table_names()
        if metadata.tables.keys() <= {*tables}:
            return
        if self.path is None:
            self.lock(connection, _CREATING)
            tables = sa.inspect(connection).get_table_names()
        elif tables and about.name not in tables:
            raise StoreError(
                f"{self.name}: an SQLite database of something else, expected a vote store or a "
                "new file"
            )
        metadata.create_all(connection)
        if about.name not in tables:
            connection.execute(about.insert(), {"version": VERSION})

    def _check_version(self, connection: Connection) -> None:
        if not sa.inspect(connection).has_table(about.name):
            raise NoStoreError(f"{self.name}: no vote store there")
        if self.path is not None and connection.exec_driver_sql(_ACTING).first() is not None:
            raise StoreError(f"{self.name}: has a view or a trigger where a vote store has tables")
        version = connection.execute(sa.select(about.c.version)).scalar()
        if version != VERSION:
            raise StoreError(
                f"{self.name}: a vote store of version {version}, expected {VERSION}; use "
                "the btdagg that made it, or another store"
            )

    def _write_ahead(self) -> None:
        with self._engine.connect() as connection:
            raw: Any = connection.connection.driver_connection
            with suppress(sqlite3.OperationalError):  # others are at it: the next who opens it
                raw.execute("PRAGMA journal_mode = WAL")


def in_parts(
    connection: Connection, query: sa.Select[Any], column: sa.Column[Any], values: Iterable[str]
) -> Iterator[Any]:
    """Rows in which a column has one of some values, however many."""
    for some in batched(values, _VARIABLES):
        yield from connection.execute(query.where(column.in_(some)))


# Places


def url_of(place: str) -> URL:
    """Return the URL of a database, from a path or URL."""
    # Settings of libpq are no path: a file would have the password in its name.
    if "://" not in place and not re.search(
        r"\bpassword\s*=|^postgres(ql)?:", place, re.IGNORECASE
    ):
        return URL.create("sqlite", database=place)
    scheme = place.partition("://")[0]
    is_server = scheme in ("postgresql", "postgres", "postgresql+psycopg")
    if is_server:
        with needs("postgres", "a PostgreSQL store"):
            import psycopg  # noqa: F401
    with suppress(ArgumentError, ValueError):  # whose message may hold a password
        url = sa.make_url(place)
        if is_server:
            return url.set(drivername="postgresql+psycopg")
        if scheme == "sqlite":
            return url
    raise StoreError(
        "store has an address of another kind, expected a path (SQLite) or "
        "postgresql://user@host/database",
        argument="store",
    )


def _readable(path: str) -> str:
    """URI of a database for reading, also where neither the file nor its folder may be written."""
    mode = "mode=rw"
    if not (os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)):
        # Without a log, no file is made beside the database; a log that is there is read.
        has_log = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal") > 0
        mode = "mode=ro" if has_log else "immutable=1"
    return f"file:{quote(path)}?{mode}"


# Connections to SQLite


def _prepare_to_write(connection: Any, _: object) -> None:
    connection.execute("PRAGMA synchronous = FULL")  # on disk, not just in the log's buffer


def _begin(connection: Connection) -> None:
    """Begin a transaction: one that writes has the database to itself."""
    # One who reads first and writes then would be refused if another wrote in between.
    is_reading = connection.get_execution_options().get("btdagg_reads")
    connection.exec_driver_sql("BEGIN" if is_reading else "BEGIN IMMEDIATE")
