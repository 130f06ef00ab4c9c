"""What the headers of replies say of an endpoint's limits."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Allowance:
    """What the headers of a reply say of a limit: so many left, all of them again in so long."""

    limit: float
    left: float
    seconds: float

    @property
    def per_second(self) -> float:
        """The rate that keeps to it, whether it is filled up steadily or all at once."""
        return max(self.left, self.limit - self.left) / self.seconds


@dataclass(frozen=True)
class RateLimits:
    """Limits on requests and on tokens, as far as headers say them."""

    requests: Allowance | None = None
    tokens: Allowance | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> RateLimits | None:
        """Read ``x-ratelimit-*`` headers, or Anthropic's; None where none can be read."""
        found = cls(*(_allowance(headers, kind) for kind in ("requests", "tokens")))
        return None if found == cls() else found


def _allowance(headers: Mapping[str, str], kind: str) -> Allowance | None:
    names = ("limit", "remaining", "reset")
    values = [headers.get(f"x-ratelimit-{name}-{kind}") for name in names]
    if not any(values):
        values = [headers.get(f"anthropic-ratelimit-{kind}-{name}") for name in names]
    try:
        limit, left = (float(value or "nan") for value in values[:2])
    except ValueError:
        return None
    seconds = seconds_of(values[2])
    if seconds is None:
        seconds = _seconds_until(values[2], headers.get("date"))
    if seconds is None or not 0 <= left <= limit < math.inf or seconds <= 0 or not limit:
        return None
    return Allowance(limit, left, seconds)


def _seconds_until(moment: str | None, now: str | None) -> float | None:
    """Seconds to a moment of RFC 3339, by the clock of whoever says it if that is known."""
    try:
        then = datetime.fromisoformat(moment or "").timestamp()
        return then - (parsedate_to_datetime(now).timestamp() if now else time.time())
    except (TypeError, ValueError, OverflowError):
        return None


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s|d|)")
_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str | None) -> float | None:
    """Seconds of a duration such as ``120ms``, ``6m0s`` or ``1.5``; None where it is none."""
    parts = _DURATION.findall(text or "")
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != (text or "").strip():
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
