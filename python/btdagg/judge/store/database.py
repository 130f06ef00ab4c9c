"""The database of a store: SQLite or PostgreSQL, opened or made, with its errors in one line."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Self
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError

from btdagg._util.addresses import shown_address
from btdagg._util.errors import InputError
from btdagg._util.extras import needs
from btdagg.judge.client import batched
from btdagg.judge.store import schema

_VARIABLES = 500  # values that one query asks for
_CREATING = 0x63726561  # advisory lock: one makes the tables
_BUSY_SECONDS = 60  # for which a writer waits for others
_TRY_MS = 250  # of which SQLite itself waits so long at a time: within, nothing can interrupt it
_thread = threading.local()


class StoreError(InputError):
    """The store cannot be opened, read or written; the message is one line."""


class NoStoreError(StoreError):
    """There is no store, and none was to be made."""


class Database:
    """SQLite or PostgreSQL with the tables of a vote store.

    Attributes
    ----------
    name : str
        As messages show it: without a password.
    path : str or None
        File of an SQLite database; None for a server.
    insert : callable
        `insert` of the dialect, which has ``on_conflict_do_nothing``.
    """

    def __init__(self, place: str | os.PathLike[str], *, create: bool) -> None:
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
        self.insert: Any = sqlite.insert if self.path is not None else postgresql.insert
        try:
            if create:
                with self.plainly(), self._engine.begin() as connection:
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

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that does not write."""
        engine = self._engine.execution_options(btdagg_reads=True)
        with self.plainly(), engine.connect() as connection:
            yield connection

    @staticmethod
    def lock(connection: Connection, number: int) -> None:
        """Let one transaction at a time in, until it ends; SQLite does so by itself."""
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Turn errors of the database into one line."""
        try:
            yield
        except (DBAPIError, UnicodeDecodeError) as error:  # SQLite quotes what is in a damaged file
            words = " ".join(str(getattr(error, "orig", error)).split())
            if getattr(getattr(error, "orig", None), "sqlstate", None) == "53100":
                words = "database or disk is full"
            more = next((more for cause, more in _MORE.items() if cause in words), "")
            raise StoreError(f"{self.name}: {words}{more}") from None

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
        """Make the tables, unless they are there. What is somebody else's is not changed."""
        tables = sa.inspect(connection).get_table_names()
        if self.path is None and schema.about.name not in tables:
            self.lock(connection, _CREATING)
            tables = sa.inspect(connection).get_table_names()
        if schema.about.name in tables:
            return
        if self.path is not None and tables:
            raise StoreError(
                f"{self.name}: an SQLite database of something else, expected a vote store or a "
                "new file"
            )
        schema.metadata.create_all(connection)
        connection.execute(schema.about.insert(), {"version": schema.VERSION})

    def _check_version(self, connection: Connection) -> None:
        if not sa.inspect(connection).has_table(schema.about.name):
            raise NoStoreError(f"{self.name}: no vote store there")
        version = connection.execute(sa.select(schema.about.c.version)).scalar()
        if version != schema.VERSION:
            raise StoreError(
                f"{self.name}: a vote store of version {version}, expected {schema.VERSION}; use "
                "the btdagg that made it, or another store"
            )

    def _write_ahead(self) -> None:
        """Let others read while one writes: a setting that the file keeps."""
        with self.plainly(), self._engine.connect() as connection:
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
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        with needs("postgres", "a PostgreSQL store"):
            import psycopg  # noqa: F401
    try:
        url = sa.make_url(place)
    except (ArgumentError, ValueError):  # the message may hold a password
        scheme = ""
    if scheme == "sqlite":
        return url
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise StoreError(
            "store has an address of another kind, expected a path (SQLite) or "
            "postgresql://user@host/database",
            argument="store",
        )
    return url.set(drivername="postgresql+psycopg")


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
    connection.execute(f"PRAGMA busy_timeout = {_TRY_MS}")


def give_up_when(is_over: Callable[[], bool]) -> None:
    """Have this thread wait for other writers no longer once that is so."""
    _thread.is_over = is_over


def _begin(connection: Connection) -> None:
    """Begin a transaction: one that writes has the database to itself."""
    # One who reads first and writes then would be refused if another wrote in between.
    if connection.get_execution_options().get("btdagg_reads"):
        connection.exec_driver_sql("BEGIN")
        return
    is_over = getattr(_thread, "is_over", bool)
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return
        except DBAPIError as error:
            if "locked" not in str(error.orig) or is_over() or time.monotonic() > until:
                raise


# What is added to what the database says
_MORE = {
    "database or disk is full": "; every vote counted so far is kept: make room and run the same "
    "command again",
    "disk I/O error": " (is the disk full?); every vote counted so far is kept",
    "database is locked": f": another process has kept it so for {_BUSY_SECONDS} seconds",
}
