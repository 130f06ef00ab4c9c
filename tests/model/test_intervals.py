"""Intervals around differences, proportions and bootstrapped means."""

import numpy as np
import pytest
from scipy import stats

from btdagg import InputError
from btdagg.evaluation import (
    bootstrap_interval,
    difference_interval,
    mean_interval,
    proportion_interval,
)


def test_the_difference_is_paired():
    rng = np.random.default_rng(0)
    common = rng.normal(size=500)
    a, b = common + rng.normal(0.1, 0.01, size=500), common
    found = difference_interval(a, b)
    assert found == mean_interval(a - b)
    assert 0.09 < found.low < found.mean < found.high < 0.11


@pytest.mark.parametrize(("successes", "total"), [(0, 5), (1, 30), (7, 20), (99, 100), (5, 5)])
def test_wilson_is_that_of_scipy(successes, total):
    found = proportion_interval(successes, total)
    theirs = stats.binomtest(successes, total).proportion_ci(method="wilson")
    # SciPy's quantile has all its digits, ours is 1.96.
    assert found == pytest.approx((successes / total, theirs.low, theirs.high), abs=1e-5)
    assert 0 <= found.low <= found.mean <= found.high <= 1


def test_normal_is_that_of_the_papers_tie_rates():
    found = proportion_interval(64, 332, rule="normal")  # 19.3% (± 4.2%)
    assert f"{found.mean:.1%} ± {found.high - found.mean:.1%}" == "19.3% ± 4.2%"
    assert found.mean - found.low == pytest.approx(found.high - found.mean)


def test_bootstrap_is_close_to_the_normal_interval():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=400), rng.normal(size=400)
    for values in ((a,), (a, b)):
        got, wanted = (
            bootstrap_interval(*values, seed=1),
            mean_interval(a if len(values) == 1 else a - b),
        )
        assert got.mean == pytest.approx(wanted.mean)
        assert got == pytest.approx(wanted, abs=0.01)
    assert bootstrap_interval(a, seed=1) == bootstrap_interval(a, seed=1)
    assert bootstrap_interval(a, seed=1) != bootstrap_interval(a, seed=2)


def test_groups_are_drawn_whole():
    values = np.repeat(np.random.default_rng(0).normal(size=40), 25)
    groups = np.repeat([f"g{i}" for i in range(40)], 25)
    alone, together = bootstrap_interval(values), bootstrap_interval(values, groups=groups)
    assert together.mean == alone.mean
    ratio = (together.high - together.low) / (alone.high - alone.low)
    assert ratio == pytest.approx(5, rel=0.1)
    # Groups of unequal size: the mean stays that over items.
    uneven = bootstrap_interval([1.0, 1, 1, 0], groups=[0, 0, 0, 1], n_resamples=5000)
    assert uneven == (0.75, 0.0, 1.0)


@pytest.mark.soak
@pytest.mark.parametrize("with_groups", [False, True])
def test_bootstrap_covers_the_true_mean(with_groups):
    rng = np.random.default_rng(0)
    n_sets, covered = 400, 0
    for seed in range(n_sets):
        values = np.repeat(rng.normal(size=50), 4) + rng.normal(size=200)
        groups = np.arange(200) // 4 if with_groups else np.arange(200)
        found = bootstrap_interval(values if with_groups else rng.normal(size=200), groups=groups,
                                   n_resamples=400, seed=seed)  # fmt: skip
        covered += found.low <= 0 <= found.high
    assert 0.90 < covered / n_sets < 0.99


ERRORS = [
    (lambda: difference_interval([1, 2], [1]), "b has 1 rows, expected 2 as in a"),
    (lambda: difference_interval([1, np.nan], [1, 2]), "a[1] is nan, expected a finite number"),
    (lambda: difference_interval([1], [1]),
        "values want at least two finite numbers in one dimension"),
    (lambda: proportion_interval(3, 2), "successes is 3, expected at most 2 as in total"),
    (lambda: proportion_interval(0, 0), "total is 0, expected an integer of at least 1"),
    (lambda: proportion_interval(-1, 2), "successes is -1, expected an integer of at least 0"),
    (lambda: proportion_interval(1, 2, rule="x"), "rule is 'x', expected 'wilson' or 'normal'"),
    (lambda: bootstrap_interval([]), "a is empty, expected at least one item"),
    (lambda: bootstrap_interval([1]), "a has 1 row, expected at least two"),
    (lambda: bootstrap_interval([1, 2], groups=[0, 0]), "groups has 1 group, expected at least "
                                                        "two"),
    (lambda: bootstrap_interval([1, 2], [1, np.inf]), "b[1] is inf, expected a finite number"),
    (lambda: bootstrap_interval([1, 2], groups=[0]), "groups has 1 rows, expected 2 as in a"),
    (lambda: bootstrap_interval([1, 2], n_resamples=0),
        "n_resamples is 0, expected an integer of at least 1"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_what_has_no_interval_is_refused(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == message
