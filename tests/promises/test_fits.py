"""What a fit owes to neighbours, to weights and to what is missing: nothing that is not there."""

import numpy as np
import pytest

import btdagg
from btdagg import Covariate, DavidsonModel, GradeModel, PanelModel, Scale, reference
from btdagg.datasets import simulate

pytestmark = [
    pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning"),
    pytest.mark.filterwarnings("ignore:.* is missing for"),
]
FIVE = Scale(range(1, 6))


def graded(n_items, seed, shift=0.5):
    """Four votes of a judge who is too kind, or too strict, and people's grades."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(3, 1, n_items)
    votes = np.clip(np.rint(quality[:, None] + shift + rng.normal(0, 0.8, (n_items, 4))), 1, 5)
    counts = np.stack([(votes == point).sum(axis=1) for point in FIVE.points], axis=1)
    return counts, np.clip(np.rint(quality), 1, 5).astype(int)


@pytest.mark.parametrize("n_labels", [5, 10, 20])
def test_beside_neighbours_what_is_left_is_divided_as_without_them(n_labels):
    """The shares of "the votes say nothing" and of the weak prior keep their ratio."""
    neighbour = simulate("rb2-safety", 300, 8, seed=2)
    prior = btdagg.fit_prior([(neighbour.counts, neighbour.labels)])
    for seed in range(3):
        own = simulate("rb2-math", n_labels, 8, seed=seed)
        beside = btdagg.calibrate(own.counts, own.labels, prior=prior).shares
        alone = btdagg.calibrate(own.counts, own.labels).shares
        assert 0.5 < beside["neighbours"] < 1
        ratio = beside["nothing"] / beside["votes"]
        assert ratio == pytest.approx(alone["nothing"] / alone["votes"], rel=1e-5)


@pytest.mark.parametrize("n_labels", [4, 12, 40])
def test_a_neighbour_that_is_named_several_times_counts_once(n_labels):
    other = btdagg.calibrate(*graded(300, seed=1), scale=FIVE).model
    own = graded(n_labels, seed=n_labels)
    once, *more = [
        btdagg.calibrate(*own, scale=FIVE, prior=prior)
        for prior in (other, [other], [other] * 2, [other] * 5)
    ]
    for fit in more:
        assert fit.shares == pytest.approx(once.shares, rel=1e-9)
        assert fit.model.beta == pytest.approx(once.model.beta, rel=1e-9)
        assert fit.model.cuts == pytest.approx(once.model.cuts, rel=1e-9)


def test_items_of_almost_no_weight_leave_a_panel_as_it_is_without_them():
    rng = np.random.default_rng(3)
    gold = rng.integers(-1, 2, 40)
    votes = np.sign(np.rint(gold[:, None] + rng.normal(0, [[[1]], [[2.5]], [[1.5]]], (3, 40, 5))))
    counts = np.stack([(votes == side).sum(axis=2).T for side in (-1, 0, 1)], axis=2)
    groups, few = np.arange(40) % 2, slice(25)
    weights = np.where(np.arange(40) < 25, 1.0, 1e-13)
    every = btdagg.calibrate_panel(counts, gold, weights=weights, groups=groups)
    alone = btdagg.calibrate_panel(counts[few], gold[few], groups=groups[few])
    assert every.model.beta == pytest.approx(alone.model.beta, abs=1e-6)
    assert every.model.gamma == pytest.approx(alone.model.gamma, abs=1e-6)
    assert every.shares == pytest.approx(alone.shares, abs=1e-6)


LENGTH = (Covariate("length", 0.7, 2.0, 5.0),)
KNOWING = {
    "pairs": DavidsonModel(1.2, 0.5, 0.8, covariates=LENGTH),
    "grades": GradeModel(2.0, (1.5, 2.5), Scale((1, 2, 3)), covariates=LENGTH),
    "panel": PanelModel(("a", "b"), (1.2, 0.3), 0.5, (0.8, 0.1), covariates=LENGTH),
}


@pytest.mark.parametrize("name", KNOWING)
def test_a_missing_covariate_counts_as_the_mean_and_the_others_by_their_distance(name):
    model = KNOWING[name]
    values = np.array([np.nan, 5.0, 7.0, -1.0])
    row = [[1, 2, 3], [0, 1, 0]] if name == "panel" else [1, 2, 3]
    counts = np.array([row] * len(values))
    offsets = 0.7 * np.array([0.0, 0.0, 1.0, -3.0])
    if name == "grades":
        means = reference.grade_means(counts, [1, 2, 3])
        expected = reference.grade_probabilities(means, model.beta, model.intercepts, offsets)
        labels = 1 + reference.grade_decisions(expected)
    elif name == "pairs":
        numbers = model.beta, model.eta0, model.gamma, offsets
        expected = reference.probabilities(*reference.features(counts), *numbers)
        labels = reference.decide(expected)
    else:
        numbers = model.beta, model.eta0, model.gamma, offsets
        expected = reference.panel_probabilities(counts, *numbers)
        labels = reference.decide(expected)
    known = {"length": values}
    chances = model.predict_proba(counts, covariates=known)
    np.testing.assert_allclose(chances, expected, rtol=1e-12)
    assert model.decide(counts, covariates=known).tolist() == labels.tolist()


def test_a_standing_that_a_model_was_fitted_with_is_that_of_its_systems():
    """Less that of B for pairs; of a system that the model has never seen it is missing."""
    standings = {"ant": 0.5, "bee": 0.1, "cat": -0.6}
    known = (Covariate("standing", 0.8, 0.5, 0.0, standings),)
    a, b = ["ant", "bee", "cat", "new"], ["cat", "ant", "bee", "ant"]
    rows = {"item": np.arange(4).repeat(3), "vote": [1, 0, 1] * 4}
    pairs = {**rows, "system_a": np.repeat(a, 3), "system_b": np.repeat(b, 3)}
    model = DavidsonModel(1.2, 0.5, 0.8, covariates=known)
    offsets = 0.8 * np.array([1.1, -0.4, -0.7, 0.0]) / 0.5
    counts = np.array([[0, 1, 2]] * 4)
    numbers = model.beta, model.eta0, model.gamma, offsets
    expected = reference.probabilities(*reference.features(counts), *numbers)
    decided = btdagg.decisions(btdagg.read_votes(pairs), model)
    chances = decided.select("p_minus", "p_tie", "p_plus").to_numpy()
    np.testing.assert_allclose(chances, expected, rtol=1e-9)
    scale = Scale((1, 2, 3))
    graded = GradeModel(2.0, (1.5, 2.5), scale, covariates=known)
    offsets = 0.8 * np.array([0.5, 0.1, -0.6, 0.0]) / 0.5
    rows = {"item": np.arange(4).repeat(3), "score": [1, 2, 2] * 4, "system": np.repeat(a, 3)}
    expected = reference.grade_probabilities(
        np.full(4, 5 / 3), graded.beta, graded.intercepts, offsets
    )
    decided = btdagg.decisions(btdagg.read_votes(rows, scale=scale), graded)
    chances = decided.select("p_1", "p_2", "p_3").to_numpy()
    np.testing.assert_allclose(chances, expected, rtol=1e-9)
