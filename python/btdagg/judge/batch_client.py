"""Engines that answer many requests in one call, such as vLLM without a server."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from btdagg.extras import needs
from btdagg.judge.chat_replies import together
from btdagg.judge.client import (
    ChatReply,
    ChatRequest,
    Usage,
    called_in_thread,
    split_thinking,
)
from btdagg.judge.retry import ChatError

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


class VllmClient(BatchClient):
    """vLLM in this process, without a server: many prompts in one call of `LLM.chat`.

    Parameters
    ----------
    llm : vllm.LLM
    most, wait
        See `BatchClient`.

    Raises
    ------
    MissingExtraError
        If vllm is not installed.
    """

    def __init__(self, llm: Any, *, most: int = 1024, wait: float = 0.02) -> None:
        with needs("vllm", "asking vLLM"):
            import vllm  # noqa: F401
        self._llm = llm
        super().__init__(self._chat, most=most, wait=wait)

    def _chat(self, requests: list[ChatRequest]) -> Answers:
        messages = [[dict(message) for message in request.messages] for request in requests]
        parameters = [_sampling_of(request) for request in requests]
        given: dict[str, Any] = {}
        if requests[0].reasoning_effort is not None:  # the same for all of a run
            given["chat_template_kwargs"] = {"reasoning_effort": requests[0].reasoning_effort}
        outputs = self._llm.chat(messages, sampling_params=parameters, use_tqdm=False, **given)
        return [
            _reply_of_output(output, request.model)
            for output, request in zip(outputs, requests, strict=True)
        ]


def _sampling_of(request: ChatRequest) -> Any:
    from vllm import SamplingParams

    if request.thinking_budget is not None:
        raise ChatError("vLLM has no thinking budget; no --thinking-budget avoids it", "fatal")
    given = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed,
        "logprobs": 0 if request.logprobs else None,  # of the chosen token alone
    }
    schema = (request.response_format or {}).get("json_schema", {}).get("schema")
    if schema is not None:
        from vllm.sampling_params import StructuredOutputsParams

        given["structured_outputs"] = StructuredOutputsParams(json=dict(schema))
    told = {name: value for name, value in given.items() if value is not None}
    # Its own limit is 16 tokens; None is as many as the context has room for.
    return SamplingParams(n=request.n, max_tokens=request.max_tokens, **told, **request.extra)


def _reply_of_output(output: Any, model: str) -> ChatReply:
    n_tokens = sum(len(each.token_ids) for each in output.outputs)
    cached = int(getattr(output, "num_cached_tokens", None) or 0)
    usage = Usage(len(output.prompt_token_ids or ()), n_tokens, 0, cached)
    replies = []
    for each in output.outputs:
        text, thought = split_thinking(each.text)
        logprobs = None
        if each.logprobs:
            tokens = zip(each.token_ids, each.logprobs, strict=False)
            logprobs = tuple(float(known[token].logprob) for token, known in tokens)
        finish = str(each.finish_reason or "stop")
        replies.append(ChatReply(text, thought, finish, None, logprobs, model=model))
    replies[0] = replace(replies[0], usage=usage)
    return together(replies)


def _reply_of(answer: str | ChatReply | ChatError, request: ChatRequest) -> ChatReply | Exception:
    if isinstance(answer, ChatReply | Exception):
        return answer
    text, reasoning = split_thinking(str(answer))
    return ChatReply(text, reasoning, model=request.model)
