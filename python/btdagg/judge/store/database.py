"""A database for a vote store: opened, made if need be, with its errors in one line."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError

from btdagg._util.addresses import shown_address
from btdagg._util.extras import needs
from btdagg.judge.calls import batched
from btdagg.judge.store import schema
from btdagg.judge.store.places import (
    BUSY_SECONDS,
    DAMAGED,
    begin_sqlite,
    holds_something_else,
    in_words,
    prepare_sqlite,
    prepare_to_write,
    readable,
    require_place,
    url_of,
)
from btdagg.judge.store.records import NoStoreError, StoreError

_VARIABLES = 500  # values that one query asks for
_CREATING = 0x63726561  # advisory lock: one makes the tables


class Database:
    """SQLite or PostgreSQL with the tables of a vote store.

    Attributes
    ----------
    name : str
        As messages show it: without a password.
    path : str or None
        File of an SQLite database.
    insert : callable
        `insert` of the dialect, which has ``on_conflict_do_nothing``.
    """

    def __init__(self, place: str | os.PathLike[str], *, create: bool) -> None:
        url = url_of(os.fspath(place))
        self.name = shown_address(url.render_as_string(hide_password=False))
        self.path = None
        if url.get_backend_name() == "sqlite":
            self.name = self.path = url.database or ""
            require_place(self.path, create)
            if holds_something_else(self.path):
                if not create:
                    raise NoStoreError(f"{self.name}: no vote store there")
                raise StoreError(
                    f"{self.name}: an SQLite database of something else, expected a vote store "
                    "or a "
                    "new file"
                )
        self._closing = ExitStack()
        self._engine = self._made(url, create)
        self.insert: Any = sqlite.insert if self.path is not None else postgresql.insert
        try:
            if create:
                with self.reading() as connection:
                    is_made = self._is_made(connection)
                if not is_made:
                    with self.plainly(), self._engine.begin() as connection:
                        self._make(connection)
            with self.reading() as connection:
                self._require_version(connection)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_file(self) -> bool:
        """Whether the database is a file of this machine, not a server."""
        return self.path is not None

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
        except DBAPIError as error:
            raise StoreError(f"{self.name}: {in_words(error)}") from None
        except UnicodeDecodeError:  # of the words of SQLite, which quote what is in the file
            raise StoreError(f"{self.name}: {DAMAGED}") from None

    def _made(self, url: URL, create: bool) -> Engine:
        if self.path is None:
            with needs("postgres", "a PostgreSQL store"):
                return sa.create_engine(url)
        options: dict[str, Any] = {"timeout": BUSY_SECONDS}
        if create:
            engine = sa.create_engine(url, connect_args=options)
        else:
            uri = self._closing.enter_context(readable(self.path))
            options |= {"uri": True, "check_same_thread": False}
            engine = sa.create_engine(url, creator=partial(sqlite3.connect, uri, **options))
        sa.event.listen(engine, "connect", prepare_sqlite)
        if create:
            sa.event.listen(engine, "connect", prepare_to_write)
        sa.event.listen(engine, "begin", begin_sqlite)
        return engine

    @staticmethod
    def _is_made(connection: Connection) -> bool:
        there = sa.inspect(connection).get_table_names()
        return schema.metadata.tables.keys() <= set(there)

    def _make(self, connection: Connection) -> None:
        """Make the tables, unless they are there."""
        if self.path is None:
            self.lock(connection, _CREATING)
        there = sa.inspect(connection).get_table_names()
        if not schema.metadata.tables.keys() <= set(there):
            schema.metadata.create_all(connection)
        if schema.about.name not in there:
            connection.execute(schema.about.insert(), {"version": schema.VERSION})

    def _require_version(self, connection: Connection) -> None:
        if not sa.inspect(connection).has_table(schema.about.name):
            raise NoStoreError(f"{self.name}: no vote store there")
        version = connection.execute(sa.select(schema.about.c.version)).scalar()
        if version != schema.VERSION:
            raise StoreError(
                f"{self.name}: a vote store of version {version}, expected {schema.VERSION}; use "
                "the "
                "btdagg that made it, or another store"
            )


def in_parts(
    connection: Connection, query: sa.Select[Any], column: sa.Column[Any], values: Iterable[str]
) -> Iterator[Any]:
    """Rows in which a column has one of some values, however many."""
    for some in batched(values, _VARIABLES):
        yield from connection.execute(query.where(column.in_(some)))
