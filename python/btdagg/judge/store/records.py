"""What goes into a store and comes out of it, and what it says where it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from btdagg._core import InputError
from btdagg.judge.calls import Order, Status

VOTES = (-1, 0, 1)


class StoreError(InputError):
    """The store cannot be opened, read or written; the message is one line."""


class NoStoreError(StoreError):
    """There is no store, and none was to be made."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A sample that this owner is to ask for; `attempts` calls were made for it before."""

    item: str
    order: Order
    sample: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of a sample.

    Attributes
    ----------
    item, order, sample
        Its key.
    status : str
    vote : -1, 0, 1 or None
        From A's point of view; None unless `status` is ``ok``.
    attempts : int
        Calls made for it by now, those of earlier runs included.
    confidence, reason, prompt_tokens, completion_tokens, reasoning_tokens, cost, latency
        See docs/store.md. Tokens and cost are of the whole request.
    model, finish_reason, reasoning, answer : str
        The exchange.
    """

    item: str
    order: Order
    sample: int
    status: Status
    vote: int | None
    attempts: int
    confidence: float | None = None
    reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    latency: float | None = None
    model: str = ""
    finish_reason: str = ""
    reasoning: str = ""
    answer: str = ""
