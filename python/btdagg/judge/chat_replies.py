"""Parts of what chat-completions endpoints send, which each of them spells in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from btdagg.judge.client import ChatReply, Usage


def parts_of(content: Any) -> tuple[str, str]:
    """Text and thought of a content that is a text, or comes in parts."""
    if isinstance(content, str):
        return content, ""
    said: tuple[list[str], list[str]] = ([], [])
    for part in content or ():
        if isinstance(part, str):
            part = {"text": part}
        is_thought = part.get("type") in ("thinking", "reasoning", "redacted_thinking")
        inner = part.get("thinking") or part.get("reasoning") or part.get("text") or ""
        said[is_thought].append("".join(parts_of(inner)))
    return "".join(said[0]), "".join(said[1])


def together(replies: list[ChatReply]) -> ChatReply:
    """One reply for several choices: the first, with the others as its further ones."""
    if not replies:
        raise ValueError("no choices")
    return replace(replies[0], further=tuple(replies[1:])) if len(replies) > 1 else replies[0]


def usage_of(value: Mapping[str, Any] | None) -> Usage | None:
    """Tokens and cost, however the endpoint calls them; None where it says nothing."""
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
