"""Shares and win rates with intervals: against plain formulas."""

import numpy as np
import pytest

import btdagg
from btdagg.estimates.intervals import Ends, within
from btdagg.estimates.mean import LabelledSample, Proxies, corrected_mean, labelled_mean
from btdagg.estimates.population import Population
from btdagg.estimates.proxy import DistinctCounts, cross_fitted, fixed


@pytest.mark.parametrize(("successes", "n"), [(0, 12), (1, 12), (7, 30), (30, 30)])
def test_shares_of_independent_labels_get_wilson_s_interval(successes, n):
    p = successes / n
    low, high = within(p, p * (1 - p) / n, 1.96, Ends(0, 1), n)
    expected = btdagg.evaluation.proportion_interval(successes, n)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_labels_alone_have_the_plain_variance_and_good_proxies_a_smaller_one():
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 0.0, 1.0], size=80)
    every = np.arange(80)
    sample = LabelledSample(np.full(80, 1 / 80), every, every)
    alone = labelled_mean(y, sample)
    assert alone.value == pytest.approx(y.mean())
    assert alone.variance == pytest.approx(y.var(ddof=1) / 80)
    near = y + rng.normal(0, 0.3, 80)
    none = np.empty(0)
    proxies = Proxies(near, np.full(80, near.mean()), np.zeros(80), none, none.astype(int))
    corrected = corrected_mean(y, proxies, sample)
    assert corrected.value == pytest.approx(alone.value, abs=0.01)
    assert corrected.variance < alone.variance / 5


def drawn(n_items, n_labels, seed=0):
    """Counts, all labels, and labels of a simple sample."""
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 0, 1], size=n_items, p=[0.25, 0.3, 0.45])
    votes = np.array([[0.6, 0.25, 0.15], [0.25, 0.4, 0.35], [0.1, 0.2, 0.7]])
    counts = rng.multinomial(8, votes[gold + 1])
    labels = np.full(n_items, np.nan)
    chosen = rng.permutation(n_items)[:n_labels]
    labels[chosen] = gold[chosen]
    return counts, gold, labels


def test_each_item_is_predicted_by_a_model_that_did_not_see_its_group():
    counts, gold, labels = drawn(400, 80)
    labelled = np.flatnonzero(~np.isnan(labels))
    groups = np.unique(labelled // 4, return_inverse=True)[1]
    items = DistinctCounts.of(counts)
    before = cross_fitted(items, labelled, gold[labelled].astype(np.int8), groups, "weak", 0)
    assert len(before.tables) == 10
    for group in range(3):
        mine = groups == group
        (fold,) = set(before.fold[mine].tolist())
        other = np.where(mine, -gold[labelled] + (gold[labelled] == 0), gold[labelled])
        after = cross_fitted(items, labelled, other.astype(np.int8), groups, "weak", 0)
        same = (before.tables == after.tables).all(axis=(1, 2))
        assert same.tolist() == [number == fold for number in range(10)]


def test_a_population_has_a_mean_with_the_judge_and_one_from_labels():
    counts, _, labels = drawn(400, 80)
    items, labelled = DistinctCounts.of(counts), np.flatnonzero(~np.isnan(labels))
    model = btdagg.DavidsonModel(beta=1.2, eta0=0.5, gamma=0.8)
    predictions = fixed(model, items.rows, len(labelled))
    gold = labels[labelled].astype(np.int8)
    population = Population(items, labelled, gold, None, None, predictions, True)
    whole = population.domain()
    net = whole.means["net win rate"]
    assert whole.alone["net win rate"].value == pytest.approx(gold.mean())
    assert net.variance < whole.alone["net win rate"].variance
    assert population.likeness(whole).pvalue > 0.001
