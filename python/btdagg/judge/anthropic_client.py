"""Anthropic's Messages API, through `anthropic.AsyncAnthropic`."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from btdagg.addresses import without_credentials
from btdagg.extras import needs
from btdagg.judge.chat_replies import parts_of
from btdagg.judge.client import ChatReply, ChatRequest, Usage
from btdagg.judge.endpoint_client import EndpointClient, key_of, require_address
from btdagg.judge.endpoint_faults import Faults
from btdagg.judge.rate_limits import RateLimits
from btdagg.judge.retry import ChatError

if TYPE_CHECKING:
    import anthropic
    import httpx2

KEY_VARIABLE = "ANTHROPIC_API_KEY"

_PATH = "/v1/messages"
_OWN = "https://api.anthropic.com"
# The last version of the API that takes a temperature, as models do that came before it went.
_WITH_TEMPERATURE = {"anthropic-version": "2023-06-01"}
_ANSWER_TOKENS = 16_384  # an answer has to have a limit; the budget for thinking comes on top
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_CACHED = {"type": "ephemeral"}
_OF_STRUCTURE = re.compile(r"output_config|json_?schema|structured|grammar", re.I)


class AnthropicClient(EndpointClient):
    """A client of Anthropic's API.

    What all prompts of a run begin with is marked to be kept in the cache of the API. Retries are
    left to whoever calls.

    Parameters
    ----------
    base_url : str, optional
        Of another endpoint with this API.
    key_variable : str
        Name of the environment variable that holds the key.
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
        If anthropic is not installed.
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
        with needs("anthropic", "asking Anthropic's API"):
            import anthropic
        if base_url is not None:
            require_address(base_url, _PATH, _OWN)
        self._key = key_of(key_variable, is_wanted=True)
        self._base_url = base_url or _OWN
        self._is_structured = True
        faults = Faults(self._key, key_variable, anthropic, "Messages", _PATH)
        super().__init__(faults, stream=stream, timeout=timeout, transport=transport)
        self.name = without_credentials(self._base_url)

    def _library_client(self, http_client: httpx2.AsyncClient) -> anthropic.AsyncAnthropic:
        import anthropic

        return anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=self._base_url,
            max_retries=0,
            timeout=self._timeout,
            http_client=http_client,
        )

    # Requests

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        if request.seed is not None:
            raise self._faults.unspoken("seed", "no --request-seed")
        system, messages = _with_cached_prefix(request.messages)
        body: dict[str, Any] = {"model": request.model, "messages": messages}
        if system:
            body["system"] = system
        budget = request.thinking_budget
        body["max_tokens"] = request.max_tokens or _ANSWER_TOKENS + (budget or 0)
        if budget is not None:
            if request.temperature not in (None, 1.0):
                what = "temperature but 1 while a model thinks by a budget"
                raise self._faults.unspoken(what, "--temperature default")
            body["thinking"] = {"type": "enabled", "budget_tokens": budget}
        for name in ("temperature", "top_p"):
            if getattr(request, name) is not None:
                body[name] = getattr(request, name)
        output: dict[str, Any] = {}
        if request.reasoning_effort is not None:
            output["effort"] = request.reasoning_effort
        schema = (request.response_format or {}).get("json_schema", {}).get("schema")
        if schema is not None and self._is_structured:
            output["format"] = {"type": "json_schema", "schema": schema}
        if output:
            body["output_config"] = output
        return {**body, **request.extra}

    def _adapts(self, fault: ChatError, body: Mapping[str, Any]) -> bool:
        refused = fault.kind == "rejected" and "format" in body.get("output_config", {})
        if not refused or "effort" in str(fault) or not _OF_STRUCTURE.search(str(fault)):
            return False
        self._is_structured = False  # the prompt says in words what is wanted
        return True

    def _options(self, body: Mapping[str, Any]) -> Any:
        is_sampled = "temperature" in body or "top_p" in body
        return {"headers": _WITH_TEMPERATURE} if is_sampled else {}

    # Replies

    async def _answered(
        self, client: anthropic.AsyncAnthropic, body: dict[str, Any], began: float
    ) -> ChatReply:
        import httpx2

        response = await client.post(
            _PATH, cast_to=httpx2.Response, body=body, options=self._options(body)
        )
        latency = time.perf_counter() - began
        try:
            message = json.loads(response.content)
            reply = self._reply(message, latency)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise self._faults.no_completion(response) from None
        return replace(reply, limits=RateLimits.of(response.headers))

    async def _streamed(
        self, client: anthropic.AsyncAnthropic, body: dict[str, Any], began: float
    ) -> ChatReply:
        import anthropic

        stream = await client.post(
            _PATH,
            cast_to=object,  # events as they are: there will be others
            body={**body, "stream": True},
            options=self._options(body),
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )
        message: dict[str, Any] = {}
        async with stream:
            async for event in stream:
                _add(message, event)
        if not message.get("stop_reason"):
            raise ChatError("the stream broke off", may_cost=True)
        reply = self._reply(message, time.perf_counter() - began)
        return replace(reply, limits=RateLimits.of(stream.response.headers))

    def _reply(self, message: Mapping[str, Any], latency: float) -> ChatReply:
        text, thought = parts_of(message["content"])
        reason = str(message.get("stop_reason") or "stop")
        if reason == "refusal":
            details = message.get("stop_details") or {}
            said = [details.get("category"), details.get("explanation")]
            text = ": ".join(filter(None, said)) or text or "refused by the model"
        return self._made(
            text,
            thought,
            _FINISH.get(reason, reason),
            _usage_of(message.get("usage")),
            None,
            latency,
            str(message.get("model") or ""),
        )


def _with_cached_prefix(
    messages: Sequence[Mapping[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return instructions and messages, with a mark on the last part before the pair.

    All calls of a template have that much of their prompts in common: instructions, and examples.
    """
    system: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] in ("system", "developer"):
            system += _blocks(message["content"])
        else:
            others.append({"role": message["role"], "content": _blocks(message["content"])})
    before = [block for message in others[:-1] for block in message["content"]]
    if prefix := before or system:
        prefix[-1]["cache_control"] = _CACHED
    return system, others


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [dict(part) for part in content]


def _add(message: dict[str, Any], event: Any) -> None:
    """Add an event of a stream to the message that it is a part of."""
    kind = event["type"]
    if kind == "message_start":
        message.update(event["message"], content=[])
    elif kind == "content_block_start":
        message["content"].append(dict(event["content_block"]))
    elif kind == "content_block_delta":
        block = message["content"][event["index"]]
        for name in ("text", "thinking"):
            if name in event["delta"]:
                block[name] = block.get(name, "") + event["delta"][name]
    elif kind == "message_delta":
        message.update({name: said for name, said in event["delta"].items() if said is not None})
        used = {name: said for name, said in event["usage"].items() if said is not None}
        message["usage"] = {**message.get("usage", {}), **used}


def _usage_of(usage: Mapping[str, Any] | None) -> Usage | None:
    if not usage:
        return None
    read = int(usage.get("cache_read_input_tokens") or 0)
    written = int(usage.get("cache_creation_input_tokens") or 0)
    details = usage.get("output_tokens_details") or {}
    return Usage(
        int(usage.get("input_tokens") or 0) + read + written,
        int(usage.get("output_tokens") or 0),
        int(details.get("thinking_tokens") or 0),
        read,
    )
