"""How many units per second an endpoint is sent: what the user, its headers and refusals allow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from btdagg.judge.client import Allowance

# After a refusal the pace is CUBIC's (RFC 9438): it falls to _KEPT of what was too fast, is there
# again, nearly flat, after _CALLS calls, and then rises ever faster. Calls and not seconds, so that
# slow and fast limits are found alike; a slow pace takes _SECONDS at most, for limits are of a
# minute. Of a limit without bursts some 85% is used; half as many calls have more refused.
_KEPT, _CALLS, _SECONDS = 0.8, 32, 60.0
_ABOVE = 1.2  # times what passed, at most: far above it was a burst that passed
_MEASURED = 4  # calls passed, at least, that tell a rate
# Fewer refusals than these tell nothing: one may be of another process, 3% are cheap.
_ALARM, _TOLERATED = 2.0, 0.03
# Refusals are by chance where a slower pace has as large a share of them; a limit would have none.
# Shares of some 20 calls with a ratio in these limits are alike. Where more than _MOST_CHANCE are
# refused, asking slowly does no harm.
_SIMILAR, _MOST_CHANCE = (0.7, 1.4), 0.4
_BY_CHANCE = 1.25  # times the share refused by chance is tolerated, which is not known better
_SETTLED = 20  # calls since a cut, after which it has helped
_LITTLE = 0.2  # share of a limit left, from which on headers are kept to: above, bursts are free
_MOMENT = 1e-3  # seconds, at least, over which a rate is measured


class Hint(NamedTuple):
    """A pace that headers allow, and until when they say so."""

    pace: float = math.inf
    until: float = -math.inf


class Mark(NamedTuple):
    """A call, and what had been let through before it since the pace was last cut."""

    began: float
    units: float
    units_before: float
    n_before: float


@dataclass(frozen=True)
class Learned:
    """Pace that an endpoint allows, learned from refusals, in units per second."""

    too_fast: float = math.inf  # the last pace that was
    by_chance: float = 0.0  # share of calls that are refused at any pace
    share_before: float = 0.0  # of calls refused before the last cut; 0 once it has helped

    def pace(self, way: float) -> float:
        """The pace at some progress towards the one that was too fast (1), and beyond."""
        return self.too_fast * (1 - (1 - _KEPT) * (1 - way) ** 3)

    @property
    def tolerated(self) -> float:
        """Share of calls that may be refused."""
        return _TOLERATED + _BY_CHANCE * self.by_chance

    def is_chance(self, share: float, way: float) -> bool:
        """Whether so many are refused at a pace below the last that was too fast, too."""
        least, most = (times * self.share_before for times in _SIMILAR)
        return way < 1 and least < share < min(most, _MOST_CHANCE)


@dataclass
class _Window:
    """Calls since the pace was last cut; counts of the last `_CALLS` or so fade."""

    since: float
    units: float = 0.0
    units_refused: float = 0.0
    n_waited: int = 0
    n: float = 0.0
    n_refused: float = 0.0

    def way(self, now: float) -> float:
        """Progress towards the next pace: counted in calls, with a time limit for slow paces."""
        return max(self.n_waited / _CALLS, (now - self.since) / _SECONDS)


class Rate:
    """Units per second that are let through, evenly spread."""

    def __init__(self, per_minute: float | None = None) -> None:
        self._most = math.inf if per_minute is None else per_minute / 60
        self._next = -math.inf
        self._hint, self._learned = Hint(), Learned()
        self._window: _Window | None = None

    def per_second(self, now: float) -> float:
        """The pace at present."""
        hinted = self._hint.pace if now < self._hint.until else math.inf
        return min(self._most, hinted, self.learned(now))

    def learned(self, now: float) -> float:
        """The pace that refusals allow."""
        return self._learned.pace(self._window.way(now) if self._window else 0.0)

    def wait(self, now: float) -> float:
        """Seconds until the next units may go."""
        return self._next - now

    def hinted_wait(self, now: float) -> float:
        """Seconds until the next units may go, as far as headers are the reason."""
        is_hinted = now < self._hint.until and self._hint.pace < min(self._most, self.learned(now))
        return max(self._next - now, 0.0) if is_hinted else 0.0

    def take(self, now: float, units: float) -> Mark:
        """Let units through."""
        window = self._window = self._window or _Window(now)
        mark = Mark(now, units, window.units, window.n)
        gap = units / self.per_second(now)
        # Calls for which nobody waits tell nothing of a pace.
        window.n_waited += now - self._next < gap
        self._next = max(self._next, now) + gap
        faded = 1 - 1 / _CALLS
        window.units += units
        window.n, window.n_refused = faded * window.n + 1, faded * window.n_refused
        if window.n > _SETTLED:
            share = window.n_refused / window.n
            by_chance = min(self._learned.by_chance, 2 * share)
            self._learned = replace(self._learned, by_chance=by_chance, share_before=0.0)
        return mark

    def correct(self, now: float, units: float) -> None:
        """Add units, or take some back, once they are known."""
        if self._window:
            self._window.units += units
        self._next += units / self.per_second(now)

    def hint(self, now: float, allowance: Allowance) -> None:
        """Keep to what a header says, for as long as it says it, once little is left."""
        is_little = allowance.left <= _LITTLE * allowance.limit
        pace = allowance.per_second if is_little else math.inf
        self._hint = Hint(pace, now + allowance.seconds)

    def refused(self, mark: Mark, now: float, *, tells_pace: bool) -> None:
        """Learn from the refusal of a call."""
        window, learned = self._window, self._learned
        if window is None or mark.began < window.since:
            return  # at an earlier pace
        # Of the calls after this one it is not known which are refused.
        passed = max(mark.units_before - window.units_refused, 0.0)
        window.units_refused += mark.units
        if not tells_pace:
            return
        window.n_refused += 1
        n = max(mark.n_before, 1.0)
        if window.n_refused < _ALARM + learned.tolerated * n or passed < _MEASURED * mark.units:
            return
        share = min(window.n_refused / n, 1.0)
        pace = self.learned(now)
        if learned.is_chance(share, window.way(now)):
            self._learned, self._window = Learned(pace, share), _Window(now, n_waited=_CALLS)
        else:
            measured = passed / max(mark.began - window.since, _MOMENT)
            too_fast = min(pace, _ABOVE * measured)
            self._learned, self._window = Learned(too_fast, 0.0, share), _Window(now)
