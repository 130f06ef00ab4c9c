"""The words of a call: order, status, messages, and what all calls of a run have in common."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias, TypeVar

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import as_integer

_T = TypeVar("_T")

Order: TypeAlias = Literal["AB", "BA"]
Messages: TypeAlias = Sequence[Mapping[str, Any]]
Status: TypeAlias = Literal["ok", "unparsed", "refused", "truncated", "empty", "failed"]

ORDERS: tuple[Order, ...] = ("AB", "BA")
STATUSES: tuple[Status, ...] = ("ok", "unparsed", "refused", "truncated", "empty", "failed")


@readable
@dataclass(frozen=True)
class Asked:
    """What all calls of a run have in common: who is asked, and how.

    Votes that agree in it, in item, order and sample are the same vote.

    Attributes
    ----------
    judge : str
        Name of the judge in tables: its model, or an alias of the user's.
    template, template_digest : str
        Name of the prompt template, and a digest of all that it sends except the pair.
    method : str
        ``sample``, or the name of another method.
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


def digest_of(value: object) -> str:
    """SHA-256 of a value as JSON, keys in order."""
    written = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(written.encode(errors="surrogatepass")).hexdigest()


def batched(things: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Lists of `size` things each; the last may be shorter."""
    rest = iter(things)
    while batch := list(islice(rest, size)):
        yield batch


def samples_of(n: int, order: str = "both") -> tuple[tuple[Order, int], ...]:
    """Return orders and samples of n votes per item, in turn from both orders.

    With order ``both`` half of the votes are in each order, so n has to be even; ``AB`` or ``BA``
    is one order alone.
    """
    n = as_integer(n, "n", 1)
    if order == "both":
        if n % 2:
            raise InputError(
                f"n is {n}, expected an even number: half of the votes are asked with A first, "
                "half "
                f"with B first; {n + 1}, or one order alone"
            )
        return tuple((each, sample) for sample in range(n // 2) for each in ORDERS)
    if order not in ORDERS:
        raise InputError(f"order is {order!r}, expected both, AB or BA")
    return tuple((order, sample) for sample in range(n))
