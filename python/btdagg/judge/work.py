"""The engine's work on an item: which samples, what is sent, and how an answer is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from btdagg.judge.client import ChatReply, Messages, Order, Status


class Reading(NamedTuple):
    """What an answer says: the vote from A's point of view, None unless `status` is ``ok``."""

    status: Status
    vote: int | None = None
    confidence: float | None = None
    reason: str = ""


Reader = Callable[[ChatReply, Order], Reading]


@dataclass(frozen=True)
class Work:
    """The samples wanted of one item.

    Attributes
    ----------
    item : str
    wanted : sequence of (order, sample)
    messages : callable
        From an order to what is sent, called when it is needed.
    digest : str
        Digest of the item's texts: a store refuses another text under the same id.
    task : str or None
        Task of the item, if known; kept for exports.
    read : callable or None
        Reads the answers on this item, in place of the run's own reader.
    response_format : mapping or None
        JSON schema of the answer, in place of the template's.
    """

    item: str
    wanted: Sequence[tuple[Order, int]]
    messages: Callable[[Order], Messages]
    digest: str = ""
    task: str | None = None
    read: Reader | None = None
    response_format: Mapping[str, Any] | None = None


def stretches_of(plan: Iterable[Work], n_samples: int) -> Iterator[list[Work]]:
    """Work by the stretch: at least so many samples each, but for the last."""
    stretch: list[Work] = []
    n = 0
    for work in plan:
        stretch.append(work)
        n += len(work.wanted)
        if n >= n_samples:
            yield stretch
            stretch, n = [], 0
    if stretch:
        yield stretch
