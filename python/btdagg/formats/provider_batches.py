"""Outputs of batches of Anthropic, Gemini and Bedrock, as OpenAI would write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any

from btdagg.formats import openai_batch
from btdagg.formats.content import Content, Format

_HEAD = 10  # replies that are looked at; the first may have failed
_ENDS = {
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("safety", "recitation", "blocklist", "spii"), "content_filter"),
    **dict.fromkeys(("prohibited_content", "content_filtered"), "content_filter"),
}


def _reply(key: Any, model: Any = None, choices: Any = None, error: Any = None) -> dict[str, Any]:
    body = {"model": model, "choices": choices}
    return {"custom_id": key, "response": {"body": body} if choices else None, "error": error}


def _choice(content: Any, end: Any, refusal: Any = None) -> dict[str, Any]:
    reason = str(end or "").lower()
    message = {"content": content, "refusal": refusal}
    return {"message": message, "finish_reason": _ENDS.get(reason, reason) or None}


def _of_anthropic(reply: Mapping[str, Any]) -> dict[str, Any]:
    result = reply["result"]
    message = result.get("message")
    if result["type"] != "succeeded" or not message:
        return _reply(reply["custom_id"], error=result["type"])
    choice = _choice(message.get("content"), message.get("stop_reason"))
    return _reply(reply["custom_id"], message.get("model"), [choice])


def _of_gemini(reply: Mapping[str, Any]) -> dict[str, Any]:
    response = reply.get("response") or {}
    choices = []
    for candidate in response.get("candidates") or ():
        parts = (candidate.get("content") or {}).get("parts") or ()
        text = "".join(part.get("text") or "" for part in parts if not part.get("thought"))
        choices.append(_choice(text, candidate.get("finishReason")))
    if blocked := (response.get("promptFeedback") or {}).get("blockReason"):
        choices = choices or [_choice("", None, blocked)]
    error = reply.get("error") or (None if choices else reply.get("status") or "no answer")
    return _reply(reply["key"], response.get("modelVersion"), choices, error)


def _of_bedrock(reply: Mapping[str, Any]) -> dict[str, Any]:
    body = reply.get("modelOutput") or {}
    message = (body.get("output") or {}).get("message") or body
    text = message.get("content") or body.get("generation")
    choices = [_choice(text, body.get("stop_reason") or body.get("stopReason"))] if body else None
    return _reply(reply["recordId"], body.get("model"), choices, reply.get("error"))


_PROVIDERS: dict[str, tuple[str, str, str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "anthropic-batch": ("custom_id", "result", "type", _of_anthropic),
    "gemini-batch": ("key", "response", "candidates", _of_gemini),
    "bedrock-batch": ("recordId", "modelOutput", "", _of_bedrock),
}
"""By format: the keys of a reply's id and of its content, a key of the content, and a reader."""


def _recognizes(content: Content, key: str, answer: str, part: str) -> bool:
    if not content.is_json or not {key.lower(), answer.lower()} <= content.columns:
        return False
    answers = [row.get(answer) for row in islice(content.objects(), _HEAD)]
    content.row = None
    return any(isinstance(value, dict) and (not part or part in value) for value in answers)


FORMATS = tuple(
    Format(
        name,
        partial(_recognizes, key=key, answer=answer, part=part),
        partial(openai_batch.read_replies, reply_of=reply_of),
        openai_batch.FORMAT.uses,
    )
    for name, (key, answer, part, reply_of) in _PROVIDERS.items()
)
