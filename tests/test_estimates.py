"""Shares and win rates with intervals: against plain formulas."""

import numpy as np
import pytest

import btdagg
from btdagg.estimates.intervals import Ends, within
from btdagg.estimates.mean import LabelledSample, Proxies, corrected_mean, labelled_mean


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
