"""Metrics and intervals against brute force over short inputs, the reference and SciPy."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btdagg import InputError, mean_absolute_error, pairwise_accuracy, reference
from btdagg.evaluation import discrete_ranked_probability_score
from btdagg.evaluation.metrics import mean_interval, share_interval

LABELS = (-1, 0, 1)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_pair_of_short_label_lists_against_a_loop(n):
    for gold, given_ in product(product(LABELS, repeat=n), repeat=2):
        distances = [abs(a - b) for a, b in zip(gold, given_, strict=True)]
        assert mean_absolute_error(gold, given_) == pytest.approx(sum(distances) / n, abs=1e-15)
        assert pairwise_accuracy(gold, given_) == distances.count(0) / n


# DRPS


def shares(max_size):
    """Rows of three probabilities, exact zeros among them."""
    parts = st.tuples(*[st.integers(0, 20)] * 3).filter(any)
    row = parts.map(lambda part: [p / sum(part) for p in part])
    return st.lists(row, min_size=1, max_size=max_size)


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_drps_against_its_definition_and_its_energy_form(data):
    rows = data.draw(shares(6))
    gold = data.draw(st.lists(st.sampled_from(LABELS), min_size=len(rows), max_size=len(rows)))
    scores = discrete_ranked_probability_score(gold, rows)
    assert scores.shape == (len(rows),)
    for score, label, p in zip(scores, gold, rows, strict=True):
        definition = sum(
            (sum(p[: place + 1]) - (label <= threshold)) ** 2
            for place, threshold in enumerate(LABELS)
        )
        # Gneiting and Raftery (2007): E|X - y| - E|X - X'| / 2.
        energy = sum(q * abs(x - label) for q, x in zip(p, LABELS, strict=True)) - 0.5 * sum(
            p[i] * p[j] * abs(i - j) for i in range(3) for j in range(3)
        )
        assert score == pytest.approx(definition, abs=1e-12)
        assert score == pytest.approx(energy, abs=1e-12)
    assert scores.mean() == pytest.approx(reference.drps(np.array(rows), gold), abs=1e-12)
    mirrored = discrete_ranked_probability_score(np.negative(gold), np.array(rows)[:, ::-1])
    np.testing.assert_allclose(mirrored, scores, atol=1e-12)


def test_drps_of_certain_predictions_is_the_absolute_error():
    gold, place = (array.ravel() for array in np.meshgrid(LABELS, range(3)))
    scores = discrete_ranked_probability_score(gold, np.eye(3)[place])
    assert scores.tolist() == np.abs(gold - (place - 1)).tolist()


def test_drps_is_proper():
    p = np.array([0.2, 0.5, 0.3])
    grid = np.array([(a, b, 20 - a - b) for a in range(21) for b in range(21 - a)]) / 20
    expected = sum(
        p[place] * discrete_ranked_probability_score(np.full(len(grid), label), grid)
        for place, label in enumerate(LABELS)
    )
    assert grid[expected.argmin()].tolist() == p.tolist()


def test_bad_labels_are_refused_by_name_and_row():
    for metric in (mean_absolute_error, pairwise_accuracy):
        for arguments, name in ((([0, 256], [0, 1]), "labels"), (([0, 1], [0, 256]), "predicted")):
            with pytest.raises(InputError) as error:
                metric(*arguments)  # 256 is a label modulo 256
            assert (error.value.argument, error.value.row) == (name, 1)


WANT = "expected three numbers of at least 0 that sum to 1"
BAD_PROBABILITIES = [
    ([[0, 1, 0], [0.5, 0.5, 0.1]], f"probabilities[1] is [0.5, 0.5, 0.1], {WANT}"),
    ([[0, 1, 0], [np.nan, 0.5, 0.5]], f"probabilities[1] is [nan, 0.5, 0.5], {WANT}"),
    ([[0, 1], [1, 0]], "probabilities has shape (2, 2), expected (2, 3)"),
]


@pytest.mark.parametrize(("probabilities", "message"), BAD_PROBABILITIES)
def test_what_is_no_distribution_is_refused_by_row(probabilities, message):
    with pytest.raises(InputError) as error:
        discrete_ranked_probability_score([1, 0], probabilities)
    assert str(error.value) == message


# Intervals


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
