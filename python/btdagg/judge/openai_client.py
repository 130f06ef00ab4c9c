"""Any OpenAI-compatible endpoint, through `openai.AsyncOpenAI`."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from btdagg._core import InputError
from btdagg.addresses import without_credentials
from btdagg.extras import needs
from btdagg.judge.chat_replies import parts_of, together, usage_of
from btdagg.judge.client import TOO_LONG, ChatReply, ChatRequest, Usage, split_thinking
from btdagg.judge.endpoint_faults import Faults
from btdagg.judge.rate_limits import RateLimits
from btdagg.judge.retry import ChatError

if TYPE_CHECKING:
    import httpx2
    import openai

KEY_VARIABLE = "OPENAI_API_KEY"

_NO_KEY = "none"  # what servers of one's own are sent where there is no key
_CALLS_OF_A_POOL = 16
# What is read of a reply. Answers have some 100 kB at most, their log-probabilities a few MB; in a
# stream each token comes with a few hundred bytes around it.
_LONGEST_REPLY = 8 * 1024**2  # bytes
_LONGEST_STREAM = 16 * _LONGEST_REPLY
_LONGEST_ANSWER = 1_000_000  # characters
_OF_STRUCTURE = re.compile(r"response_format|json_?schema|json_object|structured", re.I)


class _ReplyTooLongError(Exception):
    """More came than is read of a reply."""


@dataclass
class _Pool:
    client: openai.AsyncOpenAI
    in_flight: int = 0


class OpenAIClient:
    """A client of an endpoint that speaks the chat-completions protocol.

    The key is read from the environment and kept nowhere else. Retries are left to whoever calls.

    Parameters
    ----------
    base_url : str, optional
        Such as ``http://localhost:8000/v1``; without it OpenAI's own.
    key_variable : str
        Name of the environment variable that holds the key. It may be unset where `base_url` is
        given: servers of one's own often want none.
    stream : bool
        Ask for answers in parts, which keeps connections from going idle while a model thinks.
    timeout : float
        Seconds to wait for a connection or for further bytes.

    Raises
    ------
    InputError
        If there is no key, or the address is none.
    MissingExtraError
        If openai is not installed.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        key_variable: str = KEY_VARIABLE,
        stream: bool = False,
        timeout: float = 600.0,
    ) -> None:
        with needs("judge", "asking a model"):
            import httpx2
            import openai
        if base_url is not None:
            _require_address(base_url)
        key = os.environ.get(key_variable, "").strip()
        if not key and base_url is None:
            raise InputError(f"environment variable {key_variable} is not set, want an API key")
        if not key.isascii() or not key.isprintable():
            raise InputError(
                f"environment variable {key_variable} has characters that no API key has"
            )
        self._faults = Faults(key, key_variable)
        self._stream = stream
        # Finding a free connection takes a look at each that there is, so a few hundred of them in
        # one pool cost more than all else that a call takes. Pools are small, and made by need.
        self._pools: list[_Pool] = []
        self._ssl = httpx2.create_ssl_context()
        self._timeout = timeout
        try:
            http_client = self._http_client()
        except (ValueError, ImportError, httpx2.InvalidURL) as error:
            said = self._faults.brief(str(error))
            raise InputError(
                f"the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY: {said}; "
                "want one such as http://localhost:3128"
            ) from None
        first = openai.AsyncOpenAI(
            api_key=key or _NO_KEY,
            base_url=base_url,
            max_retries=0,
            timeout=timeout,
            http_client=http_client,
        )
        self._pools.append(_Pool(first))
        self.name = without_credentials(str(first.base_url))
        # OpenAI's own models that think take the new name alone, other servers know the old.
        new = self.name.startswith("https://api.openai.com")
        self._limit = "max_completion_tokens" if new else "max_tokens"
        self._structured = "json_schema"  # what structured answers are asked for by

    def __repr__(self) -> str:
        return f"OpenAIClient({self.name!r})"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send a request and read its reply.

        Raises
        ------
        ChatError
            If there is none.
        """
        while True:
            body = self._body(request)
            try:
                return await self._sent(request, body)
            except ChatError as fault:
                if not self._adapts(fault, body):
                    raise

    async def _sent(self, request: ChatRequest, body: dict[str, Any]) -> ChatReply:
        import httpx2

        began = time.perf_counter()
        pool = self._pool()
        pool.in_flight += 1
        try:
            if self._stream:
                return await self._streamed(pool.client, body, began)
            # Read by us: endpoints differ in what they send beside what the library expects.
            response = await pool.client.post(
                "/chat/completions", cast_to=httpx2.Response, body=body
            )
            return self._reply(response, began)
        except _ReplyTooLongError:
            return ChatReply("", finish_reason=TOO_LONG, latency=time.perf_counter() - began)
        except Exception as error:
            filtered = self._faults.filtered(error, time.perf_counter() - began)
            if filtered is not None:
                return filtered
            fault = (
                error if isinstance(error, ChatError) else self._faults.explained(error, request)
            )
        finally:
            pool.in_flight -= 1
        # Raised out here and without its context: the original holds the request, and that the
        # key, which some endpoints also echo in what they say.
        fault.__context__ = None
        raise fault

    async def close(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            await pool.client.close()

    def hidden(self, text: str) -> str:
        """Return a text without the key, should it hold it."""
        return self._faults.hidden(text)

    # Requests

    def _pool(self) -> _Pool:
        for pool in self._pools:
            if pool.in_flight < _CALLS_OF_A_POOL:
                return pool
        pool = _Pool(self._pools[0].client.copy(http_client=self._http_client()))
        self._pools.append(pool)
        return pool

    def _adapts(self, fault: ChatError, body: Mapping[str, Any]) -> bool:
        """Whether a refused request can be put in another way: from now on it is."""
        if fault.kind != "rejected":
            return False
        said = str(fault)
        if "max_tokens" in body and "max_completion_tokens" in said:
            self._limit = "max_completion_tokens"
            return True
        asked = body.get("response_format")
        if asked is not None and _OF_STRUCTURE.search(said):
            self._structured = "json_object" if asked["type"] == "json_schema" else ""
            return True
        return False

    def _http_client(self) -> httpx2.AsyncClient:
        import openai

        return openai.DefaultAsyncHttpxClient(
            timeout=self._timeout,
            verify=self._ssl,
            headers={"Accept-Encoding": "identity"},  # so that a small reply is not a large one
            event_hooks={"response": [_read_no_more_than_needed]},
        )

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        body: dict[str, Any] = {"model": request.model, "messages": request.messages}
        for name in ("temperature", "top_p", "reasoning_effort", "seed"):
            value = getattr(request, name)
            if value is not None:
                body[name] = value
        if request.max_tokens is not None:
            body[self._limit] = request.max_tokens
        if request.thinking_budget is not None:
            body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking_budget}
        if request.response_format is not None and self._structured:
            is_schema = self._structured == "json_schema"
            plain = {"type": "json_object"}
            body["response_format"] = request.response_format if is_schema else plain
        if request.n > 1:
            body["n"] = request.n
        if request.logprobs:
            body["logprobs"] = True
        if request.extra:
            body.update(request.extra)
        return body

    # Replies

    def _reply(self, response: Any, began: float) -> ChatReply:
        try:
            value = json.loads(response.content)
        except ValueError:
            raise self._faults.no_completion(response) from None
        latency = time.perf_counter() - began
        try:
            # OpenRouter and others put an error in a reply that says 200.
            if "error" in value and not value.get("choices"):
                raise self._faults.refused(value["error"])
            usage = usage_of(value.get("usage"))
            model = str(value.get("model") or "")
            replies = [
                self._answer(choice, usage if place == 0 else None, latency, model)
                for place, choice in enumerate(value["choices"])
            ]
        except (KeyError, TypeError, AttributeError, ValueError):
            raise self._faults.no_completion(response) from None
        return replace(together(replies), limits=RateLimits.of(response.headers))

    def _answer(
        self, choice: Mapping[str, Any], usage: Usage | None, latency: float, model: str
    ) -> ChatReply:
        message = choice["message"]
        content, thought = parts_of(message.get("content"))
        reasoning = message.get("reasoning_content") or message.get("reasoning") or thought
        refusal = message.get("refusal") or ""
        tokens = (choice.get("logprobs") or {}).get("content")
        return self._made(
            content or refusal,
            reasoning if isinstance(reasoning, str) else json.dumps(reasoning),
            "refusal" if refusal else str(choice.get("finish_reason") or "stop"),
            usage,
            tuple(float(token["logprob"]) for token in tokens) if tokens else None,
            latency,
            model,
        )

    def _made(
        self,
        content: str,
        reasoning: str,
        finish_reason: str,
        usage: Usage | None,
        logprobs: tuple[float, ...] | None,
        latency: float,
        model: str,
    ) -> ChatReply:
        text, thinking = split_thinking(content) if "think" in content else (content, "")
        reasoning = reasoning or thinking
        if max(len(text), len(reasoning)) > _LONGEST_ANSWER:
            text, reasoning = text[:_LONGEST_ANSWER], reasoning[:_LONGEST_ANSWER]
            finish_reason = TOO_LONG
        return ChatReply(
            self._faults.hidden(text),
            self._faults.hidden(reasoning),
            finish_reason,
            usage,
            logprobs,
            latency,
            model,
        )

    async def _streamed(
        self, client: openai.AsyncOpenAI, body: dict[str, Any], began: float
    ) -> ChatReply:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        import openai
        from openai.types.chat import ChatCompletionChunk

        texts: list[list[str]] = []
        thoughts: list[list[str]] = []
        logprobs: list[list[float]] = []
        finish: list[str] = []
        usage, model = None, ""
        stream = await client.post(
            "/chat/completions",
            cast_to=ChatCompletionChunk,
            body=body,
            stream=True,
            stream_cls=openai.AsyncStream[ChatCompletionChunk],
        )
        async with stream:
            async for chunk in stream:
                model = model or chunk.model or ""
                if chunk.usage is not None:
                    usage = usage_of(chunk.usage.model_dump())
                for choice in chunk.choices or ():
                    while len(texts) <= choice.index:
                        texts.append([])
                        thoughts.append([])
                        logprobs.append([])
                        finish.append("")
                    delta = choice.delta
                    thought = getattr(delta, "reasoning_content", None) or getattr(
                        delta, "reasoning", None
                    )
                    content, part = parts_of(delta.content)
                    thoughts[choice.index].append(thought or part)
                    texts[choice.index].append(content or delta.refusal or "")
                    if choice.logprobs is not None:
                        logprobs[choice.index] += [
                            token.logprob for token in choice.logprobs.content or ()
                        ]
                    if delta.refusal:
                        finish[choice.index] = "refusal"
                    finish[choice.index] = finish[choice.index] or choice.finish_reason or ""
        if not texts:
            raise ChatError("a stream without an answer", "protocol", may_cost=True)
        if not all(finish):
            raise ChatError("the stream broke off", may_cost=True)
        latency = time.perf_counter() - began
        replies = [
            self._made(
                "".join(texts[place]),
                "".join(thoughts[place]),
                finish[place],
                usage if place == 0 else None,
                tuple(logprobs[place]) or None,
                latency,
                model,
            )
            for place in range(len(texts))
        ]
        return replace(together(replies), limits=RateLimits.of(stream.response.headers))


async def _read_no_more_than_needed(response: httpx2.Response) -> None:
    """Cap what is read of a reply; what is encoded although nobody asked for it may unfold."""
    is_stream = "event-stream" in response.headers.get("content-type", "")
    longest = _LONGEST_STREAM if is_stream else _LONGEST_REPLY
    if "content-encoding" in response.headers:
        longest //= 16
    response.stream = _capped(response.stream, longest, fails=response.status_code < 400)


def _capped(stream: Any, longest: int, *, fails: bool) -> httpx2.AsyncByteStream:
    """Return a stream that ends, or fails, after so many bytes."""
    import httpx2

    class Capped(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            n_bytes = 0
            async for chunk in stream:
                n_bytes += len(chunk)
                if n_bytes > longest:
                    if fails:
                        raise _ReplyTooLongError
                    return
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Capped()


def _require_address(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        good = False
    if good and parts.path.rstrip("/").endswith("/chat/completions"):
        raise InputError(
            f"base URL is {without_credentials(base_url)!r}, want it without /chat/completions"
        )
    if not good:
        raise InputError(
            f"base URL is {without_credentials(base_url)!r}, want one such as http://localhost:8000/v1"
        )
