"""What the store keeps of a call: its vote, or why there is none."""

from __future__ import annotations

from btdagg.judge.client import ChatReply, Usage
from btdagg.judge.prices import Prices
from btdagg.judge.store import Answered, Claimed
from btdagg.judge.work import Reading


def answer_of(
    claimed: Claimed, reply: ChatReply, reading: Reading, attempts: int, prices: Prices | None
) -> Answered:
    """Return what is kept of a reply to a sample after so many requests."""
    usage = reply.usage
    return Answered(
        claimed.item,
        claimed.order,
        claimed.sample,
        reading.status,
        reading.vote,
        claimed.attempts + attempts,
        reading.confidence,
        _clean(reading.reason),
        usage.prompt if usage else None,
        usage.completion if usage else None,
        usage.reasoning if usage else None,
        _cost_of(usage, prices),
        reply.latency,
        _clean(reply.model),
        _clean(reply.finish_reason),
        _clean(reply.reasoning),
        _clean(reply.text),
    )


def _cost_of(usage: Usage | None, prices: Prices | None) -> float | None:
    if usage is None:
        return None
    return usage.cost if prices is None else prices.cost(usage)


def failure_of(claimed: Claimed, reason: str, attempts: int) -> Answered:
    """Return what is kept of a sample for which so many requests brought no reply."""
    return Answered(
        claimed.item,
        claimed.order,
        claimed.sample,
        "failed",
        None,
        claimed.attempts + attempts,
        reason=_clean(reason),
    )


def _clean(text: str) -> str:
    """Return a text that every database takes: no NUL, no half of a surrogate pair."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
