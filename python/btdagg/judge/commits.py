"""Writing to the store in groups, away from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from btdagg.judge.store import Answered

# Seconds in which others may join a commit: little beside a call, and much beside a commit.
_GATHERING = 0.02


class _Group:
    def __init__(self) -> None:
        self.answered: list[Answered] = []
        self.done = asyncio.Event()
        self.error: Exception | None = None


class GroupCommit:
    """Commits what many workers bring, one transaction for all that is there.

    Parameters
    ----------
    write : callable
        Async; makes its argument durable.
    """

    def __init__(self, write: Callable[[Sequence[Answered]], Awaitable[None]]) -> None:
        self._write = write
        self._open = _Group()
        self._writing: asyncio.Task[None] | None = None
        self.left: list[Answered] = []

    async def add(self, answered: Sequence[Answered]) -> None:
        """Return once these are durable.

        Raises
        ------
        StoreError
            If they could not be written (or whatever `write` raises); they are in `left`.
        """
        group = self._open
        group.answered += answered
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        await group.done.wait()
        if group.error is not None:
            raise group.error

    async def settle(self) -> None:
        """Wait until nothing is being written, and try again what could not be.

        Raises
        ------
        StoreError
            If there still is something that cannot be written.
        """
        if self._writing is not None:
            await self._writing
        if self.left:
            await self._write(self.left)
            self.left = []

    async def _write_all(self) -> None:
        while self._open.answered:
            await asyncio.sleep(_GATHERING)
            group, self._open = self._open, _Group()
            try:
                await self._write(group.answered)
            except Exception as error:  # those who wait must hear of it, whatever it is
                group.error = error
                self.left += group.answered
            group.done.set()
        self._writing = None
