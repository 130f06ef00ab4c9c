"""OpenAI's chat completions as other servers send them: with fields left out, or in parts."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from typing import Any

from openai.types import chat
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.usage import RequestUsage

from btdagg.judge.client import Usage, parts_of

_TOO_MANY = 10**10  # tokens, or units of money, that no request has

USAGE = "btdagg_usage"  # what `provider_details` call the tokens, and a cost that is stated


class CompatibleModel(OpenAIChatModel):
    """A model of any endpoint that speaks the protocol."""

    def _validate_completion(self, response: chat.ChatCompletion) -> Any:
        sent = response.model_dump(warnings=False)
        sent = {**sent, "object": "chat.completion", "id": str(sent.get("id") or "")}
        sent["model"] = str(sent.get("model") or "")
        sent["usage"] = None
        choices = [dict(choice) for choice in sent["choices"]]
        for index, choice in enumerate(choices):
            choice["index"] = index
            message = dict(choice["message"], role="assistant")
            content, thought = parts_of(message.get("content"))
            message["content"] = content
            message["reasoning_content"] = message.get("reasoning_content") or thought
            choice["message"] = message
            tokens = (choice.get("logprobs") or {}).get("content") or ()
            for token in tokens:
                token.update(token=token.get("token") or "", top_logprobs=[])
        full = chat.ChatCompletion.model_construct(**{**sent, "choices": choices})
        valid: Any = super()._validate_completion(full)
        valid.usage = usage_of(response.usage.model_dump() if response.usage else None)
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
            if chunk.usage is not None:
                usage = usage_of(chunk.usage.model_dump())
                self.provider_details = {**(self.provider_details or {}), USAGE: usage}
                chunk.usage = None
            for choice in chunk.choices or ():
                delta = choice.delta
                if delta is not None and not isinstance(delta.content, str | None):
                    content, thought = parts_of(delta.content)
                    delta.content = content or None
                    if thought:
                        delta.reasoning_content = thought
            yield chunk


def usage_of(value: Mapping[str, Any] | None) -> Usage | None:
    """Tokens and cost, however the endpoint calls them; None where it says nothing."""
    if not value:
        return None
    details = value.get("completion_tokens_details") or {}
    sent = value.get("prompt_tokens_details") or {}
    cost = value.get("cost")
    return Usage(
        tokens_of(value.get("prompt_tokens")),
        tokens_of(value.get("completion_tokens")),
        tokens_of(details.get("reasoning_tokens") or value.get("reasoning_tokens")),
        tokens_of(sent.get("cached_tokens") or value.get("prompt_cache_hit_tokens")),
        float(cost) if isinstance(cost, int | float) and 0 <= cost < _TOO_MANY else None,
    )


def tokens_of(value: Any) -> int:
    """A number of tokens; 0 for what is none, such as 1e400: no vote is lost for it."""
    is_number = isinstance(value, int | float) and 0 <= value < _TOO_MANY
    return int(value) if is_number else 0
