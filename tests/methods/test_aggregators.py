"""Aggregators against slow definitions on every triple up to eight votes, and their protocol."""

import math
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from btdagg import Bounds, InputError, Protocol, calibrate, majority_vote, reference
from btdagg.datasets import simulate
from btdagg.evaluation import RandomSplits
from btdagg.methods import Aggregator, Calibrated, MajorityVote, RoundedMedian
from btdagg.model import CalibrationWarning
from draws import comparison_of

TRIPLES = np.array(
    [
        (minus, tie, n - minus - tie)
        for n in range(9)
        for minus in range(n + 1)
        for tie in range(n - minus + 1)
    ]
)


def votes_of(row):
    """Sorted votes of one item."""
    return [-1] * int(row[0]) + [0] * int(row[1]) + [1] * int(row[2])


def slow_majority(row):
    votes = votes_of(row)
    most = max(votes.count(label) for label in (-1, 0, 1))
    winners = [label for label in (-1, 0, 1) if votes.count(label) == most]
    return winners[0] if len(winners) == 1 else 0


def slow_median(row):
    votes = votes_of(row)
    if not votes:
        return 0
    middle = (votes[(len(votes) - 1) // 2] + votes[len(votes) // 2]) / 2
    return int(math.copysign(math.floor(abs(middle) + 0.5), middle))


RULES = [
    pytest.param(majority_vote, slow_majority, id="majority"),
    pytest.param(RoundedMedian().decide, slow_median, id="median"),
]
PROTOCOL = [MajorityVote(), RoundedMedian(), Calibrated()]


def labelled(n_items=150, seed=3):
    sample = simulate("wmt-en-de", n_items, 8, seed=seed)
    return sample.counts, sample.labels


@pytest.mark.parametrize(("function", "slow"), RULES)
def test_every_triple_up_to_eight_votes(function, slow):
    assert len(TRIPLES) == 165
    labels = function(TRIPLES)
    assert labels.dtype == np.int8
    assert labels.tolist() == [slow(row) for row in TRIPLES]
    assert function(TRIPLES[:, ::-1]).tolist() == (-labels).tolist()


some_counts = arrays.arrays(np.int64, st.tuples(st.integers(1, 6), st.just(3)), elements=st.integers(0, 2**32))  # fmt: skip  # noqa: E501


@given(some_counts)
@settings(deadline=None)
def test_large_counts_follow_the_definitions(counts):
    for row, majority, median in zip(
        counts.tolist(), majority_vote(counts), RoundedMedian().decide(counts), strict=True
    ):
        top = sorted(row)
        assert majority == (row.index(top[2]) - 1 if top[2] > top[1] else 0)

        def vote_at(place, row=row):
            return -1 if place < row[0] else 0 if place < row[0] + row[1] else 1

        n = sum(row)
        middle = vote_at((n - 1) // 2) + vote_at(n // 2) if n else 0
        assert median == np.sign(middle)


# The protocol


@pytest.mark.parametrize("aggregator", PROTOCOL)
@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_every_aggregator_fits_and_decides(aggregator: Aggregator):
    aggregator = copy(aggregator)
    counts, gold = labelled()
    fitted = aggregator.fit(counts, gold)
    assert type(fitted) is type(aggregator)
    assert fitted.name == aggregator.name
    labels = fitted.decide(TRIPLES)
    assert labels.dtype == np.int8
    assert labels.shape == (165,)
    assert {-1, 0, 1} == set(labels.tolist())
    mirrored = aggregator.fit(counts[:, ::-1], -gold).decide(TRIPLES[:, ::-1])
    assert mirrored.tolist() == (-labels).tolist()
    with pytest.raises(InputError, match=r"^counts\[1, 2\].* is -1, expected"):
        fitted.decide([[0, 0, 1], [0, 0, -1]])
    with pytest.raises(FrozenInstanceError):
        aggregator.name = "mine"


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_evaluations_leave_the_aggregator_that_they_are_given_as_it_is():
    def splits(seed):
        return Protocol(RandomSplits(size=30, n_splits=5, seed=seed))

    counts, gold = labelled()
    shared = Calibrated(prior=None)
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda seed: comparison_of(counts, gold, [shared], protocol=splits(seed)),
                range(8),
            )
        )
    assert shared == Calibrated(prior=None)
    for seed, one in enumerate(found):
        alone = comparison_of(counts, gold, [Calibrated(prior=None)], protocol=splits(seed))
        assert one.methods[0].mae.tolist() == alone.methods[0].mae.tolist()
    fitted = Calibrated(prior=None).fit(counts, gold)
    again = comparison_of(counts, gold, [fitted], protocol=splits(0))
    assert again.methods[0].mae.tolist() == found[0].methods[0].mae.tolist()
    assert fitted.calibration == calibrate(counts, gold, prior=None)


def test_davidson_is_calibration_and_the_label_of_least_risk():
    counts, gold = labelled()
    fitted = Calibrated().fit(counts, gold)
    assert fitted.name == "calibrated"
    assert fitted.calibration.model == calibrate(counts, gold, prior="weak").model
    paper = Calibrated(prior=None).fit(counts, gold)
    assert paper.name == "Davidson"
    assert paper.calibration == calibrate(counts, gold, prior=None)
    model = fitted.calibration.model
    s, t = reference.usual_features(TRIPLES, model.usual_votes)
    p = reference.probabilities(s, t, model.beta, model.eta0, model.gamma)
    assert fitted.decide(TRIPLES).tolist() == reference.decide(p).tolist()
    assert fitted.decide(TRIPLES).tolist() != majority_vote(TRIPLES).tolist()


def test_davidson_passes_its_settings_on():
    counts, gold = labelled()
    bounds = Bounds(beta=(0.25, 0.26), nu=(2.0, 3.0))
    davidson = Calibrated(name="mine", alpha=0.5, kappa=2.0, bounds=bounds)
    with pytest.warns(CalibrationWarning, match=r"beta is at its bound 0\.2[56]"):
        fitted = copy(davidson).fit(counts, gold)
    assert replace(fitted, calibration=None) == davidson
    model = fitted.calibration.model
    assert (model.alpha, model.kappa) == (0.5, 2.0)
    assert 0.25 <= model.beta <= 0.26
    assert 2.0 <= model.nu <= 3.0
