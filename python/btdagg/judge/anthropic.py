"""Anthropic's library, but for damaged events of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping

from anthropic import AsyncAnthropic
from anthropic._streaming import ServerSentEvent, SSEDecoder


class _StrictDecoder(SSEDecoder):
    def decode(self, line: str) -> ServerSentEvent | None:
        event = super().decode(line)
        if event is None or event.event in ("ping", "error"):
            return event
        if event.event is None and event.data in ("", "[DONE]"):  # what proxies add
            return event
        content = json.loads(event.data)
        is_whole = isinstance(content, Mapping) and event.event is not None
        is_whole = is_whole and content.get("type") == event.event
        if is_whole and event.event == "content_block_delta":
            delta = content.get("delta")
            is_whole = isinstance(delta, Mapping) and isinstance(delta.get("type"), str)
            is_whole = is_whole and (
                delta["type"] != "text_delta" or isinstance(delta.get("text"), str)
            )
        if not is_whole:
            raise ValueError(f"not an event: {event.data}")
        return event


class StrictAnthropic(AsyncAnthropic):
    """A client that fails at a damaged event, over which the library passes, losing words."""

    def _make_sse_decoder(self) -> SSEDecoder:
        return _StrictDecoder()
