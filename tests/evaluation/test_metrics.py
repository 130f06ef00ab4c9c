"""Metrics against brute force over short inputs, the reference and SciPy."""

from collections import Counter
from itertools import permutations, product

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from btdagg import InputError, mean_absolute_error, pairwise_accuracy, reference
from btdagg.evaluation import (
    discrete_ranked_probability_score,
    krippendorff_alpha,
    share_interval,
)

LABELS = (-1, 0, 1)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_pair_of_short_label_lists_against_a_loop(n):
    for gold, given_ in product(product(LABELS, repeat=n), repeat=2):
        distances = [abs(a - b) for a, b in zip(gold, given_, strict=True)]
        assert mean_absolute_error(gold, given_) == pytest.approx(sum(distances) / n, abs=1e-15)
        assert pairwise_accuracy(gold, given_) == distances.count(0) / n


# Agreement of raters


def alpha_by_pairs(units, ordinal):
    """Alpha by its definition: pairs of ratings within items, and of all ratings."""
    units = [ratings for ratings in units if len(ratings) > 1]
    n = Counter(rating for ratings in units for rating in ratings)

    def squared(c, k):
        between = sum(n[g] for g in n if min(c, k) <= g <= max(c, k))
        return (between - (n[c] + n[k]) / 2) ** 2 if ordinal and c != k else (c - k) ** 2

    within = sum(
        squared(*pair) / (len(ratings) - 1)
        for ratings in units
        for pair in permutations(ratings, 2)
    )
    by_chance = sum(n[c] * n[k] * squared(c, k) for c, k in product(n, repeat=2))
    return 1 - within / by_chance * (sum(n.values()) - 1)


# Krippendorff (2011), section C: four observers, twelve units.
OBSERVERS = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, np.nan, np.nan, np.nan],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, np.nan, 3],
    [np.nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, np.nan],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, np.nan],
])  # fmt: skip


@pytest.mark.parametrize(("ordinal", "published"), [(True, 0.815), (False, 0.849)])
def test_alpha_against_its_definition_and_another_package(ordinal, published):
    random, level = np.random.default_rng(0), "ordinal" if ordinal else "interval"
    drawn = [random.choice([*values, np.nan], (4, 15)) for values in [(-1, 0, 1), (0, 0.5, 2)] * 5]
    for table in [OBSERVERS, *drawn]:
        found = krippendorff_alpha(np.tile(np.arange(table.shape[1]), 4), table.ravel(),
                                   ordinal=ordinal)  # fmt: skip
        units = [column[~np.isnan(column)].tolist() for column in table.T]
        other = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
        assert found == pytest.approx(alpha_by_pairs(units, ordinal), abs=1e-12)
        assert found == pytest.approx(other, abs=1e-12)
        if table is OBSERVERS:
            assert found == pytest.approx(published, abs=5e-4)


@pytest.mark.parametrize("ratings", [[], [1.0, 2.0], [3.0, 3.0, 3.0]])
def test_there_is_no_alpha_without_two_ratings_that_differ(ratings):
    assert np.isnan(krippendorff_alpha(["x", "y", "y"][: len(ratings)], ratings))


# DRPS


def shares(max_size):
    """Rows of three probabilities, exact zeros among them."""
    parts = st.tuples(*[st.integers(0, 20)] * 3).filter(any)
    row = parts.map(lambda part: [p / sum(part) for p in part])
    return st.lists(row, min_size=1, max_size=max_size)


@given(st.data())
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


@pytest.mark.parametrize(("successes", "total"), [(0, 5), (1, 30), (7, 20), (99, 100), (5, 5)])
def test_wilson_is_that_of_scipy(successes, total):
    found = share_interval(successes / total, total)
    theirs = stats.binomtest(successes, total).proportion_ci(method="wilson")
    assert found == pytest.approx((successes / total, theirs.low, theirs.high), abs=1e-5)
    assert 0 <= found.low <= found.mean <= found.high <= 1
