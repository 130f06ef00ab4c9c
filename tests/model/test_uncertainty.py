"""Refits against SciPy, the error against simulation, decisions under uncertain parameters."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import btdagg
from btdagg import DavidsonModel, _core, bootstrap
from btdagg.model import CalibrationWarning
from btdagg.model.calibration_set import calibration_set
from btdagg.model.refits import _cells_of
from refusals import refused

TRUTH = DavidsonModel(1.3, 1.5, 0.8)
LOWER = [1e-3, math.log(1e-4), -10.0]
UPPER = [5.0, math.log(1e3), 10.0]


def judged(rng, n_items, n_votes=8, model=TRUTH):
    chances = rng.dirichlet([1, 1, 1], size=n_items)
    counts = np.array([rng.multinomial(n_votes, p) for p in chances])
    p = model.predict_proba(counts)
    labels = (rng.random(n_items)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1) - 1
    return counts, labels


def test_the_optimum_of_a_refit_is_where_scipy_finds_none_lower():
    rng = np.random.default_rng(0)
    bounds = list(zip(LOWER, UPPER, strict=True))
    for n_items, n_votes in ((20, 4), (60, 12)):
        items = _cells_of(*judged(rng, n_items, n_votes), None)
        (drawn,) = items.draws(4, 1)
        refits = _core.Refits(items.counts, items.labels, 1.0, 1.0, LOWER, UPPER)
        thetas, drps, converged, _ = refits.fit(drawn, 1)
        assert converged.all()
        for theta, least, weights in zip(thetas, drps, drawn, strict=True):
            cells = calibration_set(items.counts, items.labels, weights, alpha=1.0, kappa=1.0)
            starts = [theta, [1.0, 0.0, 0.0], *rng.uniform(LOWER, UPPER, size=(4, 3))]
            found = min(
                minimize(
                    lambda theta, cells=cells: cells.loss(theta, 1),
                    start,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=bounds,
                    options={"ftol": 1e-15, "gtol": 1e-10},
                ).fun
                for start in starts
            )
            assert least <= found + 1e-10
            assert least == pytest.approx(cells.loss(theta, 1)[0], abs=1e-14)


def test_refits_are_calibrations_of_the_items_drawn():
    counts, labels = judged(np.random.default_rng(1), 60)
    sure = bootstrap(counts, labels, n_refits=100, seed=3, prior=None)
    items = _cells_of(counts, labels, None)
    (drawn,) = items.draws(100, 3)
    assert (drawn.sum(axis=1) == 60).all()
    for weights, theta in zip(drawn, sure.parameters, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            again = btdagg.calibrate(items.counts, items.labels, weights=weights, prior=None)
        cells = calibration_set(items.counts, items.labels, weights, alpha=1.0, kappa=1.0)
        assert cells.loss(theta, 1)[0] == pytest.approx(again.drps, abs=1e-10)


def test_the_same_seed_gives_the_same_bits_at_any_number_of_threads():
    counts, labels = judged(np.random.default_rng(2), 80)
    one = bootstrap(counts, labels, n_refits=120, seed=5)
    three = bootstrap(counts, labels, n_refits=120, seed=5, n_threads=3)
    other = bootstrap(counts, labels, n_refits=120, seed=6)
    np.testing.assert_array_equal(one.parameters, three.parameters)
    assert (one.beta, one.nu, one.gamma, one.mae) == (three.beta, three.nu, three.gamma, three.mae)
    assert (one.parameters != other.parameters).any()
    new = judged(np.random.default_rng(3), 500)[0]
    for mine, theirs in zip(one.stability(new), three.stability(new, n_threads=2), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_groups_are_drawn_whole():
    counts, labels = judged(np.random.default_rng(5), 40)
    cells = _cells_of(counts, labels, np.repeat(np.arange(10), 4))
    (drawn,) = cells.draws(30, 0)
    for row in drawn:
        times, *_ = np.linalg.lstsq(cells.units.toarray().T, row, rcond=None)
        np.testing.assert_allclose(times, times.round(), atol=1e-9)
        assert round(times.sum()) == 10


@pytest.mark.soak
def test_most_of_the_flattery_is_taken_off_the_error():
    rng = np.random.default_rng(10)
    new = judged(rng, 20_000)
    apparent = corrected = true = 0.0
    for _ in range(100):
        counts, labels = judged(rng, 60)
        sure = bootstrap(counts, labels, n_refits=200)
        error = btdagg.mean_absolute_error(new[1], sure.calibration.model.decide(new[0]))
        own = btdagg.mean_absolute_error(labels, sure.calibration.model.decide(counts))
        apparent, corrected, true = apparent + own, corrected + sure.mae.estimate, true + error
    # The error on the fit's own items flatters; most of that is taken off.
    assert apparent < true
    assert abs(corrected - true) < abs(apparent - true) / 2


def test_stability_is_the_share_of_other_fits_that_decide_alike():
    rng = np.random.default_rng(11)
    counts, labels = judged(rng, 80)
    sure = bootstrap(counts, labels, n_refits=60)
    new = judged(rng, 300)[0]
    found = sure.stability(new, level=0.9)
    model = sure.model
    center = np.array([model.beta, model.eta0, model.gamma])
    # The model errs, and another fit to other labels: their distance varies twice as much.
    others = np.clip(center + math.sqrt(2) * (sure.parameters - center), LOWER, UPPER)
    decided = np.array([DavidsonModel(*theta).decide(new) for theta in others])
    np.testing.assert_array_equal(found.labels, sure.calibration.model.decide(new))
    np.testing.assert_allclose(found.agreement, (decided == found.labels).mean(axis=0))
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)
    np.testing.assert_array_equal(found.stable, found.agreement >= 0.9)
    assert found.stable.any()
    assert not found.stable.all()
    # No votes is a tie under any parameters.
    assert sure.stability([[0, 0, 0]]).agreement.tolist() == [1.0]
    assert len(sure.stability(np.empty((0, 3))).labels) == 0


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


@pytest.mark.parametrize("prior", ["weak", None])
@pytest.mark.parametrize("grouped", [False, True])
def test_refits_with_covariates_are_calibrations_of_the_items_drawn(prior, grouped):
    rng, n = np.random.default_rng(3), 45
    counts, labels = judged(rng, 60, 4)
    known = {"x": labels + rng.normal(0, 1, 60), "rare": (np.arange(60) < 3) * 1.0}
    gold = np.where(np.arange(60) < n, labels, np.nan)
    groups = np.arange(60) // 3 if grouped else None
    how = {"covariates": known, "prior": prior, "groups": groups}
    found = bootstrap(counts, gold, n_refits=12, seed=5, **how)
    model = found.model
    assert model == btdagg.calibrate(counts, gold, covariates=known, prior=prior).model
    scales = {own.name: own.scale for own in model.covariates}
    columns = np.column_stack([values[:n] / scales[name] for name, values in known.items()])
    cells = _cells_of(counts[:n], labels[:n], groups if groups is None else groups[:n], columns)
    assert found.n_units == (15 if grouped else n)
    (drawn,) = cells.draws(12, 5)
    own, errors = [], []
    for times in drawn.astype(int):
        rows = np.repeat(np.arange(len(times)), times)
        given = {
            name: (x[rows] * scales[name], scales[name])
            for name, x in zip(known, cells.known.T, strict=True)
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            refit = btdagg.calibrate(
                cells.counts[rows], cells.labels[rows], covariates=given, prior=prior
            ).model
        weights = {c.name: c.weight for c in refit.covariates}
        own.append([refit.beta, refit.eta0, refit.gamma, *(weights.get(k, 0.0) for k in known)])
        of_refit = {k: given[k][0] for k in weights} or None
        decided = refit.decide(cells.counts[rows], covariates=of_refit)
        errors.append(np.abs(decided - cells.labels[rows]).mean())
    np.testing.assert_allclose(found.parameters, own, rtol=1e-9, atol=1e-9)
    x = found.weights["x"]
    fitted = btdagg.calibrate(counts, gold, **how)
    assert x == fitted.weights()["x"]
    if prior is not None:
        assert found.beta == fitted.posterior.intervals()["beta"]
    assert found.mae.high - found.mae.low == pytest.approx(
        np.diff(np.quantile(errors, [0.025, 0.975]))[0]
    )
    assert "x 0." in str(found) or "x 1." in str(found)
    stable = found.stability(counts, covariates=known)
    np.testing.assert_array_equal(stable.labels, model.decide(counts, covariates=known))
    center = [model.beta, model.eta0, model.gamma, *(c.weight for c in model.covariates)]
    others = center + math.sqrt(2) * (found.parameters - center)
    others[:, :3] = np.clip(others[:, :3], LOWER, UPPER)
    shares = np.mean(
        [
            replace(
                model,
                beta=beta,
                eta0=eta0,
                gamma=gamma,
                covariates=tuple(map(lambda c, w: replace(c, weight=w), model.covariates, weights)),
            ).decide(counts, covariates=known)
            == stable.labels
            for beta, eta0, gamma, *weights in others.tolist()
        ],
        axis=0,
    )
    np.testing.assert_allclose(stable.agreement, shares)
    with refused("covariates", got=None, expected="x, rare"):
        found.stability(counts)


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
