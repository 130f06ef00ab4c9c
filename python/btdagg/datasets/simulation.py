"""A seeded simulation of LLM judges on the paper's eight tasks.

Items are of four kinds: clear towards A, clear towards B, contested, tied. The kind sets a
Dirichlet distribution; an item draws its own vote probabilities from it, and the judge's votes are
drawn independently from those. The gold label is drawn from the Davidson probabilities at the
counts of the item's first twelve votes, so the model that `btdagg.calibrate` fits is the right one,
and wins by construction. How common each kind is follows from the gold shares and the judge's tie
rate, exactly and without a seed. A :class:`Thurstone` draws votes and labels otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg._core import InputError
from btdagg.datasets.thurstone import Thurstone
from btdagg.reference import features, probabilities
from btdagg.validation import as_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

Family = Literal["High-Correction", "Low-Correction", "Mismatched"]

# The budget at which the paper sees its scores level off.
_LABELLING_VOTES = 12

# Dirichlet of items that the judge itself calls a tie nearly always. An assumption.
_TIED = (0.3, 6.0, 0.3)


@dataclass(frozen=True)
class Regime:
    """A task of the paper: how its gold labels relate to its judge's votes.

    Attributes
    ----------
    name : str
        Key in `REGIMES`; also the stem of item ids.
    family : str
        The paper's name for the correction that the judge needs.
    beta, nu, gamma : float
        Davidson parameters from which labels are drawn, at alpha = kappa = 1; nu = exp(eta0).
    gold_counts : (int, int, int)
        Gold labels of the paper's data set in label order: minus (B is better), tie, plus.
    judge_tie_rate : float
        Share of items whose majority over twelve votes is a tie; an even split between the most
        common votes counts as one.
    clear : (float, float, float)
        Dirichlet parameters of an item that is clear towards A, in label order; mirrored for B.
    contested : (float, float)
        Dirichlet parameters of a contested item: of either side, and of a tie.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    name: str
    family: Family
    beta: float
    nu: float
    gamma: float
    gold_counts: tuple[int, int, int]
    judge_tie_rate: float
    clear: tuple[float, float, float]
    contested: tuple[float, float]

    def __post_init__(self) -> None:
        for field, size in {"beta": 1, "nu": 1, "clear": 3, "contested": 2}.items():
            value = getattr(self, field)
            if np.size(value) != size or not (np.isfinite(value) & np.greater(value, 0)).all():
                raise InputError(f"{field} is {value}, want {size} finite and positive")
        if not np.isfinite(self.gamma):
            raise InputError(f"gamma is {self.gamma}, want a finite number")
        gold = self.gold_counts
        if len(gold) != 3 or min(gold) < 0 or sum(gold) == 0:
            raise InputError(f"gold_counts is {gold}, want 3 non-negative integers, not all zero")
        if not 0 <= self.judge_tie_rate <= 1:
            raise InputError(f"judge_tie_rate is {self.judge_tie_rate}, want a share from 0 to 1")

    @property
    def gold_shares(self) -> NDArray[np.float64]:
        """Shares of the gold labels, (3,) in label order."""
        return np.array(self.gold_counts) / np.float64(sum(self.gold_counts))


# beta, nu, gamma: the means of the paper's table of fitted parameters, but for two tasks, where the
# gold shares are out of reach with them (a test holds these numbers):
# - wmt-zh-en, means 0.87, 0.47, 0.56: a gold tie has probability 0.19 where all votes are ties and
#   less elsewhere; 18.3% are. Taken are the upper quartile of nu and the lower one of gamma.
# - rb2-factuality, mean nu 412.7 with quartiles 8.7 and 1000: a gold tie has probability 0.81 at
#   twelve votes for one side and more elsewhere; 53.3% are. Taken is the 33 of the paper's text.
# Gold: the paper's table of the ground truth distribution.
# Ties: the paper says that self-consistency predicts ~49% on wmt-zh-en and ~6% on rb2-factuality.
# The other rates are assumptions; low where the paper calls the judge overconfident, and high on
# rb2-ties, where 71.6% of gold labels are ties and majority vote agrees with 84%.
# Clear and contested: assumptions, chosen so that majority vote and the calibrated model compare as
# in the paper's MAE table. The clear items of the overconfident judges are all but unanimous, since
# with their nu and gamma one tie vote in twelve already makes a gold tie the likeliest label.
# fmt: off
_HIGH: Family = "High-Correction"
_LOW: Family = "Low-Correction"
_ALL = (  # beta, nu, gamma; gold; ties; clear; contested
    Regime("wmt-en-de", _LOW, 0.62, 1.40, 0.50,
           (214, 121, 175), 0.25, (0.05, 0.25, 40.0), (10.0, 6.0)),
    Regime("wmt-zh-en", _LOW, 0.87, 0.64, 0.22,
           (739, 336, 760), 0.49, (0.5, 4.0, 10.0), (3.0, 3.0)),
    Regime("rb2-precise-if", _LOW, 1.19, 14.3, 0.52,
           (268, 480, 212), 0.04, (0.1, 0.1, 40.0), (3.0, 0.3)),
    Regime("rb2-factuality", "Mismatched", 1.07, 33.0, 1.22,
           (233, 533, 234), 0.06, (2.0, 3.0, 18.0), (3.0, 0.2)),
    Regime("rb2-math", _HIGH, 2.07, 653.6, 1.63,
           (247, 498, 255), 0.03, (0.05, 0.05, 40.0), (3.0, 0.2)),
    Regime("rb2-focus", _HIGH, 1.74, 766.2, 1.82,
           (261, 495, 244), 0.03, (0.05, 0.05, 40.0), (3.0, 0.2)),
    Regime("rb2-safety", _HIGH, 1.41, 686.7, 1.94,
           (269, 498, 233), 0.03, (0.05, 0.05, 40.0), (3.0, 0.2)),
    Regime("rb2-ties", _HIGH, 2.85, 960.5, 2.20,
           (149, 716, 135), 0.58, (0.05, 0.3, 5.0), (3.0, 1.0)),
)
# fmt: on

REGIMES: Mapping[str, Regime] = MappingProxyType({regime.name: regime for regime in _ALL})
"""The paper's tasks by name."""


@dataclass(frozen=True, eq=False)
class SimulatedVotes:
    """Votes of a simulated judge and the gold labels of its items.

    Attributes
    ----------
    regime : Regime
        What was simulated.
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
        """Count the first `n` votes of every item.

        Parameters
        ----------
        n : int
            Votes per item, from 0 to those drawn.

        Returns
        -------
        (n_items, 3) array of int64
            Counts in label order: minus, tie, plus.

        Raises
        ------
        InputError
            If fewer than `n` votes were drawn.
        """
        n = as_integer(n, "n", least=0)
        if n > self.votes.shape[1]:
            raise InputError(f"n is {n}, want at most {self.votes.shape[1]}, the votes drawn")
        return _count(self.votes[:, :n])

    def vote_columns(self) -> dict[str, NDArray[Any]]:
        """Give the votes as columns of a long table, one row per vote, item after item.

        Returns
        -------
        dict of (n_items * n_votes,) arrays
            `item`, `vote`, `sample` (0, 1, ... within the item) and `order`: AB, BA, AB, ... as the
            paper shows the pair. The order makes a difference with a :class:`Thurstone` alone.
        """
        n_items, n_votes = self.votes.shape
        return {
            "item": np.repeat(self.items, n_votes),
            "vote": self.votes.ravel(),
            "sample": np.tile(np.arange(n_votes), n_items),
            "order": np.tile(np.resize(["AB", "BA"], n_votes), n_items),
        }

    def label_columns(self) -> dict[str, NDArray[Any]]:
        """Give the gold labels as columns of a table, one row per item.

        Returns
        -------
        dict of (n_items,) arrays
            `item` and `label`.
        """
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
        Items, and votes per item; at least 1. A label depends on the first twelve votes whatever
        `n_votes`: a seed gives the same items and labels with fewer votes, the same votes as far as
        they go, and with more votes ones that know the item but not the label.
    seed : int
        Non-negative. The same seed gives the same bits with the same version of NumPy.
    truth : Thurstone, optional
        What votes and labels are drawn from. Without it labels are drawn from the Davidson model,
        given the votes: a comparison with that model is then circular.

    Returns
    -------
    SimulatedVotes
        Ids, votes, labels and counts.

    Raises
    ------
    InputError
        If a number is out of range, the regime unknown, or its gold shares and tie rate out of
        reach of its parameters.

    References
    ----------
    Eqs. for s, t, u and eta of the paper; Davidson (1970).
    """
    if isinstance(regime, str) and regime in REGIMES:
        regime = REGIMES[regime]
    if not isinstance(regime, Regime):
        raise InputError(f"regime is {regime!r}, want a Regime or one of {', '.join(REGIMES)}")
    if not isinstance(truth, Thurstone | None):
        raise InputError(f"truth is {truth!r}, want a Thurstone or None")
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
    """Draw votes (n_items, n_votes), and from the model at their counts labels (n_items,)."""
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
    """Dirichlet parameters (4, 3) of the kinds of item and their shares (4,)."""
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
    try:
        weights = np.linalg.solve(contributions.T, wanted)
    except np.linalg.LinAlgError:
        weights = np.full(len(kinds), np.nan)
    if not (weights > -1e-9).all():
        raise InputError(
            f"regime {regime.name!r} has gold shares {regime.gold_shares.round(3).tolist()} and "
            f"judge_tie_rate {regime.judge_tie_rate}, want ones that a mixture of its items gives"
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
    """Probabilities of the labels (n, 3) at counts (n, 3)."""
    s, t = features(counts)
    return probabilities(s, t, regime.beta, float(np.log(regime.nu)), regime.gamma)


def _majority_is_tie(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether neither side alone has the most votes."""
    minus, tie, plus = counts.T
    ties: NDArray[np.bool_] = (tie >= np.maximum(minus, plus)) | (minus == plus)
    return ties


def _draw(chances: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.int8]:
    """Turn uniform numbers (n, k) into -1, 0 or +1 with each row's chances (n, 3)."""
    minus, not_plus = chances[:, :1], chances[:, :2].sum(axis=1, keepdims=True)
    votes: NDArray[np.int8] = np.add(uniform >= minus, uniform >= not_plus, dtype=np.int8)
    return votes - np.int8(1)


def _count(votes: NDArray[np.int8]) -> NDArray[np.int64]:
    """Count votes (n, k) by label, (n, 3) in label order."""
    by_label = [np.count_nonzero(votes == label, axis=1) for label in (-1, 0, 1)]
    return np.stack(by_label, axis=1, dtype=np.int64)
