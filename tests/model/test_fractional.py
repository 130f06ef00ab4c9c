"""Counts that are not whole: votes with a strength, through everything that takes counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import btdagg
from btdagg import DavidsonModel, InputError, reference

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

strengths = hnp.arrays(np.float64, st.integers(1, 60), elements=st.floats(-1, 1))


def votes_of(n_items=200, n_votes=8, seed=3):
    rng = np.random.default_rng(seed)
    lean = rng.normal(0, 0.6, (n_items, 1))
    votes = np.clip(lean + rng.normal(0, 0.4, (n_items, n_votes)), -1, 1)
    labels = np.sign(np.round(lean[:, 0] * 1.6)).astype(np.int8)
    return votes, labels


@pytest.fixture(scope="module")
def judged():
    votes, labels = votes_of()
    items = np.repeat(np.arange(len(votes)), votes.shape[1])
    return btdagg.tally(items, votes.ravel())[1], labels


@given(strengths)
def test_a_vote_of_strength_w_is_w_of_a_win_and_the_rest_of_a_tie(votes):
    _, counts = btdagg.tally(np.zeros(len(votes), dtype=int), votes)
    rounded = np.sign(votes) * np.floor(np.abs(votes) * 1024 + 0.5) / 1024
    wins = [-rounded[rounded < 0].sum(), rounded[rounded > 0].sum()]
    np.testing.assert_array_equal(counts[0], [wins[0], len(votes) - sum(wins), wins[1]])


@given(strengths, st.randoms(use_true_random=False), st.floats(0.01, 100))
def test_order_split_mirror_and_scale_leave_every_bit(votes, random, scale):
    items = np.zeros(len(votes), dtype=int)
    _, counts = btdagg.tally(items, votes * scale, full_margin=scale)
    order = list(range(len(votes)))
    random.shuffle(order)
    np.testing.assert_array_equal(
        btdagg.tally(items, (votes * scale)[order], full_margin=scale)[1], counts
    )
    cut = len(votes) // 2
    parts = [
        btdagg.tally(items[part], votes[part] * scale, full_margin=scale)[1].sum(axis=0)
        for part in (slice(cut), slice(cut, None))
    ]
    np.testing.assert_array_equal(sum(parts), counts[0])
    mirrored = btdagg.tally(items, -votes * scale, full_margin=scale)[1]
    np.testing.assert_array_equal(mirrored, counts[:, ::-1])
    doubled = btdagg.tally(items, votes * scale * 2, full_margin=scale * 2)[1]
    np.testing.assert_array_equal(doubled, counts)


def test_whole_strengths_are_the_votes_that_they_were():
    items, votes = ["x", "y", "x", "z"], [1, 0, -1, 1]
    ids, whole = btdagg.tally(items, votes)
    for same in (np.array(votes, dtype=float), [3.0, 0.0, -9.0, 2.0]):
        full_margin = None if np.abs(same).max() <= 1 else 2.0
        other_ids, counts = btdagg.tally(items, same, full_margin)
        assert counts.dtype == np.int64
        assert ids.tolist() == other_ids.tolist()
        np.testing.assert_array_equal(counts, whole)


@pytest.mark.parametrize(
    ("votes", "full_margin", "argument", "row"),
    [
        ([0, 3], None, "votes", 1),
        ([0.5, 1.01], None, "votes", 1),
        ([0.5, np.nan], None, "votes", 1),
        ([0.5, np.inf], 2, "votes", 1),
        ([True, False], None, "votes", None),
        ([1, 0], 0, "full_margin", None),
        ([1, 0], -3, "full_margin", None),
        ([1, 0], np.nan, "full_margin", None),
    ],
)
def test_what_is_no_strength_is_refused(votes, full_margin, argument, row):
    with pytest.raises(InputError) as caught:
        btdagg.tally([1, 2], votes, full_margin)
    assert caught.value.argument == argument
    assert row is None or caught.value.row == row


def test_whole_floats_give_the_bits_of_integers(judged):
    whole = np.round(judged[0]).astype(np.int64)
    labels = judged[1]
    for few in (len(labels), 30):
        of_ints, of_floats = (
            btdagg.calibrate(c[:few], labels[:few], prior=None if few > 30 else "weak").model
            for c in (whole, whole.astype(np.float64))
        )
        assert of_ints == of_floats


def test_the_loss_is_that_of_the_reference(judged):
    counts, labels = judged
    model = DavidsonModel(1.4, 0.7, 0.9)
    s, t = reference.features(counts)
    p = reference.probabilities(s, t, 1.4, 0.7, 0.9)
    assert model.drps(counts, labels) == pytest.approx(reference.drps(p, labels), abs=1e-14)
    np.testing.assert_allclose(
        model.drps_gradient(counts, labels),
        reference.drps_gradient(s, t, labels, 1.4, 0.7, 0.9),
        atol=1e-13,
    )


def test_a_prior_of_fractions_is_saved_whole_and_helps(judged, tmp_path):
    counts, labels = judged
    prior = btdagg.fit_prior({"a": (counts[:120], labels[:120])})
    prior.save(tmp_path / "prior.json")
    again = btdagg.Prior.load(tmp_path / "prior.json")
    np.testing.assert_array_equal(again.parameters(), prior.parameters())
    assert prior.n_votes == 8
    model = btdagg.calibrate(counts[120:], None, prior=prior).model
    assert model == btdagg.calibrate(counts[120:], None, prior=again).model
    strong = np.abs(labels[120:] - model.decide(counts[120:])).mean()
    signs = btdagg.majority_vote(counts[120:])
    assert strong < np.abs(labels[120:] - signs).mean()


def test_many_fractions_are_summed_on_a_grid_near_the_sum_over_all():
    votes, _ = votes_of(6000)
    counts = btdagg.tally(np.repeat(np.arange(6000), 8), votes.ravel())[1]
    on_grid = btdagg.calibrate(counts, None, prior="weak").model
    apart = [btdagg.calibrate(part, None, prior="weak").model for part in np.split(counts, 4)]
    mean = np.mean([[m.beta, m.eta0, m.gamma] for m in apart], axis=0)
    np.testing.assert_allclose([on_grid.beta, on_grid.eta0, on_grid.gamma], mean, atol=0.05)
    probabilities = on_grid.predict_proba(counts) - apart[0].predict_proba(counts)
    assert np.abs(probabilities).max() < 0.02
