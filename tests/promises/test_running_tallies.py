"""A tally's saved state goes on by the model that it was saved with, or says so."""

from itertools import product

import numpy as np
import pytest

from btdagg import Covariate, DavidsonModel
from btdagg.online import OnlineTally, StoppingRule
from refusals import refused

OLD = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
NEW = DavidsonModel(beta=3.0, eta0=-2.0, gamma=0.1)


@pytest.fixture
def state(tmp_path):
    tally = OnlineTally(rule=StoppingRule.lossless(OLD, 8))
    for sample in range(8):
        tally.add_one("settled", vote=1, sample=sample)
    tally.add_one("open", vote=1, sample=0)
    assert tally.settle().ids.tolist() == ["settled"]
    tally.save(tmp_path / "tally.state")
    return tmp_path / "tally.state"


def test_after_a_new_calibration_the_old_model_does_not_decide(state):
    rule = StoppingRule.lossless(NEW, 8)
    for given in ({"rule": rule}, {"model": NEW}, {"model": OLD}, {}):
        for load in (OnlineTally.load, of_bytes):
            with pytest.raises(ValueError, match=r'other="move"') as error:
                load(state, **given)
            assert error.value.argument == "rule"


def test_the_votes_move_to_the_new_model_which_decides_all_of_them(state):
    rule = StoppingRule.lossless(NEW, 8)
    moved = OnlineTally.load(state, rule=rule, other="move")
    counts = moved.counts()[1]
    assert moved.rule == rule
    assert moved.decide()[1].tolist() == NEW.decide(counts).tolist() == [1, 1]
    assert OLD.decide(counts).tolist() == [0, 1]
    moved.add_one("settled", vote=1, sample=3)  # known already
    assert moved.settle().ids.tolist() == ["settled"]
    with refused("other", got="take"):
        OnlineTally.load(state, rule=rule, other="take")


def test_the_same_model_goes_on_where_it_was(state):
    rule = StoppingRule.lossless(OLD, 8)
    for load in (OnlineTally.load, of_bytes):
        tally = load(state, rule=rule)
        assert not len(tally.settle().ids)
        assert tally.to_bytes() == state.read_bytes()


def test_votes_saved_without_a_model_need_none_and_move_to_one():
    tally = OnlineTally()
    tally.add_one("x", vote=1)
    assert OnlineTally.from_bytes(tally.to_bytes()).counts_one("x") == (0, 0, 1)
    with pytest.raises(ValueError, match=r'other="move"') as error:
        OnlineTally.from_bytes(tally.to_bytes(), NEW)
    assert error.value.argument == "model"
    moved = OnlineTally.from_bytes(tally.to_bytes(), NEW, other="move")
    assert moved.decide()[1].tolist() == NEW.decide([[0, 0, 1]]).tolist()


def test_every_item_settles_once_by_its_votes_and_covariate_however_late_they_come():
    """Until no vote to come changes its label: of more votes than the rule's none is to come."""
    model = DavidsonModel(1.2, 0.3, 0.8, covariates=(Covariate("length", 0.9, 1.3),))
    rng = np.random.default_rng(0)
    votes, known = rng.choice([-1, 0, 1], (60, 6), p=[0.3, 0.2, 0.5]), 2 * rng.normal(size=60)
    n = 4
    tally, settled = OnlineTally(rule=StoppingRule.lossless(model, n), late="drop"), set()
    parts = [(slice(40), slice(0, 2)), (slice(60), slice(2, 3)), (slice(20, 60), slice(3, 6))]
    for items, samples in [*parts, (slice(20), slice(3, 4)), (slice(40, 60), slice(0, 2))]:
        batch = votes[items, samples]
        tally.add(np.arange(60)[items].repeat(batch.shape[1]), batch.ravel())
        ids, counts = tally.counts()
        expected = {}
        for item, row, value in zip(ids.tolist(), counts, known, strict=False):
            left = max(n - row.sum(), 0)
            ends = [row + more for more in product(range(left + 1), repeat=3) if sum(more) == left]
            labels = {*model.decide(ends, covariates={"length": [value] * len(ends)}).tolist()}
            if len(labels) == 1 and item not in settled:
                (expected[item],) = labels
        found = tally.settle(covariates={"length": known[: len(ids)]})
        assert dict(zip(found.ids.tolist(), found.labels.tolist(), strict=True)) == expected
        settled |= expected.keys()
    assert settled == {*range(60)}
    assert (counts.sum(axis=1) > n).any()


def of_bytes(path, **given):
    return OnlineTally.from_bytes(path.read_bytes(), **given)
