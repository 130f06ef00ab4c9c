"""Many methods at once: pairs as one by one, step-down max-T by brute force, corrections."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btdagg import InputError, paired_permutation_test, pairwise_pvalues
from btdagg.evaluation import benjamini_hochberg, holm

STEP = np.uint64(0x9E3779B97F4A7C15)


def mix(word):
    """Finalise splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def drawn_signs(seed, n_units, n_resamples):
    """The signs that Monte Carlo draws, (n_resamples, n_units) of -1 and 1."""
    n_words = -(-n_units // 64)
    with np.errstate(over="ignore"):
        start = mix(mix(np.uint64(seed) + STEP) + mix(np.uint64(0)))
        numbers = np.arange(1, n_resamples * n_words + 1, dtype=np.uint64)
        words = mix(start + numbers * STEP).reshape(n_resamples, n_words)
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    return 2 * bits[:, :n_units].astype(np.int64) - 1


def all_signs(n_units):
    return 1 - 2 * (np.arange(2**n_units)[:, None] >> np.arange(n_units) & 1)


def stepped_down(units, signs):
    """Shares of hits of max-T among the signs, and their numbers, by the definition.

    Of integer units: statistics are compared as fractions, without rounding.
    """
    pairs = list(combinations(range(len(units)), 2))
    differences = np.array([units[i] - units[j] for i, j in pairs])
    squares = (differences**2).sum(axis=1)
    sums = differences @ signs.T
    observed = differences.sum(axis=1)

    def reaches(k, other):  # whether the statistics of `other` reach the observed one of k
        if squares[other] == 0:
            return np.full(len(signs), observed[k] == 0)
        return sums[other] ** 2 * squares[k] >= observed[k] ** 2 * squares[other]

    size = [
        s**2 / q if q else 0.0 for s, q in zip(observed.tolist(), squares.tolist(), strict=True)
    ]
    order = sorted(range(len(pairs)), key=lambda k: -size[k])
    hits = np.empty(len(pairs), dtype=np.int64)
    largest = 0
    for place, k in enumerate(order):
        reached = np.any([reaches(k, other) for other in order[place:]], axis=0)
        largest = max(largest, len(signs) if squares[k] == 0 else reached.sum())
        hits[k] = largest
    matrix = np.full((len(units), len(units)), -1)
    for (i, j), count in zip(pairs, hits, strict=True):
        matrix[i, j] = matrix[j, i] = count
    return matrix


def shared(losses, **arguments):
    return pairwise_pvalues(losses, method="monte-carlo", **arguments)


def one_by_one(losses, **arguments):
    matrix = np.ones((len(losses), len(losses)))
    for i, j in combinations(range(len(losses)), 2):
        test = paired_permutation_test(losses[i], losses[j], method="monte-carlo", **arguments)
        matrix[i, j] = matrix[j, i] = test.pvalue
    return matrix


# Pairs


KINDS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "tenths": lambda rng, shape: rng.integers(0, 11, size=shape) / 10,
    "thirds": lambda rng, shape: rng.integers(0, 4, size=shape) / 3,
    "integers": lambda rng, shape: rng.integers(0, 3, size=shape),
    "heavy tails": lambda rng, shape: rng.standard_cauchy(size=shape) ** 3,
    "huge offsets": lambda rng, shape: 1e8 + rng.integers(0, 11, size=shape) / 10,
    "an offset for each item": lambda rng, shape: (
        rng.normal(size=shape[1]) * 1e6 + rng.integers(0, 5, size=shape) / 10
    ),
    "a wild method": lambda rng, shape: (
        rng.integers(0, 11, size=shape) / 10 * 10.0 ** (12 * (np.arange(shape[0]) == 1))[:, None]
    ),
    "nearly equal": lambda rng, shape: 0.3 + 1e-16 * rng.integers(0, 3, size=shape),
    "tiny": lambda rng, shape: 1e-300 * rng.integers(0, 11, size=shape),
}


@given(
    kind=st.sampled_from(sorted(KINDS)),
    n_methods=st.integers(2, 9),
    n_items=st.integers(1, 130),
    n_groups=st.none() | st.integers(1, 40),
    n_resamples=st.sampled_from([1, 100, 257]),
    seed=st.integers(0, 2**64 - 1),
)
@settings(deadline=None, max_examples=300)
def test_shared_signs_give_the_bits_of_every_paired_test(
    kind, n_methods, n_items, n_groups, n_resamples, seed
):
    rng = np.random.default_rng(seed)
    losses = KINDS[kind](rng, (n_methods, n_items))
    groups = None if n_groups is None else rng.integers(0, n_groups, size=n_items)
    arguments = {"groups": groups, "n_resamples": n_resamples, "seed": seed}
    assert (shared(losses, **arguments) == one_by_one(losses, **arguments)).all()


@pytest.mark.parametrize("kind", ["normal", "tenths"])
def test_the_same_for_many_items_methods_and_resamples(kind):
    rng = np.random.default_rng(0)
    losses = KINDS[kind](rng, (5, 3000))
    arguments = {"n_resamples": 9000, "seed": 7}
    wanted = one_by_one(losses, **arguments)
    for n_threads in (1, 3):
        assert (shared(losses, n_threads=n_threads, **arguments) == wanted).all()
    losses = KINDS[kind](rng, (70, 40))
    assert (shared(losses, n_resamples=50) == one_by_one(losses, n_resamples=50)).all()


def test_signs_are_those_of_splitmix64():
    losses = np.random.default_rng(0).normal(size=(4, 100))
    sums = losses @ drawn_signs(9, 100, 500).T
    pvalues = shared(losses, n_resamples=500, seed=9)
    for i, j in combinations(range(4), 2):
        hits = (abs(sums[i] - sums[j]) >= abs((losses[i] - losses[j]).sum())).sum()
        assert pvalues[i, j] == (hits + 1) / 501


def test_some_pairs_are_exact_and_the_others_drawn():
    rng = np.random.default_rng(0)
    losses = np.vstack([rng.integers(0, 3, size=(4, 50)), rng.random(size=(3, 50))])
    pvalues = pairwise_pvalues(losses, n_resamples=400, seed=2)
    for i, j in combinations(range(7), 2):
        test = paired_permutation_test(losses[i], losses[j], n_resamples=400, seed=2)
        assert test.method == ("exact" if j < 4 else "monte carlo")
        assert pvalues[i, j] == pvalues[j, i] == test.pvalue


# Max-T


@given(
    n_methods=st.integers(2, 6),
    n_units=st.integers(1, 12),
    most=st.sampled_from([1, 2, 10, 1000]),
    is_repeated=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=150)
def test_max_t_of_all_sign_patterns_is_its_definition(n_methods, n_units, most, is_repeated, seed):
    rng = np.random.default_rng(seed)
    units = rng.integers(0, most + 1, size=(n_methods, n_units))
    if is_repeated:
        units[-1] = units[0]
    wanted = stepped_down(units, all_signs(n_units)) / 2**n_units
    np.fill_diagonal(wanted, 1)
    for method in ("auto", "exact"):
        for losses in (units, 0.1 * units + 7, 1e-200 * units, 1e200 * units):
            arguments = {"method": method, "n_resamples": 2**n_units}
            assert (pairwise_pvalues(losses, correction="max-t", **arguments) == wanted).all()
    # Each unit is the sum of a group.
    groups = np.concatenate([np.arange(n_units), rng.integers(0, n_units, size=20)])
    shares = rng.integers(0, most + 1, size=(n_methods, n_units + 20))
    summed = np.array([np.bincount(groups, weights=row, minlength=n_units) for row in shares])
    wanted = stepped_down(summed.astype(np.int64), all_signs(n_units)) / 2**n_units
    np.fill_diagonal(wanted, 1)
    pvalues = pairwise_pvalues(shares / 10, correction="max-t", groups=groups, n_resamples=4096)
    assert (pvalues == wanted).all()


@given(
    n_methods=st.integers(2, 6),
    n_units=st.integers(1, 150),
    most=st.sampled_from([1, 3, 100]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=150)
def test_max_t_of_drawn_signs_is_its_definition(n_methods, n_units, most, seed):
    rng = np.random.default_rng(seed)
    units = rng.integers(0, most + 1, size=(n_methods, n_units))
    wanted = (stepped_down(units, drawn_signs(seed, n_units, 300)) + 1) / 301
    np.fill_diagonal(wanted, 1)
    for losses in (units, units / 10, 0.1 * units + 1e3):
        arguments = {"correction": "max-t", "n_resamples": 300, "seed": seed}
        assert (shared(losses, **arguments) == wanted).all()


def test_max_t_of_real_losses_is_what_numpy_says_with_the_same_signs():
    rng = np.random.default_rng(0)
    losses = rng.random(size=(8, 700)) + np.linspace(0, 0.05, 8)[:, None]
    pairs = np.array(list(combinations(range(8), 2)))
    differences = losses[pairs[:, 0]] - losses[pairs[:, 1]]
    differences /= np.sqrt((differences**2).sum(axis=1, keepdims=True))
    observed = abs(differences.sum(axis=1))
    order = np.argsort(observed)
    signs = drawn_signs(5, 700, 9000)
    largest = np.maximum.accumulate(abs(signs @ differences[order].T), axis=1)
    hits = (largest >= observed[order] - 1e-12).sum(axis=0)
    wanted = np.maximum.accumulate((hits[::-1] + 1) / 9001)[::-1]
    pvalues = shared(losses, correction="max-t", n_resamples=9000, seed=5)
    assert (pvalues[tuple(pairs[order].T)] == wanted).all()
    assert len(set(wanted)) > 10
    threads = {"n_resamples": 9000, "seed": 5, "n_threads": 3}
    assert (shared(losses, correction="max-t", **threads) == pvalues).all()


def test_max_t_is_between_no_correction_and_bonferroni():
    rng = np.random.default_rng(0)
    losses = rng.normal(size=(6, 200)) + np.linspace(0, 0.5, 6)[:, None]
    plain = shared(losses)
    corrected = shared(losses, correction="max-t")
    assert (corrected >= plain).all()
    assert (corrected <= 15 * plain).all()
    assert (corrected == corrected.T).all()
    assert (np.diag(corrected) == 1).all()
    assert pairwise_pvalues(losses[:2], correction="max-t")[0, 1] == shared(losses[:2])[0, 1]


def test_max_t_finds_more_than_holm_where_pairs_depend_on_each_other():
    rng = np.random.default_rng(0)
    base = rng.normal(size=60)
    losses = base + 0.1 * rng.normal(size=(10, 60))
    losses -= 0.07 * (np.arange(10) == 0)[:, None]
    found = [
        (pairwise_pvalues(losses, correction=name, n_resamples=50_000) <= 0.05).sum()
        for name in ("max-t", "holm")
    ]
    assert found[0] > found[1] > 0


def test_methods_that_are_equal_but_for_rounding_change_no_other_pair():
    rng = np.random.default_rng(0)
    losses = rng.integers(0, 11, size=(3, 50)) / 10
    alone = shared(losses, correction="max-t")
    noise = losses[0] + 1e-16 * rng.integers(0, 3, size=50)
    both = shared(np.vstack([losses, noise]), correction="max-t")
    assert both[0, 3] == 1
    np.testing.assert_array_equal(both[:3, :3], alone)
    np.testing.assert_array_equal(both[3, 1:3], alone[0, 1:])


@pytest.mark.soak
def test_max_t_controls_the_rate_of_any_false_alarm():
    rng = np.random.default_rng(0)
    n_tests, n_alarms = 2000, 0
    for seed in range(n_tests):
        losses = rng.normal(size=(5, 40)) * rng.exponential(size=40)
        losses[4] += 2  # the pairs of the others are true nulls
        pvalues = shared(losses, correction="max-t", n_resamples=199, seed=seed)
        n_alarms += (pvalues[:4, :4] <= 0.1).any()
    assert n_alarms / n_tests < 0.1 + 4 * (0.1 * 0.9 / n_tests) ** 0.5


# Corrections


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_benjamini_hochberg_is_that_of_scipy(pvalues):
    wanted = stats.false_discovery_control(pvalues)
    np.testing.assert_allclose(benjamini_hochberg(pvalues), wanted, rtol=1e-14, atol=0)


def test_benjamini_hochberg_by_hand():
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert benjamini_hochberg([0.2]).tolist() == [0.2]
    matrix = [[1, 0.01, 0.04], [0.01, 1, 0.03], [0.04, 0.03, 1]]
    corrected = benjamini_hochberg(matrix)
    np.testing.assert_allclose(corrected, [[1, 0.03, 0.04], [0.03, 1, 0.04], [0.04, 0.04, 1]])
    assert (corrected == corrected.T).all()
    assert benjamini_hochberg([[1.0]]).tolist() == [[1.0]]


def test_corrections_of_pairwise_pvalues_are_the_functions():
    losses = np.random.default_rng(0).random(size=(5, 40))
    plain = pairwise_pvalues(losses)
    assert (pairwise_pvalues(losses, correction="none") == plain).all()
    assert (pairwise_pvalues(losses, correction="holm") == holm(plain)).all()
    wanted = benjamini_hochberg(plain)
    assert (pairwise_pvalues(losses, correction="benjamini-hochberg") == wanted).all()


# Messages


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pairwise_pvalues([[0], [1]], correction="bh"),
            "correction is 'bh', expected one of none, holm, benjamini-hochberg, max-t"),
        (lambda: pairwise_pvalues([[0, 1]], correction="max-t"),
            "losses has 1 methods, expected at least two"),
        (lambda: pairwise_pvalues([[0, 1], [0, np.nan]], correction="max-t"),
            "losses[1, 1] is NaN, expected a finite number"),
        (lambda: pairwise_pvalues([[1e308], [1e308]], correction="max-t"),
            "losses[0] and losses[1] sum to more than the largest float"),
        (lambda: pairwise_pvalues(np.ones((2, 20)), correction="max-t", method="exact"),
            "differences of 20 items or groups have too many sign patterns"),
        (lambda: benjamini_hochberg([0.5, np.nan]),
            "pvalues[1] is nan, expected a number from 0 to 1"),
        (lambda: benjamini_hochberg([]), "pvalues is empty, expected at least one number"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(message), str(error.value)
