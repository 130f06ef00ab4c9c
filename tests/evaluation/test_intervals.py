"""Intervals around means and shares."""

import numpy as np
import pytest
from scipy import stats

from btdagg.evaluation.intervals import mean_interval, share_interval


def test_the_mean_has_a_normal_interval():
    values = np.random.default_rng(0).normal(0.1, 1.0, size=500)
    theirs = stats.norm.interval(0.95, values.mean(), stats.sem(values))
    # SciPy's quantile has all its digits, ours is 1.96.
    assert mean_interval(values) == pytest.approx((values.mean(), *theirs), abs=1e-4)


@pytest.mark.parametrize(("successes", "total"), [(0, 5), (1, 30), (7, 20), (99, 100), (5, 5)])
def test_wilson_is_that_of_scipy(successes, total):
    found = share_interval(successes / total, total)
    theirs = stats.binomtest(successes, total).proportion_ci(method="wilson")
    assert found == pytest.approx((successes / total, theirs.low, theirs.high), abs=1e-5)
    assert 0 <= found.low <= found.mean <= found.high <= 1
