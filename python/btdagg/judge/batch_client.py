"""A function that answers many requests in one call, such as an engine without a server."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from btdagg.judge.client import (
    ChatReply,
    ChatRequest,
    called_in_thread,
    split_thinking,
)
from btdagg.judge.errors import ChatError

Answers: TypeAlias = Sequence[str | ChatReply | ChatError]


class BatchClient:
    """A function of many requests as a client: calls that come together are one call.

    Parameters
    ----------
    function : callable
        Takes a list of :class:`ChatRequest`, returns for each a text, a :class:`ChatReply` or a
        :class:`btdagg.judge.ChatError`. One that is not async is called in a thread, never
        twice at a time. Where it raises ValueError, as for a text that is too long, each half is
        asked by itself, until it is known whose fault it is.
    most : int
        Requests of a call. There are no more than calls at the same time, `Limits.concurrency`.
    wait : float
        Seconds without a further request after which those that have come are asked. A fiftieth of
        what the last call took, where that is longer, as long as fewer have come than it answered:
        who was answered asks again, and two halves that take turns would take twice as long.
    """

    def __init__(
        self,
        function: Callable[[list[ChatRequest]], Answers | Awaitable[Answers]],
        *,
        most: int = 1024,
        wait: float = 0.02,
    ) -> None:
        self._function, self._most, self._wait = function, most, wait
        self._waiting: list[tuple[ChatRequest, asyncio.Future[ChatReply]]] = []
        self._came = asyncio.Event()  # of the loop of the task
        self._task: asyncio.Task[None] | None = None
        self._answered, self._took = 0, 0.0  # of the last call

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Wait for others, and have all asked together."""
        future: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        if self._task is None or self._task.done():
            self._came = asyncio.Event()
            self._task = asyncio.create_task(self._ask_all())
        self._waiting.append((request, future))
        self._came.set()
        return await future

    async def close(self) -> None:
        """Ask nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _ask_all(self) -> None:
        asked: list[tuple[ChatRequest, asyncio.Future[ChatReply]]] = []
        try:
            while self._waiting:
                await self._gather()
                asked, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                asked = [(request, future) for request, future in asked if not future.done()]
                started = time.monotonic()
                answers: Sequence[ChatReply | Exception]
                try:
                    answers = await self._ask([request for request, _ in asked])
                except Exception as error:
                    answers = [error] * len(asked)
                self._answered, self._took = len(asked), time.monotonic() - started
                for (_, future), answer in zip(asked, answers, strict=True):
                    if future.done():  # who asked is gone
                        continue
                    if isinstance(answer, ChatReply):
                        future.set_result(answer)
                    else:
                        future.set_exception(answer)
        finally:  # closed: who is not answered by now will not be
            for _, future in (*asked, *self._waiting):
                future.cancel()
            self._waiting = []

    async def _gather(self) -> None:
        """Wait until no further request comes, or there are as many as can be."""
        expected = len(self._waiting) + self._answered
        while len(self._waiting) < self._most:
            patience = self._took / 50 if len(self._waiting) < expected else 0.0
            self._came.clear()
            try:
                async with asyncio.timeout(max(self._wait, patience)):
                    await self._came.wait()
            except TimeoutError:
                return

    async def _ask(self, requests: list[ChatRequest]) -> list[ChatReply | Exception]:
        if not requests:
            return []
        try:
            answers: Any = await called_in_thread(self._function, requests)
            if inspect.isawaitable(answers):
                answers = await answers
        except ValueError as error:
            if len(requests) == 1:
                return [ChatError(" ".join(str(error).split()), "rejected")]
            half = len(requests) // 2
            return [*await self._ask(requests[:half]), *await self._ask(requests[half:])]
        if len(answers) != len(requests):
            n = len(requests)
            raise ChatError(f"{len(answers)} answers to {n} requests", "protocol", may_cost=True)
        return [_reply_of(each, request) for each, request in zip(answers, requests, strict=True)]


def _reply_of(answer: str | ChatReply | ChatError, request: ChatRequest) -> ChatReply | Exception:
    if isinstance(answer, ChatReply | Exception):
        return answer
    text, reasoning = split_thinking(str(answer))
    return ChatReply(text, reasoning, model=request.model)
