"""Many systems: against plain fits and other packages, and on data drawn anew."""

import numpy as np
import pytest

from btdagg.estimates.davidson import PairStatistics, SystemPairs


def statistics_of(seed=0, ties=1.0):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(4, 1)
    n = rng.uniform(1, 3, 6)
    away = rng.uniform(-0.4, 0.4, 6) * n
    return PairStatistics(
        SystemPairs(first, second, "abcd"),
        n,
        np.stack([away, ties * rng.uniform(0.1, 0.5, 6) * n], 1),
    )


@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_hessian_are_those_of_the_loss(seed):
    statistics = statistics_of(seed)
    at = np.random.default_rng(seed).normal(size=5)

    def differences(function):
        steps = 1e-5 * np.eye(5)
        return np.stack([(function(at + step) - function(at - step)) / 2e-5 for step in steps])

    assert statistics.gradient(at) == pytest.approx(differences(statistics.loss), abs=1e-8)
    assert statistics.hessian(at) == pytest.approx(differences(statistics.gradient), abs=1e-8)


@pytest.mark.parametrize("ties", [1.0, 0.0])
def test_a_fit_is_a_minimum_and_its_hessian_has_an_inverse(ties):
    statistics = statistics_of(ties=ties)
    found = statistics.fit()
    free = 5 if ties else 4
    assert np.isneginf(found[-1]) == (ties == 0)
    assert found[:-1].sum() == pytest.approx(0, abs=1e-14)
    assert np.abs(statistics.gradient(found)[:free]).max() < 1e-12
    hessian, inverse = statistics.hessian(found), statistics.inverse_hessian(found)
    assert hessian @ inverse @ hessian == pytest.approx(hessian, abs=1e-12)
    assert inverse[:-1].sum(axis=0) == pytest.approx(0, abs=1e-12)
