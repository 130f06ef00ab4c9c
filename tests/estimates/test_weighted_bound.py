"""Bounds of shares from labels of unequal probability."""

import numpy as np
import pytest
from scipy import stats

from btdagg.estimates.weighted_bound import weighted_bound


def bound(agrees, weights, of_all, groups=None, confidence=0.9):
    agrees, weights = np.asarray(agrees, float), np.broadcast_to(weights, len(agrees)) * 1.0
    groups = np.arange(len(agrees)) if groups is None else groups
    return weighted_bound(agrees, weights, groups, np.asarray(of_all, float), confidence)


@pytest.mark.parametrize(("wrong", "n"), [(0, 1), (1, 1), (0, 30), (3, 40), (50, 100), (90, 3000)])
def test_with_equal_weights_it_is_clopper_and_pearsons(wrong, n):
    for confidence in (0.8, 0.9, 0.99):
        low = bound(np.arange(n) >= wrong, 4, [4] * 9, confidence=confidence)
        exact = stats.binomtest(n - wrong, n, alternative="greater").proportion_ci(confidence)
        assert low == pytest.approx(exact.low, abs=2e-4)


def test_a_kind_that_was_not_drawn_counts_as_wrong():
    of_all = np.repeat([1.0, 50.0], [85, 15])
    assert 0.83 < bound(np.ones(300), 1, of_all) < 0.85
    assert bound(np.ones(300), 1, of_all[:85]) > 0.99


def test_a_group_is_one_label():
    agrees, weights = np.arange(60) % 8 > 0, np.where(np.arange(60) % 5, 1.0, 3.0)
    single = bound(agrees, weights, [1, 3])
    groups = np.arange(240) // 4
    assert bound(agrees.repeat(4), weights.repeat(4), [1, 3], groups) == pytest.approx(single)


@pytest.mark.soak
@pytest.mark.parametrize("n", [40, 100, 300])
@pytest.mark.parametrize("placed", ["anywhere", "rare", "half rare"])
def test_its_level_is_kept(n, placed):
    """A share of 80% is refuted too often nowhere: items of a tenth of the probability or less."""
    rng = np.random.default_rng(n)
    weights = rng.choice([1.0, 3.0, 10.0], p=[0.6, 0.25, 0.15], size=2000)
    fails = rng.random(2000) < {"anywhere": 0.2, "rare": 0.05, "half rare": 0.1}[placed]
    worst = {"anywhere": 0, "rare": 0.85, "half rare": 0.5}[placed]
    fails |= (weights == 10) & (rng.random(2000) < worst)
    agreement = 1 - fails.mean()
    drawn = rng.choice(2000, (300, n), p=1 / weights / (1 / weights).sum())
    above = [bound(~fails[rows], weights[rows], weights) > agreement for rows in drawn]
    assert np.mean(above) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 300)
