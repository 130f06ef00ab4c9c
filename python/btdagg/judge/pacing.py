"""How fast an endpoint is asked: what it says of its limits, and what its refusals tell.

The pace is the least of what the user allows, what the headers of replies allow, and what was
learned from refusals (HTTP 429). After a refusal no call is made for as long as the endpoint says,
or for a while; then one goes first. Once it was answered the others follow, slowly at first: until
the pace is known it doubles every moment (slow start), so a limit that has passed costs seconds.
What an endpoint lets through from one refusal to another is what it allows: the pace is cut to that
(multiplicative decrease), and then rises (additive increase) until calls are refused again.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from btdagg.judge.client import Allowance, RateLimits

if TYPE_CHECKING:
    from btdagg.judge.runs import Limits

_ALARM = 2.0  # refusals beyond those tolerated, at which the pace is cut
_TOLERATED = 0.03  # share of calls that may be refused
_MEASURED = 8  # calls let through since the last cut, which tell a rate
_CUT, _MOST_CUT = 0.97, 0.5  # to this much of that rate, but not below half of the pace
_ROUND = 8  # calls of a pace, after which it rises
_RISE, _NEAR_RISE = 1.15, 1.02  # fast, and slowly near the pace that was too fast
_TRIAL = 5  # refusals, after which it is known whether a cut has helped
_KEPT_UP = 0.7  # share of a pace at which calls are made, so that it may rise
_SLOW, _DOUBLED_AFTER = 1.0, 0.6  # calls per second at least, and seconds, of a slow start
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.25, 2.5, 1.5  # seconds, where the endpoint says none
_MOST_GROWN = 20  # times, after which a pause is the longest, however short it began
_MOST_CHANCE = 0.4  # share of calls refused that may be by chance
_LITTLE = 0.2  # share of a limit left, from which on headers are kept to
_LOOK_AGAIN = 0.5  # seconds at most between looks at whether all stops
_MOMENT = 1e-6  # seconds that are not worth waiting for


class Rate:
    """Units per second that are let through, evenly spread."""

    def __init__(self, per_minute: float | None = None) -> None:
        self._most = math.inf if per_minute is None else per_minute / 60
        self._hinted, self._hinted_until = math.inf, -math.inf
        self._next = -math.inf
        self._learned = self._too_fast = math.inf
        self._held = 0.0  # pace before the last rise
        self._by_chance = 0.0  # share of calls that are refused at any pace
        self._share_before = 0.0  # of calls refused before the last cut
        self._begin(-math.inf)

    def _begin(self, now: float) -> None:
        self._since: float = now
        self._units: float = 0.0  # let through, as far as is known
        self._n: int = 0
        self._n_refused: int = 0

    def per_second(self, now: float) -> float:
        """The pace at present."""
        hinted = self._hinted if now < self._hinted_until else math.inf
        return min(self._most, hinted, self._learned)

    def wait(self, now: float) -> float:
        """Seconds until the next units may go."""
        return self._next - now

    def take(self, now: float, units: float) -> None:
        """Let units through."""
        if self._since == -math.inf:
            self._since = now - _MOMENT
        if self._is_round_over(now):
            self._rise(now)
        self._next = max(self._next, now) + units / self.per_second(now)
        self._units += units
        self._n += 1

    def correct(self, now: float, units: float) -> None:
        """Add units, or take some back, once they are known."""
        self._units += units
        self._next += units / self.per_second(now)

    def hint(self, now: float, allowance: Allowance) -> None:
        """Keep to what a header says, for as long as it says it, once little is left."""
        is_little = allowance.left <= _LITTLE * allowance.limit
        self._hinted = allowance.per_second if is_little else math.inf
        self._hinted_until = now + allowance.seconds

    def refused(self, began: float, now: float, units: float, *, tells_pace: bool) -> None:
        """Learn from the refusal of a call that was made at `began`."""
        if began <= self._since:
            return  # at an earlier pace
        self._units -= units
        if not tells_pace:
            self._n -= 1
            return
        self._n_refused += 1
        n_passed = self._n - self._n_refused
        share, before = self._n_refused / self._n, self._share_before
        alarm = _TRIAL if before and share < _MOST_CHANCE else _ALARM
        is_known = n_passed >= _MEASURED or self._held > 0
        if self._n_refused < alarm + self._tolerated * self._n or not is_known:
            return
        if before and 0.7 < share / before < 1.4 and share < _MOST_CHANCE:
            # Asked more slowly it refuses as often: it is not for the pace.
            self._by_chance, self._share_before = share, 0.0
            self._learned = self._too_fast = math.inf
        else:
            passed = self._units / max(now - self._since, 1e-3) if n_passed >= _MEASURED else 0.0
            self._share_before = share
            least = 0.0 if math.isinf(self._too_fast) else _MOST_CUT * self._learned
            self._too_fast = self._learned
            self._learned = min(self._learned, _CUT * max(passed, least, self._held))
            self._held = 0.0
        self._begin(now)

    def reopened(self, now: float) -> None:
        """Begin slowly after a first refusal that told nothing, unless headers say what is left."""
        is_told = now < self._hinted_until
        if math.isinf(self._learned) and not self._by_chance and not is_told and now > self._since:
            units, n_passed = max(self._units, 1.0), max(self._n - self._n_refused, 1)
            self._learned = max(2 * units / (now - self._since), _SLOW * units / n_passed)
            self._begin(now)

    def pause(self) -> float:
        """Seconds without a call after a refusal, where the endpoint does not say."""
        return min(_FIRST_PAUSE, max(0.5 / self._learned, 0.02))

    @property
    def is_bounded(self) -> bool:
        """Whether some pace was too fast."""
        return math.isfinite(self._too_fast)

    def _is_round_over(self, now: float) -> bool:
        if math.isinf(self._learned):
            return self._n >= 4 * _ROUND
        if self.is_bounded:
            return self._n >= _ROUND
        return self._n > 0 and now - self._since >= _DOUBLED_AFTER

    def _rise(self, now: float) -> None:
        is_good = self._n_refused <= self._tolerated * self._n
        if not is_good and (self._n < 2 * _ROUND or self._n_refused > 1):
            return
        # A pace that nobody keeps up with tells nothing.
        if is_good and self._units >= _KEPT_UP * self._learned * (now - self._since):
            pace, too_fast = self._learned, self._too_fast
            self._held = pace
            if math.isinf(too_fast):
                self._learned = 2 * pace
            elif pace < too_fast / _NEAR_RISE:
                self._learned = min(_RISE * pace, (pace + too_fast) / 2)
            else:
                self._learned = (_NEAR_RISE if pace < 1.1 * too_fast else _RISE) * pace
        self._by_chance = min(self._by_chance, 2 * self._n_refused / self._n)
        self._share_before = 0.0
        self._begin(now)

    @property
    def _tolerated(self) -> float:
        return _TOLERATED + 1.25 * self._by_chance


@dataclass(eq=False, slots=True)
class AdmittedCall:
    """A call that was let through."""

    began: float
    tokens: float


class Pacing:
    """What all calls to an endpoint share: how fast, how many at a time, and when again.

    `concurrency`, `requests_per_minute` and `tokens_per_minute` of the limits are never exceeded;
    `clock` gives seconds, `seed` is that of the jitter after refusals. `has_worked` says whether a
    call has ever been answered.
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
        self._most_at_once = limits.concurrency
        self._under_way = 0
        self._turn = asyncio.Lock()  # first come, first served
        self._changed = asyncio.Event()
        self._n_pauses = 0  # in a row
        self._paused_until = -math.inf
        self._limited = self._requests
        self._first_again: AdmittedCall | None = None  # goes alone after a pause
        self._limited_since: float | None = None
        self._patience = 0.25  # seconds after which a call that is refused would have been

    @property
    def closed_for(self) -> float:
        """Seconds for which no call is made at all."""
        return max(self._paused_until - self._clock(), 0.0)

    async def admit(self, tokens: float, stopping: asyncio.Event) -> AdmittedCall | None:
        """Wait until a call may be made, which is to be made at once; None where all stops."""
        async with self._turn:
            while (seconds := self._wait()) > _MOMENT:
                if stopping.is_set():
                    return None
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(seconds, _LOOK_AGAIN)):
                        await self._changed.wait()
            if stopping.is_set():
                return None
            now = self._clock()
            call = AdmittedCall(now, tokens)
            if self._n_pauses and self._first_again is None:
                self._first_again = call
            self._requests.take(now, 1)
            self._tokens.take(now, tokens)
            self._under_way += 1
            return call

    def answered(
        self, call: AdmittedCall, tokens: float | None = None, limits: RateLimits | None = None
    ) -> None:
        """Note that a call was not refused for a limit, whatever else came of it."""
        now = self._ended(call, limits)
        if tokens is not None:
            self._tokens.correct(now, tokens - call.tokens)
        if self._n_pauses and call.began >= self._paused_until:
            self._reopened(now)
        self._limited_since = None

    def refused(
        self,
        call: AdmittedCall,
        *,
        retry_after: float | None = None,
        of_tokens: bool = False,
        limits: RateLimits | None = None,
    ) -> float:
        """Note that a call was refused for a limit, perhaps one of tokens.

        Returns the seconds from the first refusal without an answer since to the end of the pause.
        """
        now = self._ended(call, limits)
        is_first_again = call is self._first_again
        self._limited = self._tokens if of_tokens else self._requests
        other = self._requests if of_tokens else self._tokens
        units = call.tokens if of_tokens else 1
        # That of the first call after a pause says that the pause was short.
        tells_pace = not (is_first_again and (retry_after or self._limited.is_bounded))
        self._limited.refused(call.began, now, units, tells_pace=tells_pace)
        other.correct(now, -1 if of_tokens else -call.tokens)
        self._patience = min(max(4 * (now - call.began), 0.02), 5.0)
        if self._limited_since is None:
            self._limited_since = now
        seconds = retry_after or 0.0
        if is_first_again or not self._n_pauses:
            n_grown = min(max(self._n_pauses - 2, 0), _MOST_GROWN)
            growing = self._limited.pause() * _GROWTH**n_grown
            seconds = retry_after or min(growing, _LONGEST_PAUSE)
            self._n_pauses += 1
            self._first_again = None
        # A little more: other processes wait as well.
        seconds += self._draw.uniform(0, min(0.1 * seconds, 0.5))
        self._paused_until = max(self._paused_until, now + seconds)
        return self._paused_until - self._limited_since

    def _wait(self) -> float:
        if self._under_way >= self._most_at_once:
            return math.inf
        now = self._clock()
        if self._first_again is not None:
            seconds = self._first_again.began + self._patience - now
            if seconds > 0:
                return seconds
            self._reopened(now)  # a refusal would have come by now
        if self._n_pauses:
            return self._paused_until - now
        return max(self._requests.wait(now), self._tokens.wait(now))

    def _reopened(self, now: float) -> None:
        self._limited.reopened(now)
        self._n_pauses, self._first_again = 0, None

    def _ended(self, call: AdmittedCall, limits: RateLimits | None) -> float:
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
