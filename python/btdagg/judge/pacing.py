"""How fast an endpoint is asked: the least of the user's pace, headers (`Hint`) and 429s (`Rate`).

After a refusal one call goes first, as a probe; the pace then doubles (slow start), is cut to what
passed between refusals (multiplicative decrease), and rises until the next (additive increase).
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from btdagg.judge.client import Allowance, RateLimits

if TYPE_CHECKING:
    from btdagg.judge.runs import Limits

# When a pace is cut, and to what
_ALARM = 2.0  # refusals beyond those tolerated, at which the pace is cut
_TOLERATED = 0.03  # share of calls that may be refused
_MEASURED = 8  # calls let through since the last cut, which tell a rate
_CUT, _MOST_CUT = 0.97, 0.5  # to this much of that rate, but not below half of the pace
# When it rises, and by how much
_ROUND = 8  # calls of a pace, after which it rises
_RISE, _NEAR_RISE = 1.15, 1.02  # fast, and slowly near the pace that was too fast
_KEPT_UP = 0.7  # share of a pace at which calls are made, so that it may rise
_SLOW, _DOUBLED_AFTER = 1.0, 0.6  # calls per second at least, and seconds, of a slow start
# Refusals that are not for the pace
_TRIAL = 5  # refusals, after which it is known whether a cut has helped
_MOST_CHANCE = 0.4  # share of calls refused that may be by chance
# Pauses
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.25, 2.5, 1.5  # seconds, where the endpoint says none
_MOST_GROWN = 20  # times, after which a pause is the longest, however short it began
_LITTLE = 0.2  # share of a limit left, from which on headers are kept to
_LOOK_AGAIN = 0.5  # seconds at most between looks at whether all stops
_MOMENT = 1e-6  # seconds that are not worth waiting for


class Hint(NamedTuple):
    """A pace that headers allow, and until when they say so."""

    pace: float = math.inf
    until: float = -math.inf


@dataclass
class Window:
    """Calls let through at one pace, as far as is known what came of them."""

    since: float = -math.inf
    units: float = 0.0
    n: int = 0
    n_refused: int = 0

    @property
    def n_passed(self) -> int:
        """Calls that were not refused."""
        return self.n - self.n_refused

    @property
    def share_refused(self) -> float:
        """Share of the calls that were refused."""
        return self.n_refused / self.n


@dataclass(frozen=True)
class Learned:
    """What refusals have told of the pace that an endpoint allows, in units per second."""

    pace: float = math.inf
    too_fast: float = math.inf  # the last pace that was
    held: float = 0.0  # the pace before the last rise
    by_chance: float = 0.0  # share of calls that are refused at any pace
    share_before: float = 0.0  # of calls refused before the last cut; 0 once it has helped

    @property
    def is_bounded(self) -> bool:
        """Whether some pace was too fast."""
        return math.isfinite(self.too_fast)

    @property
    def tolerated(self) -> float:
        """Share of calls that may be refused."""
        return _TOLERATED + 1.25 * self.by_chance

    def cut(self, window: Window, now: float) -> Learned:
        """What a window with too many refusals tells."""
        share = window.share_refused
        is_likely = share < _MOST_CHANCE
        if self.share_before and 0.7 < share / self.share_before < 1.4 and is_likely:
            # Asked more slowly it refuses as often: it is not for the pace.
            return Learned(held=self.held, by_chance=share)
        is_measured = window.n_passed >= _MEASURED
        passed = window.units / max(now - window.since, 1e-3) if is_measured else 0.0
        least = _MOST_CUT * self.pace if self.is_bounded else 0.0
        pace = min(self.pace, _CUT * max(passed, least, self.held))
        return replace(self, pace=pace, too_fast=self.pace, held=0.0, share_before=share)

    def risen(self, window: Window, now: float) -> Learned:
        """What a window with few refusals tells."""
        by_chance = min(self.by_chance, 2 * window.share_refused)
        learned = replace(self, by_chance=by_chance, share_before=0.0)
        # A pace that nobody keeps up with tells nothing.
        if window.units < _KEPT_UP * self.pace * (now - window.since):
            return learned
        if not self.is_bounded:
            pace = 2 * self.pace
        elif self.pace < self.too_fast / _NEAR_RISE:
            pace = min(_RISE * self.pace, (self.pace + self.too_fast) / 2)
        else:
            pace = (_NEAR_RISE if self.pace < 1.1 * self.too_fast else _RISE) * self.pace
        return replace(learned, pace=pace, held=self.pace)


class Rate:
    """Units per second that are let through, evenly spread."""

    def __init__(self, per_minute: float | None = None) -> None:
        self._most = math.inf if per_minute is None else per_minute / 60
        self._next = -math.inf
        self._hint, self._learned, self._window = Hint(), Learned(), Window()

    def per_second(self, now: float) -> float:
        """The pace at present."""
        hinted = self._hint.pace if now < self._hint.until else math.inf
        return min(self._most, hinted, self._learned.pace)

    def wait(self, now: float) -> float:
        """Seconds until the next units may go."""
        return self._next - now

    def take(self, now: float, units: float) -> None:
        """Let units through."""
        if self._window.since == -math.inf:
            self._window.since = now - _MOMENT
        if self._is_round_over(now):
            self._learned = self._learned.risen(self._window, now)
            self._window = Window(now)
        self._next = max(self._next, now) + units / self.per_second(now)
        self._window.units += units
        self._window.n += 1

    def correct(self, now: float, units: float) -> None:
        """Add units, or take some back, once they are known."""
        self._window.units += units
        self._next += units / self.per_second(now)

    def hint(self, now: float, allowance: Allowance) -> None:
        """Keep to what a header says, for as long as it says it, once little is left."""
        is_little = allowance.left <= _LITTLE * allowance.limit
        pace = allowance.per_second if is_little else math.inf
        self._hint = Hint(pace, now + allowance.seconds)

    def refused(self, began: float, now: float, units: float, *, tells_pace: bool) -> None:
        """Learn from the refusal of a call that was made at `began`."""
        window, learned = self._window, self._learned
        if began <= window.since:
            return  # at an earlier pace
        window.units -= units
        if not tells_pace:
            window.n -= 1
            return
        window.n_refused += 1
        is_trial = learned.share_before and window.share_refused < _MOST_CHANCE
        alarm = (_TRIAL if is_trial else _ALARM) + learned.tolerated * window.n
        is_known = window.n_passed >= _MEASURED or learned.held > 0
        if window.n_refused >= alarm and is_known:
            self._learned, self._window = learned.cut(window, now), Window(now)

    def reopened(self, now: float) -> None:
        """Begin slowly after a first refusal that told nothing, unless headers say what is left."""
        window, is_hinted = self._window, now < self._hint.until
        is_new = math.isinf(self._learned.pace) and not self._learned.by_chance
        if is_new and not is_hinted and now > window.since:
            units = max(window.units, 1.0)
            slow = _SLOW * units / max(window.n_passed, 1)
            pace = max(2 * units / (now - window.since), slow)
            self._learned, self._window = replace(self._learned, pace=pace), Window(now)

    def pause(self) -> float:
        """Seconds without a call after a refusal, where the endpoint does not say."""
        return min(_FIRST_PAUSE, max(0.5 / self._learned.pace, 0.02))

    @property
    def is_bounded(self) -> bool:
        """Whether some pace was too fast."""
        return self._learned.is_bounded

    def _is_round_over(self, now: float) -> bool:
        window, learned = self._window, self._learned
        if math.isinf(learned.pace):
            is_over = window.n >= 4 * _ROUND
        elif learned.is_bounded:
            is_over = window.n >= _ROUND
        else:
            is_over = window.n > 0 and now - window.since >= _DOUBLED_AFTER
        return is_over and window.n_refused <= learned.tolerated * window.n


@dataclass(eq=False, slots=True)
class AdmittedCall:
    """A call that was let through."""

    began: float
    tokens: float


class Pacing:
    """What all calls to an endpoint share: how fast, how many at a time, and when again."""

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
        self._requests = self._limited = Rate(limits.requests_per_minute)
        self._tokens = Rate(limits.tokens_per_minute)
        self._most_at_once, self._under_way = limits.concurrency, 0
        self._turn = asyncio.Lock()  # first come, first served
        self._changed = asyncio.Event()
        self._n_pauses = 0  # in a row
        self._paused_until = -math.inf
        self._probe: AdmittedCall | None = None  # goes alone after a pause
        self._patience = 0.25  # seconds after which a call that is refused would have been
        self._limited_since: float | None = None

    @property
    def closed_for(self) -> float:
        """Seconds for which no call is made at all."""
        return max(self._paused_until - self._clock(), 0.0)

    async def admit(self, tokens: float, stopping: asyncio.Event) -> AdmittedCall | None:
        """Wait until a call may be made, which is to be made at once; None where all stops."""
        async with self._turn:
            while (seconds := self._wait()) > _MOMENT and not stopping.is_set():
                self._changed.clear()
                await elapsed(min(seconds, _LOOK_AGAIN), self._changed)
            if stopping.is_set():
                return None
            now = self._clock()
            call = AdmittedCall(now, tokens)
            if self._n_pauses and self._probe is None:
                self._probe = call
            self._requests.take(now, 1)
            self._tokens.take(now, tokens)
            self._under_way += 1
            return call

    def answered(
        self, call: AdmittedCall, tokens: float | None = None, limits: RateLimits | None = None
    ) -> None:
        """Note that a call was not refused for a limit, whatever else came of it."""
        now = self._ended(limits)
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
        """Note a refusal for a limit; return seconds from the first one to the end of the pause."""
        now = self._ended(limits)
        is_probe = call is self._probe
        rates = (self._requests, 1.0), (self._tokens, call.tokens)
        (self._limited, units), (other, others) = rates[::-1] if of_tokens else rates
        # The refusal of a probe says that the pause was short.
        tells_pace = not (is_probe and (retry_after or self._limited.is_bounded))
        self._limited.refused(call.began, now, units, tells_pace=tells_pace)
        other.correct(now, -others)
        self._patience = min(max(4 * (now - call.began), 0.02), 5.0)
        if self._limited_since is None:
            self._limited_since = now
        seconds = retry_after or 0.0
        if is_probe or not self._n_pauses:
            n_grown = min(max(self._n_pauses - 2, 0), _MOST_GROWN)
            growing = self._limited.pause() * _GROWTH**n_grown
            seconds = retry_after or min(growing, _LONGEST_PAUSE)
            self._n_pauses += 1
            self._probe = None
        # A little more: other processes wait as well.
        seconds += self._draw.uniform(0, min(0.1 * seconds, 0.5))
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
            self._reopened(now)  # a refusal would have come by now
        if self._n_pauses:
            return self._paused_until - now
        return max(self._requests.wait(now), self._tokens.wait(now))

    def _reopened(self, now: float) -> None:
        self._limited.reopened(now)
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
