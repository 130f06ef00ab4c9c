"""Simulated judges that are not drawn from the Davidson model: shares, and each of their errors."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from btdagg import calibrate, majority_vote, mean_absolute_error
from btdagg.datasets import REGIMES, Thurstone, simulate
from btdagg.model import CalibrationWarning

MANY = 40_000
NAMES = sorted(REGIMES)
FAITHFUL = Thurstone(item_bias=0, vote_noise=0, difficulty=0, position_bias=0, gold_noise=0)


def drawn(name="wmt-en-de", n_items=MANY, n_votes=12, seed=3, **changed):
    return simulate(name, n_items, n_votes, seed=seed, truth=Thurstone(**changed))


@pytest.mark.parametrize("name", NAMES)
def test_gold_shares_and_the_share_of_tie_votes_are_those_of_the_task(name):
    kinds = Thurstone(), Thurstone(2, 0.1, 1, -0.5, 1), FAITHFUL
    truth = kinds[NAMES.index(name) % 3]
    sample = simulate(name, MANY, 12, seed=1, truth=truth)
    shares = [(sample.labels == label).mean() for label in (-1, 0, 1)]
    # Four standard errors of 40,000 items are 0.01; votes of an item go together.
    np.testing.assert_allclose(shares, REGIMES[name].gold_shares, atol=0.01)
    assert (sample.votes == 0).mean() == pytest.approx(REGIMES[name].judge_tie_rate, abs=0.01)


def test_without_errors_every_vote_is_right_but_for_the_rate_of_ties():
    matched = replace(
        REGIMES["wmt-zh-en"], judge_tie_rate=float(REGIMES["wmt-zh-en"].gold_shares[1])
    )
    sample = simulate(matched, 1000, 5, seed=0, truth=FAITHFUL)
    assert (sample.votes == sample.labels[:, None]).all()


def misfit(sample):
    """How far labels are from the best Davidson model, in standard deviations of chi-squared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = calibrate(sample.counts, sample.labels).model
    cells, cell, size = np.unique(sample.counts, axis=0, return_inverse=True, return_counts=True)
    seen = np.stack([np.bincount(cell, sample.labels == label) for label in (-1, 0, 1)], axis=1)
    expected = size[:, None] * model.predict_proba(cells)
    large = expected.min(axis=1) >= 5
    degrees = 2 * large.sum() - 3
    statistic = ((seen - expected)[large] ** 2 / expected[large]).sum()
    assert degrees > 5
    return (statistic - degrees) / np.sqrt(2 * degrees)


@pytest.mark.parametrize("name", ["wmt-zh-en", "rb2-factuality"])
def test_labels_do_not_follow_any_davidson_model(name):
    # The same test finds nothing where they do.
    assert misfit(simulate(name, MANY, 12, seed=5)) < 5
    assert misfit(simulate(name, MANY, 12, seed=5, truth=Thurstone())) > 15


def test_an_error_of_the_judge_about_an_item_is_in_all_its_votes():
    """More votes take off the error of a vote, and not that."""
    fair = {"vote_noise": 1.0, "difficulty": 0.0, "position_bias": 0.0, "gold_noise": 0.0}
    left = {}
    for item_bias in (0.0, 1.0):
        sample = drawn(n_votes=400, n_items=4000, item_bias=item_bias, **fair)
        few, many = (
            mean_absolute_error(sample.labels, majority_vote(sample.first(n))) for n in (4, 400)
        )
        assert many < few - 0.03
        left[item_bias] = many
    assert left[0.0] < 0.2
    assert left[1.0] > 0.35


@pytest.mark.parametrize("difficulty", [0.0, 0.3, 0.5])
def test_the_noise_of_items_is_as_dispersed_as_stated(difficulty):
    """The probit of an item's share of wins is its difference over its noise, about N(0, 1) / 3."""
    regime = replace(REGIMES["wmt-en-de"], gold_counts=(1, 1, 1), judge_tie_rate=0.0)
    truth = replace(FAITHFUL, vote_noise=3.0, difficulty=difficulty)
    votes = simulate(regime, 4000, 1000, seed=2, truth=truth).votes
    probit = ndtri(((votes == 1).sum(axis=1) + 0.5) / 1001)
    assert (probit**2).mean() == pytest.approx(np.exp(2 * difficulty**2) / 9, rel=0.15)


@pytest.mark.parametrize("position_bias", [-0.4, 0.0, 0.1, 0.4])
def test_position_bias_favours_what_is_shown_first(position_bias):
    sample = drawn(position_bias=position_bias, n_votes=10)
    columns = sample.vote_columns()
    order, vote = columns["order"], columns["vote"]
    gap = vote[order == "AB"].mean() - vote[order == "BA"].mean()
    if position_bias == 0:
        assert abs(gap) < 0.01
    else:
        assert np.sign(gap) == np.sign(position_bias)
        assert abs(gap) > 0.5 * abs(position_bias)


def test_gold_labels_err_by_themselves():
    found = {}
    for gold_noise in (0.0, 0.5, 2.0):
        truth = replace(FAITHFUL, gold_noise=gold_noise)
        regime = replace(REGIMES["wmt-en-de"], judge_tie_rate=121 / 510)
        sample = simulate(regime, MANY, 1, seed=2, truth=truth)
        found[gold_noise] = (sample.labels == sample.votes[:, 0]).mean()
    assert found[0.0] == 1
    assert 0.6 < found[0.5] < 0.9
    assert found[2.0] < found[0.5] - 0.1
