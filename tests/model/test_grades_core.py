"""The kernel of grades against `reference`, fifty digits, differences and Davidson's model."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from btdagg import DavidsonModel, InputError, _core, reference

mpmath.mp.dps = 50


def random_model(rng, k, size=1.0):
    return float(rng.uniform(0.1, 4) * size), rng.normal(2.5, 2.5, k - 1) * size


def exact_logits(mean, beta, intercepts):
    logits = [mpf(0)]
    for intercept in intercepts:
        logits.append(logits[-1] + mpf(beta) * mpf(mean) - mpf(float(intercept)))
    return logits


def exact_probabilities(mean, beta, intercepts):
    odds = [mpmath.exp(x) for x in exact_logits(mean, beta, intercepts)]
    return [x / sum(odds) for x in odds]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(
    "votes", [[1, 2, 3, 4, 5], [0.0, 0.25, 1.5, 1.75, 40.0], [-2, -1, 0, 1, 2]]
)
def test_means_and_decisions_are_those_of_the_reference(dtype, votes):
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 6, (3000, 5)).astype(dtype)
    counts[counts.sum(axis=1) == 0] = 1
    votes = np.asarray(votes, dtype=np.float64)
    means = _core.grade_means(counts, votes, 1)
    np.testing.assert_allclose(means, reference.grade_means(counts, votes), rtol=1e-14)
    for k in (2, 3, 4, 7):
        beta, intercepts = random_model(rng, k)
        thresholds = _core.grade_thresholds(beta, intercepts)
        p = _core.grade_probabilities(means, beta, intercepts, 1)
        np.testing.assert_allclose(
            p, reference.grade_probabilities(means, beta, intercepts), rtol=1e-11, atol=1e-300
        )
        decided = _core.grade_decisions(counts, votes, thresholds, 1)
        np.testing.assert_array_equal(decided, reference.grade_decisions(p))
        for array in (np.asfortranarray(counts), np.repeat(counts, 2, axis=0)[::2]):
            again = _core.grade_decisions(array, votes, thresholds, 3)
            np.testing.assert_array_equal(decided, again)
            np.testing.assert_array_equal(means, _core.grade_means(array, votes, 2))


@pytest.mark.parametrize("size", [1.0, 30.0, 100.0])
def test_probabilities_have_thirteen_digits_in_the_tails(size):
    rng = np.random.default_rng(2)
    for k in (2, 3, 5, 10):
        beta, intercepts = random_model(rng, k, size)
        means = np.concatenate([rng.uniform(-2, 7, 40), [700 / beta, -700 / beta, 0]])
        p = _core.grade_probabilities(means, beta, intercepts, 1)
        for mean, row in zip(means, p, strict=True):
            for value, exact in zip(row, exact_probabilities(mean, beta, intercepts), strict=True):
                assert abs(value - exact) <= 1e-13 * exact + 1e-307


def test_thresholds_are_exact_roots():
    rng = np.random.default_rng(3)
    for size in (1e-3, 1.0, 30.0, 1e3):
        for k in (2, 3, 5, 10):
            beta, intercepts = random_model(rng, k, size)
            thresholds = _core.grade_thresholds(beta, intercepts)
            assert (np.diff(thresholds) >= 0).all()
            for below, threshold in enumerate(thresholds, start=1):

                def share(mean, beta=beta, intercepts=intercepts, below=below):
                    return sum(exact_probabilities(mean, beta, intercepts)[:below]) - mpf(1) / 2

                # Intercepts and log odds are floats, whose last digits are as large as this.
                sizes = abs(threshold), 1 / beta, *abs(intercepts / beta)
                last_digits = 8 * 2.0**-52 * max(sizes)
                assert share(threshold - last_digits) > 0 > share(threshold + last_digits)


def test_thresholds_of_five_grades():
    cuts = np.array([1.5, 2.5, 3.5, 4.5])
    sharp, blunt = (_core.grade_thresholds(beta, beta * cuts).round(2) for beta in (2.0, 0.5))
    assert sharp.tolist() == [1.44, 2.5, 3.5, 4.56]
    assert blunt.tolist() == [0.67, 2.37, 3.63, 5.33]
    assert _core.grade_thresholds(0.0, np.array([-1.0, 2.0])).tolist() == [-np.inf, np.inf]


def test_three_grades_with_symmetric_cuts_are_davidsons_model():
    counts = np.array([(a, b, 12 - a - b) for a in range(13) for b in range(13 - a)])
    for beta, eta in ((1.2, 2.0), (3.0, -0.7), (0.4, 0.0)):
        davidson = DavidsonModel(beta, eta, 0.0)
        s = davidson.features(counts).s
        intercepts = np.array([-eta, eta])
        p = _core.grade_probabilities(s, beta, intercepts, 1)
        np.testing.assert_allclose(p, davidson.predict_proba(counts), rtol=1e-13)
        thresholds = _core.grade_thresholds(beta, intercepts)
        decided = np.searchsorted(thresholds, s) - 1
        if eta > 0:
            np.testing.assert_array_equal(decided, davidson.decide(counts))


def test_equal_risks_give_the_grade_nearer_the_middle():
    """Symmetric cuts: means of opposite sides have opposite grades, but in the middle."""
    votes = np.array([1.0, 2.0, 3.0, 4.0])
    counts = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1]])
    for k, wanted in ((2, [0, 1, 0, 0]), (4, [1, 2, 1, 1])):
        cuts = {2: [2.5], 4: [1.5, 2.5, 3.5]}[k]
        thresholds = _core.grade_thresholds(4.0, 4.0 * np.array(cuts))
        if k == 4:
            thresholds[[0, 2]] = 1.5, 3.5
        assert _core.grade_decisions(counts, votes, thresholds, 1).tolist() == wanted
        mirrored = _core.grade_decisions(counts[:, ::-1].copy(), votes, thresholds, 1)
        assert mirrored[:2].tolist() == [k - 1 - grade for grade in wanted[:2]]


def test_bad_input_is_named():
    votes, two = np.array([1.0, 2.0, 3.0]), np.ones((2, 3))

    def text(call, *args):
        with pytest.raises(InputError) as info:
            call(*args)
        return str(info.value)

    assert "counts has shape (2, 3), expected (n, 2)" in text(_core.grade_means, two, votes[:2], 1)
    assert "votes[1] is 1" in text(_core.grade_means, two, np.array([2.0, 1.0, 3.0]), 1)
    bad = two.copy()
    bad[1, 2] = np.nan
    assert text(_core.grade_means, bad, votes, 1).startswith("counts[1, 2] is NaN")
    bad[1, 2] = -1
    thresholds = np.array([1.5, 2.5])
    assert text(_core.grade_decisions, bad.astype(int), votes, thresholds, 1).startswith(
        "counts[1, 2] is -1"
    )
    bad[1] = 0
    assert text(_core.grade_means, bad, votes, 1).startswith("counts[1] holds no votes")
    assert "thresholds" in text(_core.grade_decisions, two, votes, thresholds[::-1], 1)
    assert "beta is -1" in text(_core.grade_thresholds, -1.0, votes)
    assert "intercepts[1] is inf" in text(_core.grade_thresholds, 1.0, np.array([1, np.inf]))
    assert "means[0] is NaN" in text(_core.grade_probabilities, np.array([np.nan]), 1.0, votes, 1)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float64])
def test_grades_are_written_as_they_are_returned(dtype):
    rng = np.random.default_rng(3)
    counts = rng.multinomial(6, np.ones(3) / 3, size=20_000)
    counts[17_000, 0] = 2**40  # past what a table is for
    votes, thresholds = np.array([1.0, 2.0, 3.0]), np.array([1.5, 2.5])
    places = _core.grade_decisions(counts, votes, thresholds, 1)
    grades = np.array([3, 5, 9], dtype=dtype)
    decided = _core.grade_decisions(counts, votes, thresholds, 2, grades)
    assert decided.dtype == dtype
    assert places[17_000] == 0
    np.testing.assert_array_equal(decided, grades[places])
    with pytest.raises(InputError) as caught:
        _core.grade_decisions(counts, votes, thresholds, 1, grades[:2])
    assert caught.value.argument == "grades"
