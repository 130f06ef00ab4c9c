"""What is asked: calls, and what all calls of a run have in common."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from btdagg._core import InputError
from btdagg.validation import as_integer

if TYPE_CHECKING:
    from btdagg.judge.runs import Reader

_T = TypeVar("_T")

Order: TypeAlias = Literal["AB", "BA"]
Messages: TypeAlias = Sequence[Mapping[str, Any]]
Status: TypeAlias = Literal["ok", "unparsed", "refused", "truncated", "empty", "failed"]

ORDERS: tuple[Order, ...] = ("AB", "BA")
STATUSES: tuple[Status, ...] = ("ok", "unparsed", "refused", "truncated", "empty", "failed")


@dataclass(frozen=True)
class Call:
    """One sample of one pair.

    Attributes
    ----------
    item : str
    order : ``AB`` or ``BA``
        BA shows B first.
    sample : int
        From 0 within item and order.
    messages : sequence of mappings
        What is sent.
    """

    item: str
    order: Order
    sample: int
    messages: Messages


@dataclass(frozen=True)
class Asked:
    """What all calls of a run have in common: who is asked, and how.

    Votes that agree in it, in item, order and sample are the same vote.

    Attributes
    ----------
    judge : str
        Name of the judge in tables: its model, or an alias of the user's.
    template, template_digest : str
        Name of the prompt template, and a digest of all that it sends but the pair.
    method : str
        ``sample``, or the name of another method.
    temperature : float or None
        None leaves it to the endpoint.
    reasoning_effort : str or None
    settings : mapping
        All else that changes what is asked; JSON values.
    """

    judge: str
    template: str
    template_digest: str
    method: str = "sample"
    temperature: float | None = 0.5
    reasoning_effort: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        """Digest of what is asked: a SHA-256 of everything here but the names."""
        told = {
            "template": self.template_digest,
            "method": self.method,
            "temperature": self.temperature,
            "reasoning_effort": self.reasoning_effort,
            **self.settings,
        }
        return digest_of(told)


@dataclass(frozen=True)
class Work:
    """The calls wanted of one item; messages are written when they are needed.

    Attributes
    ----------
    item : str
    wanted : sequence of (order, sample)
    messages : callable
        From an order to what is sent.
    digest : str
        Digest of the item's texts: a store refuses another text under the same id.
    task : str or None
        Task of the item, if known; kept for exports.
    read : callable or None
        Reads the answers on this item, in place of the run's own reader.
    """

    item: str
    wanted: Sequence[tuple[Order, int]]
    messages: Callable[[Order], Messages]
    digest: str = ""
    task: str | None = None
    read: Reader | None = None


def digest_of(value: object) -> str:
    """SHA-256 of a value as JSON, keys in order."""
    written = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(written.encode(errors="surrogatepass")).hexdigest()


def stretches(things: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Things by the stretch: so many each, but for the last."""
    rest = iter(things)
    while stretch := list(islice(rest, size)):
        yield stretch


def samples_of(n: int, order: str = "both") -> tuple[tuple[Order, int], ...]:
    """Orders and samples of n votes per item, in turn from both orders.

    Parameters
    ----------
    n : int
        Votes per item.
    order : ``both``, ``AB`` or ``BA``
        Half of the votes in each order, or all in one.

    Raises
    ------
    InputError
        If n is less than 1, or odd with both orders; or the order is none of these.
    """
    n = as_integer(n, "n", 1)
    if order == "both":
        if n % 2:
            raise InputError(
                f"n is {n}, want an even number: half of the votes are asked with A first, half "
                f"with B first; {n + 1}, or one order alone"
            )
        return tuple((each, sample) for sample in range(n // 2) for each in ORDERS)
    if order not in ORDERS:
        raise InputError(f"order is {order!r}, want both, AB or BA")
    return tuple((order, sample) for sample in range(n))
