"""Items judged again beside a stream: whether it is the judge that moved, or the systems."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.readable import Readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_BET = 0.5  # of the capital, on the mean of differences of at most 1
# Of the boundary: epochs double, and the k-th has a share of the level of 1 / (zeta k^1.4).
_SLOWNESS, _ZETA = 1.4, 3.1056
_K1, _K2 = (2**0.25 + 2**-0.25) / math.sqrt(2), (math.sqrt(2) + 1) / 2
_SHARES = (0.1, 0.3, 1.0)  # of the capital, on votes of an item that two judges divide


@dataclass
class MeanSequence(Readable):
    """A confidence sequence of the mean of values from 0 to 1, which come one after the other."""

    # It holds at all times with probability 1 - `miss`, also of the running average of changing
    # means. Empirical Bernstein with a stitched boundary: Howard et al. (2021), theorems 1 and 4.

    miss: float
    n: int = 0
    total: float = 0.0
    spread: float = 0.0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add values, in their order."""
        before = self.total + np.concatenate([[0.0], np.cumsum(values)[:-1]]) if len(values) else 0
        guess = (0.5 + before) / (self.n + 1 + np.arange(len(values)))
        self.spread += float(((values - guess) ** 2).sum())
        self.total += float(values.sum())
        self.n += len(values)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval now."""
        if not self.n:
            return 0.0, 1.0
        v = max(self.spread, 1.0)
        epoch = _SLOWNESS * math.log(math.log2(v) + 1) + math.log(_ZETA)
        log = epoch + math.log(2 / self.miss)
        half = (math.sqrt(_K1**2 * v * log + (_K2 * log) ** 2) + _K2 * log) / self.n
        mean = self.total / self.n
        return max(mean - half, 0.0), min(mean + half, 1.0)


@dataclass
class SymmetryBet(Readable):
    """Capital of bets against a mean of 0 of differences from -1 to 1, at any time."""

    # Each bet is a share of the capital; Ville (1939) for the level.

    n: int = 0
    total: float = 0.0
    square: float = 0.0
    log_capital: float = 0.0

    def add(self, difference: float) -> None:
        """Add a difference."""
        mean, power = self.total / (self.n + 1), (1 + self.square) / (self.n + 1)
        bet = min(max(mean / power, -_MOST_BET), _MOST_BET)
        self.log_capital += math.log1p(bet * difference)
        self.n, self.total = self.n + 1, self.total + difference
        self.square += difference**2


@dataclass(frozen=True)
class Shift(Readable):
    """How one quantity moved on the stream, and on anchors, since the reference.

    Attributes
    ----------
    name : str
        Name of the facet.
    judge : float
        Mean of the anchors' new votes less their old ones; NaN without any.
    systems : tuple of two float
        Ends of the stream's shift less the anchors', at all times together.
    """

    name: str
    judge: float
    systems: tuple[float, float]


class Anchors:
    """Evidence of the anchors and the stream, by facet."""

    def __init__(
        self, reference: Sequence[NDArray[np.float64]], names: Sequence[str], level: float
    ) -> None:
        # The systems' interval has three parts; each gets a third of a facet's level.
        miss = level / len(names) / 3
        self.level, self.names = level, tuple(names)
        self.reference = [_interval(values, miss) for values in reference]
        self.stream = [MeanSequence(miss) for _ in names]
        self.moved = [MeanSequence(miss) for _ in names]
        self.bets = [SymmetryBet() for _ in names]
        self.splits = [0.0] * len(_SHARES)  # logarithms of capital
        self.peak = 0.0
        self.calls = [(0, 0)]  # items of the stream and anchors, whenever anchors came

    def observe(self, facet: int, values: NDArray[np.float64]) -> None:
        """Add values of the stream, from 0 to 1; NaN where an item has none."""
        self.stream[facet].add(values[~np.isnan(values)])

    def judge_again(
        self, old: NDArray[Any], new: NDArray[Any], differences: NDArray[np.float64]
    ) -> None:
        """Add anchors: votes, (m, orders, 3), and differences by facet, new less old, from -1 to 1.

        One bet is on means, one on votes that are not mixed as one judge's; the capital is their
        mean.
        """
        items, anchors = self.calls[-1]
        self.calls.append(
            (max(items, *(sequence.n for sequence in self.stream)), anchors + len(old))
        )
        for sequence, values in zip(self.moved, differences, strict=True):
            sequence.add((values[~np.isnan(values)] + 1) / 2)
        for before, now, moved in zip(old, new, differences.T.tolist(), strict=True):
            for bet, value in zip(self.bets, moved, strict=True):
                if not math.isnan(value):
                    bet.add(value)
            ratio = math.prod(_ratio(*map(tuple, pair)) for pair in zip(before, now, strict=True))
            weighted = zip(self.splits, _SHARES, strict=True)
            self.splits = [log + math.log1p(share * (ratio - 1)) for log, share in weighted]
            on_means, on_splits = (
                np.logaddexp.reduce(logs) - math.log(len(logs))
                for logs in ([bet.log_capital for bet in self.bets], self.splits)
            )
            self.peak = max(self.peak, float(np.logaddexp(on_means, on_splits) - math.log(2)))

    @property
    def judge_pvalue(self) -> float:
        """P-value of a judge that did not move, valid however often anchors are added."""
        return max(math.exp(-self.peak), sys.float_info.min)

    @property
    def n_anchors(self) -> int:
        """Most anchors with a value of one facet."""
        return max(bet.n for bet in self.bets)

    def shifts(self, width: Mapping[str, float]) -> tuple[Shift, ...]:
        """Return the shift of each facet, in units of `width` from its least to its greatest."""
        shifts = []
        for place, name in enumerate(self.names):
            bet, unit = self.bets[place], width[name]
            low, high = self._systems(place)
            mean = unit * bet.total / bet.n if bet.n else math.nan
            shifts.append(Shift(name, mean, (unit * low, unit * high)))
        return tuple(shifts)

    def _systems(self, place: int) -> tuple[float, float]:
        if not self.bets[place].n:
            return -1.0, 1.0
        before, now = self.reference[place], self.stream[place].ends
        judge = [2 * end - 1 for end in self.moved[place].ends]
        apart = self._apart
        return now[0] - before[1] - judge[1] - apart, now[1] - before[0] - judge[0] + apart

    @property
    def _apart(self) -> float:
        """How much more of the stream than of the anchors may follow a change of the judge."""
        items = max(self.stream[0].n, self.calls[-1][0], 1)
        anchors = max(self.calls[-1][1], 1)
        ends = [*self.calls, (items, anchors)]
        gaps = [0.0]
        for (first, before), (last, _) in pairwise(ends):  # anchors come at the end of their block
            gaps += [abs(at / items - before / anchors) for at in (first, last)]
        return max(gaps)

    def state(self) -> dict[str, Any]:
        """Return all as plain values."""
        parts: dict[str, list[Any]] = {
            "stream": [*self.stream],
            "moved": [*self.moved],
            "bets": [*self.bets],
        }
        values = {name: getattr(self, name) for name in ("reference", "splits", "peak", "calls")}
        return {**values, **{k: [vars(p) for p in v] for k, v in parts.items()}}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], names: Sequence[str], level: float) -> Anchors:
        """Return what `state` was made of."""
        anchors = cls([], names, level)
        anchors.reference = [tuple(ends) for ends in state["reference"]]
        anchors.stream, anchors.moved = (
            [MeanSequence(**part) for part in state[name]] for name in ("stream", "moved")
        )
        anchors.splits, anchors.peak = [*state["splits"]], state["peak"]
        anchors.calls = [tuple(call) for call in state["calls"]]
        anchors.bets = [SymmetryBet(**part) for part in state["bets"]]
        if {
            len(part) for part in (anchors.reference, anchors.stream, anchors.moved, anchors.bets)
        } != {len(names)}:
            raise ValueError("its anchors have other facets")
        return anchors


@lru_cache(maxsize=4096)
def _ratio(old: tuple[float, ...], new: tuple[float, ...]) -> float:
    """Likelihood ratio: old and new votes of an item come from two judges, not from one."""
    # One judge divides them by chance, two as Dirichlet draws (1/2 each); its mean is 1 for one
    # judge.
    both = [a + b for a, b in zip(old, new, strict=True)]
    if any(value != round(value) for value in (*old, *new)):
        return 1.0  # votes with a strength are not exchanged one by one
    n, ratio, total = sum(old), 0.0, 0.0
    for split in product(*(range(int(most) + 1) for most in both)):
        if sum(split) != n:
            continue
        rest = tuple(int(most) - part for most, part in zip(both, split, strict=True))
        likely = _of_two(split) * _of_two(rest)
        total += likely
        if split == tuple(map(int, old)):
            by_chance = math.prod(math.comb(int(m), k) for m, k in zip(both, split, strict=True))
            ratio = likely * math.comb(int(sum(both)), int(n)) / by_chance
    return ratio / total


@lru_cache(maxsize=4096)
def _of_two(counts: tuple[int, ...]) -> float:
    """Probability of counts, but for a factor of their sum, where shares are Dirichlet's."""
    return math.exp(sum(math.lgamma(k + 0.5) - math.lgamma(k + 1) for k in counts))


def _interval(values: NDArray[np.float64], miss: float) -> tuple[float, float]:
    """Ends of the mean of a fixed sample of values from 0 to 1: Maurer and Pontil (2009)."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return 0.0, 1.0
    n, log = len(known), math.log(4 / miss)
    half = math.sqrt(2 * float(known.var(ddof=1)) * log / n) + 7 * log / (3 * (n - 1))
    return float(known.mean()) - half, float(known.mean()) + half
