"""The simulation has the paper's shares and tie rates, and its pattern of errors.

Labels are drawn from the Davidson model here, so its errors say that the simulation and the fit
work, and nothing of judges; `test_thurstone.py` has the simulation in which they are not.
"""

import warnings

import numpy as np
import pytest

from btdagg import DavidsonModel, calibrate, majority_vote, mean_absolute_error
from btdagg.datasets import REGIMES, simulate
from btdagg.model import CalibrationWarning
from refusals import refused

MANY = 50_000
NAMES = sorted(REGIMES)


@pytest.fixture(scope="module")
def many():
    return {name: simulate(name, MANY, seed=11) for name in NAMES}


def label_shares(labels):
    return np.array([(labels == label).mean() for label in (-1, 0, 1)])


def true_model(regime):
    return DavidsonModel(regime.beta, float(np.log(regime.nu)), regime.gamma)


def fitted_model(counts, labels):
    with warnings.catch_warnings():
        # With fifty labels, or nu near its bound in truth, a fit at a bound is to be expected.
        warnings.simplefilter("ignore", CalibrationWarning)
        return calibrate(counts, labels).model


@pytest.mark.parametrize("name", NAMES)
def test_gold_shares_are_those_of_the_paper(many, name):
    # Four standard errors of 50,000 items are 0.9 points.
    np.testing.assert_allclose(
        label_shares(many[name].labels), REGIMES[name].gold_shares, atol=0.009
    )


@pytest.mark.parametrize("name", NAMES)
def test_majority_ties_are_as_frequent_as_stated(many, name):
    rate = (majority_vote(many[name].counts) == 0).mean()
    assert rate == pytest.approx(REGIMES[name].judge_tie_rate, abs=0.009)


@pytest.mark.parametrize("name", NAMES)
def test_labels_follow_the_davidson_probabilities(many, name):
    sample = many[name]
    cells, cell, size = np.unique(sample.counts, axis=0, return_inverse=True, return_counts=True)
    seen = np.stack([np.bincount(cell, sample.labels == label) for label in (-1, 0, 1)], axis=1)
    expected = size[:, None] * true_model(REGIMES[name]).predict_proba(cells)
    large = expected.min(axis=1) >= 5
    degrees = 2 * large.sum()
    statistic = ((seen - expected)[large] ** 2 / expected[large]).sum()
    # Chi-squared has mean `degrees` and variance 2 * degrees.
    assert degrees >= 6
    assert statistic < degrees + 5 * np.sqrt(2 * degrees)


@pytest.mark.parametrize("name", NAMES)
def test_votes_of_an_item_are_exchangeable(many, name):
    votes = many[name].votes.astype(float)
    assert np.ptp(votes.mean(axis=0)) < 0.03
    assert np.ptp((votes == 0).mean(axis=0)) < 0.02
    near, late, far = (np.corrcoef(votes[:, pair].T)[0, 1] for pair in ([0, 1], [10, 11], [0, 11]))
    assert near > 0.3  # an item's votes agree
    assert late == pytest.approx(near, abs=0.03)
    assert far == pytest.approx(near, abs=0.03)


@pytest.mark.parametrize("name", NAMES[::3])
def test_fit_on_many_items_finds_the_rule_that_drew_the_labels(many, name):
    sample = many[name]
    truth = true_model(REGIMES[name])
    fitted = fitted_model(sample.counts[:20_000], sample.labels[:20_000]).decide(sample.counts)
    assert (fitted == truth.decide(sample.counts)).mean() > 0.97
    risks = truth.risks(sample.counts)
    excess = np.take_along_axis(risks, fitted[:, None] + 1, axis=1)[:, 0] - risks.min(axis=1)
    assert excess.mean() < 0.001


@pytest.mark.parametrize(
    ("name", "majority_4", "majority_12"),
    [
        ("wmt-en-de", 0.671, 0.648),
        ("wmt-zh-en", 0.549, 0.527),
        ("rb2-precise-if", 0.498, 0.552),
        ("rb2-factuality", 0.615, 0.647),
        ("rb2-math", 0.360, 0.384),
        ("rb2-focus", 0.394, 0.403),
        ("rb2-safety", 0.373, 0.402),
        ("rb2-ties", 0.155, 0.158),
    ],
)
def test_majority_vote_errs_about_as_much_as_in_the_paper(many, name, majority_4, majority_12):
    sample = many[name]
    for n, paper in ((4, majority_4), (12, majority_12)):
        error = mean_absolute_error(sample.labels, majority_vote(sample.first(n)))
        assert error == pytest.approx(paper, abs=0.15)


def test_the_same_seed_gives_the_same_bits():
    first, again, other = (simulate("rb2-math", 300, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.votes, again.votes)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert (first.votes != other.votes).any()
    assert (first.labels != other.labels).any()


def test_a_seed_gives_the_same_items_whatever_the_number_of_votes():
    twelve = simulate("wmt-en-de", 300, seed=4)
    for n_votes in (1, 5, 12, 20):
        sample = simulate("wmt-en-de", 300, n_votes, seed=4)
        assert sample.votes.shape == (300, n_votes)
        shared = min(n_votes, 12)
        np.testing.assert_array_equal(sample.votes[:, :shared], twelve.votes[:, :shared])
        np.testing.assert_array_equal(sample.labels, twelve.labels)


def test_votes_beyond_the_twelfth_know_the_item():
    votes = simulate("wmt-en-de", 20_000, 13, seed=4).votes.astype(float)
    within, beyond = (np.corrcoef(votes[:, [0, column]].T)[0, 1] for column in (11, 12))
    assert beyond == pytest.approx(within, abs=0.03)


def test_counts_are_of_the_votes_in_the_order_drawn():
    sample = simulate(REGIMES["rb2-ties"], 101, 7, seed=0)
    assert len(set(sample.items.tolist())) == 101
    row = sample.votes[5].tolist()
    assert sample.counts[5].tolist() == [row.count(label) for label in (-1, 0, 1)]
    assert sample.first(3)[5].tolist() == [row[:3].count(label) for label in (-1, 0, 1)]
    assert not sample.first(0).any()


def test_an_unknown_regime_is_refused():
    with refused("regime", got="wmt", expected="a Regime or one of wmt-en-de, wmt-zh-en"):
        simulate("wmt", 5, 4, seed=0)
