"""Refits: as far apart as fits to items drawn anew, and taken of whatever has items."""

import numpy as np
import pytest

import btdagg
from btdagg import DavidsonModel, bootstrap
from refusals import refused

TRUTH = DavidsonModel(1.3, 1.5, 0.8)


def judged(rng, n_items, n_votes=8, model=TRUTH):
    chances = rng.dirichlet([1, 1, 1], size=n_items)
    counts = np.array([rng.multinomial(n_votes, p) for p in chances])
    p = model.predict_proba(counts)
    labels = (rng.random(n_items)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1) - 1
    return counts, labels


@pytest.mark.parametrize(("size", "known"), [(1, False), (4, False), (4, True)])
def test_refits_are_as_far_apart_as_fits_to_groups_drawn_with_replacement(size, known):
    rng = np.random.default_rng(1)
    counts, labels = judged(rng, 120)
    groups = np.arange(120) // size
    x = labels + rng.normal(0, 2, 120)
    given = {"covariates": {"x": (x, 1.0)}} if known else {}
    refits = bootstrap(counts, labels, n_refits=150, groups=groups, **given)
    again = []
    for _ in range(30 if known else 100):
        drawn = rng.integers(groups.max() + 1, size=groups.max() + 1)
        rows = np.concatenate([np.flatnonzero(groups == group) for group in drawn])
        of_rows = {"covariates": {"x": (x[rows], 1.0)}} if known else {}
        model = btdagg.calibrate(counts[rows], labels[rows], **of_rows).model
        again.append([model.beta, model.eta0, model.gamma, *(c.weight for c in model.covariates)])
    assert refits.parameters.shape == (150, 4 if known else 3)
    assert refits.n_units == 120 // size
    spreads = [
        np.subtract(*np.quantile(of, [0.8, 0.2], axis=0)) for of in (refits.parameters, again)
    ]
    assert spreads[0] == pytest.approx(spreads[1], rel=0.5)
    assert np.median(refits.parameters, axis=0) == pytest.approx(np.median(again, axis=0), abs=0.2)
    told = {"covariates": {"x": x}} if known else {}
    stable = refits.stability(counts, **told)
    np.testing.assert_array_equal(stable.labels, refits.model.decide(counts, **told))
    np.testing.assert_allclose(stable.shares.sum(axis=1), 1)
    np.testing.assert_array_equal(stable.stable, stable.agreement >= 0.95)
    if known:
        with refused("covariates", got=None, expected="x of each item"):
            refits.stability(counts)


@pytest.mark.parametrize(
    ("arguments", "bad", "got", "expected"),
    [
        ({"n_refits": 1}, "n_refits", 1, "an integer of at least 2"),
        ({"groups": [1, 1, 1]}, "counts", [[1, 2, 9], [9, 1, 2], [3, 6, 3]], "at least two groups"),
    ],
)
def test_bad_arguments_are_named(arguments, bad, got, expected):
    counts, labels = [[1, 2, 9], [9, 1, 2], [3, 6, 3]], [1, -1, 0]
    with refused(bad, got=got, expected=expected):
        bootstrap(**{"counts": counts, "labels": labels, **arguments})


def test_refits_take_items_with_covariates():
    rng = np.random.default_rng(4)
    counts, labels = judged(rng, 40, 4)
    known = {"x": rng.normal(size=40)}
    items = btdagg.votes.Items(counts=counts, labels=labels).known_by(known)
    by_array = bootstrap(counts, labels, covariates=known, n_refits=4)
    for found in (
        bootstrap(items, n_refits=4),
        bootstrap(items, labels, n_refits=4),
        bootstrap(btdagg.votes.Items(counts=counts), labels, covariates=known, n_refits=4),
    ):
        np.testing.assert_array_equal(found.parameters, by_array.parameters)
    plain = bootstrap(btdagg.votes.Items(counts=counts, labels=labels), n_refits=4)
    np.testing.assert_array_equal(
        plain.parameters, bootstrap(counts, labels, n_refits=4).parameters
    )
    assert plain.weights == {}
    gold = np.where(np.arange(40) < 30, labels, np.nan)
    constant = bootstrap(counts, gold, covariates={"c": np.ones(40)}, n_refits=4)
    without = bootstrap(counts[:30], labels[:30], n_refits=4)
    np.testing.assert_array_equal(constant.parameters, without.parameters)
    columns = known["x"][:, None]
    of_array = by_array.stability(counts, covariates=columns).agreement
    np.testing.assert_array_equal(by_array.stability(counts, covariates=known).agreement, of_array)


def test_fits_beyond_the_papers_box_have_intervals_and_refits_beyond_it():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(2, [0.35, 0.3, 0.35], 300)
    labels = np.where(rng.random(300) < 0.9, np.sign(counts[:, 2] - counts[:, 0]), 0)
    refits = btdagg.bootstrap(counts, labels, n_refits=100, seed=0)
    assert refits.calibration.model.beta > 5
    assert refits.beta.low <= refits.beta.estimate < refits.beta.high
    assert refits.stability(counts).stable.all()


def test_refits_beside_covariates_keep_the_bounds_and_the_fit():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(6, [0.35, 0.3, 0.35], 80)
    labels = np.sign(counts[:, 2] - counts[:, 0])
    known = {"x": rng.normal(size=80)}
    bounds = btdagg.Bounds(beta=(1e-3, 0.5))
    refits = btdagg.bootstrap(counts, labels, bounds=bounds, covariates=known, n_refits=20, seed=0)
    assert refits.parameters[:, 0].max() <= 0.5
