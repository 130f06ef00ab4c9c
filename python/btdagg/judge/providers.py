"""The providers of models: where they are, what they need, and how they are asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from btdagg.judge.client import ChatRequest, Messages

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model, ModelRequestParameters

_ANTHROPIC_TOKENS = 16_384  # an answer of Anthropic's has to have a limit; thinking comes on top
# The last version of Anthropic's API that takes a temperature.
_WITH_TEMPERATURE = {"anthropic-version": "2023-06-01"}
_NO_KEY = "none"  # what servers of one's own are sent where there is no key
_NO_TAGS = ("\0think\0", "\0/think\0")  # thinking in tags is split off by `split_thinking`

SIMULATED = "simulated"  # the model that asks no endpoint


class Provider(NamedTuple):
    """Where a provider is, and what a client of it needs."""

    address: str
    path: str  # which its library adds to a base URL
    library: str  # module that is imported
    extra: str  # of btdagg, which installs it
    key_variables: tuple[str, ...]  # the first that is set
    needs_key: bool = True
    address_variable: str = ""


_CHAT = "/chat/completions"
PROVIDERS = {
    "openai": Provider(
        "https://api.openai.com/v1", _CHAT, "openai", "judge", ("OPENAI_API_KEY",),
        address_variable="OPENAI_BASE_URL",
    ),
    "anthropic": Provider(
        "https://api.anthropic.com", "/v1/messages", "anthropic", "anthropic",
        ("ANTHROPIC_API_KEY",),
    ),
    "google": Provider(
        "https://generativelanguage.googleapis.com", "/v1beta", "google.genai", "google",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    "bedrock": Provider("", "", "boto3", "bedrock", ("AWS_BEARER_TOKEN_BEDROCK",), needs_key=False),
    "ollama": Provider(
        "http://localhost:11434/v1", _CHAT, "openai", "judge", ("OLLAMA_API_KEY",),
        needs_key=False, address_variable="OLLAMA_BASE_URL",
    ),
}  # fmt: skip


def provider_of(model: str) -> tuple[str, str]:
    """Return the provider and the name of a model; a bare name is one of an OpenAI-like endpoint.

    Examples
    --------
    >>> provider_of("anthropic:claude-sonnet-5"), provider_of("llama3:8b")
    (('anthropic', 'claude-sonnet-5'), ('openai', 'llama3:8b'))
    """
    prefix, colon, name = model.partition(":")
    return (prefix, name) if colon and name and prefix in PROVIDERS else ("openai", model)


# Requests


def settings_of(
    provider: str, request: ChatRequest, structured: str
) -> tuple[dict[str, Any], ModelRequestParameters]:
    """Return the settings of a request as pydantic-ai has them.

    `structured` is how an answer by a schema is asked for: ``json_schema``, ``json_object``, or not
    at all.
    """
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    sent: dict[str, Any] = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
    }
    parameters = ModelRequestParameters()
    extra: dict[str, Any] = {}
    effort, budget = request.reasoning_effort, request.thinking_budget
    thinking = None if budget is None else {"type": "enabled", "budget_tokens": budget}
    asked_format = request.response_format if structured else None
    schema = (asked_format or {}).get("json_schema", {}).get("schema")
    if provider == "anthropic":
        sent["max_tokens"] = request.max_tokens or _ANTHROPIC_TOKENS + (budget or 0)
        sent["anthropic_cache_instructions"] = True
        sent["anthropic_thinking"] = thinking
        if request.temperature is not None or request.top_p is not None:
            sent["extra_headers"] = _WITH_TEMPERATURE
        output = {"effort": effort, "format": schema and {"type": "json_schema", "schema": schema}}
        extra["output_config"] = _without_none(output) or None
    elif provider in ("google", "bedrock"):
        if schema is not None:
            output_object = OutputObjectDefinition(json_schema=dict(schema))
            parameters = ModelRequestParameters(output_mode="native", output_object=output_object)
        if provider == "google":
            sent["google_logprobs"] = request.logprobs or None
            config = _without_none({"thinking_level": effort, "thinking_budget": budget})
            sent["google_thinking_config"] = (
                {"include_thoughts": True, **config} if config else None
            )
    else:
        sent["openai_reasoning_effort"] = effort
        sent["openai_logprobs"] = request.logprobs or None
        extra["thinking"] = thinking
        is_schema = structured == "json_schema"
        extra["response_format"] = (
            asked_format if is_schema else asked_format and {"type": structured}
        )
    sent["extra_body"] = _without_none(extra) | dict(request.extra) or None
    return _without_none(sent), parameters


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def messages_of(messages: Messages, *, is_marked: bool) -> list[ModelMessage]:
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


def model_of(
    provider: str,
    name: str,
    sending: dict[str, Any],
    *,
    is_developer: bool = False,
    takes_new_limit: bool = False,
) -> Model:
    """Return a model of pydantic-ai.

    `sending` has the `api_key`, `base_url`, `timeout` and `http_client` of the provider's library.
    """
    profile: Any = {
        "may_tokenize_special_tokens_in_content": False,  # votes are of texts as they are
        "supports_json_schema_output": True,
    }
    own: Any
    if provider == "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        own = GoogleProvider(**{k: v for k, v in sending.items() if k != "timeout"})
        return GoogleModel(name, provider=own, profile=profile)
    if provider == "bedrock":
        import boto3
        from botocore.config import Config
        from pydantic_ai.models.bedrock import BedrockConverseModel
        from pydantic_ai.providers.bedrock import BedrockProvider

        config = Config(retries={"total_max_attempts": 1}, read_timeout=sending["timeout"])
        url = sending["base_url"] or None
        own = BedrockProvider(
            bedrock_client=boto3.client("bedrock-runtime", endpoint_url=url, config=config)
        )
        return BedrockConverseModel(name, provider=own, profile=profile)
    options = {**sending, "api_key": sending["api_key"] or _NO_KEY, "max_retries": 0}
    if provider == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        own = AnthropicProvider(anthropic_client=AsyncAnthropic(**options))
        return AnthropicModel(name, provider=own, profile=profile)
    from openai import AsyncOpenAI
    from pydantic_ai.providers.openai import OpenAIProvider

    from btdagg.judge.openai_compatible import CompatibleModel

    profile |= {
        "thinking_tags": _NO_TAGS,
        "openai_supports_reasoning": False,  # what goes with thinking, the endpoint knows
        "openai_chat_supports_max_completion_tokens": takes_new_limit,
        "openai_chat_streaming_requires_finish_reason": True,
        "openai_system_prompt_role": "developer" if is_developer else "system",
    }
    own = OpenAIProvider(openai_client=AsyncOpenAI(**options))
    return CompatibleModel(name, provider=own, profile=profile)


# Settings that do not reach the model

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
