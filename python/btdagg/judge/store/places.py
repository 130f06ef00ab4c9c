"""Where a store is: paths and URLs, connections to SQLite, and what can be wrong with them."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from btdagg._util.extras import needs
from btdagg.judge.store import schema
from btdagg.judge.store.records import NoStoreError, StoreError

DAMAGED = "the file is damaged"
BUSY_SECONDS = 60  # for which a writer waits for others
_TRY_MS = 250  # of which SQLite itself waits so long at a time: within, nothing can interrupt it
_thread = threading.local()
_SETTINGS = re.compile(r"(^|\s)password\s*=|^postgres(ql)?:", re.IGNORECASE)


def url_of(place: str) -> URL:
    """From a path or URL to the URL of a database."""
    if "://" not in place:
        if _SETTINGS.search(place):  # else the password would become the name of a file
            raise StoreError(
                "store looks like the settings of a database; expected a path (SQLite) or "
                "postgresql://user@host/database"
            )
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
            f"store has the scheme {scheme!r}, expected a path (SQLite) or "
            "postgresql://user@host/database"
        )
    return url


def require_place(path: str, create: bool) -> None:
    """Refuse a path where no database can be."""
    if not path or path == ":memory:":
        raise StoreError("store is no path, expected a file: votes in memory would not be kept")
    if os.path.isdir(path):
        raise StoreError(f"{path}: a folder, expected a file")
    if not os.path.exists(path):
        folder = os.path.dirname(path) or "."
        if not create:
            raise NoStoreError(f"{path}: no such file")
        if not os.path.isdir(folder):
            raise StoreError(f"{path}: no folder {folder}")


def holds_something_else(path: str) -> bool:
    """Whether a file is a database with tables, and none of them says that it is a vote store.

    Nothing is changed by looking. What cannot be read is left to whoever opens it.
    """
    if not os.path.isfile(path) or not os.path.getsize(path):
        return False
    try:
        uri = _without_a_change(os.path.realpath(path))
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in found}
    except (sqlite3.Error, UnicodeDecodeError):
        return False
    return bool(names) and schema.about.name not in names


@contextmanager
def readable(path: str) -> Iterator[str]:
    """URI of a database for reading, also where neither the file nor its folder may be written.

    SQLite wants to write beside a database that logs ahead. Where it may not, the file is all
    there is, or, where a run was killed, the file and the log: a copy of both is read then.
    """
    path = os.path.realpath(path)  # beside this the log is
    if os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK):
        yield f"{_uri(path)}?mode=rw"
    elif not _has_log(path) or _opens(_without_a_change(path)):
        yield _without_a_change(path)
    else:
        with TemporaryDirectory() as folder:
            copy = os.path.join(folder, "votes.db")
            for end in ("", "-wal"):
                shutil.copyfile(path + end, copy + end)
            yield _uri(copy)


def _opens(uri: str) -> bool:
    """Whether a database can be opened, whatever else may be wrong with it."""
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    except sqlite3.OperationalError:
        return False
    except (sqlite3.Error, UnicodeDecodeError):
        pass
    return True


def _has_log(path: str) -> bool:
    return os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal") > 0


def _without_a_change(path: str) -> str:
    """URI that makes no file beside a database without a log; a log that is there is read."""
    return f"{_uri(path)}?{'mode=ro' if _has_log(path) else 'immutable=1'}"


def _uri(path: str) -> str:
    return f"file:{quote(path)}"


def prepare_sqlite(connection: Any, _: object) -> None:
    """Leave transactions of a new connection to us, see `begin_sqlite`."""
    connection.isolation_level = None


def prepare_to_write(connection: Any, _: object) -> None:
    """Make a new connection log ahead, and wait for the disk."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # on disk, not just in the log's buffer
    connection.execute(f"PRAGMA busy_timeout = {_TRY_MS}")


def give_up_when(is_over: Callable[[], bool]) -> None:
    """Have this thread wait for other writers no longer once that is so."""
    _thread.is_over = is_over


def begin_sqlite(connection: Connection) -> None:
    """Begin a transaction: one that writes has the database to itself."""
    # One who reads first and writes then would be refused if another wrote in between.
    if connection.get_execution_options().get("btdagg_reads"):
        connection.exec_driver_sql("BEGIN")
        return
    is_over = getattr(_thread, "is_over", bool)
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return
        except DBAPIError as error:
            if "locked" not in str(error.orig) or is_over() or time.monotonic() > until:
                raise


_WORDS = {
    "database or disk is full": "the disk is full; every vote counted so far is kept: make room "
    "and run the same command again",
    "attempt to write a readonly database": "it cannot be written, expected write permission",
    "unable to open database file": "it cannot be opened, expected a file and a folder that may be "
    "written",
    "file is not a database": "not an SQLite database",
    "database is locked": f"another process has kept it locked for {BUSY_SECONDS} seconds",
    "database disk image is malformed": DAMAGED,
    "malformed database schema": DAMAGED,
    "Could not decode to UTF-8": DAMAGED,
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
