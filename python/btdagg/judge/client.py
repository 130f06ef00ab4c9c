"""Asking a model: requests and replies, clients, and what all calls of a run have in common."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from btdagg._util.errors import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import as_integer

_T = TypeVar("_T")

Order: TypeAlias = Literal["AB", "BA"]
Messages: TypeAlias = Sequence[Mapping[str, Any]]
Status: TypeAlias = Literal["ok", "unparsed", "refused", "truncated", "empty", "failed"]

ORDERS: tuple[Order, ...] = ("AB", "BA")
STATUSES: tuple[Status, ...] = ("ok", "unparsed", "refused", "truncated", "empty", "failed")
TOO_LONG = "too_long"  # finish reason of a reply that was not read to its end


@readable
@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request for an answer.

    `temperature`, `top_p`, `max_tokens`, `reasoning_effort`, `thinking_budget` and `seed` are left
    to the endpoint where they are None. `logprobs` asks for the log-probability of each token,
    `response_format` for an answer by a JSON schema, as OpenAI's protocol has it; `extra` are
    further fields of the request's body. `item`, `order` and `sample` are not sent; a short request
    that tries the endpoint has none.
    """

    messages: Messages
    model: str
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    thinking_budget: int | None = None
    seed: int | None = None
    logprobs: bool = False
    response_format: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    item: str = ""
    order: Order | None = None
    sample: int | None = None


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
    """What headers say of a limit: so many are left, and all are there again in so many seconds."""

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
    usage : Usage or None
        None where the endpoint does not say.
    token_logprobs : tuple of float, or None
        Log-probability of each token of the answer.
    latency : float
        Seconds from request to answer.
    model : str
        The model that answered, as the endpoint calls it.
    limits : RateLimits or None
        What the endpoint says of its limits.
    """

    text: str
    reasoning: str = ""
    finish_reason: str = "stop"
    usage: Usage | None = None
    token_logprobs: tuple[float, ...] | None = None
    latency: float = 0.0
    model: str = ""
    limits: RateLimits | None = None


class Reading(NamedTuple):
    """What an answer says: the vote from A's point of view, None unless `status` is ``ok``."""

    status: Status
    vote: int | None = None
    confidence: float | None = None
    reason: str = ""


class ChatClient(Protocol):
    """Whoever answers chat requests."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer a request, or raise a :class:`btdagg.judge.ChatError`."""

    async def close(self) -> None:
        """Let go of connections."""


class FunctionClient:
    """A plain function, async or not, as a client.

    It takes a :class:`ChatRequest` and returns a text or a :class:`ChatReply`. One that is not
    async is called in a thread. What it raises is retried and in the end recorded.
    """

    def __init__(
        self, function: Callable[[ChatRequest], str | ChatReply | Awaitable[str | ChatReply]]
    ) -> None:
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  an object whose __call__ is async
        )

    def __repr__(self) -> str:
        name = getattr(self._function, "__qualname__", type(self._function).__name__)
        return f"FunctionClient({name})"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Call the function."""
        answer: Any
        if self._is_async:
            answer = await self._function(request)  # type: ignore[misc]
        else:
            answer = await called_in_thread(self._function, request)
            if inspect.isawaitable(answer):
                answer = await answer
        if isinstance(answer, ChatReply):
            return answer
        text, reasoning = split_thinking(str(answer))
        return ChatReply(text, reasoning, model=request.model)

    async def close(self) -> None:
        """Nothing to let go of."""


async def called_in_thread(function: Callable[[_T], Any], argument: _T) -> Any:
    """Call a function in a thread; StopIteration, which no future takes, becomes RuntimeError."""

    def call() -> Any:
        try:
            return function(argument)
        except StopIteration as error:
            raise RuntimeError("the function raised StopIteration") from error

    return await asyncio.to_thread(call)


_THINKING = re.compile(r"\A\s*<think(?:ing)?>(.*?)</think(?:ing)?>", re.DOTALL)


def split_thinking(text: str) -> tuple[str, str]:
    """Split a text into answer and thinking, which stands in ``<think>`` marks.

    Some servers leave out the opening mark, which then is part of the prompt; an answer that was
    cut off while thinking has no closing one, and all of it is thinking.
    """
    if match := _THINKING.match(text):
        return text[match.end() :].lstrip(), match[1].strip()
    for opening, closing in (("<think>", "</think>"), ("<thinking>", "</thinking>")):
        before, mark, after = text.partition(closing)
        if mark and opening not in before:
            return after.lstrip(), before.strip()
        if text.lstrip().startswith(opening):
            return "", text.lstrip().removeprefix(opening).strip()
    return text, ""


def parts_of(content: Any) -> tuple[str, str]:
    """Text and thought of a content that is a text, or comes in parts."""
    if isinstance(content, str):
        return content, ""
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
class Asked:
    """What all calls of a run have in common: who is asked, and how.

    Votes that agree in it, in item, order and sample are the same vote.

    Attributes
    ----------
    judge : str
        Name of the judge in tables: its model, or an alias of the user's.
    template, template_digest : str
        Name of the prompt template, and a digest of all that it sends except the pair.
    method : str
        ``sample``, or the name of another method.
    settings : mapping
        All else that changes what is asked; JSON values.
    """

    judge: str
    template: str
    template_digest: str
    method: str = "sample"
    temperature: float | None = 0.5
    reasoning_effort: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        """Digest of what is asked: a SHA-256 of everything here but the names."""
        told = {
            "template": self.template_digest,
            "method": self.method,
            "temperature": self.temperature,
            "reasoning_effort": self.reasoning_effort,
            **self.settings,
        }
        return digest_of(told)


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
    """Return orders and samples of n votes per item, in turn from both orders.

    With order ``both`` half of the votes are in each order, so n has to be even; ``AB`` or ``BA``
    is one order alone.
    """
    n = as_integer(n, "n", 1)
    if order == "both":
        if n % 2:
            raise InputError(
                f"n is {n}, expected an even number: half of the votes are asked with A first, "
                "half "
                f"with B first; {n + 1}, or one order alone"
            )
        return tuple((each, sample) for sample in range(n // 2) for each in ORDERS)
    if order not in ORDERS:
        raise InputError(f"order is {order!r}, expected both, AB or BA")
    return tuple((order, sample) for sample in range(n))
