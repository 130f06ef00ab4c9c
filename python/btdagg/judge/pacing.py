"""Pace of all calls to an endpoint: how fast, how many at a time, and when again."""
# The pace is the least of the user's, of headers and of what refusals have told (`rates`). After a
# refusal nothing is sent for as long as the endpoint asks, or a moment; then one call goes first,
# as a probe, and the others follow once it is not refused.

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from btdagg.judge.client import RateLimits
from btdagg.judge.rates import Mark, Rate

if TYPE_CHECKING:
    from btdagg.judge.runs import Limits

# Seconds without a call after a refusal, where the endpoint says none: at first half of what a call
# takes at the pace of now; longer after each probe that is refused, up to what a user would wait.
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = (0.02, 0.25), 2.5, 1.5
_MOST_GROWN = 20  # times, after which a pause is the longest, however short it began
# A little more than was asked, by chance: other processes wait as well.
_JITTER, _MOST_JITTER = 0.1, 0.5
# A refusal takes less than four times as long as the last one did; until then a probe may be one.
_PATIENCE, _FIRST_PATIENCE, _LEAST_PATIENCE, _MOST_PATIENCE = 4, 0.25, 0.02, 5.0
_LOOK_AGAIN = 0.5  # seconds at most between looks at whether all stops
_MOMENT = 1e-6  # seconds that are not worth waiting for


@dataclass(eq=False, slots=True)
class AdmittedCall:
    """A call that was let through."""

    requests: Mark
    tokens: Mark

    @property
    def began(self) -> float:
        """When it was made."""
        return self.requests.began


class Pacing:
    """Pace of all calls to an endpoint: how fast, how many at a time, and when again."""

    # The `limits` are never exceeded; `clock` gives seconds, `seed` is of the jitter after
    # refusals.

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        seed: int | None = None,
    ) -> None:
        self.has_worked = False
        self._clock, self._draw = clock, random.Random(seed)
        self._requests = Rate(limits.requests_per_minute)
        self._tokens = Rate(limits.tokens_per_minute)
        self._most_at_once, self._under_way = limits.concurrency, 0
        self._longest_wait = limits.max_wait
        self._turn = asyncio.Lock()  # first come, first served
        self._changed = asyncio.Event()
        self._n_pauses = 0  # in a row
        self._paused_until = -math.inf
        self._probe: AdmittedCall | None = None  # goes alone after a pause
        self._patience = _FIRST_PATIENCE
        self._limited_since: float | None = None

    @property
    def closed_for(self) -> float:
        """Seconds for which no call is made at all."""
        return max(self._paused_until - self._clock(), 0.0)

    @property
    def hinted_wait(self) -> float:
        """Seconds for which headers allow no call."""
        now = self._clock()
        return max(self._requests.hinted_wait(now), self._tokens.hinted_wait(now))

    async def admit(self, tokens: float, stopping: asyncio.Event) -> AdmittedCall | None:
        """Wait until a call may be made, which is to be made at once; None where all stops."""
        # Also None where headers allow none within `max_wait`, and no call is under way.
        async with self._turn:
            while (seconds := self._wait()) > _MOMENT and not stopping.is_set():
                if not self._under_way and self.hinted_wait > self._longest_wait:
                    return None
                self._changed.clear()
                await elapsed(min(seconds, _LOOK_AGAIN), self._changed)
            if stopping.is_set():
                return None
            now = self._clock()
            call = AdmittedCall(self._requests.take(now, 1), self._tokens.take(now, tokens))
            if self._n_pauses and self._probe is None:
                self._probe = call
            self._under_way += 1
            return call

    def answered(
        self, call: AdmittedCall, tokens: float | None = None, limits: RateLimits | None = None
    ) -> None:
        """Note that a call was not refused for a limit, whatever else came of it."""
        now = self._ended(limits)
        if tokens is not None:
            self._tokens.correct(now, tokens - call.tokens.units)
        if self._n_pauses and call.began >= self._paused_until:
            self._reopen()
        self._limited_since = None

    def refused(
        self,
        call: AdmittedCall,
        *,
        retry_after: float | None = None,
        of_tokens: bool = False,
        limits: RateLimits | None = None,
    ) -> float:
        """Note a refusal for a limit; return seconds from the first one to the end of the pause."""
        now = self._ended(limits)
        is_probe = call is self._probe
        rates = (self._requests, call.requests), (self._tokens, call.tokens)
        (limited, mark), (other, other_mark) = rates[::-1] if of_tokens else rates
        # The refusal of a probe says that the pause was short.
        limited.refused(mark, now, tells_pace=not is_probe)
        other.correct(now, -other_mark.units)
        patience = _PATIENCE * (now - call.began)
        self._patience = min(max(patience, _LEAST_PATIENCE), _MOST_PATIENCE)
        if self._limited_since is None:
            self._limited_since = now
        seconds = retry_after or 0.0
        if is_probe or not self._n_pauses:
            n_grown = min(max(self._n_pauses - 2, 0), _MOST_GROWN)
            least, most = _FIRST_PAUSE
            growing = min(max(0.5 / limited.learned(now), least), most) * _GROWTH**n_grown
            seconds = retry_after or min(growing, _LONGEST_PAUSE)
            self._n_pauses += 1
            self._probe = None
        seconds += self._draw.uniform(0, min(_JITTER * seconds, _MOST_JITTER))
        self._paused_until = max(self._paused_until, now + seconds)
        return self._paused_until - self._limited_since

    def _wait(self) -> float:
        if self._under_way >= self._most_at_once:
            return math.inf
        now = self._clock()
        if self._probe is not None:
            seconds = self._probe.began + self._patience - now
            if seconds > 0:
                return seconds
            self._reopen()  # a refusal would have come by now
        if self._n_pauses:
            return self._paused_until - now
        return max(self._requests.wait(now), self._tokens.wait(now))

    def _reopen(self) -> None:
        self._n_pauses, self._probe = 0, None

    def _ended(self, limits: RateLimits | None) -> float:
        now, said = self._clock(), limits or RateLimits()
        self._under_way -= 1
        self._changed.set()
        for rate, allowance in ((self._requests, said.requests), (self._tokens, said.tokens)):
            if allowance is not None:
                rate.hint(now, allowance)
        return now


async def elapsed(seconds: float, event: asyncio.Event) -> bool:
    """Whether so many seconds pass before an event."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return not event.is_set()
