"""How fast an endpoint may be asked: one view of it, shared by all calls.

After a refusal no call is made for a while. Then one goes first, and the others follow once it was
not refused. The number of calls in flight falls with each refusal and rises with each answer
(additive increase, additive decrease). The rate is the least of what the user says, what the
headers of replies say, and what was learned from refusals.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from btdagg.judge.learned_rate import LearnedRate
from btdagg.judge.rate_limits import Allowance, RateLimits

if TYPE_CHECKING:
    from btdagg.judge.limits import Limits

_FEWEST = 1.5  # times the calls under way that are allowed after a refusal at least
_MORE = 1 / 20  # of a call more under way with each answer
_LITTLE = 0.2  # share of a limit that is left when we begin to keep to it
_FIRST_BACKOFF, _GROWTH = 0.25, 1.5  # seconds; how much longer after each of several refusals
_PATIENT = 2  # refusals in a row before it grows: where some are at random, two often are
_TELLING = (
    3  # refusals in a row that tell of the rate: the others tell of the time until it is open
)
_LONGEST_BACKOFF = 60.0  # seconds
_MOMENT = 1e-6  # seconds that are not worth waiting for
_LOOK_AGAIN = 1.0  # seconds at most between looks at a clock that has changed its mind


class Rate:
    """Units per second that are let through, evenly spread."""

    def __init__(self, per_minute: float | None = None) -> None:
        self._most = math.inf if per_minute is None else per_minute / 60
        self._hinted, self._hinted_until = math.inf, -math.inf
        self._next = -math.inf
        self.learned = LearnedRate()

    def per_second(self, now: float) -> float:
        """The rate at present."""
        hinted = self._hinted if now < self._hinted_until else math.inf
        return min(self._most, hinted, self.learned.per_second)

    def wait(self, now: float) -> float:
        """Seconds until the next units may go."""
        return self._next - now

    def take(self, now: float, units: float) -> None:
        """Let units through."""
        self._next = max(self._next, now) + units / self.per_second(now)
        self.learned.begun(now, units)

    def correct(self, now: float, units: float) -> None:
        """Add units (or take some back) once they are known."""
        self.learned.correct(units)
        self._next += units / self.per_second(now)

    def hint(self, now: float, allowance: Allowance) -> None:
        """Keep to what a header says, for as long as it says it, once little is left."""
        is_little = allowance.left <= _LITTLE * allowance.limit
        self._hinted = allowance.per_second if is_little else math.inf
        self._hinted_until = now + allowance.seconds


@dataclass(eq=False, slots=True)
class Call:
    """A call that was let through."""

    began: float
    tokens: float
    is_made: bool = False


class Throttle:
    """What all calls to an endpoint share: how fast, how many at a time, and when again.

    Parameters
    ----------
    limits : Limits
        `concurrency`, `requests_per_minute` and `tokens_per_minute` are never exceeded; rates that
        other processes share are kept to elsewhere.
    clock : callable
        Seconds, such as ``time.monotonic``.
    seed : int, optional
        Of the jitter after refusals.

    Attributes
    ----------
    has_worked : bool
        Whether a call has ever been answered.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        seed: int | None = None,
    ) -> None:
        limits = limits.of_this_process
        self.has_worked = False
        self._clock = clock
        self._draw = random.Random(seed)
        self._requests = Rate(limits.requests_per_minute)
        self._tokens = Rate(limits.tokens_per_minute)
        self._most_at_once = self._at_once = float(limits.concurrency)
        self._under_way = 0
        self._turn = asyncio.Lock()  # first come, first served
        self._changed = asyncio.Event()
        # The refusal that is not got over yet.
        self._n_backoffs = 0
        self._refused_first = self._requests, -math.inf  # which rate, and when the call was made
        self._closed_until = -math.inf
        self._first_again: Call | None = None  # that goes first after the pause
        self._patience = 0.25  # seconds after which a call that is refused would have been
        self._limited_since: float | None = None

    @property
    def closed_for(self) -> float:
        """Seconds for which no call is made at all."""
        return max(self._closed_until - self._clock(), 0.0)

    async def admit(self, tokens: float, stopping: asyncio.Event) -> Call | None:
        """Wait until a call may be made, which `made` then confirms; None where all is to stop."""
        async with self._turn:
            while (seconds := self._wait()) > _MOMENT:
                if stopping.is_set():
                    return None
                self._changed.clear()
                await _first_of(self._changed, stopping, min(seconds, _LOOK_AGAIN))
            if stopping.is_set():
                return None
            return self._begun(tokens)

    def made(self, call: Call) -> bool:
        """Note that an admitted call is made now; False if it may not be any more.

        It may have waited for a cap, or for its turn among processes, while another was refused.
        """
        if call.began < self._closed_until - _MOMENT:
            self.withdrawn(call)
            return False
        call.began, call.is_made = self._clock(), True
        self._changed.set()
        return True

    def withdrawn(self, call: Call) -> None:
        """Note that an admitted call is not made after all."""
        self._ended(call, None)
        self._requests.learned.correct(-1.0)
        self._tokens.learned.correct(-call.tokens)
        if self._first_again is call:
            self._first_again = None  # another one goes first

    def answered(
        self, call: Call, tokens: float | None = None, limits: RateLimits | None = None
    ) -> None:
        """Note that a call was not refused for a limit, whatever else came of it."""
        now = self._ended(call, limits)
        if tokens is not None:
            self._tokens.correct(now, tokens - call.tokens)
        if self._n_backoffs and call.began >= self._closed_until:
            self._reopened()
        self._limited_since = None
        self._at_once = min(self._at_once + _MORE, self._most_at_once)

    def refused(
        self,
        call: Call,
        *,
        retry_after: float | None = None,
        of_tokens: bool = False,
        limits: RateLimits | None = None,
    ) -> float:
        """Note that a call was refused for a limit; return for how long that has been so.

        Parameters
        ----------
        call : Call
        retry_after : float, optional
            Seconds that the endpoint asks to wait.
        of_tokens : bool
            Whether it says that the limit is one of tokens.
        limits : RateLimits, optional

        Returns
        -------
        float
            Seconds from the first refusal without an answer since to the end of the pause.
        """
        now = self._ended(call, limits)
        limited = self._tokens if of_tokens else self._requests
        self._requests.learned.correct(-1.0)
        self._tokens.learned.correct(-call.tokens)
        if self._n_backoffs < _TELLING:
            limited.learned.refused()
        self._patience = min(max(4 * (now - call.began), 0.02), 5.0)
        if self._limited_since is None:
            self._limited_since = now
        seconds = retry_after or 0.0
        began_before_the_pause = self._n_backoffs and call.began < self._closed_until
        if limited.learned.is_suspicious and (began_before_the_pause or not self._n_backoffs):
            self._at_once = max(_FEWEST * self._under_way, self._at_once - 1, 1.0)
        if not self._n_backoffs:
            self._refused_first = limited, call.began
        if not began_before_the_pause:
            growth = _GROWTH ** max(self._n_backoffs - _PATIENT + 1, 0)
            seconds = min((seconds or _FIRST_BACKOFF) * growth, max(seconds, _LONGEST_BACKOFF))
            self._n_backoffs += 1
            self._first_again = None
        self._close(now, seconds)
        return self._closed_until - self._limited_since

    # Time

    def _wait(self) -> float:
        now = self._clock()
        if self._under_way >= int(self._at_once):
            return math.inf
        seconds = max(self._closed_until - now, self._requests.wait(now), self._tokens.wait(now))
        if not self._n_backoffs or seconds > 0 or self._first_again is None:
            return seconds
        if not self._first_again.is_made:
            return math.inf
        seconds = self._first_again.began + self._patience - now
        if seconds <= 0:
            self._reopened()
        return max(seconds, 0.0)

    def _begun(self, tokens: float) -> Call:
        now = self._clock()
        call = Call(now, tokens)
        if self._n_backoffs and self._first_again is None:
            self._first_again = call
        self._requests.take(now, 1)
        self._tokens.take(now, tokens)
        self._under_way += 1
        return call

    def _ended(self, call: Call, limits: RateLimits | None) -> float:
        now = self._clock()
        self._under_way -= 1
        self._changed.set()
        if limits is not None:
            for rate, allowance in (
                (self._requests, limits.requests),
                (self._tokens, limits.tokens),
            ):
                if allowance is not None:
                    rate.hint(now, allowance)
        return now

    def _close(self, now: float, seconds: float) -> None:
        """Make no call for so long, and a little more: other processes wait as well."""
        seconds += self._draw.uniform(0, min(0.1 * seconds, 0.5))
        self._closed_until = max(self._closed_until, now + seconds)

    def _reopened(self) -> None:
        """Get over a refusal."""
        rate, closed = self._refused_first
        rate.learned.reopened(closed, self._clock())
        self._n_backoffs, self._first_again = 0, None


async def _first_of(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    """Wait for either event, but no longer than that."""
    waiting = [asyncio.ensure_future(each.wait()) for each in (one, other)]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
