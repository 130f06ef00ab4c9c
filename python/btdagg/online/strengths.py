"""Votes that have a strength: how those of an item are distributed, and rules that foresee them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import _core
from btdagg._util.errors import InputError, expect
from btdagg._util.validation import as_checked_counts, as_number, as_numbers, require_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from btdagg.model.davidson import DavidsonModel

    Floats = NDArray[np.float64]

# How much an item's votes lean to a side, for either.
_TILTS = np.sinh(np.linspace(-4, 4, 17))
_ROUNDS = 40
# Sums of a few dozen items hardly tell how strong single votes are: more rounds fit what the items
# happen to be, as if votes of an item were more alike than they are. So there is one for 25.
_FEWEST_ROUNDS, _ITEMS_OF_ROUND = 4, 25
_LABELS = np.array([-1, 0, 1])
_ROUNDED = 1e-6


@dataclass(frozen=True)
class StrengthDistribution:
    """A mirror-symmetric mixture for the votes of an item, which have a strength.

    An item has two tilts, x and y, whose weights depend on its gold label. The chance of a vote is
    that of its strength, times exp(strength * x) for B or exp(strength * y) for A, normalised; that
    of a sequence of votes then depends on its counts alone.

    Attributes
    ----------
    strengths : tuple of float
        Shares of votes of strength 0, 1/8, ..., 1 for either side without tilts; in quarters or
        halves if fitted to more than 32 or 64 votes an item.
    share_of_ties : float
        Share of the items with a gold tie.
    tilts_of_ties, tilts_of_wins : tuple of float
        Weights of pairs of tilts, where the gold label is a tie and where it is A.
    """

    strengths: tuple[float, ...]
    share_of_ties: float
    tilts_of_ties: tuple[float, ...] = field(repr=False)  # hundreds
    tilts_of_wins: tuple[float, ...] = field(repr=False)

    def __post_init__(self) -> None:
        n_tilts = len(_TILTS) ** 2
        lengths = {"strengths": (9, 5, 3), "tilts_of_ties": (n_tilts,), "tilts_of_wins": (n_tilts,)}
        for name, allowed in lengths.items():
            shares = as_numbers(getattr(self, name), name).astype(np.float64)
            total = shares.sum()
            if name == "strengths" and shares.ndim == 1:
                total += shares[1:].sum()  # of either side
            expected = f"{' or '.join(map(str, allowed))} numbers"
            expect(shares.shape in [(length,) for length in allowed], name, shares.shape, expected)
            if not ((shares >= 0).all() and abs(total - 1) < _ROUNDED):
                expected = "shares of at least 0 that add up to 1"
                raise InputError(argument=name, got=shares.tolist(), expected=expected)
            object.__setattr__(self, name, tuple(shares.tolist()))
        share = as_number(self.share_of_ties, "share_of_ties")
        expect(0 <= share <= 1, "share_of_ties", share, "a number from 0 to 1")
        object.__setattr__(self, "share_of_ties", share)

    def on_grid(self, n: int) -> Floats:
        """Return the shares of strengths on the grid that `n` votes have."""
        shares = np.array(self.strengths)
        while len(shares) > _parts_of(n) + 1:
            halves = shares[1::2] / 2
            shares = shares[::2] + np.append(halves, 0.0) + np.append(0.0, halves)
            shares[0] += halves[0]  # from either side
        return shares

    def sequence_chances(self, n: int) -> tuple[Floats, Floats]:
        """Chances of one sequence to each count of `n` votes, in squares, by gold label."""
        shares = self.on_grid(n)
        counts, possible = _grid(n, len(shares) - 1)
        won = (1 - self.share_of_ties) / 2 * np.array(self.tilts_of_wins)
        weights = [_mirrored(won), self.share_of_ties * np.array(self.tilts_of_ties), won]
        chances = np.zeros((*possible.shape, 3))
        chances[possible] = np.exp(counts[possible] @ _log_factors(shares)) @ np.stack(weights, 1)
        return counts, (chances + chances.transpose(1, 0, 2)[..., ::-1]) / 2

    def joint(self, n: int) -> tuple[Floats, Floats]:
        """All counts of `n` votes, (k, 3), and their joint chances with the gold labels, (k, 3)."""
        counts, chances = self.sequence_chances(n)
        shares = self.on_grid(n)
        _, possible = _grid(n, len(shares) - 1)
        return counts[possible], (_ways(shares, n)[n][..., None] * chances)[possible]

    def in_order(self, counts: Floats, n: int, rng: np.random.Generator) -> Floats:
        """Draw `n` votes of each item, (k, n), given the sums of all of them."""
        totals = np.rint(counts.sum(axis=1)).astype(np.int64)
        shares = self.on_grid(int(totals.max(initial=1)))
        parts, ways = len(shares) - 1, _ways(shares, int(totals.max(initial=1)))
        minus, plus = np.rint(counts[:, ::2] * parts).astype(np.int64).T
        drawn = np.empty((len(counts), n))
        for number in range(n):
            chances = _last_votes(ways, shares, minus, plus, totals - number).cumsum(axis=1)
            votes = (chances < rng.random((len(counts), 1))).sum(axis=1).clip(0, 2 * parts) - parts
            minus, plus = minus + np.minimum(votes, 0), plus - np.maximum(votes, 0)
            drawn[:, number] = votes / parts
        return drawn


def shares_of(votes: NDArray[Any]) -> NDArray[Any]:
    """Shares of minus, tie and plus in votes from -1 to 1, on a further axis."""
    return np.stack([np.maximum(-votes, 0), 1 - np.abs(votes), np.maximum(votes, 0)], axis=-1)


def _parts_of(n: int) -> int:
    # The grid then has at most 33,000 counts.
    return 8 if n <= 32 else 4 if n <= 64 else 2


def _grid(n: int, parts: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Counts of `n` votes by parts of minus and of plus, and which there can be."""
    minus, plus = np.indices((n * parts + 1,) * 2) / parts
    tie = n - minus - plus
    return np.stack([minus, np.maximum(tie, 0), plus], axis=2), tie >= 0


def _mirrored(weights: Any) -> Floats:
    return np.asarray(weights).reshape(len(_TILTS), -1).T.ravel()


def _factors_of_votes(strengths: Floats) -> Floats:
    """Factors by each pair of tilts on the chances of votes for B and for A, (2, pairs, k)."""
    pairs = np.stack(np.meshgrid(_TILTS, _TILTS, indexing="ij")).reshape(2, -1, 1)
    return np.asarray(np.exp(pairs * strengths))


def _log_factors(shares: Floats) -> Floats:
    """By what a minus, a tie and a plus multiply the chance of a sequence, (3, pairs)."""
    sides = _factors_of_votes(np.linspace(0, 1, len(shares)))
    total = sides.sum(axis=0)[:, 1:] @ shares[1:] + shares[0]
    factors = np.stack([sides[0, :, -1], np.ones_like(total), sides[1, :, -1]]) / total
    return np.asarray(np.log(factors))


def _ways(shares: Floats, n: int) -> list[Floats]:
    """By number of votes up to `n` and counts: sum over sequences of the products of shares."""
    ways = [np.ones((1, 1))]
    for size in range(1, n * (len(shares) - 1) + 1, len(shares) - 1):
        ways.append(np.zeros((size + len(shares) - 1,) * 2))
        for part, share in enumerate(shares):
            ways[-1][:size, part : part + size] += share * ways[-2]
            ways[-1][part : part + size, :size] += share * ways[-2] if part else 0.0
    return ways


def _after_votes(after: NDArray[Any], parts: int) -> Iterator[NDArray[Any]]:
    """Values after each vote that may come, ties first and then by strength, by counts before."""
    size = after.shape[-1] - parts
    yield after[..., :size, :size]
    for part in range(1, parts + 1):
        yield after[..., part : part + size, :size]
        yield after[..., :size, part : part + size]


def _before(after: Floats, shares: Floats) -> Floats:
    """Sum over the votes that may come, by the counts before them."""
    tie, *wins = _after_votes(after, len(shares) - 1)
    total: Floats = shares[0] * tie
    for minus, plus, share in zip(wins[::2], wins[1::2], shares[1:], strict=True):
        total += share * (minus + plus)
    return total


def _last_votes(ways: list[Floats], shares: Floats, minus: Any, plus: Any, totals: Any) -> Floats:
    """Chances of one vote, from all of B to all of A, of items whose votes have these sums."""
    parts = len(shares) - 1
    chances = np.zeros((len(totals), 2 * parts + 1))
    for n in np.unique(totals[totals > 0]):
        of_n = totals == n
        before = np.pad(ways[n - 1], parts)
        for vote in range(-parts, parts + 1):
            other_sums = minus[of_n] + min(vote, 0), plus[of_n] - max(vote, 0)
            chances[of_n, parts + vote] = (
                shares[abs(vote)] * before[other_sums[0] + parts, other_sums[1] + parts]
            )
    possible = chances.sum(axis=1, keepdims=True)
    # A vote of probabilities has a part for either side; such sums are taken as of whole votes.
    whole = np.zeros_like(chances)
    whole[:, [0, parts, -1]] = np.column_stack([minus, totals * parts - minus - plus, plus])
    whole = whole.clip(0) / np.maximum(totals * parts, 1)[:, None]
    return np.where(possible > 0, chances / np.where(possible > 0, possible, 1.0), whole)


def fit_strengths(
    counts: Floats, gold: NDArray[np.int8], observed: Floats | None = None
) -> StrengthDistribution:
    """Fit shares of strengths and weights of tilts, by expectation maximization."""
    # Strengths that were not `observed` are seen in sums alone; few items then stop it early.
    totals = np.rint(counts.sum(axis=1)).astype(np.int64)
    good = (np.abs(counts.sum(axis=1) - totals) <= 1e-6) & (totals <= 128)
    require_rows(good, counts.sum(axis=1), "counts", "a whole number of at most 128")
    some = totals > 0
    counts, gold, totals = counts[some], gold[some], totals[some]
    parts = _parts_of(int(totals.max()))
    tied = gold == 0
    # A win of B is one of A, mirrored, and half of a tie is its mirror image.
    counts = np.where((gold < 0)[:, None], counts[:, ::-1], counts)
    rows = np.concatenate([counts, counts[tied, ::-1]])[:, ::2]
    keys = [np.rint(rows * parts).astype(np.int64), np.append(totals, totals[tied])]
    states, place = np.unique(
        np.column_stack([*keys, np.append(tied, tied[tied])]), axis=0, return_inverse=True
    )
    weights = np.bincount(place.ravel(), np.append(np.where(tied, 0.5, 1.0), tied[tied] / 2))
    minus, plus, totals, is_tied = states.T
    grid = np.column_stack([minus, totals * parts - minus - plus, plus]) / parts
    strengths = np.linspace(0, 1, parts + 1)
    of_votes = _factors_of_votes(strengths).sum(axis=0)
    of_votes[:, 0] = 1.0
    shares = np.full(parts + 1, 1 / (2 * parts + 1))
    start = np.full(len(_TILTS) ** 2, len(_TILTS) ** -2.0)
    by_kind, kinds = [weights * (is_tied == 1), weights * (is_tied == 0)], [start, start]
    if observed is not None:
        of_strengths = np.bincount(np.rint(observed * parts).astype(np.int64), minlength=parts + 1)
        seen = of_strengths * (weights @ totals) / len(observed)
    rounds = _ROUNDS
    if observed is None:
        rounds = min(max(_FEWEST_ROUNDS, len(gold) // _ITEMS_OF_ROUND), _ROUNDS)
    for _ in range(rounds):
        log_factors = _log_factors(shares)
        logs = grid @ log_factors
        likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
        of_tilts = np.zeros(len(start))  # votes
        for number, of_kind in enumerate(by_kind):
            posterior = likelihoods * kinds[number]
            posterior *= (of_kind / posterior.sum(axis=1))[:, None]
            of_tilts += totals @ posterior
            # With a weight of one item for all tilts alike.
            kinds[number] = (posterior.sum(axis=0) + start) / (of_kind.sum() + 1)
        if observed is None:
            last = _last_votes(_ways(shares, int(totals.max())), shares, minus, plus, totals)
            seen = (weights * totals) @ (last[:, parts:] + last[:, parts::-1])
            seen[0] /= 2
        shares = (seen + 1e-3) / ((of_tilts * np.exp(log_factors[1])) @ of_votes + 1e-3)
        shares /= 2 * shares.sum() - shares[0]
    share_of_ties = float(tied.sum() + 1) / (len(gold) + 3)
    return StrengthDistribution(tuple(shares), share_of_ties, *map(tuple, kinds))


class _GridRule:
    """A stopping rule for votes with a strength, on a grid of counts; others are as the nearest."""

    # A lossless rule stops where no votes change the label; its grid has forecasts alone.

    def __init__(
        self,
        model: DavidsonModel,
        n: int,
        step: int,
        kind: str,
        value: float,
        votes: StrengthDistribution,
    ) -> None:
        some = _core.Predictive([(1.0, (1.0, 1.0, 1.0))])
        # Lossless it is exact; otherwise it checks, and decides by all votes.
        self._core = _core.StoppingRule(model._kernel, n, step, kind, value, some, True)
        self._model, self._n, self._kind, self._value = model, n, kind, value
        self._votes, self._shares = votes, votes.on_grid(n)
        sizes = [(total * (len(self._shares) - 1) + 1) ** 2 for total in range(n + 1)]
        self._starts = np.cumsum([0, *sizes])
        self._step = step

    @cached_property
    def _table(self) -> tuple[NDArray[np.int8], NDArray[np.int64], Floats]:
        """By place: the label, the fewest votes to a stop, and what is expected."""
        counts, joint = self._votes.sequence_chances(self._n)
        chances, flat = joint.sum(axis=2), counts.reshape(-1, 3)
        decided = self._model.decide(flat).reshape(chances.shape)
        away = np.abs(_LABELS[:, None] - _LABELS)
        errors = (self._model.predict_proba(flat) @ away).T.reshape(3, *chances.shape)
        labels = decided == _LABELS[:, None, None]
        outlook = np.concatenate([labels * chances, errors * chances, np.zeros_like(errors)])
        layers, asks = [], np.zeros(chances.shape, dtype=np.int64)
        for total in range(self._n, -1, -1):
            if total < self._n:
                outlook = _before(outlook, self._shares)
                asks = 1 + np.min(list(_after_votes(asks, len(self._shares) - 1)), axis=0)
            stops, label, expected = self._layer(outlook, total)
            asks[stops] = 0
            layers.append((label.ravel(), asks.ravel(), expected.reshape(3, -1).T))
        label, asks, expected = (np.concatenate(part) for part in zip(*layers[::-1], strict=True))
        return label, asks, expected

    @property
    def start(self) -> tuple[float, float, float]:
        votes, change, error = self._table[2][0].tolist()
        return votes, change, error

    def _layer(self, outlook: Floats, total: int) -> tuple[Any, Any, Floats]:
        """Decide the counts of as many votes: where to stop, the labels and what is expected."""
        minus, tie, plus = outlook[:3]
        chance = (minus + plus) + tie
        if self._kind == "cost-optimal" and total < self._n:
            b, same, a = outlook[3:6]
            ahead = np.where(same - np.minimum(a, b) > 1e-12 * same, np.sign(b - a), 0)
        else:
            ahead = np.where(np.maximum(minus, plus) > tie, np.sign(plus - minus), 0)
        label = ahead.astype(np.int8)
        wrong_chance = np.choose(label + 1, [tie + plus, minus + plus, minus + tie])
        loss = np.choose(label + 1, outlook[3:6])
        if total == self._n:
            stops = np.full(label.shape, True)
        elif total % self._step:
            stops = np.full(label.shape, False)
        elif self._kind == "risk-bounded":
            stops = wrong_chance < self._value * chance
        elif self._kind == "cost-optimal":
            votes_left, _, error = outlook[6:]
            stops = loss <= error + self._value * (votes_left + chance) + 1e-12 * chance
        else:
            counts, possible = _grid(total, len(self._shares) - 1)
            stops = np.full(label.shape, False)
            stops[possible] = self._core.stops(counts[possible], 1)
        outlook[6] += chance
        outlook[6:] = np.where(stops, [np.zeros_like(loss), wrong_chance, loss], outlook[6:])
        with np.errstate(invalid="ignore"):
            return stops, label, outlook[6:] / chance

    def _places(self, counts: Any) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        self._core.stops(counts, 1)  # checks them
        counts = as_checked_counts(counts)
        totals = np.rint(counts.sum(axis=1)).astype(np.intp)
        parts = len(self._shares) - 1
        minus, plus = np.rint(counts[:, ::2] * parts).astype(np.intp).T
        return self._starts[totals] + minus * (totals * parts + 1) + plus, totals == self._n

    def stops(self, counts: Any, n_threads: int) -> NDArray[np.bool_]:
        if self._kind == "lossless":
            return self._core.stops(counts, n_threads)
        return np.asarray(self._table[1][self._places(counts)[0]] == 0)

    def decide(self, counts: Any, n_threads: int) -> NDArray[np.int8]:
        exact = self._core.decide(counts, n_threads)
        places, is_exact = self._places(counts)
        if self._kind == "lossless":
            is_exact |= self._core.stops(counts, n_threads)
        return exact if is_exact.all() else np.where(is_exact, exact, self._table[0][places])

    def forecasts(self, counts: Any, n_threads: int) -> Floats:
        return self._table[2][self._places(counts)[0]]

    def votes_to_ask(self, counts: Any, n_threads: int) -> NDArray[Any]:
        if self._kind == "lossless":
            return self._core.votes_to_ask(counts, n_threads)
        return self._table[1][self._places(counts)[0]]

    def stops_one(self, minus: float, tie: float, plus: float) -> bool:
        return bool(self.stops(np.array([[minus, tie, plus]]), 1)[0])

    def decide_one(self, minus: float, tie: float, plus: float) -> int:
        return int(self.decide(np.array([[minus, tie, plus]]), 1)[0])

    def votes_to_ask_one(self, minus: float, tie: float, plus: float) -> int:
        return int(self.votes_to_ask(np.array([[minus, tie, plus]]), 1)[0])


def price_within(
    model: DavidsonModel, n: int, step: int, budget: float, votes: StrengthDistribution
) -> float:
    """Least price, to a thousandth of it, at which an item gets at most `budget` votes."""

    def votes_at(price: float) -> float:
        return _GridRule(model, n, step, "cost-optimal", price, votes).start[0]

    expect(budget >= 0, "budget", budget, "a number of at least 0")
    low, high = 0.0, 1.0  # an error is at most 1 where an item may be called a tie
    if votes_at(low) <= budget:
        return low
    while high - low > 1e-3 * high and high > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if votes_at(middle) <= budget else (middle, high)
    return high
