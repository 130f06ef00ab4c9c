"""Where a store is: paths and URLs, connections to SQLite, and what can be wrong with them."""

from __future__ import annotations

import os
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from btdagg.extras import needs
from btdagg.judge.store.records import NoStoreError, StoreError

BUSY_SECONDS = 60  # for which a writer waits for others


def url_of(place: str) -> URL:
    """From a path or URL to the URL of a database."""
    if "://" not in place:
        return URL.create("sqlite", database=place)
    try:
        url = sa.make_url(place)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        backend = url.get_backend_name()
        with needs("postgres", "a PostgreSQL store"):
            url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        backend = ""
    if backend not in ("sqlite", "postgresql"):
        scheme = place.partition("://")[0]
        raise StoreError(
            f"store has the scheme {scheme!r}, want a path (SQLite) or "
            "postgresql://user@host/database"
        )
    return url


def require_place(path: str, create: bool) -> None:
    """Refuse a path where no database can be."""
    if not path or path == ":memory:":
        raise StoreError("store is no path, want a file: votes in memory would not be kept")
    if os.path.isdir(path):
        raise StoreError(f"{path}: a folder, want a file")
    if not os.path.exists(path):
        folder = os.path.dirname(path) or "."
        if not create:
            raise NoStoreError(f"{path}: no such file")
        if not os.path.isdir(folder):
            raise StoreError(f"{path}: no folder {folder}")


def prepare_sqlite(connection: Any, _: object) -> None:
    """Make a new connection log ahead, and wait for the disk."""
    # Transactions are begun by us, see begin_sqlite.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # on disk, not just in the log's buffer


def begin_sqlite(connection: Connection) -> None:
    """Begin a transaction: one that writes has the database to itself."""
    # One who reads first and writes then would be refused if another wrote in between.
    reads = connection.get_execution_options().get("btdagg_reads")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


_WORDS = {
    "database or disk is full": "the disk is full; every vote counted so far is kept: make room "
    "and run the same command again",
    "attempt to write a readonly database": "it cannot be written, want write permission",
    "unable to open database file": "it cannot be opened, want a file and a folder that may be "
    "written",
    "file is not a database": "not an SQLite database",
    "database is locked": f"another process has kept it locked for {BUSY_SECONDS} seconds",
    "database disk image is malformed": "the file is damaged",
}


def in_words(error: DBAPIError) -> str:
    """Say on one line, in our words where we have some, what the database says."""
    said = " ".join(str(error.orig).split())
    for words, ours in _WORDS.items():
        if words in said:
            return ours
    if getattr(error.orig, "sqlstate", None) == "53100":
        return _WORDS["database or disk is full"]
    if "disk I/O error" in said:
        return "input/output error (is the disk full?); every vote counted so far is kept"
    return said
