"""How fast an endpoint may be asked: one view of it, shared by all calls.

What an endpoint allows is seldom known and changes. So the first refusal tells: the calls that were
let through since the refusal before it, over that time, are its rate. We go on a little below, and
slowly faster with every answer until the next one (additive increase, multiplicative decrease, as
of networks). How many calls may be under way at a time is found in the same way. After a refusal no
call is made for a while; then one goes first, and the others follow once it was not refused.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from btdagg.judge.rate_limits import Allowance, RateLimits

if TYPE_CHECKING:
    from btdagg.judge.limits import Limits

# After a refusal: this share of the rate that was allowed, and of the calls under way.
_SLOWER, _A_LITTLE_SLOWER, _FEWER = 0.95, 0.98, 0.9
# With each answer: near the rate that was refused, beyond it, and where few calls have shown it.
_FASTER, _MUCH_FASTER, _UNSURE = 0.001, 0.02, 0.09
_NEAR = 1.1
_MORE = 1 / 20  # of a call more under way
_LITTLE = 0.2  # share of a limit that is left when we begin to keep to it
_LEAST = 0.7  # share of a rate that is left after a refusal that passed soon
_BURST = 4.0  # times the rate on average: calls that were let through at once say nothing
_TOLERATED = 64  # calls that were let through before one was refused: no reason to go slower
_KNOWN_BY = 8  # calls between two refusals that say what the rate is
_LONGEST_BACKOFF = 60.0  # seconds
_SHORT = 1.0  # seconds: a pause that is no part of the time in which calls were let through
_MOMENT = 1e-6  # seconds that are not worth waiting for
_LOOK_AGAIN = 1.0  # seconds at most between looks at a clock that has changed its mind


@dataclass
class _Stretch:
    """Calls let through in a row, from the first after a refusal to the next refusal."""

    began: float
    units: float = 0.0
    calls: int = 0


class Rate:
    """Units per second that are let through, evenly spread."""

    def __init__(self, per_minute: float | None = None) -> None:
        self._most = math.inf if per_minute is None else per_minute / 60
        self._learned = math.inf
        self._refused = math.inf  # about the rate at which the last refusal came
        self._shown_by = 0  # so many calls before it
        self._hinted, self._hinted_until = math.inf, -math.inf
        self._next = -math.inf
        self._now = _Stretch(-math.inf)
        self._before: _Stretch | None = None  # the one that a refusal has ended

    def per_second(self, now: float) -> float:
        """The rate at present."""
        hinted = self._hinted if now < self._hinted_until else math.inf
        return min(self._most, self._learned, hinted)

    def wait(self, now: float) -> float:
        """Seconds until the next units may go."""
        return self._next - now

    def take(self, now: float, units: float) -> None:
        """Let units through."""
        if self._now.began == -math.inf:
            self._now.began = now
        self._now.units += units
        self._now.calls += 1
        self._next = max(self._next, now) + units / self.per_second(now)

    def give_back(self, began: float, units: float) -> None:
        """Note that units that began then were refused."""
        stretch = self._now if began >= self._now.began else self._before
        if stretch is not None:
            stretch.units -= units
            stretch.calls -= 1

    def correct(self, now: float, units: float) -> None:
        """Add units (or take some back) once they are known."""
        self._now.units += units
        self._next += units / self.per_second(now)

    def hint(self, now: float, allowance: Allowance) -> None:
        """Keep to what a header says, for as long as it says it, once little is left."""
        is_little = allowance.left <= _LITTLE * allowance.limit
        self._hinted = allowance.per_second if is_little else math.inf
        self._hinted_until = now + allowance.seconds

    def faster(self) -> None:
        """Go a little faster, since a call was answered."""
        shown_by = max(self._shown_by, self._now.calls, 1)
        if shown_by < _KNOWN_BY:
            self._learned *= 1 + _UNSURE / shown_by
        else:
            near = self._learned < _NEAR * self._refused
            self._learned *= 1 + (_FASTER if near else _MUCH_FASTER)

    def try_again(self, now: float) -> None:
        """Begin another stretch after a refusal, which may be refused at once."""
        self._before = self._before or self._now
        self._now = _Stretch(now)
        self._next = now

    def slower(self, refused: float, is_long: bool) -> None:
        """Go slower: the stretch before was refused at that time, the present one was not.

        A long pause counts as time in which calls were let through, as where an endpoint allows so
        many a minute, and all of them were made in its first seconds. So does any after a few.
        """
        before, self._before = self._before, None
        if before is None or before.units <= 0:
            return
        self._shown_by = before.calls
        if before.calls >= _TOLERATED and not is_long and self._learned < math.inf:
            self._refused, self._learned = self._learned, _A_LITTLE_SLOWER * self._learned
        else:
            self._refused = self._estimated(before, refused, is_long)
            self._learned = _SLOWER * self._refused
        self._next = self._now.began + self._now.units / self._learned

    def _estimated(self, before: _Stretch, refused: float, is_long: bool) -> float:
        """The rate that a stretch shows."""
        is_known = before.calls >= _KNOWN_BY
        end = self._now.began if is_long or not is_known else refused
        seen = before.units / max(end - before.began, 1e-3)
        if not is_long and self._learned < math.inf:
            seen = max(seen, _LEAST * self._learned)
        # One call was let through after the pause, so that one in so long is allowed at least.
        mean = before.units / max(before.calls, 1)
        seen = max(seen, mean / max(self._now.began - refused, 0.02))
        if is_known and seen < self._learned < _BURST * seen:
            seen = math.sqrt(seen * self._learned)  # it was the last calls that were too fast
        return min(self._learned, seen)


@dataclass(eq=False, slots=True)
class Call:
    """A call that was let through."""

    began: float
    tokens: float


class Throttle:
    """What all calls to an endpoint share: how fast, how many at a time, and when again.

    Parameters
    ----------
    limits : Limits
        `concurrency`, `requests_per_minute` and `tokens_per_minute` are never exceeded.
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
        self._refused_at = -math.inf
        self._refused_rate: Rate | None = None
        self._backoff = 0.0
        self._n_backoffs = 0
        self._closed_until = -math.inf
        self._first_again: float | None = None  # when a call went first after the pause
        self._patience = 0.25  # seconds after which a call that is refused would have been
        self._limited_since: float | None = None

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how large calls are."""
        return self._tokens.per_second(self._clock()) < math.inf

    @property
    def closed_for(self) -> float:
        """Seconds for which no call is made at all."""
        return max(self._closed_until - self._clock(), 0.0)

    async def admit(self, tokens: float, stopping: asyncio.Event) -> Call | None:
        """Wait until a call may be made; None where all is to stop before."""
        async with self._turn:
            while (seconds := self._wait()) > _MOMENT:
                if stopping.is_set():
                    return None
                self._changed.clear()
                await _first_of(self._changed, stopping, min(seconds, _LOOK_AGAIN))
            if stopping.is_set():
                return None
            return self._begun(tokens)

    def answered(
        self, call: Call, tokens: float | None = None, limits: RateLimits | None = None
    ) -> None:
        """Note that a call was not refused for a limit, whatever else came of it."""
        now = self._ended(call, limits)
        if tokens is not None:
            self._tokens.correct(now, tokens - call.tokens)
        if self._refused_rate is not None and call.began >= self._closed_until:
            self._reopened(now)
        self._limited_since = None
        self._at_once = min(self._at_once + _MORE, self._most_at_once)
        self._requests.faster()
        self._tokens.faster()

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
        self._requests.give_back(call.began, 1)
        self._tokens.give_back(call.began, call.tokens)
        self._patience = min(max(4 * (now - call.began), 0.02), 5.0)
        if self._limited_since is None:
            self._limited_since = now
        if self._refused_rate is None:
            self._refused_at, self._n_backoffs = now, 1
            self._at_once = max(self._under_way, math.floor(_FEWER * self._at_once), 1.0)
            self._refused_rate = self._tokens if of_tokens else self._requests
            per_second = self._requests.per_second(now)
            self._backoff = 0.25 if per_second == math.inf else 1.5 / per_second
            self._backoff = min(max(self._backoff, 0.02), 2.0)
        elif call.began >= self._closed_until:
            self._n_backoffs += 1
            self._backoff = min(2 * self._backoff, _LONGEST_BACKOFF)
        else:  # it began before the pause
            self._close(now, retry_after or 0.0)
            return self._closed_until - self._limited_since
        self._first_again = None
        self._close(now, max(self._backoff, retry_after or 0.0))
        return self._closed_until - self._limited_since

    # Time

    def _wait(self) -> float:
        now = self._clock()
        if self._under_way >= int(self._at_once):
            return math.inf
        seconds = max(self._closed_until - now, self._requests.wait(now), self._tokens.wait(now))
        if self._refused_rate is None or seconds > 0 or self._first_again is None:
            return seconds
        seconds = self._first_again + self._patience - now
        if seconds <= 0:
            self._reopened(now)
            return self._requests.wait(now)
        return seconds

    def _begun(self, tokens: float) -> Call:
        now = self._clock()
        if self._refused_rate is not None and self._first_again is None:
            self._first_again = now
            self._refused_rate.try_again(now)
        self._requests.take(now, 1)
        self._tokens.take(now, tokens)
        self._under_way += 1
        return Call(now, tokens)

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

    def _reopened(self, now: float) -> None:
        """Get over a refusal, at the rate that it has shown."""
        paused = (self._first_again or now) - self._refused_at
        rate, self._refused_rate = self._refused_rate, None
        assert rate is not None
        short = max(_SHORT, 3 / self._requests.per_second(now))
        is_long = self._n_backoffs > 1 or paused > short
        rate.slower(self._refused_at, is_long)
        self._first_again = None


async def _first_of(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    """Wait for either event, but no longer than that."""
    waiting = [asyncio.ensure_future(each.wait()) for each in (one, other)]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
