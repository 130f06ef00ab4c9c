"""What went wrong with a request, whether asking again can help, and when."""

from __future__ import annotations

import random
import time
from email.utils import parsedate_to_datetime
from typing import Literal, TypeAlias

from btdagg._core import InputError
from btdagg.judge.rate_limits import RateLimits

Kind: TypeAlias = Literal["transient", "limited", "rejected", "protocol", "forbidden", "fatal"]

_FIRST_DELAY = 0.5  # seconds
_LONGEST_DELAY = 60.0


class EndpointError(InputError):
    """No further call can work: a wrong key, no such model, an endpoint that is not one."""


class ChatError(Exception):
    """A request without an answer.

    Parameters
    ----------
    message : str
        One line for people; without any part of a key.
    kind : str
        ``transient`` (asking again may help), ``limited`` (it will, later), ``protocol`` (what
        came is not what a chat endpoint sends: asking again may help, unless nothing else ever
        came), ``rejected`` and ``forbidden`` (this request will not work, another may), ``fatal``
        (none will).
    retry_after : float, optional
        Seconds that the endpoint asks to wait.
    limits : RateLimits, optional
        What it says of its limits.
    may_cost : bool
        Whether the endpoint may have worked, and billed, before things went wrong.
    """

    def __init__(
        self,
        message: str,
        kind: Kind = "transient",
        *,
        retry_after: float | None = None,
        may_cost: bool = False,
        limits: RateLimits | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.retry_after = retry_after
        self.may_cost = may_cost
        self.limits = limits

    @property
    def is_limit(self) -> bool:
        """Whether it is no fault of the call, but one to be waited for."""
        return self.kind == "limited" or self.retry_after is not None


def delay_before(attempt: int, draw: random.Random) -> float:
    """Seconds to wait before asking again: exponential back-off with full jitter.

    Parameters
    ----------
    attempt : int
        How often it was asked, at least 1.
    draw : random.Random
    """
    return draw.uniform(0, min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** (attempt - 1)))


def parse_retry_after(value: str | None, *, now: float | None = None) -> float | None:
    """Seconds that a Retry-After header asks for: a number or an HTTP date; None if neither."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - (now or time.time())
        except (TypeError, ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if seconds < float("inf") else None
