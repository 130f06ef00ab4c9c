"""A seeded simulation of LLM judges on the paper's eight tasks."""
# Labels are drawn from the Davidson model at the first twelve votes, so `btdagg.calibrate` wins by
# construction (docs/simulation.md); a `btdagg.datasets.Thurstone` draws in another way.

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import InputError, expect
from btdagg._util.readable import Readable
from btdagg._util.validation import as_integer
from btdagg.datasets.regimes import REGIMES, Regime
from btdagg.datasets.thurstone import Thurstone
from btdagg.reference import features, probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray


# The budget at which the paper sees its scores level off.
_LABELLING_VOTES = 12

# Dirichlet of items that the judge itself calls a tie nearly always. An assumption.
_TIED = (0.3, 6.0, 0.3)


@dataclass(frozen=True, eq=False)
class SimulatedVotes(Readable):
    """Votes of a simulated judge and the gold labels of its items.

    Attributes
    ----------
    regime : Regime
        The simulated task.
    items : (n_items,) array of str
        Ids, unique.
    votes : (n_items, n_votes) array of int8
        Votes -1, 0 or +1 from A's point of view, in the order drawn. None is missing.
    labels : (n_items,) array of int8
        Gold labels.
    """

    regime: Regime
    items: NDArray[np.str_]
    votes: NDArray[np.int8]
    labels: NDArray[np.int8]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Counts of all votes, (n_items, 3) in label order."""
        return _count(self.votes)

    def first(self, n: int) -> NDArray[np.int64]:
        """Count the first `n` votes of every item, (n_items, 3) in label order."""
        return _count(self.votes[:, : as_integer(n, "n", 0, self.votes.shape[1])])

    def vote_columns(self) -> dict[str, NDArray[Any]]:
        """Return the votes as columns of a long table, one row per vote, item after item.

        They are `item`, `vote`, `sample` (0, 1, ... within the item) and `order`: AB, BA, AB, ...,
        which only matters with a `btdagg.datasets.Thurstone`.
        """
        n_items, n_votes = self.votes.shape
        return {
            "item": np.repeat(self.items, n_votes),
            "vote": self.votes.ravel(),
            "sample": np.tile(np.arange(n_votes), n_items),
            "order": np.tile(np.resize(["AB", "BA"], n_votes), n_items),
        }

    def label_columns(self) -> dict[str, NDArray[Any]]:
        """Return the gold labels as columns `item` and `label`, one row per item."""
        return {"item": self.items, "label": self.labels}


def simulate(
    regime: Regime | str,
    n_items: int,
    n_votes: int = 12,
    *,
    seed: int,
    truth: Thurstone | None = None,
) -> SimulatedVotes:
    """Simulate a judge's votes and the gold labels of a task.

    Parameters
    ----------
    regime : Regime or str
        A task, or the name of one of `REGIMES`.
    n_items, n_votes : int
        At least 1. Labels depend on the first twelve votes, so with one seed items, labels and
        common votes do not depend on `n_votes`; later votes depend on the item alone.
    seed : int
        Non-negative. The same seed gives the same bits with the same version of NumPy.
    truth : Thurstone, optional
        Draws votes and labels; without it labels are drawn from the Davidson model given the votes,
        so a comparison with that model is circular.

    References
    ----------
    Eqs. for s, t, u and eta of the paper; Davidson (1970).
    """
    if isinstance(regime, str):
        expect(regime in REGIMES, "regime", regime, f"a Regime or one of {', '.join(REGIMES)}")
        regime = REGIMES[regime]
    n_items = as_integer(n_items, "n_items", least=1)
    n_votes = as_integer(n_votes, "n_votes", least=1)
    rng = np.random.default_rng(as_integer(seed, "seed", least=0))
    draw = _draw_davidson if truth is None else truth.draw
    votes, labels = draw(regime, n_items, n_votes, rng)
    width = len(str(n_items - 1))
    items = np.array([f"{regime.name}-{item:0{width}}" for item in range(n_items)])
    return SimulatedVotes(regime, items, votes, labels)


def _draw_davidson(
    regime: Regime, n_items: int, n_votes: int, rng: np.random.Generator
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    kinds, weights = _mixture(regime)
    kind = rng.choice(len(kinds), size=n_items, p=weights)
    judge = np.empty((n_items, 3))
    for index, alpha in enumerate(kinds):
        judge[kind == index] = rng.dirichlet(alpha, size=np.count_nonzero(kind == index))
    # Votes beyond the twelfth come last, so that they change nothing that is drawn before them.
    votes = _draw(judge, rng.random((n_items, _LABELLING_VOTES)))
    chances = _label_chances(regime, _count(votes))
    labels = _draw(chances, rng.random((n_items, 1)))[:, 0]
    more = _draw(judge, rng.random((n_items, max(n_votes - _LABELLING_VOTES, 0))))
    return np.hstack([votes, more])[:, :n_votes].copy(), labels


def _mixture(regime: Regime) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # Shares follow from the gold shares and the judge's tie rate, exactly and without a seed.
    side, tie = regime.contested
    kinds = np.array([regime.clear[::-1], regime.clear, (side, tie, side), _TIED])
    n = _LABELLING_VOTES
    counts = np.array([(m, n - m - p, p) for m in range(n + 1) for p in range(n + 1 - m)])
    chances = np.array([_count_chances(alpha, counts) for alpha in kinds])
    # What a kind contributes is linear in its share, so four wants fix four shares.
    contributions = chances @ np.column_stack(
        [_label_chances(regime, counts), _majority_is_tie(counts)]
    )
    wanted = np.array([*regime.gold_shares, regime.judge_tie_rate])
    weights = np.linalg.solve(contributions.T, wanted)
    if not (weights > -1e-9).all():
        raise InputError(
            f"regime {regime.name!r} has gold shares {regime.gold_shares.round(3).tolist()} and "
            f"judge_tie_rate {regime.judge_tie_rate}, expected values that a mixture of its items "
            "can give"
        )
    weights = weights.clip(min=0)
    return kinds, weights / weights.sum()


def _count_chances(alpha: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Dirichlet-multinomial probabilities of the count triples of twelve votes."""
    # Row k holds start * (start + 1) * ..., k factors, over k!: of each label, then of all votes.
    start = np.append(alpha, alpha.sum())
    steps = np.arange(_LABELLING_VOTES)[:, None]
    rising = np.cumprod(np.vstack([np.ones(4), (start + steps) / (1 + steps)]), axis=0)
    chances: NDArray[np.float64] = rising[counts, np.arange(3)].prod(axis=1) / rising[-1, 3]
    return chances


def _label_chances(regime: Regime, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    s, t = features(counts)
    return probabilities(s, t, regime.beta, float(np.log(regime.nu)), regime.gamma)


def _majority_is_tie(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    minus, tie, plus = counts.T
    ties: NDArray[np.bool_] = (tie >= np.maximum(minus, plus)) | (minus == plus)
    return ties


def _draw(chances: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.int8]:
    minus, not_plus = chances[:, :1], chances[:, :2].sum(axis=1, keepdims=True)
    votes: NDArray[np.int8] = np.add(uniform >= minus, uniform >= not_plus, dtype=np.int8)
    return votes - np.int8(1)


def _count(votes: NDArray[np.int8]) -> NDArray[np.int64]:
    by_label = [np.count_nonzero(votes == label, axis=1) for label in (-1, 0, 1)]
    return np.stack(by_label, axis=1, dtype=np.int64)
