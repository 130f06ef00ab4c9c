"""A vote store used from an event loop, one transaction at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from btdagg.judge.store import Owner, VoteStore
from btdagg.judge.store.database import give_up_when

_T = TypeVar("_T")


class Storing:
    """Calls the methods of a store in a thread of its own.

    Attributes
    ----------
    owner : Owner
        Whose changes `commit` makes durable; set before the first of them.
    """

    owner: Owner

    def __init__(self, store: VoteStore) -> None:
        self._store = store
        self._one = asyncio.Lock()
        self._is_over = threading.Event()
        self._thread = ThreadPoolExecutor(
            1, "btdagg-store", initializer=give_up_when, initargs=(self._is_over.is_set,)
        )

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
        async with self._one:
            if self._store.path is None:
                return await self.call(self._committed, function, *arguments)
            # SQLite is left and entered again, and with it the interpreter's lock, for every row.
            # From a thread each row would wait for the event loop, so the rows are written here,
            # in microseconds, and only other writers and the disk are waited for in a thread.
            try:
                await self.call(self.owner.begin)
                result = function(*arguments)
                await self.call(self.owner.commit)
            except BaseException:
                self.owner.roll_back()
                raise
            return result

    def hurry(self) -> None:
        """Wait for other writers no longer than a moment from now on."""
        self._is_over.set()

    def close(self) -> None:
        """Wait for the thread to end."""
        self.hurry()
        self._thread.shutdown()

    def _committed(self, function: Callable[..., _T], *arguments: Any) -> _T:
        try:
            result = function(*arguments)
            self.owner.commit()
        except BaseException:
            self.owner.roll_back()
            raise
        return result
