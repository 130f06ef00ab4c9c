"""Asking a model: requests and replies, clients, and what all calls of a run have in common."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from btdagg._util.errors import InputError, forbid
from btdagg._util.numbers import as_integer
from btdagg._util.readable import readable
from btdagg.votes.scale import PAIRS, Scale

_T = TypeVar("_T")

Order: TypeAlias = Literal["AB", "BA"]
Messages: TypeAlias = Sequence[Mapping[str, Any]]
Fault: TypeAlias = Literal["transient", "limited", "rejected", "protocol", "forbidden", "fatal"]
Status: TypeAlias = Literal["ok", "unparsed", "refused", "truncated", "empty", "failed"]

ORDERS: tuple[Order, ...] = ("AB", "BA")
STATUSES: tuple[Status, ...] = ("ok", "unparsed", "refused", "truncated", "empty", "failed")
TOO_LONG = "too_long"  # finish reason of a reply that was not read to its end
_MOST_THREADS = 10_000


@readable
@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request for an answer.

    `temperature`, `max_tokens`, `reasoning_effort` and `seed` are left to the endpoint where None.
    `logprobs` asks for log-probabilities of tokens, `response_format` for an answer by a JSON
    schema as in OpenAI's protocol; `extra` are further fields of the body. `item`, `order` and
    `sample` are not sent; a short probe of the endpoint has none.
    """

    messages: Messages
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    seed: int | None = None
    logprobs: bool = False
    response_format: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    item: str = ""
    order: Order | None = None
    sample: int | None = None


# What is being asked, for those who watch calls, such as `btdagg.integrations.opentelemetry`.
current_request: ContextVar[ChatRequest] = ContextVar("current_request")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a request, and its cost where the endpoint says it.

    Reasoning tokens are among those of the completion, cached ones among those of the prompt.
    """

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0
    cost: float | None = None


@dataclass(frozen=True)
class Allowance:
    """A limit by the endpoint's headers: how many are left, and seconds until all are again."""

    limit: float
    left: float
    seconds: float

    @property
    def per_second(self) -> float:
        """The rate that keeps to it, whether it is filled up steadily or all at once."""
        return max(self.left, self.limit - self.left) / self.seconds


@dataclass(frozen=True)
class RateLimits:
    """Limits on requests and on tokens, as far as headers say them."""

    requests: Allowance | None = None
    tokens: Allowance | None = None


def rate_limits_of(headers: Mapping[str, str]) -> RateLimits | None:
    """Read ``x-ratelimit-*`` headers, or Anthropic's; None where none can be read."""
    limits = RateLimits(*(_allowance(headers, kind) for kind in ("requests", "tokens")))
    return None if limits == RateLimits() else limits


def _allowance(headers: Mapping[str, str], kind: str) -> Allowance | None:
    names = ("limit", "remaining", "reset")
    values = [headers.get(f"x-ratelimit-{name}-{kind}") for name in names]
    if not any(values):
        values = [headers.get(f"anthropic-ratelimit-{kind}-{name}") for name in names]
    try:
        limit, left = (float(value or "nan") for value in values[:2])
        seconds = seconds_of(values[2])
        if seconds is None:  # a moment of RFC 3339, by the clock of whoever says it
            now = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
            seconds = (datetime.fromisoformat(values[2] or "") - now).total_seconds()
    except (TypeError, ValueError):
        return None
    is_known = 0 <= left <= limit < math.inf and seconds > 0 and limit > 0
    return Allowance(limit, left, seconds) if is_known else None


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s|d|)")
_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str | None) -> float | None:
    """Seconds of a duration such as ``120ms``, ``6m0s`` or ``1.5``; None where it is none."""
    parts = _DURATION.findall(text or "")
    if not parts or _DURATION.sub("", text or "").strip():
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


class Token(NamedTuple):
    """A token with its log-probability, and those of `alternatives`, perhaps itself among them."""

    text: str
    logprob: float
    alternatives: Mapping[str, float] = MappingProxyType({})


@readable
@dataclass(frozen=True, slots=True)
class ChatReply:
    """One answer.

    Attributes
    ----------
    text, reasoning : str
        The answer without the thinking, and the thinking as far as the endpoint shows it.
    finish_reason : str
        ``stop``, ``length``, ``content_filter`` ...; ``refusal`` where the endpoint says so, and
        ``too_long`` where there was more than is read.
    usage, limits : Usage, RateLimits or None
        As far as the endpoint states them.
    token_logprobs : tuple of float, or None
        Log-probability of each token of the answer.
    latency : float or None
        Seconds from request to answer; None of a batch.
    model : str
        The model that answered, as the endpoint calls it.
    tokens : sequence of Token
        Tokens with their alternatives, of which the probabilities of the vote are made.
    """

    text: str
    reasoning: str = ""
    finish_reason: str = "stop"
    usage: Usage | None = None
    token_logprobs: tuple[float, ...] | None = None
    latency: float | None = 0.0
    model: str = ""
    limits: RateLimits | None = None
    tokens: Sequence[Token] = ()


@dataclass(eq=False)
class ChatError(Exception):
    """A request without an answer; the message is one line without any part of a key.

    Attributes
    ----------
    kind : str
        ``transient`` (asking again may help), ``limited`` (it will, later), ``protocol`` (the reply
        is not one of a chat endpoint: asking again may help, unless nothing else ever came),
        ``rejected`` (this request will not work, another may), ``forbidden`` (perhaps none will:
        a short request settles it), ``fatal`` (none will).
    retry_after, limits
        Seconds that the endpoint asks to wait, and what it says of its limits.
    may_cost : bool
        Whether the endpoint may have worked, and billed, before things went wrong.
    status : int or None
        HTTP status.
    """

    message: str
    kind: Fault = "transient"
    _: KW_ONLY
    retry_after: float | None = None
    may_cost: bool = False
    limits: RateLimits | None = None
    status: int | None = None

    def __str__(self) -> str:
        return self.message

    @property
    def is_limit(self) -> bool:
        """Whether it is a limit to be waited for, and no fault of the call."""
        return self.kind == "limited" or (self.retry_after is not None and self.kind != "fatal")


@readable
class Verdict(NamedTuple):
    """The verdict of an answer.

    Attributes
    ----------
    status : "ok", "unparsed", "refused", "truncated", "empty" or "failed"
    vote : -1, 0, 1 or None
        From A's point of view; None of a grade, and unless `status` is ``ok``.
    confidence : float or None
        From 0 to 1, where it is known.
    reason : str
        Why there is no vote; empty where there is.
    margin : float or None
        By how much a response is better: 2 for ``A>>B``, 1 for ``A>B``, 0 for a tie; or the
        difference of the scores.
    grade : float or None
    probabilities : tuple of float, or None
        How probable the votes -1, 0 and 1 were.
    """

    status: Status
    vote: int | None = None
    confidence: float | None = None
    reason: str = ""
    margin: float | None = None
    grade: float | None = None
    probabilities: tuple[float, float, float] | None = None


class ChatClient(Protocol):
    """Whoever answers chat requests."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer a request, or raise a :class:`btdagg.judge.ChatError`."""

    async def close(self) -> None:
        """Let go of connections."""


class FunctionClient:
    """A plain function, async or not, as a client.

    It takes a :class:`ChatRequest` and returns a text or a :class:`ChatReply`. A function that is
    not async runs in threads, one for each concurrent call. Threads cannot be stopped: after a
    time-out the call runs on, and repeating its request waits for it. Errors that the function
    raises are retried and in the end recorded.
    """

    def __init__(
        self, function: Callable[[ChatRequest], str | ChatReply | Awaitable[str | ChatReply]]
    ) -> None:
        self._function = function
        self._threads = _threads()
        self._timed_out: list[tuple[ChatRequest, Future[Any]]] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Call the function, or wait for a call that was timed out."""
        if inspect.iscoroutinefunction(self._function):
            return _reply_of(await self._function(request), request)
        call = self._timed_out_call(request)
        if call is None:
            call = self._threads.submit(copy_context().run, _call, self._function, request)
        try:
            answer = await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            if not call.cancelled():
                self._timed_out.append((request, call))
            raise
        return _reply_of(await answer if inspect.isawaitable(answer) else answer, request)

    def _timed_out_call(self, request: ChatRequest) -> Future[Any] | None:
        for number, (other, call) in enumerate(self._timed_out):
            if other == request:
                del self._timed_out[number]
                return call
        return None

    async def close(self) -> None:
        """Let threads end, without waiting for calls that run on."""
        self._threads.shutdown(wait=False)
        self._threads = _threads()


def _threads() -> ThreadPoolExecutor:
    # Not the event loop's own, which has six threads on two processors. A thread starts when no
    # other is idle, so there are as many as `Limits.concurrency`.
    return ThreadPoolExecutor(_MOST_THREADS, "btdagg-judge")


Answers: TypeAlias = Sequence[str | ChatReply | ChatError]


class BatchClient:
    """A function of many requests as a client: calls that come together are one call.

    Parameters
    ----------
    function : callable
        Takes a list of :class:`ChatRequest`, returns for each a text, a :class:`ChatReply` or a
        :class:`btdagg.judge.ChatError`. One that is not async is called in a thread, one call at a
        time. If it raises ValueError, as for a text that is too long, each half is asked by itself.
    wait : float
        Seconds in which further requests join a call, at most `Limits.concurrency`.
    """

    def __init__(
        self,
        function: Callable[[list[ChatRequest]], Answers | Awaitable[Answers]],
        *,
        wait: float = 0.1,
    ) -> None:
        self._function, self._wait = function, wait
        self._batch: list[ChatRequest] = []  # which others may join
        self._tasks: list[asyncio.Task[list[ChatReply | Exception]]] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Wait for others, and have all asked together."""
        number = len(self._batch)
        self._batch.append(request)
        if not number:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks.append(
                asyncio.create_task(self._ask_together(self._batch, self._tasks[-1:]))
            )
        answer = (await asyncio.shield(self._tasks[-1]))[number]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Ask nothing more."""
        self._batch, tasks, self._tasks = [], self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask_together(
        self, batch: list[ChatRequest], before: list[asyncio.Task[Any]]
    ) -> list[ChatReply | Exception]:
        try:
            await asyncio.sleep(self._wait)
            if before:
                await asyncio.wait(before)
        finally:
            self._batch = []  # nobody else joins
        return await self._ask(batch)

    async def _ask(self, requests: list[ChatRequest]) -> list[ChatReply | Exception]:
        try:
            answers = await _called(self._function, requests)
        except ValueError as error:
            if len(requests) == 1:
                return [ChatError(" ".join(str(error).split()), "rejected")]
            half = len(requests) // 2
            return [*await self._ask(requests[:half]), *await self._ask(requests[half:])]
        if len(answers) != len(requests):
            n = len(requests)
            raise ChatError(f"{len(answers)} answers to {n} requests", "protocol", may_cost=True)
        return [
            answer if isinstance(answer, Exception) else _reply_of(answer, request)
            for answer, request in zip(answers, requests, strict=True)
        ]


async def _called(function: Callable[[Any], Any], argument: object) -> Any:
    # Nothing comes between a coroutine and its await: a cancelled call leaves none behind.
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    answer = await asyncio.to_thread(_call, function, argument)
    return await answer if inspect.isawaitable(answer) else answer


def _call(function: Callable[[Any], Any], argument: object) -> Any:
    try:
        return function(argument)
    except StopIteration as error:  # no future can hold it: whoever waits would never hear of it
        raise RuntimeError("the function raised StopIteration") from error


def _reply_of(answer: str | ChatReply, request: ChatRequest) -> ChatReply:
    if isinstance(answer, ChatReply):
        return answer
    text, reasoning = split_thinking(str(answer))
    return ChatReply(text, reasoning, model=request.model)


_THINKING = re.compile(r"\A\s*<think(?:ing)?>(.*?)(?:</think(?:ing)?>\s*|\Z)", re.DOTALL)
_THINKING_UNOPENED = re.compile(r"\A((?:(?!<think).)*?)</think(?:ing)?>\s*", re.DOTALL)


def split_thinking(text: str) -> tuple[str, str]:
    """Split a text into answer and thinking, which stands in ``<think>`` marks."""
    # The opening mark may be part of the prompt; without a closing one all of it is thinking.
    match = _THINKING.match(text) or ("</think" in text and _THINKING_UNOPENED.match(text))
    return (text[match.end() :], match[1].strip()) if match else (text, "")


def parts_of(content: Any) -> tuple[str, str]:
    """Text and thought of a content that is a text, or comes in parts."""
    if isinstance(content, str | int | float):
        return str(content), ""
    if isinstance(content, Mapping):
        content = (content,)
    texts: tuple[list[str], list[str]] = ([], [])
    for part in content or ():
        if isinstance(part, str):
            part = {"text": part}
        is_thought = part.get("type") in ("thinking", "reasoning", "redacted_thinking")
        inner = part.get("thinking") or part.get("reasoning") or part.get("text") or ""
        texts[is_thought].append("".join(parts_of(inner)))
    return "".join(texts[0]), "".join(texts[1])


# What all calls of a run have in common


@readable
@dataclass(frozen=True)
class Setup:
    """Who judges and how: what all calls of a run have in common."""

    # Votes with the same setup, item, order and sample are the same vote. `judge` is the model's
    # name or alias; `template_digest` covers what the template sends but the pair; `method` is
    # `sample` or another; `settings` are all else that changes the answers, as JSON values. `scale`
    # is of the votes.

    judge: str
    template: str
    template_digest: str
    method: str = "sample"
    temperature: float | None = 0.5
    reasoning_effort: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    scale: Scale = PAIRS

    @property
    def prompt(self) -> str:
        """SHA-256 of everything here but the names."""
        names = ("method", "temperature", "reasoning_effort")
        parts = {"template": self.template_digest, **{name: getattr(self, name) for name in names}}
        return digest_of({**parts, **self.settings})


def digest_of(value: object) -> str:
    """SHA-256 of a value as JSON, keys in order."""
    written = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(written.encode(errors="surrogatepass")).hexdigest()


def batched(things: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Lists of `size` things each; the last may be shorter."""
    rest = iter(things)
    while batch := list(islice(rest, size)):
        yield batch


def samples_of(n: int, order: str = "both") -> tuple[tuple[Order, int], ...]:
    """Return orders and samples of n votes per item; ``both`` takes turns, so n must be even."""
    n = as_integer(n, "n", 1)
    if order == "both":
        forbid(
            n % 2,
            f"n is {n}, expected an even number, since half of the calls show A first and "
            f"half B first; use n={n + 1}, or a single order",
            "n",
        )
        return tuple((place, sample) for sample in range(n // 2) for place in ORDERS)
    if order not in ORDERS:
        raise InputError(argument="order", got=order, expected="both, AB or BA")
    return tuple((order, sample) for sample in range(n))


# Providers

SIMULATED = "simulated"  # the model that asks no endpoint


class Provider(NamedTuple):
    """Where a provider is, and what a client of it needs."""

    address: str
    library: str  # module that is imported
    extra: str  # of btdagg, which installs it
    key_variables: tuple[str, ...]  # the first that is set
    needs_key: bool = True
    address_variable: str = ""


PROVIDERS = {
    "openai": Provider(
        "https://api.openai.com/v1", "openai", "judge", ("OPENAI_API_KEY",),
        address_variable="OPENAI_BASE_URL",
    ),
    "anthropic": Provider(
        "https://api.anthropic.com", "anthropic", "anthropic", ("ANTHROPIC_API_KEY",)
    ),
    "google": Provider(
        "https://generativelanguage.googleapis.com", "google.genai", "google",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    "bedrock": Provider("", "boto3", "bedrock", ("AWS_BEARER_TOKEN_BEDROCK",), needs_key=False),
    "ollama": Provider(
        "http://localhost:11434/v1", "openai", "judge", ("OLLAMA_API_KEY",),
        needs_key=False, address_variable="OLLAMA_BASE_URL",
    ),
}  # fmt: skip
BATCHING = ("openai", "anthropic")  # providers that answer by batches


def provider_of(model: str) -> tuple[str, str]:
    """Return the provider and the name of a model; a bare name is of an OpenAI-like endpoint.

    >>> provider_of("anthropic:claude-sonnet-5"), provider_of("llama3:8b")
    (('anthropic', 'claude-sonnet-5'), ('openai', 'llama3:8b'))
    """
    prefix, colon, name = model.partition(":")
    return (prefix, name) if colon and name and prefix in PROVIDERS else ("openai", model)
