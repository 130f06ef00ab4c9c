"""How many items to judge again beside a stream, and how often."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from btdagg._util.errors import of_kind
from btdagg._util.readable import readable
from btdagg._util.validation import as_integer
from btdagg.model.intervals import as_level
from btdagg.online.anchors import Anchors
from btdagg.online.drift import FACETS, N_TESTS, facet_differences
from btdagg.online.predictive import VoteDistribution

_N_STREAMS, _BLOCK, _BEFORE, _MOST = 40, 5, 100, 2000
_TIE, _FIRST = 0, 1  # what a judge that drifts may vote whatever it reads


@readable
class PlannedAnchors(NamedTuple):
    """Anchors that find a drift of the judge.

    Attributes
    ----------
    drift : float
        The share of its votes that the judge casts for one label, whatever it reads.
    within : int
        Items of the stream after the change.
    power : float
        With what probability the judge is named by then.
    anchors : int or None
        How many have to be judged again after the change; None where 2,000 are not enough.
    """

    drift: float
    within: int
    power: float
    anchors: int | None

    def __str__(self) -> str:
        found = (
            f"to find with probability {self.power:.0%}, within {self.within:,} items, that the "
            "judge casts "
            f"{self.drift:.0%} of its votes for the tie, or for one side, whatever it reads"
        )
        if self.anchors is None:
            return f"{found}, even 2,000 items judged again are not enough; use more votes per item"
        pace = self.within / self.anchors
        often = f"one for every {pace:.3g} items" if pace >= 1 else "more than there are items"
        return f"{found}, judge {self.anchors:,} items again: {often}"


def plan_anchors(
    votes: VoteDistribution,
    *,
    n_votes: int,
    drift: float = 0.1,
    within: int = 1000,
    power: float = 0.9,
    level: float = 0.01,
    seed: int = 0,
) -> PlannedAnchors:
    """Say how many items to judge again so that `DriftMonitor` finds a drift of the judge in time.

    Streams of 100 anchors of the old judge, then anchors of one that casts a share of its votes for
    one label (the tie, or the response shown first), are simulated and followed by the monitor's
    test. The answer is of the harder drift.

    Parameters
    ----------
    votes : VoteDistribution
        Distribution of the items' votes, by `btdagg.online.fit_votes`.
    n_votes : int
        Votes of an item, each time.
    drift : float
        Share of votes that the drifted judge casts for that label, between 0 and 1.
    within : int
        Items of the stream after the change within which to find it.
    power, level : float
        The probability of finding it, and the level of the monitor.
    seed : int
        Seed of the simulation: 40 streams of each drift.

    Examples
    --------
    >>> from btdagg.online import VoteDistribution
    >>> votes = VoteDistribution([(1, (1, 0.5, 6))])
    >>> 50 < plan_anchors(votes, n_votes=8, drift=0.2).anchors < 250
    True
    """
    expected = "the distribution of whole votes for A, tie and B"
    votes = of_kind(votes, VoteDistribution, "votes", expected)
    n, within = as_integer(n_votes, "n_votes", 1, 128), as_integer(within, "within", 1)
    drift, power = as_level(drift, "drift"), as_level(power, "power")
    level, seed = as_level(level), as_integer(seed, "seed", 0)
    needed, found_in = 0, math.ceil(power * _N_STREAMS)
    for label in (_TIE, _FIRST):
        found: list[int] = []
        for stream in range(_N_STREAMS):
            after = _until(votes, n, drift, label, level, [seed, label, stream])
            found += [] if after is None else [after]
            if stream + 1 - len(found) > _N_STREAMS - found_in:
                return PlannedAnchors(drift, within, power, None)
        needed = max(needed, sorted(found)[found_in - 1])
    return PlannedAnchors(drift, within, power, needed)


def _until(
    votes: VoteDistribution, n: int, drift: float, label: int, level: float, seed: list[int]
) -> int | None:
    rng = np.random.default_rng(seed)
    drawn = votes.draw(_BEFORE + _MOST, 2 * n, seed=int(rng.integers(2**62)))
    casts = rng.random((_MOST, n)) < drift
    drawn[_BEFORE:, n:][casts] = label
    old, new = (
        np.stack([(part == vote).sum(axis=1) for vote in (-1, 0, 1)], axis=-1)[:, None] * 1.0
        for part in (drawn[:, :n], drawn[:, n:])
    )
    differences = facet_differences(old, new)
    level = level / N_TESTS  # of the judge alone
    anchors = Anchors([np.zeros(2)] * len(FACETS), FACETS, level)
    for start in range(0, _BEFORE + _MOST, _BLOCK):
        block = slice(start, start + _BLOCK)
        anchors.judge_again(old[block], new[block], differences[:, block])
        if anchors.judge_pvalue <= level and start >= _BEFORE:
            return start + _BLOCK - _BEFORE
    return None
