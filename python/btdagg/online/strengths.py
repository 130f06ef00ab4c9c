"""How the votes of an item that have a strength are distributed, for plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.validation import require_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# How much an item's votes lean to a side, for either.
_TILTS = np.sinh(np.linspace(-4, 4, 17))
_ROUNDS = 40
# Sums of a few dozen items hardly tell how strong single votes are: more rounds fit what the items
# happen to be, as if votes of an item were more alike than they are. So there is one for 25.
_FEWEST_ROUNDS, _ITEMS_OF_ROUND = 4, 25


class StrengthDistribution(NamedTuple):
    """A mirror-symmetric mixture for the votes of an item, which have a strength.

    An item has two tilts, x and y, whose weights depend on its gold label. The chance of a vote is
    that of its strength, times exp(strength * x) for B or exp(strength * y) for A, normalised; that
    of a sequence of votes then depends on its counts alone.

    Attributes
    ----------
    strengths : array
        Shares of votes of strength 0, 1/8, ..., 1 for either side without tilts; in quarters or
        halves if fitted to more than 32 or 64 votes an item.
    share_of_ties : float
        Share of the items with a gold tie.
    tilts_of_ties, tilts_of_wins : array
        Weights of pairs of tilts, where the gold label is a tie and where it is A.
    """

    strengths: Floats
    share_of_ties: float
    tilts_of_ties: Floats
    tilts_of_wins: Floats

    def on_grid(self, n: int) -> Floats:
        """Return the shares of strengths on the grid that `n` votes have."""
        shares = self.strengths
        while len(shares) > _parts_of(n) + 1:
            halves = shares[1::2] / 2
            shares = shares[::2] + np.append(halves, 0.0) + np.append(0.0, halves)
            shares[0] += halves[0]  # from either side
        return shares

    def sequence_chances(self, n: int) -> tuple[Floats, Floats]:
        """Chances of one sequence to each count of `n` votes, in squares, by gold label."""
        shares = self.on_grid(n)
        counts, possible = _grid(n, len(shares) - 1)
        won = (1 - self.share_of_ties) / 2 * self.tilts_of_wins
        weights = [_mirrored(won), self.share_of_ties * self.tilts_of_ties, won]
        chances = np.zeros((*possible.shape, 3))
        chances[possible] = np.exp(counts[possible] @ _log_factors(shares)) @ np.stack(weights, 1)
        return counts, (chances + chances.transpose(1, 0, 2)[..., ::-1]) / 2

    def joint(self, n: int) -> tuple[Floats, Floats]:
        """All counts of `n` votes, (k, 3), and their joint chances with the gold labels, (k, 3)."""
        counts, chances = self.sequence_chances(n)
        shares = self.on_grid(n)
        _, possible = _grid(n, len(shares) - 1)
        return counts[possible], (_ways(shares, n)[n][..., None] * chances)[possible]

    def votes_until(self, n: int, step: int, stops: Callable[[Floats], NDArray[np.bool_]]) -> float:
        """Expected votes of an item that is asked, `step` at a time, until its counts stop it.

        What stops it at some counts has to stop it at all that follow.
        """
        chances = self.sequence_chances(n)[1].sum(axis=2)
        shares = self.on_grid(n)
        ways, votes = _ways(shares, n), 0.0
        for total in range(n - 1, -1, -1):
            chances = _before(chances, shares)
            if total % step == 0:
                counts, possible = _grid(total, len(shares) - 1)
                is_open = ~stops(counts[possible])
                votes += step * float((ways[total] * chances)[possible][is_open].sum())
        return votes

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


def _before(after: Floats, shares: Floats) -> Floats:
    """Chances of a sequence by its counts, summed over the vote that comes next."""
    size = after.shape[-1] - len(shares) + 1
    total: Floats = shares[0] * after[:size, :size]
    for part, share in enumerate(shares[1:], 1):
        minus, plus = after[part : part + size, :size], after[:size, part : part + size]
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


def fit_strengths(counts: Floats, gold: NDArray[np.int8]) -> StrengthDistribution:
    """Fit shares of strengths and weights of tilts, by expectation maximization."""
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
        last = _last_votes(_ways(shares, int(totals.max())), shares, minus, plus, totals)
        seen = (weights * totals) @ (last[:, parts:] + last[:, parts::-1])
        seen[0] /= 2
        shares = (seen + 1e-3) / ((of_tilts * np.exp(log_factors[1])) @ of_votes + 1e-3)
        shares /= 2 * shares.sum() - shares[0]
    share_of_ties = float(tied.sum() + 1) / (len(gold) + 3)
    return StrengthDistribution(shares, share_of_ties, *kinds)
