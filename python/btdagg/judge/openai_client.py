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
from btdagg.judge.client import TOO_LONG, ChatReply, ChatRequest, Usage, split_thinking
from btdagg.judge.rate_limits import RateLimits
from btdagg.judge.retry import ChatError, Kind, parse_retry_after

if TYPE_CHECKING:
    import httpx2
    import openai

KEY_VARIABLE = "OPENAI_API_KEY"

_NO_KEY = "none"  # what servers of one's own are sent where there is no key
_KEY_SHAPED = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.-]{6,}")
_SHORTEST_KEY = 8  # shorter ones are placeholders, such as EMPTY
_LONGEST_MESSAGE = 200
_CALLS_OF_A_POOL = 16
# What is read of a reply. Answers have some 100 kB at most, their log-probabilities a few MB; in a
# stream each token comes with a few hundred bytes around it.
_LONGEST_REPLY = 8 * 1024**2  # bytes
_LONGEST_STREAM = 16 * _LONGEST_REPLY
_LONGEST_ANSWER = 1_000_000  # characters
_FATAL = {
    401: "refuses the key of {variable}",
    402: "wants to be paid",
    403: "does not permit this with the key of {variable}",
    404: "knows no such path or no model {model!r}",
    405: "is no chat-completions endpoint",
    501: "is no chat-completions endpoint",
}
_TRANSIENT = (408, 409, 425, 429)
_OUT_OF_MONEY = ("insufficient_quota", "billing_hard_limit_reached")
# Fields of a request that endpoints refuse, and the option without which they are not sent.
_OPTIONS = {
    "temperature": "--temperature default",
    "top_p": "no --top-p",
    "reasoning_effort": "no --reasoning-effort",
    "thinking": "no --thinking-budget",
    "max_tokens": "another --max-answer-tokens",
    "max_completion_tokens": "another --max-answer-tokens",
    "response_format": "no --structured",
    "logprobs": "no --confidence logprobs",
    "seed": "no --request-seed",
    "stream_options": "no --stream",
    "stream": "no --stream",
    "system": "--system-role user",
    "developer": "--system-role system",
    "n": "--samples-per-call 1",
}
_OF_STRUCTURE = re.compile(r"response_format|json_?schema|json_object|structured", re.I)
_FILTERED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")


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
        self._key = key
        self._variable = key_variable
        self._stream = stream
        # Finding a free connection takes a look at each that there is, so a few hundred of them in
        # one pool cost more than all else that a call takes. Pools are small, and made by need.
        self._pools: list[_Pool] = []
        self._ssl = httpx2.create_ssl_context()
        self._timeout = timeout
        try:
            http_client = self._http_client()
        except (ValueError, ImportError, httpx2.InvalidURL) as error:
            raise InputError(
                f"the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY: {self._brief(str(error))}; "
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
            filtered = self._filtered(error, time.perf_counter() - began)
            if filtered is not None:
                return filtered
            fault = error if isinstance(error, ChatError) else self._explained(error, request)
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
        if len(self._key) >= _SHORTEST_KEY and self._key in text:
            return text.replace(self._key, "[key]")
        return text

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
            raise self._no_completion(response) from None
        latency = time.perf_counter() - began
        try:
            # OpenRouter and others put an error in a reply that says 200.
            if "error" in value and not value.get("choices"):
                raise self._refused(value["error"])
            usage = _usage(value.get("usage"))
            model = str(value.get("model") or "")
            replies = [
                self._answer(choice, usage if place == 0 else None, latency, model)
                for place, choice in enumerate(value["choices"])
            ]
        except (KeyError, TypeError, AttributeError, ValueError):
            raise self._no_completion(response) from None
        return replace(_together(replies), limits=RateLimits.of(response.headers))

    def _answer(
        self, choice: Mapping[str, Any], usage: Usage | None, latency: float, model: str
    ) -> ChatReply:
        message = choice["message"]
        content, thought = _parts(message.get("content"))
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
            self.hidden(text),
            self.hidden(reasoning),
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
                    usage = _usage(chunk.usage.model_dump())
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
                    content, part = _parts(delta.content)
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
        return replace(_together(replies), limits=RateLimits.of(stream.response.headers))

    def _filtered(self, error: Exception, latency: float) -> ChatReply | None:
        """Return the refusal that an error is where a filter has refused a text."""
        import openai

        if not isinstance(error, openai.APIStatusError) or error.status_code not in (400, 403):
            return None
        if not _names_a_filter(error.body):
            return None
        said = self._brief(_message_of(error.body)) or "refused by the filter of the endpoint"
        return ChatReply(f"HTTP {error.status_code}: {said}", "", "refusal", latency=latency)

    # What goes wrong

    def _explained(self, error: Exception, request: ChatRequest) -> ChatError:
        import openai

        if isinstance(error, openai.APIStatusError):
            return self._status_error(error, request)
        if isinstance(error, (openai.APITimeoutError, TimeoutError)):
            return ChatError("time-out", may_cost=True)
        if isinstance(error, openai.APIConnectionError):
            cause: BaseException = error
            while cause.__cause__ is not None or cause.__context__ is not None:
                cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
            words = str(cause).strip() or type(cause).__name__
            refused = isinstance(cause, OSError) and not isinstance(cause, ConnectionResetError)
            # Nobody there is no fault of one request.
            kind: Kind = "protocol" if refused else "transient"
            return ChatError(f"no connection: {self._brief(words)}", kind, may_cost=not refused)
        if isinstance(error, openai.APIError):  # an error event within a stream
            return ChatError(self._brief(error.message), may_cost=True)
        if isinstance(error, (ValueError, KeyError, TypeError, AttributeError)):
            return ChatError("the reply is no chat completion", "protocol", may_cost=True)
        words = str(error).strip()
        return ChatError(
            self._brief(f"{type(error).__name__}: {words}" if words else type(error).__name__),
            may_cost=True,
        )

    def _status_error(self, error: Any, request: ChatRequest) -> ChatError:
        status, said = error.status_code, self._brief(_message_of(error.body))
        if error.code in _OUT_OF_MONEY or error.type in _OUT_OF_MONEY:
            return ChatError(
                f"HTTP {status}: out of quota" + (f": {said}" if said else ""), "fatal"
            )
        if status in _FATAL:
            words = _FATAL[status].format(variable=self._variable, model=request.model)
            # What is said about a wrong key often shows a part of it.
            more = f": {said}" if said and status not in (401, 403) else ""
            # Some endpoints say 403 of a text that they will not have judged.
            kind: Kind = "forbidden" if status == 403 else "fatal"
            return ChatError(f"{words} (HTTP {status}){more}", kind)
        words = f"HTTP {status}" + (f": {said}" if said else "")
        if status in _TRANSIENT or status >= 500:
            headers = error.response.headers
            retry_after = parse_retry_after(headers.get("retry-after"))
            if headers.get("retry-after-ms"):
                thousandths = parse_retry_after(headers.get("retry-after-ms"))
                retry_after = None if thousandths is None else thousandths / 1000
            return ChatError(
                words,
                "limited" if status == 429 else "transient",
                retry_after=retry_after,
                limits=RateLimits.of(headers),
            )
        if status < 400:
            return ChatError(words, "protocol")
        option = _option_for(str(error.param or ""), said)
        return ChatError(words + (f"; {option} avoids it" if option else ""), "rejected")

    def _refused(self, error: object) -> ChatError:
        code = error.get("code") if isinstance(error, Mapping) else None
        said = self._brief(_message_of({"error": error}))
        rejected = isinstance(code, int) and 400 <= code < 500 and code not in _TRANSIENT
        return ChatError(f"error in the reply: {said}", "rejected" if rejected else "transient")

    def _no_completion(self, response: Any) -> ChatError:
        content_type = response.headers.get("content-type", "").partition(";")[0] or "no type"
        return ChatError(
            f"the reply is no chat completion ({self._brief(content_type)})",
            "protocol",
            may_cost=True,
        )

    def _brief(self, text: str) -> str:
        """One line of a text from outside, without anything like a key."""
        line = _KEY_SHAPED.sub("[key]", self.hidden(" ".join(text.split())))
        return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."


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


def _parts(content: Any) -> tuple[str, str]:
    """Text and thought of a content that is a text, or comes in parts."""
    if isinstance(content, str):
        return content, ""
    said: tuple[list[str], list[str]] = ([], [])
    for part in content or ():
        if isinstance(part, str):
            part = {"text": part}
        is_thought = part.get("type") in ("thinking", "reasoning", "redacted_thinking")
        inner = part.get("thinking") or part.get("reasoning") or part.get("text") or ""
        said[is_thought].append("".join(_parts(inner)))
    return "".join(said[0]), "".join(said[1])


def _together(replies: list[ChatReply]) -> ChatReply:
    if not replies:
        raise ValueError("no choices")
    return replace(replies[0], further=tuple(replies[1:])) if len(replies) > 1 else replies[0]


def _usage(value: Mapping[str, Any] | None) -> Usage | None:
    if not value:
        return None
    details = value.get("completion_tokens_details") or {}
    sent = value.get("prompt_tokens_details") or {}
    cost = value.get("cost")
    return Usage(
        int(value.get("prompt_tokens") or 0),
        int(value.get("completion_tokens") or 0),
        int(details.get("reasoning_tokens") or value.get("reasoning_tokens") or 0),
        int(sent.get("cached_tokens") or value.get("prompt_cache_hit_tokens") or 0),
        float(cost) if isinstance(cost, int | float) else None,
    )


def _option_for(field: str, said: str) -> str:
    """The option that avoids a field that is refused; empty where none is known."""
    if field in _OPTIONS:
        return _OPTIONS[field]
    quoted = set(re.findall(r"[`'\"]([a-z_]+)[`'\"]", said)) | set(
        re.findall(r"\b[a-z]+_[a-z_]+\b", said)
    )
    return next((option for name, option in _OPTIONS.items() if name in quoted), "")


def _names_a_filter(error: object) -> bool:
    """Whether the code of an error, or of what caused it, is that of a filter."""
    if not isinstance(error, Mapping):
        return False
    if any(error.get(name) in _FILTERED for name in ("code", "type")):
        return True
    return any(_names_a_filter(error.get(name)) for name in ("error", "innererror", "inner_error"))


def _message_of(body: object) -> str:
    if isinstance(body, Mapping):
        error = body.get("error", body)
        if isinstance(error, Mapping):
            return str(error.get("message") or error.get("detail") or "")
        return str(error)
    said = "" if body is None else str(body)
    return "" if said.lstrip().startswith("<") else said  # a page says nothing to people here


def _require_address(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        good = False
    if not good:
        raise InputError(
            f"base URL is {without_credentials(base_url)!r}, want one such as http://localhost:8000/v1"
        )
