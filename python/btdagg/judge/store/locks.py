"""Whether the owner of a claim still lives.

Nobody waits for a lease to run out: an owner holds a lock that the system takes back the moment its
process dies, however it dies. In PostgreSQL it is an advisory lock of the session that writes the
votes; beside an SQLite database it is a lock on a file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol

from sqlalchemy import text
from sqlalchemy.engine import Connection

from btdagg.judge.store.records import StoreError

_OURS = 0x62746461  # what sets our advisory locks apart from those of others


class OwnerLocks(Protocol):
    """The locks of owners."""

    def hold(self, owner: int) -> None:
        """Take the lock of an owner of this process."""

    def is_dead(self, owner: int) -> bool:
        """Whether nobody holds the lock of an owner."""

    def release(self, owner: int) -> None:
        """Give the lock back."""


class SessionLocks:
    """Advisory locks of a PostgreSQL session."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def hold(self, owner: int) -> None:
        """Take the lock of an owner of this process."""
        self._ask("SELECT pg_advisory_lock(:ours, :owner)", owner)

    def is_dead(self, owner: int) -> bool:
        """Whether nobody holds the lock of an owner."""
        free = self._ask("SELECT pg_try_advisory_lock(:ours, :owner)", owner)
        if free:
            self._ask("SELECT pg_advisory_unlock(:ours, :owner)", owner)
        return bool(free)

    def release(self, owner: int) -> None:
        """Give the lock back."""
        self._ask("SELECT pg_advisory_unlock(:ours, :owner)", owner)

    def _ask(self, query: str, owner: int) -> object:
        return self._connection.execute(text(query), {"ours": _OURS, "owner": owner}).scalar()


class FileLocks:
    """Locks on files beside an SQLite database.

    Raises
    ------
    StoreError
        If the system has no such locks.
    """

    def __init__(self, database: str) -> None:
        try:
            import fcntl  # noqa: F401
        except ImportError:
            raise StoreError(
                f"{database}: a vote store in a file wants locks that Windows does not have; want "
                "postgresql://… or Linux (WSL)"
            ) from None
        self._database = os.path.realpath(database)  # the same file by whatever name
        self._files: dict[int, int] = {}

    def hold(self, owner: int) -> None:
        """Take the lock of an owner of this process."""
        import fcntl

        file = os.open(self._path(owner), os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(file, fcntl.LOCK_EX)
        self._files[owner] = file

    def is_dead(self, owner: int) -> bool:
        """Whether nobody holds the lock of an owner."""
        import fcntl

        try:
            file = os.open(self._path(owner), os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(file)
        # Numbers are never given again, so a file that nobody holds is of no more use.
        with suppress(OSError):
            os.unlink(self._path(owner))
        return True

    def release(self, owner: int) -> None:
        """Give the lock back."""
        file = self._files.pop(owner)
        with suppress(OSError):
            os.unlink(self._path(owner))
        os.close(file)

    def _path(self, owner: int) -> str:
        return f"{self._database}-owner-{owner}"
