"""A model by its name, such as ``anthropic:claude-sonnet-5``: requests, through pydantic-ai.

Failed requests are repeated in `retries.py`, never by a provider's library, whose repeats would not
be counted. All libraries send through one httpx2 client, whose hooks see each body as it is sent
and the headers of each reply.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import warnings
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from btdagg._core import InputError
from btdagg._util.addresses import without_credentials
from btdagg._util.extras import needs
from btdagg.judge.client import (
    TOO_LONG,
    ChatClient,
    ChatError,
    ChatReply,
    ChatRequest,
    RateLimits,
    Usage,
    split_thinking,
)
from btdagg.judge.errors import Faults
from btdagg.judge.pacing import rate_limits_of
from btdagg.judge.providers import PROVIDERS, SIMULATED, Provider, provider_of

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters

# What is read of a reply. Answers have some 100 kB at most, their log-probabilities a few MB; in a
# stream each token comes with a few hundred bytes around it.
_LONGEST_REPLY = 8 * 1024**2  # bytes
_LONGEST_STREAM = 16 * _LONGEST_REPLY
_LONGEST_ANSWER = 1_000_000  # characters
_ANTHROPIC_TOKENS = 16_384  # an answer of Anthropic's has to have a limit; thinking comes on top
# The last version of Anthropic's API that takes a temperature.
_WITH_TEMPERATURE = {"anthropic-version": "2023-06-01"}
_NO_KEY = "none"  # what servers of one's own are sent where there is no key
_NO_TAGS = ("\0think\0", "\0/think\0")  # thinking in tags is split off by `split_thinking`
_OF_STRUCTURE = re.compile(
    r"response_format|output_config|json_?schema|json_object|structured|grammar", re.I
)


@dataclass
class _Exchange:
    """What hooks see of a request."""

    is_sent: bool = True
    body: dict[str, Any] = field(default_factory=dict)
    limits: RateLimits | None = None
    content_type: str = ""
    has_begun: bool = False  # the reply has


_exchange: ContextVar[_Exchange] = ContextVar("exchange")


class _NotSentError(Exception):
    """Only the body was asked for."""


class _ReplyTooLongError(Exception):
    """More came than is read of a reply."""


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

    Raises
    ------
    InputError
        If there is no key, or the address or a header is malformed.
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
        known = PROVIDERS[self.provider]
        with needs(known.extra, f"asking a model of {self.provider}"):
            import httpx2
            import pydantic_ai.direct  # noqa: F401

            import_module(known.library)
        if base_url is not None and known.path:
            _require_address(base_url, known)
        self.base_url = base_url or os.environ.get(known.address_variable) or known.address
        is_own = base_url is None or self.provider != "openai"
        self.key, self.key_variable = _key_of(
            api_key, key_variable, known, is_needed=known.needs_key and is_own
        )
        self.headers = _require_headers(headers or {})
        self.name = without_credentials(self.base_url) or self.provider
        self.timeout = timeout
        self._stream, self._transport = stream, transport
        self.faults = Faults(
            (self.key, *self.headers.values()), self.key_variable, known.path or "the model's"
        )
        self._ssl = httpx2.create_ssl_context()
        try:
            self._http_client = self._new_http_client()
        except (ValueError, ImportError, httpx2.InvalidURL) as error:
            raise InputError(
                f"the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY: "
                f"{self.faults.brief(str(error))}; expected one such as http://localhost:3128"
            ) from None
        self._models: dict[tuple[str, bool, bool], Model] = {}
        self._checked: set[str] = set()
        # How structured answers are asked for, and what the limit of an answer is called, until the
        # endpoint refuses it.
        self._structured = "json_schema"
        self._takes_new_limit = self.provider == "openai" and self.base_url.startswith(
            known.address.removesuffix("/v1")
        )

    def __repr__(self) -> str:
        return f"ModelClient({self.name!r})"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send a request and read its reply, or raise a :class:`btdagg.judge.ChatError`."""
        await self._check(request)
        while True:
            structured = self._structured
            try:
                return await self._sent(request)
            except ChatError as fault:
                if not self._adapts(fault, request, structured):
                    raise

    async def close(self) -> None:
        """Close all connections."""
        await self._http_client.aclose()

    async def _body_of(self, request: ChatRequest) -> dict[str, Any]:
        """Return the body that a request would be sent with."""
        exchange = _Exchange(is_sent=False)
        token = _exchange.set(exchange)
        try:
            with contextlib.suppress(Exception):
                await self._request(request)
        finally:
            _exchange.reset(token)
        return exchange.body

    # Batches

    @property
    def connections(self) -> httpx2.AsyncClient:
        """What requests are sent by."""
        return self._http_client

    async def body_of(self, request: ChatRequest) -> dict[str, Any]:
        """Return the body that a request would be sent with.

        Raises
        ------
        ChatError
            If a setting would not reach the model.
        """
        await self._check(request)
        return await self._body_of(request)

    def read(self, body: Mapping[str, Any]) -> ChatReply:
        """Return the reply that a result of a batch stands for, or raise a `ChatError`."""
        model: Any = self._made(str(body.get("model") or ""), is_developer=False)
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
            return self._reply(model._process_response(reply, *options), _Exchange(), 0.0)
        except Exception as error:
            fault = self.faults.explained(error, has_begun=True)
        raise fault

    def refused(
        self, status: int, body: object, headers: Mapping[str, str] | None = None
    ) -> ChatReply | ChatError:
        """Return what a result of a batch that is an error stands for."""
        return self.faults.refusal(status, body) or self.faults.of_status(status, body, headers)

    # Requests

    async def _check(self, request: ChatRequest) -> None:
        """Refuse a setting that does not reach the model, before the first request."""
        if request.model in self._checked or self.provider == "bedrock":
            return
        body = await self._body_of(request)
        if body and (argument := _unsent(request, body)):
            raise ChatError(
                f"{argument} does not reach {request.model} through {self.provider}; leave it out",
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
            if _caused_by(error, _ReplyTooLongError):
                return ChatReply("", finish_reason=TOO_LONG, latency=latency)
            status, body = getattr(error, "status_code", None), getattr(error, "body", None)
            refusal = self.faults.refusal(status, body, latency)
            if refusal is not None:
                return refusal
            fault = self.faults.explained(
                error, request.model, exchange.content_type, has_begun=exchange.has_begun
            )
        finally:
            _exchange.reset(token)
        # Raised out here and without its context: the original holds the request, and that the
        # key, which some endpoints also echo in what they say.
        fault.__context__ = None
        raise fault

    async def _request(self, request: ChatRequest) -> ModelResponse:
        from pydantic_ai.direct import model_request, model_request_stream

        settings, parameters = self._settings(request)
        asking: dict[str, Any] = {
            "model": self._model(request),
            "messages": _messages_of(request.messages, is_marked=self.provider == "anthropic"),
            "model_settings": settings,
            "model_request_parameters": parameters,
            "instrument": None if _exchange.get().is_sent else False,  # no span if nothing is sent
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of settings that are not sent: `_check` says so
            if not self._stream:
                return await model_request(**asking)
            async with model_request_stream(**asking) as stream:
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

    def _settings(self, request: ChatRequest) -> tuple[Any, ModelRequestParameters]:
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        sent: dict[str, Any] = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            "max_retries": 0,
            "timeout": self.timeout,
        }
        parameters = ModelRequestParameters()
        extra: dict[str, Any] = {}
        schema = request.response_format if self._structured else None
        inner = (request.response_format or {}).get("json_schema", {})
        effort, budget = request.reasoning_effort, request.thinking_budget
        if self.provider == "anthropic":
            sent["max_tokens"] = request.max_tokens or _ANTHROPIC_TOKENS + (budget or 0)
            sent["anthropic_cache_instructions"] = True
            if budget is not None:
                sent["anthropic_thinking"] = {"type": "enabled", "budget_tokens": budget}
            if request.temperature is not None or request.top_p is not None:
                sent["extra_headers"] = _WITH_TEMPERATURE
            output: dict[str, Any] = {} if effort is None else {"effort": effort}
            if schema is not None:
                output["format"] = {"type": "json_schema", "schema": inner.get("schema")}
            if output:
                extra["output_config"] = output
        elif self.provider in ("google", "bedrock"):
            if schema is not None:
                parameters = ModelRequestParameters(
                    output_mode="native",
                    output_object=OutputObjectDefinition(json_schema=dict(inner.get("schema", {}))),
                )
            if self.provider == "google":
                sent["google_logprobs"] = True if request.logprobs else None
                thinking = {"thinking_level": effort, "thinking_budget": budget}
                if thinking := {n: value for n, value in thinking.items() if value is not None}:
                    sent["google_thinking_config"] = {"include_thoughts": True, **thinking}
        else:
            sent["openai_reasoning_effort"] = effort
            sent["openai_logprobs"] = True if request.logprobs else None
            if budget is not None:
                extra["thinking"] = {"type": "enabled", "budget_tokens": budget}
            if schema is not None:
                is_schema = self._structured == "json_schema"
                extra["response_format"] = schema if is_schema else {"type": "json_object"}
        extra |= request.extra
        sent["extra_body"] = extra or None
        return {name: value for name, value in sent.items() if value is not None}, parameters

    def _model(self, request: ChatRequest) -> Model:
        """Return the model of pydantic-ai; one is kept for each way of asking."""
        name = provider_of(request.model)[1]
        role = str(request.messages[0]["role"]) if request.messages else ""
        key = name, role == "developer", self._takes_new_limit
        if key not in self._models:
            self._models[key] = self._made(name, is_developer=role == "developer")
        return self._models[key]

    def _made(self, name: str, *, is_developer: bool) -> Model:
        profile: Any = {
            "may_tokenize_special_tokens_in_content": False,  # votes are of texts as they are
            "supports_json_schema_output": True,
        }
        provider: Any
        if self.provider == "anthropic":
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            anthropic = AsyncAnthropic(**self._sending(self._http_client))
            provider = AnthropicProvider(anthropic_client=anthropic)
            return AnthropicModel(name, provider=provider, profile=profile)
        if self.provider == "google":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            provider = GoogleProvider(
                api_key=self.key, base_url=self.base_url, http_client=self._http_client
            )
            return GoogleModel(name, provider=provider, profile=profile)
        if self.provider == "bedrock":
            import boto3
            from botocore.config import Config
            from pydantic_ai.models.bedrock import BedrockConverseModel
            from pydantic_ai.providers.bedrock import BedrockProvider

            config = Config(retries={"total_max_attempts": 1}, read_timeout=self.timeout)
            url = self.base_url or None
            bedrock = boto3.client("bedrock-runtime", endpoint_url=url, config=config)
            provider = BedrockProvider(bedrock_client=bedrock)
            return BedrockConverseModel(name, provider=provider, profile=profile)
        from openai import AsyncOpenAI
        from pydantic_ai.providers.openai import OpenAIProvider

        from btdagg.judge.openai_compatible import CompatibleModel

        profile |= {
            "thinking_tags": _NO_TAGS,
            "openai_supports_reasoning": False,  # what goes with thinking, the endpoint knows
            "openai_chat_supports_max_completion_tokens": self._takes_new_limit,
            "openai_chat_streaming_requires_finish_reason": True,
            "openai_system_prompt_role": "developer" if is_developer else "system",
        }
        openai = AsyncOpenAI(**self._sending(self._http_client))
        provider = OpenAIProvider(openai_client=openai)
        return CompatibleModel(name, provider=provider, profile=profile)

    def _sending(self, http_client: httpx2.AsyncClient) -> dict[str, Any]:
        """Return how the libraries of OpenAI and Anthropic are to send."""
        return {
            "api_key": self.key or _NO_KEY,
            "base_url": self.base_url,
            "max_retries": 0,
            "timeout": self.timeout,
            "http_client": http_client,
        }

    # Replies

    def _reply(self, response: ModelResponse, exchange: _Exchange, latency: float) -> ChatReply:
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
        if (
            finish == "refusal"
            or refusal
            or (response.finish_reason == "content_filter" and not text)
        ):
            finish, text = "refusal", refusal or text or f"refused by the model ({finish})"
        if max(len(text), len(reasoning)) > _LONGEST_ANSWER:
            text, reasoning = text[:_LONGEST_ANSWER], reasoning[:_LONGEST_ANSWER]
            finish = TOO_LONG
        return ChatReply(
            self.faults.hidden(text),
            self.faults.hidden(reasoning),
            finish,
            _usage_of(response),
            _logprobs_of(details),
            latency,
            response.model_name or "",
            limits=exchange.limits,
        )

    # HTTP

    def _new_http_client(self) -> httpx2.AsyncClient:
        """Return a client that goes by the environment's proxies and trusted certificates."""
        import httpx2

        return httpx2.AsyncClient(
            timeout=self.timeout,
            verify=self._ssl,
            transport=self._transport,
            limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
            follow_redirects=True,
            headers={"Accept-Encoding": "identity"},  # so that a small reply is not a large one
            event_hooks={
                "request": [self._add_headers, _look_at_request],
                "response": [_look_at_response],
            },
        )

    async def _add_headers(self, request: httpx2.Request) -> None:
        """Add the headers of the user; to another server, by a redirection, no key goes either."""
        import httpx2

        own, url = httpx2.URL(self.base_url), request.url
        if (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port):
            request.headers.update(self.headers)
            return
        for name in (*self.headers, "authorization", "x-api-key", "x-goog-api-key"):
            request.headers.pop(name, None)


def client_of(model: str, base_url: str | None = None, **options: Any) -> ChatClient:
    """Return the client of a model by its name; see `ModelClient` for the options."""
    if model != SIMULATED:
        return ModelClient(model, base_url, **options)
    from btdagg.judge.simulated import SimulatedClient

    endpoint = {"base_url": base_url, **options, "stream": None, "timeout": None}
    for name, value in endpoint.items():
        if value is not None and value != {}:
            shown = repr(value) if name in ("base_url", "key_variable") else "given"
            raise InputError(f"{name} is {shown}, and model is {SIMULATED}, which asks no endpoint")
    return SimulatedClient()


_FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "STOP": "stop",
    "max_tokens": "length", "model_context_window_exceeded": "length", "MAX_TOKENS": "length",
}  # fmt: skip


def _usage_of(response: ModelResponse) -> Usage | None:
    from btdagg.judge.openai_compatible import USAGE

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


def _logprobs_of(details: Mapping[str, Any]) -> tuple[float, ...] | None:
    tokens = details.get("logprobs")
    if isinstance(tokens, Mapping):  # Google's
        tokens = tokens.get("chosen_candidates") or tokens.get("chosenCandidates")
    if not tokens:
        return None
    return tuple(float(token.get("logprob", token.get("log_probability"))) for token in tokens)


def _messages_of(messages: Any, *, is_marked: bool) -> list[ModelMessage]:
    """Return messages as pydantic-ai has them.

    With `is_marked`, the last question of the examples is marked to be kept in Anthropic's cache:
    up to there all prompts of a run are the same.
    """
    from pydantic_ai.messages import (
        CachePoint,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    made: list[Any] = []
    parts: list[Any] = []
    n_examples = sum(message["role"] == "assistant" for message in messages) if is_marked else 0
    for message in messages:
        content = message["content"]
        text = content if isinstance(content, str) else "".join(part["text"] for part in content)
        if message["role"] == "assistant":
            n_examples -= 1
            if n_examples == 0 and parts:
                parts[-1] = UserPromptPart([str(parts[-1].content), CachePoint()])
            made += [ModelRequest(parts), ModelResponse([TextPart(text)])]
            parts = []
        elif message["role"] in ("system", "developer"):
            parts.append(SystemPromptPart(text))
        else:
            parts.append(UserPromptPart(text))
    return [*made, ModelRequest(parts)]


# Settings

# Names of settings in the bodies of the providers, and the arguments of `Judging` behind them.
_SENT_AS = {
    "temperature": ("temperature", ("temperature",)),
    "top_p": ("top_p", ("topp",)),
    "seed": ("request_seed", ("seed",)),
    "max_tokens": ("max_answer_tokens", ("maxtokens", "maxcompletiontokens", "maxoutputtokens")),
    "reasoning_effort": ("reasoning_effort", ("reasoningeffort", "effort", "thinkinglevel")),
    "thinking_budget": ("thinking_budget", ("budgettokens", "thinkingbudget")),
    "logprobs": ('confidence="logprobs"', ("logprobs", "responselogprobs")),
}


def _unsent(request: ChatRequest, body: Mapping[str, Any]) -> str:
    """Return the first argument of a request that is not in its body; empty if all are."""
    leaves = {_plain(name): value for name, value in _leaves(body)}
    for setting, (argument, names) in _SENT_AS.items():
        value = getattr(request, setting)
        if value is None or value is False:
            continue
        sent = next((leaves[name] for name in names if name in leaves), None)
        if str(sent).lower() != str(value).lower():
            return argument
    is_sent = all(_plain(name) in leaves or name in body for name in request.extra)
    return "" if is_sent else "extra"


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _leaves(value: Any) -> Any:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if not isinstance(inner, Mapping | list):
                yield str(name), inner
            yield from _leaves(inner)


def _key_of(
    key: str | None, variable: str | None, provider: Provider, *, is_needed: bool
) -> tuple[str, str]:
    """Return the key, empty where there may be none, and the variable that should hold it."""
    variables = (variable,) if variable else provider.key_variables
    variable = next((name for name in variables if os.environ.get(name)), variables[0])
    source = f"environment variable {variable}" if key is None else "api_key"
    key = (os.environ.get(variable, "") if key is None else key).strip()
    if not key and is_needed:
        raise InputError(f"{source} is not set, expected an API key")
    if not key.isascii() or not key.isprintable():
        raise InputError(f"{source} has characters that no API key has")
    return key, variable


def _require_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Refuse headers that cannot be sent; no message shows a value."""
    for name, value in headers.items():
        if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
            raise InputError(f"header {name!r} is no name of a header")
        if not value.isascii() or not value.isprintable():
            raise InputError(f"header {name}: its value has characters that no header has")
    return dict(headers)


def _require_address(base_url: str, provider: Provider) -> None:
    """Refuse a base URL that is none, or ends in the path that the library adds."""
    try:
        parts = urlsplit(base_url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        is_address = False
    shown, path = without_credentials(base_url), provider.path
    if not is_address:
        is_chat = path == "/chat/completions"
        example = "http://localhost:8000/v1" if is_chat else provider.address
        raise InputError(f"base URL is {shown!r}, expected one such as {example}")
    if parts.path.rstrip("/").endswith(path):
        raise InputError(f"base URL is {shown!r}, expected it without {path}")


# Hooks


async def _look_at_request(request: httpx2.Request) -> None:
    exchange = _exchange.get(None)
    if exchange is not None and not exchange.is_sent:
        exchange.body = json.loads(request.content)
        raise _NotSentError


async def _look_at_response(response: httpx2.Response) -> None:
    """Note what headers say, and cap what is read of a reply."""
    exchange = _exchange.get(None)
    if exchange is None:  # of a batch, whose files may be of any length
        return
    exchange.limits = rate_limits_of(response.headers)
    exchange.content_type = response.headers.get("content-type", "").partition(";")[0]
    exchange.has_begun = response.status_code < 400
    is_stream = "event-stream" in exchange.content_type
    longest = _LONGEST_STREAM if is_stream else _LONGEST_REPLY
    if "content-encoding" in response.headers:  # what unfolds although nobody asked for it
        longest //= 16
    response.stream = _capped(response.stream, longest, fails=exchange.has_begun)
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
        code = error.get("code") if isinstance(error, Mapping) else None
        response.status_code = code if isinstance(code, int) and 400 <= code < 600 else 500


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


def _caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error is not None
