"""How each provider is asked: settings, messages and models as pydantic-ai has them."""
# OpenAI's chat completions are read as other servers send them: with fields left out, or in parts.

from __future__ import annotations

import math
from collections.abc import AsyncIterable, Iterator, Mapping
from typing import Any

from openai import AsyncOpenAI
from openai.types import chat
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

from btdagg.judge.client import ChatRequest, Messages, Usage, parts_of
from btdagg.judge.faults import ChoiceError

_ANTHROPIC_TOKENS = 16_384  # an answer of Anthropic's has to have a limit
# The last version of Anthropic's API that takes a temperature.
WITH_TEMPERATURE = {"anthropic-version": "2023-06-01"}
_NO_KEY = "none"  # what servers of one's own are sent where there is no key
_NO_TAGS = ("\0think\0", "\0/think\0")  # thinking in tags is split off by `split_thinking`
_ALTERNATIVES = 5  # to each token, with log-probabilities: what all providers give
_TOO_MANY = 2**31  # tokens, or units of money, that no request has
USAGE = "btdagg_usage"  # what `provider_details` call the tokens, and a cost that is stated

# Requests


def settings_of(
    provider: str, request: ChatRequest, structured: str
) -> tuple[dict[str, Any], ModelRequestParameters]:
    """Return the settings of a request as pydantic-ai has them."""
    # `structured` is how a schema is asked for: ``json_schema``, ``json_object``, or not at all.
    sent: dict[str, Any] = {
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
    }
    parameters = ModelRequestParameters()
    extra: dict[str, Any] = {}
    effort = request.reasoning_effort
    asked_format = request.response_format if structured else None
    schema = (asked_format or {}).get("json_schema", {}).get("schema")
    if provider == "anthropic":
        sent["max_tokens"] = request.max_tokens or _ANTHROPIC_TOKENS
        sent["anthropic_cache_instructions"] = True
        if request.temperature is not None:
            sent["extra_headers"] = WITH_TEMPERATURE
        output = {"effort": effort, "format": schema and {"type": "json_schema", "schema": schema}}
        extra["output_config"] = _without_none(output) or None
    elif provider in ("google", "bedrock"):
        if schema is not None:
            output_object = OutputObjectDefinition(json_schema=dict(schema))
            parameters = ModelRequestParameters(output_mode="native", output_object=output_object)
        if provider == "google":
            sent["google_logprobs"] = request.logprobs or None
            sent["google_top_logprobs"] = _ALTERNATIVES if request.logprobs else None
            if effort is not None:
                config = {"include_thoughts": True, "thinking_level": effort}
                sent["google_thinking_config"] = config
    else:
        sent["openai_reasoning_effort"] = effort
        sent["openai_logprobs"] = request.logprobs or None
        sent["openai_top_logprobs"] = _ALTERNATIVES if request.logprobs else None
        is_schema = structured == "json_schema"
        extra["response_format"] = (
            asked_format if is_schema else asked_format and {"type": structured}
        )
    sent["extra_body"] = _without_none(extra) | dict(request.extra) or None
    return _without_none(sent), parameters


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def messages_of(messages: Messages) -> list[ModelMessage]:
    """Return messages as pydantic-ai has them."""
    made: list[ModelMessage] = []
    parts: list[SystemPromptPart | UserPromptPart] = []
    for message in messages:
        if message["role"] == "assistant":
            made += [ModelRequest(parts), ModelResponse([TextPart(message["content"])])]
            parts = []
        else:
            is_system = message["role"] in ("system", "developer")
            parts.append((SystemPromptPart if is_system else UserPromptPart)(message["content"]))
    return [*made, ModelRequest(parts)]


def model_of(
    provider: str,
    name: str,
    sending: dict[str, Any],
    *,
    is_developer: bool = False,
    takes_new_limit: bool = False,
) -> Model:
    """Return a model of pydantic-ai; `sending` are options of the provider's library."""
    profile: Any = {
        "may_tokenize_special_tokens_in_content": False,  # votes are of texts as they are
        "supports_json_schema_output": True,
    }
    ai_provider: Any
    if provider == "google":
        from pydantic_ai.providers.google import GoogleProvider

        from btdagg.judge.google import StrictGoogleModel

        ai_provider = GoogleProvider(**{k: v for k, v in sending.items() if k != "timeout"})
        return StrictGoogleModel(name, provider=ai_provider, profile=profile)
    if provider == "bedrock":
        import boto3
        from botocore.config import Config
        from pydantic_ai.models.bedrock import BedrockConverseModel
        from pydantic_ai.providers.bedrock import BedrockProvider

        config = Config(retries={"total_max_attempts": 1}, read_timeout=sending["timeout"])
        url = sending["base_url"] or None
        ai_provider = BedrockProvider(
            bedrock_client=boto3.client("bedrock-runtime", endpoint_url=url, config=config)
        )
        return BedrockConverseModel(name, provider=ai_provider, profile=profile)
    library = library_of(provider, sending)
    if provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        ai_provider = AnthropicProvider(anthropic_client=library)
        return AnthropicModel(name, provider=ai_provider, profile=profile)
    profile |= {
        "thinking_tags": _NO_TAGS,
        "openai_supports_reasoning": False,  # what goes with thinking, the endpoint knows
        "openai_chat_supports_max_completion_tokens": takes_new_limit,
        "openai_chat_streaming_requires_finish_reason": True,
        "openai_system_prompt_role": "developer" if is_developer else "system",
    }
    ai_provider = OpenAIProvider(openai_client=library)
    return CompatibleModel(name, provider=ai_provider, profile=profile)


def library_of(provider: str, sending: Mapping[str, Any]) -> Any:
    """Return a client of the provider's own library, which repeats nothing by itself."""
    options: dict[str, Any] = {"api_key": sending["api_key"] or _NO_KEY, "max_retries": 0}
    if provider == "anthropic":
        from btdagg.judge.anthropic import StrictAnthropic

        return StrictAnthropic(**{**sending, **options})
    return AsyncOpenAI(**{**sending, **options})


# Settings that do not reach the model

# Names of settings in the bodies of the providers, and the arguments of `Judging` behind them.
_SENT_AS = {
    "temperature": ("temperature", ("temperature",)),
    "seed": ("request_seed", ("seed",)),
    "max_tokens": ("max_answer_tokens", ("maxtokens", "maxcompletiontokens", "maxoutputtokens")),
    "reasoning_effort": ("reasoning_effort", ("reasoningeffort", "effort", "thinkinglevel")),
    "logprobs": ('confidence="logprobs"', ("responselogprobs", "logprobs")),
}


def unsent(request: ChatRequest, body: Mapping[str, Any]) -> str:
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


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if not isinstance(inner, Mapping | list):
                yield str(name), inner
            yield from _leaves(inner)


# Replies of endpoints that speak OpenAI's protocol


class CompatibleModel(OpenAIChatModel):
    """A model of any endpoint that speaks the protocol."""

    def _validate_completion(self, response: chat.ChatCompletion) -> Any:
        # Other fields are left out: an oddity in one would lose an answer that is paid for.
        sent = response.model_dump(warnings=False)
        choices = [_choice_of(choice, "message", n) for n, choice in enumerate(sent["choices"])]
        full = {**_frame_of(sent), "object": "chat.completion", "choices": choices}
        valid: Any = super()._validate_completion(chat.ChatCompletion.model_construct(**full))
        valid.usage = usage_of(sent.get("usage"))
        return valid

    def _process_provider_details(self, response: chat.ChatCompletion) -> dict[str, Any] | None:
        return {**(super()._process_provider_details(response) or {}), USAGE: response.usage}

    def _map_usage(self, response: chat.ChatCompletion) -> RequestUsage:
        return RequestUsage()  # ours is among the details

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _CompatibleStream


class _CompatibleStream(OpenAIStreamedResponse):
    async def _validate_response(self) -> AsyncIterable[chat.ChatCompletionChunk]:
        async for chunk in self._response:
            sent = chunk.model_dump(warnings=False)
            if sent.get("usage"):
                usage = usage_of(sent["usage"])
                self.provider_details = {**(self.provider_details or {}), USAGE: usage}
            elif not isinstance(sent.get("choices"), list):
                raise ValueError(f"not a chunk of an answer: {sent}")
            choices = [
                _choice_of(choice, "delta", n) for n, choice in enumerate(sent.get("choices") or ())
            ]
            full = {**_frame_of(sent), "object": "chat.completion.chunk", "choices": choices}
            yield chat.ChatCompletionChunk.construct(**full)


def _frame_of(sent: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": str(sent.get("id") or ""), "model": str(sent.get("model") or ""), "created": 0}


def _choice_of(sent: Mapping[str, Any], name: str, index: int) -> dict[str, Any]:
    """Return a choice as OpenAI has it; `name` is of its message, or its part in a stream."""
    end = sent.get("finish_reason")
    if sent.get("error"):
        raise ChoiceError(sent["error"])
    choice: dict[str, Any] = {
        "index": index,
        "finish_reason": end if end is None else str(end),
    }
    message: Any = sent.get(name)
    if message is None and name == "delta":
        return {**choice, name: None}
    content, thought = parts_of(message.get("content"))
    if not content and str(end).lower() == "error":
        raise ChoiceError(None)
    thoughts = (message.get(field) for field in ("reasoning_content", "reasoning"))
    reasoning = next((parts_of(value)[0] for value in thoughts if value), thought)
    refusal = message.get("refusal")
    choice[name] = {
        "role": "assistant",
        "content": content or None,
        "reasoning_content": reasoning or None,
        "refusal": str(refusal) if refusal else None,
    }
    logprobs = sent.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if isinstance(tokens, list) and all(isinstance(token, Mapping) for token in tokens):
        choice["logprobs"] = {"content": [_token_of(token) for token in tokens]}
    return choice


def _token_of(token: Mapping[str, Any]) -> dict[str, Any]:
    top_tokens = [_token_of(option) for option in token.get("top_logprobs") or ()]
    logprob = token.get("logprob")
    return {
        "token": token.get("token") or "",
        "logprob": logprob if isinstance(logprob, int | float) else math.nan,
        "top_logprobs": [option for option in top_tokens if not math.isnan(option["logprob"])],
    }


def usage_of(value: object) -> Usage | None:
    """Tokens and cost, however the endpoint calls them; None where it says nothing."""
    if not value or not isinstance(value, Mapping):
        return None
    details, sent = (
        found if isinstance(found := value.get(f"{name}_tokens_details"), Mapping) else {}
        for name in ("completion", "prompt")
    )
    cost = value.get("cost")
    return Usage(
        tokens_of(value.get("prompt_tokens")),
        tokens_of(value.get("completion_tokens")),
        tokens_of(details.get("reasoning_tokens") or value.get("reasoning_tokens")),
        tokens_of(sent.get("cached_tokens") or value.get("prompt_cache_hit_tokens")),
        float(cost) if isinstance(cost, int | float) and 0 <= cost < _TOO_MANY else None,
    )


def tokens_of(value: Any) -> int:
    """A number of tokens, perhaps as a text; 0 for any other value, such as 1e400."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return int(number) if 0 <= number < _TOO_MANY else 0
