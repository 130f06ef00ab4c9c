"""Permutation tests against all sign patterns and themselves; corrections; clusters."""

import subprocess
import sys
import textwrap
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btdagg import InputError, paired_permutation_test, pairwise_pvalues, rank_clusters
from btdagg.evaluation import combine_pvalues, holm

ALTERNATIVES = ("two-sided", "less", "greater")
MIRRORED = {"two-sided": "two-sided", "less": "greater", "greater": "less"}
IS_EXTREME = {
    "two-sided": lambda sums, observed: np.abs(sums) >= abs(observed),
    "less": lambda sums, observed: sums <= observed,
    "greater": lambda sums, observed: sums >= observed,
}


def all_sums(units):
    """Sums of the units under every sign pattern, by doubling."""
    sums = np.zeros(1, dtype=np.int64)
    for unit in units:
        sums = np.concatenate([sums - unit, sums + unit])
    return sums


def enumerated(units, alternative):
    return IS_EXTREME[alternative](all_sums(units), sum(units)).mean()


def convolved(units, alternative):
    """The exact p-value of many integers, as a fraction."""
    null = {0: 1}
    for unit in map(int, units):
        shifted = Counter()
        for value, ways in null.items():
            shifted[value + unit] += ways
            shifted[value - unit] += ways
        null = shifted
    values = np.array(list(null), dtype=np.int64)
    extreme = values[IS_EXTREME[alternative](values, int(np.sum(units)))]
    return Fraction(sum(null[value] for value in extreme.tolist()), 2 ** len(units))


def pvalue(a, b, **arguments):
    return paired_permutation_test(a, b, **arguments).pvalue


# Exact


@given(st.lists(st.integers(-2, 2) | st.integers(-300, 300), min_size=1, max_size=17), st.data())
@settings(deadline=None, max_examples=200)
def test_exact_is_what_all_sign_patterns_say(units, data):
    base = data.draw(st.lists(st.integers(-3, 3), min_size=len(units), max_size=len(units)))
    a, b = np.add(base, units), np.array(base)
    for alternative in ALTERNATIVES:
        found = paired_permutation_test(a, b, alternative, method="exact")
        assert found.pvalue == pytest.approx(enumerated(units, alternative), rel=1e-12, abs=0)
        assert found.statistic == pytest.approx(np.mean(units), abs=1e-12)
        assert (found.method, found.n_resamples) == ("exact", 0)
        assert paired_permutation_test(a, b, alternative) == found


@pytest.mark.parametrize("seed", range(2))
def test_exact_for_twenty_items_and_twenty_groups(seed):
    rng = np.random.default_rng(seed)
    units = rng.integers(-2, 3, size=20)
    a = rng.integers(-1, 2, size=70)
    b = rng.integers(-1, 2, size=70) + (seed % 2)
    groups = np.concatenate([np.arange(20), rng.integers(0, 20, size=50)])
    sums = np.bincount(groups, weights=a - b).astype(np.int64)
    names = np.array([f"prompt {group}" for group in groups])
    for alternative in ALTERNATIVES:
        wanted = enumerated(units, alternative)
        got = pvalue(units, np.zeros(20), alternative=alternative)
        assert got == pytest.approx(wanted, rel=1e-12, abs=0)
        wanted = enumerated(sums, alternative)
        found = paired_permutation_test(a, b, alternative, groups=names)
        assert found.pvalue == pytest.approx(wanted, rel=1e-12, abs=0)
        assert found.method == "exact"
        assert found.statistic == pytest.approx(np.mean(a - b))


@pytest.mark.parametrize(
    "units",
    [
        np.ones(1000, dtype=int),
        np.repeat([1, 2, -1, -2, 0], [200, 125, 150, 20, 250]),
        np.repeat([1000, 1, -1], [50, 60, 40]),
        np.repeat([3, -5, 7, 37, 1000, -1001], [10, 8, 5, 12, 4, 3]),
        np.repeat([6, -10, 15], [30, 20, 12]),
        np.arange(-20, 45),
        np.repeat([300, -301], [20, 4]),
    ],
)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_tails_have_twelve_digits_however_far_out(units, alternative):
    got = pvalue(units, np.zeros(len(units)), alternative=alternative, method="exact")
    wanted = convolved(units, alternative)
    assert float(abs(Fraction(got) / wanted - 1)) < 1e-12


def test_too_many_sums_are_left_to_monte_carlo():
    units = np.random.default_rng(0).integers(-(10**9), 10**9, size=60)
    assert paired_permutation_test(units, np.zeros(60)).method == "monte carlo"
    with pytest.raises(InputError) as error:
        paired_permutation_test(units, np.zeros(60), method="exact")
    assert str(error.value) == (
        "differences of 60 items or groups have too many different sums, expected smaller integers "
        "for an exact test; Monte Carlo takes these"
    )


@pytest.mark.parametrize("method", ["exact", "monte-carlo"])
@pytest.mark.parametrize("n", [1, 40, 5000])
def test_a_pvalue_is_never_zero(method, n):
    for alternative in ALTERNATIVES:
        assert 0 < pvalue(np.ones(n), np.zeros(n), alternative=alternative, method=method) <= 1
        assert pvalue(np.ones(n), np.ones(n), alternative=alternative, method=method) == 1


# Both methods


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.booleans(), st.data())
@settings(deadline=None, max_examples=100)
def test_swapping_mirrors_and_order_and_scale_do_not_matter(units, is_real, data):
    b = np.zeros(len(units))
    a = np.array(units) * (0.1 if is_real else 1.0)
    groups = data.draw(
        st.none() | st.lists(st.integers(0, 9), min_size=len(units), max_size=len(units))
    )
    order = np.array(data.draw(st.permutations(range(len(units)))))
    moved = None if groups is None else np.array(groups)[order]
    for alternative in ALTERNATIVES:
        found = paired_permutation_test(a, b, alternative, groups=groups, n_resamples=200)
        swapped = paired_permutation_test(
            b, a, MIRRORED[alternative], groups=groups, n_resamples=200
        )
        assert (swapped.pvalue, swapped.statistic) == (found.pvalue, -found.statistic)
        # Real losses that are scaled may have become integers.
        method = found.method.replace(" ", "-")
        larger = paired_permutation_test(8 * a, b, alternative, method, 200, groups=groups)
        assert larger.pvalue == found.pvalue
        if found.method == "exact":
            assert pvalue(a[order], b, alternative=alternative, groups=moved) == found.pvalue


# Monte Carlo


def test_monte_carlo_agrees_with_exact_within_its_error():
    rng = np.random.default_rng(0)
    n = 40_000
    for seed in range(20):
        a, b = rng.integers(0, 3, size=(2, 150))
        for alternative in ALTERNATIVES:
            exact = pvalue(a, b, alternative=alternative)
            drawn = paired_permutation_test(a, b, alternative, "monte-carlo", n, seed)
            assert (drawn.method, drawn.n_resamples) == ("monte carlo", n)
            allowed = 5 * (exact * (1 - exact) / n) ** 0.5 + 2 / n
            assert drawn.pvalue == pytest.approx(exact, abs=allowed)


def test_the_observed_signs_are_a_hit_however_sums_are_rounded():
    # Under half of the patterns the sum is the observed one but for rounding.
    a = np.array([0.1, 0.2, 0.3, 0.0])
    for scale in (1.0, 1e-300, 1e300, 1e-3):
        for offset in (0.0, 10.0):
            b = np.full(4, offset) * scale
            drawn = pvalue(a * scale + b, b, method="monte-carlo", n_resamples=40_000)
            assert drawn == pytest.approx(2 / 8, abs=0.012)
    # A tie by three tenths: +.1 +.2 -.3 and its mirror are as close to 0 as can be.
    ties = pvalue([0.1, 0.2, -0.3], np.zeros(3), alternative="greater", method="monte-carlo")
    assert ties == pytest.approx(5 / 8, abs=0.025)


@pytest.mark.soak
def test_monte_carlo_pvalues_are_uniform_under_the_null():
    rng = np.random.default_rng(0)
    n_tests, n_resamples = 4000, 199
    found = np.array(
        [
            [
                pvalue(d, np.zeros(30), alternative=alternative, n_resamples=n_resamples, seed=seed)
                for alternative in ALTERNATIVES
            ]
            for seed, d in enumerate(rng.normal(size=(n_tests, 30)))
        ]
    )
    for level in (0.01, 0.05, 0.2, 0.5):
        # False alarms at just that rate: (199 + 1) * level is whole. Five standard deviations.
        allowed = 5 * (level * (1 - level) / n_tests) ** 0.5
        assert np.abs((found <= level + 1e-12).mean(axis=0) - level).max() < allowed
    steps = np.arange(1, n_resamples + 2) / (n_resamples + 1)
    for pvalues in found.T:
        assert stats.kstest(pvalues - 0.5 * steps[0], "uniform").pvalue > 1e-6


def test_bits_depend_on_the_seed_alone_and_not_on_threads():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 130))
    losses, groups = rng.normal(size=(5, 130)), np.arange(130) // 2
    for n_resamples in (1, 2047, 2048, 2049, 30_001):
        wanted = paired_permutation_test(a, b, n_resamples=n_resamples, seed=4)
        matrix = pairwise_pvalues(losses, n_resamples=n_resamples, groups=groups)
        for n_threads in (2, 3, 8, 100):
            arguments = {"n_resamples": n_resamples, "n_threads": n_threads}
            assert paired_permutation_test(a, b, seed=4, **arguments) == wanted
            assert (pairwise_pvalues(losses, groups=groups, **arguments) == matrix).all()
    seeds = {pvalue(a, b, seed=seed, n_resamples=30_001) for seed in (0, 1, 2, 2**64 - 1)}
    assert len(seeds) == 4


def test_ctrl_c_ends_a_long_test():
    code = """
        import _thread, threading
        import numpy as np
        from btdagg import paired_permutation_test

        threading.Timer(0.5, _thread.interrupt_main).start()
        try:
            paired_permutation_test(np.linspace(0, 1, 1000), np.zeros(1000), n_resamples=10**15)
        except KeyboardInterrupt:
            print('interrupted')
        """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.stdout == "interrupted\n", result.stderr


# Many methods, many splits


@pytest.mark.parametrize("is_real", [False, True])
@pytest.mark.parametrize("with_groups", [False, True])
def test_pairwise_is_every_paired_test(is_real, with_groups):
    rng = np.random.default_rng(0)
    losses = rng.random((4, 60)) if is_real else rng.integers(0, 3, size=(4, 60))
    groups = rng.integers(0, 20, size=60) if with_groups else None
    arguments = {"groups": groups, "n_resamples": 300, "seed": 5}
    found = pairwise_pvalues(losses, **arguments)
    for i, j in product(range(4), repeat=2):
        assert found[i, j] == (1 if i == j else pvalue(losses[i], losses[j], **arguments))


def test_rules_of_combination():
    pvalues = np.array([[0.01, 1.0], [0.02, 0.9], [0.06, 0.8], [0.03, 0.2]])
    np.testing.assert_allclose(combine_pvalues(pvalues), [0.05, 1.0])
    np.testing.assert_allclose(combine_pvalues(pvalues, rule="mean"), [0.03, 0.725])
    for rule in ("twice-median", "mean"):
        assert combine_pvalues(pvalues[:1], rule=rule).tolist() == [0.01, 1.0]
    assert combine_pvalues([0.25, 0.25]).tolist() == 0.5


# Corrections and clusters


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]).tolist() == [1.0, 1.0]
    assert holm([0.2]).tolist() == [0.2]
    matrix = [[1, 0.01, 0.04], [0.01, 1, 0.03], [0.04, 0.03, 1]]
    corrected = holm(matrix)
    np.testing.assert_allclose(corrected, [[1, 0.03, 0.06], [0.03, 1, 0.06], [0.06, 0.06, 1]])
    assert (corrected == corrected.T).all()
    assert holm([[1.0]]).tolist() == [[1.0]]


def matrix_of(n, significant):
    pvalues = np.full((n, n), 0.5)
    for i, j in significant:
        pvalues[i, j] = pvalues[j, i] = 0.01
    return pvalues


@pytest.mark.parametrize(
    ("scores", "significant", "ranks"),
    [
        ([0.1, 0.2, 0.3], [], [1, 1, 1]),
        ([0.3, 0.2, 0.1], [(0, 2)], [2, 1, 1]),
        ([0.1, 0.2, 0.3], [(0, 1), (0, 2), (1, 2)], [1, 2, 3]),
        # The third differs from the second alone: that is enough to open a cluster ...
        ([0.1, 0.2, 0.3], [(1, 2)], [1, 1, 2]),
        # ... and what comes after is held against the new cluster.
        ([0.1, 0.2, 0.3, 0.4], [(0, 1)], [1, 2, 2, 2]),
        ([0.1, 0.2, 0.3, 0.4], [(0, 1), (1, 3)], [1, 2, 2, 3]),
        # Equal scores share their rank, whichever comes first.
        ([0.1, 0.2, 0.2], [(0, 1)], [1, 2, 2]),
        ([0.1, 0.2, 0.2], [(0, 2)], [1, 2, 2]),
        ([0.2, 0.2], [(0, 1)], [1, 1]),
        ([7.0], [], [1]),
    ],
)
def test_clusters_by_hand_in_any_order(scores, significant, ranks):
    pvalues = matrix_of(len(scores), significant)
    assert rank_clusters(scores, pvalues).tolist() == ranks
    order = np.random.default_rng(0).permutation(len(scores))
    moved = rank_clusters(np.array(scores)[order], pvalues[np.ix_(order, order)])
    assert moved.tolist() == np.array(ranks)[order].tolist()


# Messages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"b": [0, 1]}, "b has 2 rows, expected 3 as in a"),
        ({"a": [0, np.nan, 0]}, "a[1] is NaN, expected a finite number"),
        ({"a": [1e308, 1e308, 1e308]}, "a and b sum to more than the largest float"),
        ({"alternative": "more"}, "alternative is 'more', expected 'two-sided', 'less' or"),
        ({"method": "fast"}, "method is 'fast', expected 'auto', 'exact' or 'monte-carlo'"),
        ({"groups": ["a", pd.NA, "b"]}, "groups[1] is <NA>, expected a group for every item"),
        ({"a": [0, 0.5, 0], "method": "exact"}, "a[1] - b[1] is 0.5, expected integers up to"),
        ({"a": [0, 0.5, 1], "method": "exact", "groups": ["x", "y", "y"]},
            "a - b over the group of item 1 is 1.5, expected integers up to 2^51 in sum for an"),
    ],
)  # fmt: skip
def test_what_cannot_be_tested_is_refused(arguments, message):
    with pytest.raises(InputError) as error:
        paired_permutation_test(**{"a": [0, 1, 1], "b": [0, 0, 0], **arguments})
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pairwise_pvalues([[0, 1]]),
            "losses has 1 methods, expected at least two",
        ),
        (lambda: combine_pvalues([0.1, 0.2], rule="median"), "rule is 'median', expected one of"),
        (lambda: holm([0.5, np.nan]), "pvalues[1] is nan, expected a number from 0 to 1"),
        (lambda: rank_clusters([0, 1, 2], np.ones((2, 2))), "pvalues is (2, 2), expected a symm"),
    ],
)
def test_what_is_no_loss_pvalue_or_level_is_refused(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(message)
