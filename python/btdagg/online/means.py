"""When to stop asking for grades: what the mean vote can still become."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import InputError, expect
from btdagg._util.validation import counts_alone, require_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.model.grades import GradeModel

    Floats = NDArray[np.float64]


class _MeanRule:
    start = None  # without a distribution of the votes

    def __init__(self, model: GradeModel, n: int, step: int) -> None:
        expect(n % step == 0, "n", n, f"a multiple of the step {step}")
        self._model, self._n, self._step = model, n, step
        self._votes = model.scale.floats
        self._least = np.array(model.least_means)
        # More than sums of votes are rounded by, and less than what counts as on a threshold.
        self._rounding = 4 * math.ulp(1.0) * np.abs(self._votes).max()

    def _sums(self, counts: Any) -> tuple[Any, Floats, Floats]:
        """Counts, their totals, and the sums of `n` votes if all others are the lowest."""
        counts = self._model.scale.counts(counts_alone(counts))
        sizes = counts.sum(axis=1)
        totals = np.rint(sizes)
        good = (np.abs(sizes - totals) <= 1e-6) & (totals <= self._n)
        require_rows(good, sizes, "counts", f"a whole number of votes, {self._n} at most")
        return counts, totals, counts @ self._votes + (self._n - totals) * self._votes[0]

    def _settled(self, sums: Floats, left: Floats, shifts: Any) -> NDArray[np.bool_]:
        # Whether all that so many more votes make of the least sums is decided alike.
        most = sums + left * (self._votes[-1] - self._votes[0])
        lowest, highest = sums / self._n - self._rounding, most / self._n + self._rounding
        low = np.searchsorted(self._least, lowest + shifts, side="right")
        high = np.searchsorted(self._least, highest + shifts, side="right")
        return np.asarray((low == high) | (left <= 0))

    def _shifts(self, offsets: Floats | None) -> Any:
        return 0.0 if offsets is None else offsets / self._model.beta

    def stops(
        self, counts: Any, n_threads: int, offsets: Floats | None = None
    ) -> NDArray[np.bool_]:
        _, totals, sums = self._sums(counts)
        is_whole_step = totals % self._step == 0
        settled = self._settled(sums, self._n - totals, self._shifts(offsets))
        return np.asarray(is_whole_step & settled)

    def decide(self, counts: Any, n_threads: int, offsets: Floats | None = None) -> NDArray[Any]:
        counts, totals, sums = self._sums(counts)
        settled = self._settled(sums, self._n - totals, self._shifts(offsets))
        settled &= totals < self._n
        # With any votes that may come a settled item is decided so, also where it has none.
        counts = counts.astype(np.float64)
        counts[settled, 0] += self._n - totals[settled]
        return self._model._kernel.decide(counts, n_threads, offsets)

    def votes_to_ask(
        self, counts: Any, n_threads: int, offsets: Floats | None = None
    ) -> NDArray[np.int64]:
        _, totals, sums = self._sums(counts)
        shifts = np.broadcast_to(self._shifts(offsets), totals.shape)
        steps = np.diff(self._votes)
        # Of uneven points the sums are taken as if any were possible: at worst it is too few.
        step = steps[0] if np.allclose(steps, steps[0], rtol=1e-12) else 1e-9 * steps.min()
        span = np.rint((self._votes[-1] - self._votes[0]) / step)
        asks = np.full(len(totals), -1)
        for more in range(self._n + 1):
            is_open = (asks < 0) & ((totals + more) % self._step == 0)
            start, left = sums[is_open, None], self._n - totals[is_open, None] - more
            shift = shifts[is_open, None]
            # The grades are decided from these sums on, and so is the lowest from the start.
            steps_up = np.floor(((self._least - shift) * self._n - start) / step)
            steps_up = np.concatenate([0 * start, steps_up, steps_up + 1], axis=1)
            may_be = start + step * steps_up.clip(0, more * span)
            asks[np.flatnonzero(is_open)[self._settled(may_be, left, shift).any(axis=1)]] = more
        return asks

    def forecasts(self, counts: Any, n_threads: int) -> Floats:
        expected = "a rule for pairs, since future votes are not modelled for grades"
        raise InputError(argument="votes", got=None, expected=expected)

    def stops_one(self, *counts: float) -> bool:
        return bool(self.stops(np.array([counts]), 1)[0])

    def decide_one(self, *counts: float) -> float:
        grade: float = self.decide(np.array([counts]), 1)[0].item()
        return grade

    def votes_to_ask_one(self, *counts: float) -> int:
        return int(self.votes_to_ask(np.array([counts]), 1)[0])
