"""A rate that is learned from refusals, where an endpoint does not say what it allows.

*Measure.* A refusal means that the allowance is used up. Between two refusals an endpoint let
through what it allows, whether it counts by the minute or refills steadily. Once more calls are
refused than are tolerated, that rate is the new pace.

*Probe.* After `_STEP` calls with hardly a refusal the pace rises by 2%, then by 4%, 8% and so on:
the limit may have risen. If that was too much, the pace goes back to one that has held.

*Test.* An endpoint may refuse at random, however slowly it is asked. Each measurement would then
be below the last, and the pace would go to 0. So each cut is tested: if the calls after it are
refused as often as those before, refusals are put down to chance. The pace is dropped, and only
more refusals than by chance cut it again.

Probing and cutting is additive increase, multiplicative decrease with measured steps (Chiu and
Jain, 1989); the alarm is a cumulative sum (Page, 1954).
"""

from __future__ import annotations

import math
from collections import deque

_TOLERATED = 0.05  # share of refusals beyond those by chance for which the pace is not cut
_ALARM = 2.5  # refusals beyond what is tolerated
_CHANCE = 1.25  # times the share by chance, which is known roughly, is by chance as well
_MOST_CHANCE = 1 / 3  # beyond this even an endpoint that refuses at random is asked more slowly
_ENOUGH = 8  # calls between two refusals that tell a rate
_MARGIN = 0.97  # of the rate measured
_LEAST_DUE = 0.1  # share of refusals below which a test would take too long
_TEST = 8.0  # refusals due after a cut that changed nothing, when it is judged
_STEP = 30  # calls until the pace rises; half of them where they take `_LONG_STEP`
_SHORT_STEP, _LONG_STEP = 10.0, 60.0  # seconds
_SPARE = 0.03  # share of refusals beyond those by chance with which the pace still rises
_FIRST_RISE, _MOST_RISE = 0.02, 0.2
_OUTAGE = 60.0  # seconds: limits are by the minute, and what takes longer is none


class LearnedRate:
    """Units per second that an endpoint lets through: infinite until refusals say less.

    Attributes
    ----------
    per_second : float
    chance : float
        Share of calls that are refused at any rate.
    """

    def __init__(self) -> None:
        self.per_second = math.inf
        self.chance = 0.0
        self._passed = 0.0  # units, of calls under way as well
        self._used_up: deque[tuple[float, float]] = deque(maxlen=64)  # when; passed by then
        self._due = 0.0  # share of calls refused before the cut that is on trial; 0: none is
        # Since the pace was set:
        self._n = self._n_refused = 0
        self._units = self._alarm = 0.0
        self._held = 0.0, 0.0  # the two paces before the last rises
        self._rise = _FIRST_RISE
        # Since it rose:
        self._n_step = self._n_refused_step = 0
        self._units_step = self._step_began = 0.0

    @property
    def is_suspicious(self) -> bool:
        """Whether refusals may be more than those by chance."""
        return not self.chance or self._alarm >= _ALARM

    def begun(self, now: float, units: float) -> None:
        """Count a call that is made."""
        self._passed += units
        self._units += units
        self._units_step += units
        self._n += 1
        self._n_step += 1
        self._alarm = max(self._alarm - _CHANCE * self.chance - _TOLERATED, 0.0)
        if self._due * self._n >= _TEST:
            self._judge_cut(now)
        if not self._due:
            self._probe(now)

    def correct(self, units: float) -> None:
        """Add units once they are known, or take back those of a call that was refused."""
        self._passed += units

    def refused(self) -> None:
        """Count a call that was refused."""
        self._n_refused += 1
        self._n_refused_step += 1
        self._alarm += 1

    def reopened(self, closed: float, now: float) -> None:
        """Learn from the refusal of a call made at `closed`, once one has passed again."""
        share = self._n_refused / max(self._n, 1)
        if self._due and self._n_refused >= _TEST / 2 and share <= 2 * self._due:
            self._judge_cut(now)
        elif self._n_refused >= _TEST / 2 if self._due else self._alarm >= _ALARM:
            self._cut(closed, now, share)
        self._used_up.append((max(closed, now - _OUTAGE), self._passed))

    def _cut(self, closed: float, now: float, share: float) -> None:
        """Slow down to the rate measured, or the pace that has held, if that is slower."""
        measured = self._measured(closed, 2 * _ENOUGH) or self._measured(closed, _ENOUGH)
        if 0 < _MARGIN * measured < self.per_second:
            pace = max(_MARGIN * measured, self._held[0])
            self._used_up.clear()
            self._begin(now, pace)
            self._due = max(share, _LEAST_DUE)

    def _measured(self, closed: float, n_calls: int) -> float:
        """Rate of the best stretch of so many calls up to a refusal; 0 where there is none.

        A stretch in which an allowance ran over shows less than is allowed, none shows more.
        """
        units = n_calls * self._units / max(self._n, 1)
        return max(
            (
                (self._passed - passed) / (closed - since)
                for since, passed in self._used_up
                if self._passed - passed >= units and closed > since
            ),
            default=0.0,
        )

    def _judge_cut(self, now: float) -> None:
        """Drop the pace if half as many as before were refused, or more."""
        share = self._n_refused / self._n
        if self._n_refused >= _TEST / 2:
            self.chance = min((share + self._due) / 2, _MOST_CHANCE)
            self._begin(now)
        else:
            self.chance = min(self.chance / 2, share)
            self._begin(now, self.per_second)
        self._due = 0.0

    def _probe(self, now: float) -> None:
        """Go faster after a step with hardly a refusal, if the pace was what held calls back."""
        seconds = now - self._step_began
        enough = _STEP if seconds < _LONG_STEP else _STEP / 2
        if seconds < _SHORT_STEP or self._n_step < enough or math.isinf(self.per_second):
            return
        if self._n_refused_step > (self.chance + _SPARE) * self._n_step:
            self._rise = _FIRST_RISE
        elif self._units_step >= 0.9 * self.per_second * seconds:
            self._held = self._held[1], self.per_second
            self.per_second *= 1 + self._rise
            self._rise = min(2 * self._rise, _MOST_RISE)
        self._begin_step(now)

    def _begin(self, now: float, pace: float = math.inf) -> None:
        self.per_second = pace
        self._held = 0.0, 0.0
        self._rise = _FIRST_RISE
        self._n = self._n_refused = 0
        self._units = self._alarm = 0.0
        self._begin_step(now)

    def _begin_step(self, now: float) -> None:
        self._n_step = self._n_refused_step = 0
        self._units_step, self._step_began = 0.0, now
