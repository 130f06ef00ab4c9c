"""Writing to the store from an event loop: in a thread of its own, and in groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from btdagg.judge.store import Answered, Owner, VoteStore

_T = TypeVar("_T")

# Seconds in which others may join a commit: little beside a call, and much beside a commit.
_GATHERING = 0.02


class _Group:
    def __init__(self) -> None:
        self.answered: list[Answered] = []
        self.done = asyncio.Event()
        self.error: Exception | None = None


class StoreWriter:
    """Calls the methods of a store in a thread of its own, one transaction at a time.

    Attributes
    ----------
    owner : Owner
        Whose changes `commit` makes durable; set before the first of them.
    ask : int
        What answers are of; set before the first of them.
    unsaved : list of Answered
        What could not be written.
    """

    owner: Owner

    def __init__(self, store: VoteStore) -> None:
        self.ask = 0
        self.unsaved: list[Answered] = []
        self._store = store
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "btdagg-store")
        self._group = _Group()
        self._writing: asyncio.Task[None] | None = None

    async def call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function in the store's thread, to its end even if this task is cancelled."""
        loop = asyncio.get_running_loop()
        called = loop.run_in_executor(self._thread, partial(function, *arguments))
        try:
            return await asyncio.shield(called)
        except asyncio.CancelledError:
            # Nobody else may use the connection before.
            await asyncio.wait([called])
            called.exception()
            raise

    async def commit(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a method of the owner and commit; an error rolls back what it did."""
        is_server = self._store.path is None
        async with self._turn:
            # SQLite is left and entered again, and with it the interpreter's lock, for every row.
            # From a thread each row would wait for the event loop, so the rows are written here,
            # in microseconds, and only other writers and the disk are waited for in a thread.
            try:
                await self.call(self.owner.begin)
                if is_server:
                    result = await self.call(function, *arguments)
                else:
                    result = function(*arguments)
                await self.call(self.owner.commit)
            except BaseException:
                self.owner.roll_back()
                raise
            return result

    async def save(self, answered: Sequence[Answered]) -> None:
        """Return once answers are durable; who comes meanwhile shares the transaction.

        Raises
        ------
        StoreError
            If they could not be written; they are in `unsaved`.
        """
        group = self._group
        group.answered += answered
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        await group.done.wait()
        if group.error is not None:
            raise group.error

    async def settle(self) -> None:
        """Wait until nothing is being written, and try again what could not be."""
        if self._writing is not None:
            await self._writing
        if self.unsaved:
            await self.commit(self._save, self.unsaved)
            self.unsaved = []

    def close(self) -> None:
        """Wait for the thread to end."""
        self._thread.shutdown()

    async def _write_all(self) -> None:
        while self._group.answered:
            await asyncio.sleep(_GATHERING)
            group, self._group = self._group, _Group()
            try:
                await self.commit(self._save, group.answered)
            except Exception as error:  # those who wait must hear of it, whatever it is
                group.error = error
                self.unsaved += group.answered
            group.done.set()
        self._writing = None

    def _save(self, answered: Sequence[Answered]) -> None:
        self.owner.save(self.ask, answered)
