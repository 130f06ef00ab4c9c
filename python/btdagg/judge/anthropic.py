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
        if not isinstance(content, Mapping) or content.get("type") != event.event:
            raise ValueError(f"not an event: {event.data}")
        return event


class StrictAnthropic(AsyncAnthropic):
    """A client that fails at a damaged event, over which the library passes, losing words."""

    def _make_sse_decoder(self) -> SSEDecoder:
        return _StrictDecoder()
