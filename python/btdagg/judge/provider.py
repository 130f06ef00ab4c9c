"""A model by its name, such as ``anthropic:claude-sonnet-5``: requests, through pydantic-ai."""
# Only `retries.py` repeats requests: repeats by a provider's library would not be counted. Hooks of
# one httpx2 client see each body sent and the headers of each reply.

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from btdagg._util.addresses import shown_address, without_credentials
from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.extensions import Registry, imported
from btdagg._util.extras import needs
from btdagg.judge.client import (
    PROVIDERS,
    SIMULATED,
    TOO_LONG,
    ChatClient,
    ChatError,
    ChatReply,
    ChatRequest,
    FunctionClient,
    RateLimits,
    Token,
    Usage,
    provider_of,
    rate_limits_of,
    split_thinking,
)
from btdagg.judge.faults import Faults, status_of

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

# What is read of a reply. Answers have some 100 kB at most, their log-probabilities a few MB; in a
# stream each token comes with a few hundred bytes around it.
_LONGEST_REPLY = 8 * 1024**2  # bytes
_LONGEST_STREAM = 16 * _LONGEST_REPLY
_OF_STRUCTURE = re.compile(
    r"response_format|output_config|json_?schema|json_object|structured|grammar", re.I
)


@dataclass
class _Exchange:
    """A request as hooks see it."""

    is_sent: bool = True
    body: dict[str, Any] = field(default_factory=dict)
    limits: RateLimits | None = None
    content_type: str = ""
    has_begun: bool = False  # the reply has
    is_too_long: bool = False
    moved_to: str = ""  # where a redirection points


_exchange: ContextVar[_Exchange] = ContextVar("exchange")


class _CutError(Exception):
    """Only the body was asked for, or more came than is read of a reply."""


class ModelClient:
    """Asks a model of any provider.

    Parameters
    ----------
    provider : str
        Such as ``anthropic``, or a model's full name, ``anthropic:claude-sonnet-5``; ``openai`` for
        every endpoint that speaks its protocol.
    base_url : str, optional
        Such as ``http://localhost:8000/v1``; the provider's own by default.
    api_key : str, optional
        By default that of the environment variable `key_variable`, which is the provider's own by
        default. There may be none for ``openai`` with a `base_url`: many servers want none.
    headers : mapping, optional
        Sent with each request.
    stream : bool
        Ask for answers in parts, which keeps connections from going idle while a model thinks.
    timeout : float
        Seconds to wait for a connection or for further bytes.
    transport : httpx2.AsyncBaseTransport, optional
        How requests are sent, in place of connections; such as a mock.

    Attributes
    ----------
    name : str
        Address without credentials, which the store and messages show.
    """

    def __init__(
        self,
        provider: str = "openai",
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        key_variable: str | None = None,
        headers: Mapping[str, str] | None = None,
        stream: bool = False,
        timeout: float = 600.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.provider = provider if provider in PROVIDERS else provider_of(provider)[0]
        provided = PROVIDERS[self.provider]
        with needs(provided.extra, f"asking a model of {self.provider}"):
            for module in ("httpx2", "pydantic_ai.direct", provided.library):
                imported(module)
        # It warns of settings that it leaves out; `check` refuses them. The filter stays: if each
        # request had its own, those that overlap would put back each other's.
        warnings.filterwarnings(
            "ignore", category=UserWarning, module=r"(pydantic_ai|google\.genai)\."
        )
        if base_url is not None:
            _require_address(base_url, provided.address)
        address = base_url or os.environ.get(provided.address_variable) or provided.address
        self.base_url, _, self._query = address.partition("?")
        forbid(
            bool(self._query) and self.provider == "bedrock",
            "base_url has a query, which bedrock's library does not send",
            "base_url",
        )
        needs_key = provided.needs_key and (base_url is None or self.provider != "openai")
        variables = (key_variable,) if key_variable else provided.key_variables
        self.key, self.key_variable = _key_of(api_key, variables, is_needed=needs_key)
        self.headers = dict(headers or {})
        self.name = without_credentials(self.base_url) or self.provider
        self.timeout = timeout
        self._stream = stream
        parameters = parse_qsl(self._query)
        hidden = [v for name, v in parameters if shown_address(f"?{name}=x") != f"?{name}=x"]
        secrets = (self.key, *self.headers.values(), *hidden)
        self.faults = Faults(secrets, self.key_variable, provided.address)
        try:
            self.connections = _http_client(timeout, transport, self._add_headers)
        except Exception as error:  # a proxy of the environment that is none
            raise InputError(
                "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY: "
                f"{self.faults.brief(str(error))}; expected one such as http://localhost:3128"
            ) from None
        self.sending = {
            "api_key": self.key,
            "base_url": self.base_url,
            "timeout": timeout,
            "http_client": self.connections,
        }
        self._models: dict[tuple[str, bool, bool], Model] = {}
        self._checked: set[str] = set()
        # How structured answers are asked for, and what the limit of an answer is called, until the
        # endpoint refuses it.
        self._structured = "json_schema"
        self._takes_new_limit = self.provider == "openai" and self.base_url.startswith(
            provided.address.removesuffix("/v1")
        )

    def __repr__(self) -> str:
        return f"ModelClient({self.name!r})"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send a request and read its reply, or raise a :class:`btdagg.judge.ChatError`."""
        await self.check(request)
        while True:
            structured = self._structured
            try:
                return await self._sent(request)
            except ChatError as fault:
                if not self._adapts(fault, request, structured):
                    raise

    async def close(self) -> None:
        """Close all connections."""
        await self.connections.aclose()

    # Batches

    async def body_of(self, request: ChatRequest) -> dict[str, Any]:
        """Return the body that a request would be sent with."""
        exchange = _Exchange(is_sent=False)
        token = _exchange.set(exchange)
        try:
            with contextlib.suppress(Exception):
                await self._request(request)
        finally:
            _exchange.reset(token)
        return exchange.body

    def read(self, body: Mapping[str, Any]) -> ChatReply:
        """Return the reply that a result of a batch stands for, or raise a `ChatError`."""
        model: Any = self._model(str(body.get("model") or ""))
        options: tuple[Any, ...] = ()
        try:
            if self.provider == "anthropic":
                from anthropic.types.beta import BetaMessage
                from pydantic_ai.models import ModelRequestParameters

                reply: Any = BetaMessage.construct(**body)
                options = ModelRequestParameters(), {}
            else:
                from openai.types.chat import ChatCompletion

                reply = ChatCompletion.construct(**body)
            return self._reply(model._process_response(reply, *options), _Exchange(), None)
        except Exception as error:
            fault = self.faults.explained(error, has_begun=True)
        raise fault

    def refused(self, status: int, body: object) -> ChatReply | ChatError:
        """Return what a result of a batch that is an error stands for."""
        return self.faults.refusal(status, body) or self.faults.of_status(status, body)

    # Requests

    async def check(self, request: ChatRequest) -> None:
        """Refuse a setting that does not reach the model, before the first request."""
        if request.model in self._checked or self.provider == "bedrock":
            return
        body = await self.body_of(request)
        from btdagg.judge.dialects import unsent

        if body and (argument := unsent(request, body)):
            raise ChatError(
                f"{self.provider} does not pass {argument} on to {request.model}; leave it out",
                "fatal",
            )
        self._checked.add(request.model)

    async def _sent(self, request: ChatRequest) -> ChatReply:
        began = time.perf_counter()
        exchange = _Exchange()
        token = _exchange.set(exchange)
        fault: ChatError | None = None
        try:
            response = await self._request(request)
            return self._reply(response, exchange, time.perf_counter() - began)
        except Exception as error:
            latency = time.perf_counter() - began
            if exchange.is_too_long:
                return ChatReply("", finish_reason=TOO_LONG, latency=latency)
            status, body = getattr(error, "status_code", None), getattr(error, "body", None)
            refusal = self.faults.refusal(status, body, latency)
            if refusal is not None:
                return refusal
            fault = self.faults.explained(
                error, request.model, exchange.content_type, has_begun=exchange.has_begun
            )
            if exchange.moved_to:  # neither key nor texts go there
                target = self.faults.brief(exchange.moved_to)
                words = (
                    f"redirects to {target}; redirects are not followed, so set base_url to the "
                    "new address"
                )
                fault = ChatError(words, "fatal")
        finally:
            _exchange.reset(token)
        # Raised out here and without its context: the original holds the request, and that the
        # key, which some endpoints also echo in what they say.
        fault.__context__ = None
        raise fault

    async def _request(self, request: ChatRequest) -> ModelResponse:
        from pydantic_ai.direct import model_request, model_request_stream

        from btdagg.judge.dialects import messages_of, settings_of

        role = str(request.messages[0]["role"]) if request.messages else ""
        settings, parameters = settings_of(self.provider, request, self._structured)
        sent: dict[str, Any] = {
            "model": self._model(provider_of(request.model)[1], role),
            "messages": messages_of(request.messages),
            "model_settings": {**settings, "max_retries": 0, "timeout": self.timeout},
            "model_request_parameters": parameters,
            "instrument": None if _exchange.get().is_sent else False,  # no span if nothing is sent
        }
        if not self._stream:
            return await model_request(**sent)
        async with model_request_stream(**sent) as stream:
            async for _ in stream:
                pass
            return stream.get()

    def _adapts(self, fault: ChatError, request: ChatRequest, structured: str) -> bool:
        """Whether a refused request can be put in another way: from now on it is."""
        message = str(fault)
        if request.max_tokens and not self._takes_new_limit and "max_completion_tokens" in message:
            self._takes_new_limit = True
            return fault.kind == "rejected"
        is_refused = fault.status is not None and fault.kind != "fatal" and "effort" not in message
        if request.response_format is None or not structured or not is_refused:
            return False
        if not _OF_STRUCTURE.search(message):
            return False
        if self._structured == structured:
            is_openai = self.provider in ("openai", "ollama")
            self._structured = "json_object" if is_openai and structured == "json_schema" else ""
        return True

    def _model(self, name: str, role: str = "") -> Model:
        from btdagg.judge.dialects import model_of

        key = name, role == "developer", self._takes_new_limit
        if key not in self._models:
            self._models[key] = model_of(
                self.provider, name, self.sending, is_developer=key[1], takes_new_limit=key[2]
            )
        return self._models[key]

    # Replies

    def _reply(
        self, response: ModelResponse, exchange: _Exchange, latency: float | None
    ) -> ChatReply:
        from pydantic_ai.messages import TextPart, ThinkingPart

        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        thoughts = [part.content for part in response.parts if isinstance(part, ThinkingPart)]
        if "think" in text:
            text, thought = split_thinking(text)
            thoughts.append(thought)
        reasoning = "".join(thoughts)
        details = response.provider_details or {}
        finish = str(details.get("finish_reason") or response.finish_reason or "")
        if not finish and not details.get("block_reason"):
            if self._stream and response.parts:
                raise ChatError("the stream broke off", may_cost=True)
            if not text and not reasoning:
                raise ChatError("the reply has no answer", "protocol", may_cost=True)
        finish = _FINISH.get(finish, finish)
        refusal = ": ".join(
            str(details[name]) for name in ("refusal_category", "refusal") if details.get(name)
        )
        is_filtered = response.finish_reason == "content_filter"
        if finish == "refusal" or refusal or (is_filtered and not text):
            finish, text = "refusal", refusal or text or f"refused by the model ({finish})"
        elif is_filtered:
            finish = "content_filter"
        tokens = _tokens_of(details)
        return ChatReply(
            self.faults.hidden(text),
            self.faults.hidden(reasoning),
            finish,
            _usage_of(response),
            tuple(token.logprob for token in tokens) or None,
            latency,
            response.model_name or "",
            limits=exchange.limits,
            tokens=tokens,
        )

    async def _add_headers(self, request: httpx2.Request) -> None:
        request.headers.update(self.headers)
        if self._query:  # such as Azure's api-version; the libraries add their paths behind it
            request.url = request.url.copy_merge_params(self._query)


def _simulated(*_: Any, **options: Any) -> ChatClient:
    from btdagg.judge.simulated import SimulatedClient

    return SimulatedClient()


JUDGES: Registry[Callable[..., ChatClient]] = Registry(
    "btdagg.judges",
    {SIMULATED: _simulated, **dict.fromkeys(PROVIDERS, ModelClient)},
    "request",
    lambda function, name, where: lambda *_, **options: FunctionClient(function),
)
"""Makers of clients, by the name of a model or what stands before its colon."""


def client_of(model: str, base_url: str | None = None, **options: Any) -> ChatClient:
    """Return the client of a model (see `ModelClient`), or a package's ``btdagg.judges``."""
    if base_url is not None and model != SIMULATED:
        return ModelClient(model, base_url, **options)
    return JUDGES.get(model.partition(":")[0], ModelClient)(model, base_url, **options)


_FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "STOP": "stop",
    "max_tokens": "length", "model_context_window_exceeded": "length", "MAX_TOKENS": "length",
}  # fmt: skip


def _usage_of(response: ModelResponse) -> Usage | None:
    from btdagg.judge.dialects import USAGE

    details = response.provider_details or {}
    if USAGE in details:  # None where the endpoint does not say
        usage: Usage | None = details[USAGE]
        return usage
    used = response.usage
    if used.unmeasured_requests and not (used.input_tokens or used.output_tokens):
        return None
    return Usage(
        used.input_tokens, used.output_tokens, used.output_reasoning_tokens, used.cache_read_tokens
    )


def _tokens_of(details: Mapping[str, Any]) -> tuple[Token, ...]:
    tokens = details.get("logprobs") or ()
    alternatives = [token.get("top_logprobs") for token in tokens if isinstance(token, Mapping)]
    if isinstance(tokens, Mapping):
        alternatives = [top.get("candidates") for top in tokens.get("top_candidates") or ()]
        tokens = tokens.get("chosen_candidates") or ()

    def logprob(token: Mapping[str, Any]) -> float:
        value = token.get("logprob", token.get("log_probability"))
        return math.nan if value is None else float(value)

    return tuple(
        Token(
            token.get("token") or "",
            logprob(token),
            {other.get("token") or "": logprob(other) for other in top_tokens or ()},
        )
        for token, top_tokens in zip_longest(tokens, alternatives[: len(tokens)])
    )


def _key_of(key: str | None, variables: Sequence[str], *, is_needed: bool) -> tuple[str, str]:
    variable = next((name for name in variables if os.environ.get(name)), variables[0])
    source = f"environment variable {variable}" if key is None else "api_key"
    key = (os.environ.get(variable, "") if key is None else key).strip()
    forbid(not key and is_needed, f"{source} is not set, expected an API key")
    forbid(
        not key.isascii() or not key.isprintable(),
        f"{source} has characters that an API key cannot have",
    )
    return key, variable


_PATHS = ("/completions", "/messages", "/responses", "/v1beta")  # which the libraries add


def _require_address(base_url: str, example: str) -> None:
    try:
        parts = urlsplit(base_url)
        is_whole = parts.path.rstrip("/").endswith(_PATHS)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and not is_whole
        is_address = is_address and not parts.fragment
        _ = parts.port
    except ValueError:
        is_address = False
    shown, expected = without_credentials(base_url), f"one such as {example}"
    expect(is_address, "base_url", shown, expected)


# HTTP


def _http_client(
    timeout: float, transport: Any, add_headers: Callable[[httpx2.Request], Awaitable[None]]
) -> httpx2.AsyncClient:
    import httpx2

    return httpx2.AsyncClient(
        timeout=timeout,
        verify=httpx2.create_ssl_context(),
        transport=transport,
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
        headers={"Accept-Encoding": "identity"},  # so that a small reply is not a large one
        event_hooks={
            "request": [add_headers, _look_at_request],
            "response": [_look_at_response],
        },
    )


async def _look_at_request(request: httpx2.Request) -> None:
    exchange = _exchange.get(None)
    if exchange is not None and not exchange.is_sent:
        exchange.body = json.loads(request.content)
        raise _CutError


async def _look_at_response(response: httpx2.Response) -> None:
    exchange = _exchange.get(None)
    if exchange is None:  # of a batch, whose files may be of any length
        return
    exchange.limits = rate_limits_of(response.headers)
    exchange.content_type = response.headers.get("content-type", "").partition(";")[0]
    exchange.has_begun = response.status_code < 400
    if response.has_redirect_location:
        target = response.url.join(response.headers["location"])
        exchange.moved_to = str(target.copy_with(query=None, fragment=None, userinfo=b""))
    is_stream = "event-stream" in exchange.content_type
    longest = _LONGEST_STREAM if is_stream else _LONGEST_REPLY
    response.stream = _capped(response, longest, exchange)
    if exchange.has_begun and not is_stream:
        await response.aread()
        _show_error(response)


def _show_error(response: httpx2.Response) -> None:
    """See an error in a reply that says 200, as OpenRouter and others send it."""
    try:
        value = json.loads(response.content)
        error = value.get("error")
    except (ValueError, AttributeError):
        return
    if error and not value.get("choices"):
        response.status_code = status_of(error)


def _capped(response: httpx2.Response, longest: int, exchange: _Exchange) -> httpx2.AsyncByteStream:
    """The stream counts unpacked bytes and fails at the cap, or ends there if it is an error's."""
    import httpx2

    packed = httpx2.Response(response.status_code, headers=response.headers, stream=response.stream)
    response.headers.pop("content-encoding", None)

    class Capped(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            n_bytes = 0
            async for chunk in packed.aiter_bytes():
                n_bytes += len(chunk)
                exchange.is_too_long = n_bytes > longest and exchange.has_begun
                if exchange.is_too_long:
                    raise _CutError
                if n_bytes > longest:
                    return
                yield chunk

        async def aclose(self) -> None:
            await packed.aclose()

    return Capped()
