"""Any OpenAI-compatible endpoint, through `openai.AsyncOpenAI`."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from btdagg.addresses import without_credentials
from btdagg.extras import needs
from btdagg.judge.chat_replies import parts_of, together, usage_of
from btdagg.judge.client import ChatReply, ChatRequest, Usage, split_thinking
from btdagg.judge.endpoint_client import EndpointClient, key_of, require_address
from btdagg.judge.endpoint_faults import Faults
from btdagg.judge.rate_limits import RateLimits
from btdagg.judge.retry import ChatError

if TYPE_CHECKING:
    import httpx2
    import openai

KEY_VARIABLE = "OPENAI_API_KEY"
OWN_ADDRESS = "https://api.openai.com/v1"

_NO_KEY = "none"  # what servers of one's own are sent where there is no key
_PATH = "/chat/completions"
_OF_STRUCTURE = re.compile(r"response_format|json_?schema|json_object|structured", re.I)


class OpenAIClient(EndpointClient):
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
    transport : httpx2.AsyncBaseTransport, optional
        How requests are sent, in place of connections; such as a mock.

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
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        with needs("judge", "asking a model"):
            import httpx2  # noqa: F401
            import openai
        if base_url is not None:
            require_address(base_url, _PATH, "http://localhost:8000/v1")
        self._key = key_of(key_variable, is_wanted=base_url is None)
        self._base_url = base_url
        faults = Faults(self._key, key_variable, openai)
        super().__init__(faults, stream=stream, timeout=timeout, transport=transport)
        self.name = address_of(base_url)
        self._limit = limit_at(self.name)
        self._structured = "json_schema"  # what structured answers are asked for by

    def _library_client(self, http_client: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        import openai

        return openai.AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=self._base_url,
            max_retries=0,
            timeout=self._timeout,
            http_client=http_client,
        )

    # Requests

    def _adapts(self, fault: ChatError, body: Mapping[str, Any]) -> bool:
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

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        return body_of(request, self._limit, self._structured)

    # Replies

    async def _answered(
        self, client: openai.AsyncOpenAI, body: dict[str, Any], began: float
    ) -> ChatReply:
        import httpx2

        # Read by us: endpoints differ in what they send beside what the library expects.
        return self._reply(await client.post(_PATH, cast_to=httpx2.Response, body=body), began)

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
            reply = self.read(value, latency)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise self._faults.no_completion(response) from None
        return replace(reply, limits=RateLimits.of(response.headers))

    def read(self, value: Mapping[str, Any], latency: float = 0.0) -> ChatReply:
        """Return the reply that a completion, as it is sent, stands for.

        Raises
        ------
        KeyError, TypeError, AttributeError, ValueError
            If it is none.
        """
        usage = usage_of(value.get("usage"))
        model = str(value.get("model") or "")
        return together(
            [
                self._answer(choice, usage if place == 0 else None, latency, model)
                for place, choice in enumerate(value["choices"])
            ]
        )

    def _answer(
        self, choice: Mapping[str, Any], usage: Usage | None, latency: float, model: str
    ) -> ChatReply:
        message = choice["message"]
        content, thought = parts_of(message.get("content"))
        reasoning = message.get("reasoning_content") or message.get("reasoning") or thought
        refusal = message.get("refusal") or ""
        tokens = (choice.get("logprobs") or {}).get("content")
        return self._read(
            content or refusal,
            reasoning if isinstance(reasoning, str) else json.dumps(reasoning),
            "refusal" if refusal else str(choice.get("finish_reason") or "stop"),
            usage,
            tuple(float(token["logprob"]) for token in tokens) if tokens else None,
            latency,
            model,
        )

    def _read(self, content: str, reasoning: str, *said: Any) -> ChatReply:
        text, thinking = split_thinking(content) if "think" in content else (content, "")
        return self._made(text, reasoning or thinking, *said)

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
            _PATH,
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
            self._read(
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


def address_of(base_url: str | None) -> str:
    """Return the address, without credentials, that a client with this base URL asks."""
    return without_credentials(base_url or os.environ.get("OPENAI_BASE_URL") or OWN_ADDRESS)


def limit_at(address: str) -> str:
    """Return what an endpoint calls the limit on the tokens of an answer.

    OpenAI's own models that think take the new name alone, other servers know the old.
    """
    is_new = address.startswith(OWN_ADDRESS.removesuffix("/v1"))
    return "max_completion_tokens" if is_new else "max_tokens"


def body_of(
    request: ChatRequest, limit: str = "max_tokens", structured: str = "json_schema"
) -> dict[str, Any]:
    """Return the body of a request.

    Parameters
    ----------
    request : ChatRequest
    limit : str
        Field of the limit on the tokens of an answer; see `limit_at`.
    structured : ``json_schema``, ``json_object`` or empty
        What structured answers are asked for by.
    """
    body: dict[str, Any] = {"model": request.model, "messages": request.messages}
    for name in ("temperature", "top_p", "reasoning_effort", "seed"):
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    if request.max_tokens is not None:
        body[limit] = request.max_tokens
    if request.thinking_budget is not None:
        body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking_budget}
    if request.response_format is not None and structured:
        is_schema = structured == "json_schema"
        plain = {"type": "json_object"}
        body["response_format"] = request.response_format if is_schema else plain
    if request.n > 1:
        body["n"] = request.n
    if request.logprobs:
        body["logprobs"] = True
    return {**body, **request.extra}
