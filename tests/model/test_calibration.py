"""The paper's fit is judged by its optimality: no lower point, no slope left inside the box."""

import math
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

import btdagg
from btdagg import Bounds, DavidsonModel, InputError
from btdagg.methods import Calibrated
from btdagg.model import CalibrationWarning
from refusals import refused

calibrate = partial(btdagg.calibrate, prior=None)

LOWER = np.array([1e-3, math.log(1e-4), -10.0])
UPPER = np.array([5.0, math.log(1e3), 10.0])


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        yield


def simulated_set(rng):
    """A small calibration set of a judge of any kind."""
    n_items, n_votes = rng.integers(20, 101), rng.choice([2, 4, 8, 12, 20])
    chances = rng.dirichlet(rng.uniform(0.2, 2, 3), size=n_items)
    counts = np.array([rng.multinomial(n_votes, p) for p in chances])
    model = DavidsonModel(rng.uniform(0.3, 3), rng.uniform(-2, 7), rng.uniform(-1, 2.5))
    p = model.predict_proba(counts)
    labels = (rng.random(n_items)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1) - 1
    return counts, labels


def rb2_sets(shared):
    """Counts and labels of every task and judge of rb2 at 2, 4 and 8 votes."""
    votes = btdagg.read_votes(shared / "data/rb2/votes.parquet")
    votes = votes.filter({"template": "base", "temperature": "default"})
    labels = btdagg.read_labels(shared / "data/rb2/labels.csv")
    for _, part in votes.partition(["task", "judge"]):
        for n_votes in (2, 4, 8):
            items = btdagg.align(*part.counts(n_votes), labels)
            yield items.counts, items.label


def best_of_random_starts(counts, labels, rng, n_starts=50, usual_votes=None):
    def loss(theta):
        model = DavidsonModel(*theta, usual_votes=usual_votes)
        return model.drps(counts, labels), np.array(model.drps_gradient(counts, labels))

    how = {"jac": True, "method": "L-BFGS-B", "bounds": [*zip(LOWER, UPPER, strict=True)]}
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    starts = rng.uniform(LOWER, UPPER, size=(n_starts, 3))
    return min(minimize(loss, start, options=options, **how).fun for start in starts)


@pytest.mark.soak
@pytest.mark.usefixtures("quiet")
def test_no_random_start_finds_a_lower_point_on_real_votes(shared):
    rng = np.random.default_rng(12)
    tasks = list(rb2_sets(shared))
    for _ in range(100):
        counts, labels = tasks[rng.integers(len(tasks))]
        chosen = rng.choice(len(labels), rng.integers(20, 101), replace=False)
        counts, labels = counts[chosen], labels[chosen]
        fitted = calibrate(counts, labels)
        usual = fitted.model.usual_votes
        best = best_of_random_starts(counts, labels, rng, usual_votes=usual)
        assert fitted.drps - best <= 1e-8


@pytest.mark.usefixtures("quiet")
def test_the_projected_gradient_vanishes_and_no_grid_point_is_lower():
    rng = np.random.default_rng(13)
    for _ in range(8):
        counts, labels = simulated_set(rng)
        fitted = calibrate(counts, labels)
        model = fitted.model
        theta = np.array([model.beta, model.eta0, model.gamma])
        gradient = model.drps_gradient(counts, labels)
        step = np.clip(theta - gradient, LOWER, UPPER) - theta
        assert abs(step).max() < 1e-7
        assert fitted.converged
        assert fitted.drps == model.drps(counts, labels)
        for other in rng.uniform(LOWER, UPPER, size=(200, 3)):
            assert DavidsonModel(*other).drps(counts, labels) >= fitted.drps


@pytest.mark.parametrize("truth", [(0.62, 0.3, 0.5), (1.19, 2.66, 0.52), (1.41, 6.5, 1.94)])
def test_the_parameters_that_made_the_labels_are_found(truth):
    """With the exact label distribution as soft labels the truth is the minimum."""
    counts = np.array([(m, 12 - m - p, p) for m in range(13) for p in range(13 - m)])
    soft = DavidsonModel(*truth).predict_proba(counts)
    fitted = calibrate(counts, None, weights=soft).model
    np.testing.assert_allclose([fitted.beta, fitted.eta0, fitted.gamma], truth, atol=1e-5)


@pytest.mark.usefixtures("quiet")
def test_weights_smoothing_and_bounds_are_used():
    rng = np.random.default_rng(14)
    counts, labels = simulated_set(rng)
    times = rng.integers(0, 4, size=len(labels))
    weighted = calibrate(counts, labels, weights=times)
    repeated = calibrate(np.repeat(counts, times, axis=0), np.repeat(labels, times))
    assert weighted.drps == pytest.approx(repeated.drps, abs=1e-12)
    assert weighted.n_labels == (times > 0).sum()
    smooth = calibrate(counts, labels, alpha=0.25, kappa=3.0).model
    assert (smooth.alpha, smooth.kappa) == (0.25, 3.0)
    assert smooth.drps(counts, labels) == calibrate(counts, labels, alpha=0.25, kappa=3.0).drps
    narrow = Bounds(beta=(0.9, 1.1), nu=(2, 3), gamma=(0, 0.1))
    model = calibrate(counts, labels, bounds=narrow).model
    assert 0.9 <= model.beta <= 1.1
    assert 2 - 1e-12 <= model.nu <= 3 + 1e-12
    assert 0 <= model.gamma <= 0.1


@pytest.mark.parametrize(
    ("counts", "labels", "message"),
    [
        ([[1, 2, 9]] * 5 + [[0, 9, 3]], [1] * 6, "every label is 1: beta, nu and gamma cannot"),
        ([[1, 2, 9]], [0], "1 label: too few to calibrate on"),
        ([[1, 2, 9], [9, 1, 2]], [1, -1], "2 labels: too few to calibrate on"),
        ([[0, 0, 0]] * 4, [1, 0, -1, 0], "no item has votes: beta and gamma cannot be identified"),
        (
            [[3, 1, 3], [2, 8, 2], [1, 1, 1]],
            [1, 0, -1],
            "every item has as many votes for A as for B: beta cannot",
        ),
        (
            [[0, 0, 4], [4, 0, 0], [3, 0, 1], [1, 0, 3]],
            [1, -1, 0, 0],
            "all items have the same share of ties, so gamma cannot be separated from nu",
        ),
    ],
)
def test_labels_that_cannot_identify_a_parameter_are_warned_of(counts, labels, message):
    with pytest.warns(CalibrationWarning) as caught:
        fitted = calibrate(counts, labels)
    assert any(message in str(warning.message) for warning in caught)
    assert tuple(str(warning.message) for warning in caught) == fitted.warnings
    assert caught[0].filename == __file__


def test_an_unidentified_parameter_is_left_neutral():
    with pytest.warns(CalibrationWarning):
        no_ties = calibrate([[0, 0, 4], [4, 0, 0], [3, 0, 1], [1, 0, 3]], [1, -1, 0, 0])
    with pytest.warns(CalibrationWarning):
        no_votes = calibrate([[0, 0, 0]] * 4, [1, 0, -1, 0])
    assert no_ties.model.gamma == 0
    assert (no_votes.model.beta, no_votes.model.gamma) == (1, 0)
    # All that is left is the share of ties: p(0) = nu / (nu + 2), at the least DRPS.
    assert no_votes.model.predict_proba([[0, 0, 0]])[0, 1] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.usefixtures("quiet")
def test_a_neutral_gamma_does_not_cost_a_better_fit():
    """One tie feature for all items, and a tie logit that nu alone cannot reach."""
    counts = [[0, 0, 2], [2, 0, 0], [1, 0, 1]] * 7
    labels = [0] * 20 + [1]
    fitted = calibrate(counts, labels, bounds=Bounds(nu=(1e-4, 2.0)))
    assert any("and compensates for it" in text for text in fitted.warnings)
    assert fitted.model.gamma < 0
    held = calibrate(counts, labels, bounds=Bounds(nu=(1e-4, 2.0), gamma=(0, 0)))
    assert fitted.drps < held.drps - 1e-3


def test_bounds_that_are_hit_and_judges_that_add_nothing_are_warned_of():
    with pytest.warns(CalibrationWarning) as caught:
        high = calibrate(
            [[0, 3, 9], [8, 4, 0], [1, 2, 9], [12, 0, 0], [2, 0, 10]], [0, 0, 0, -1, 0]
        )
    assert any("nu is at its bound 1000" in str(warning.message) for warning in caught)
    assert "nu" in high.at_bounds
    assert high.model.nu == pytest.approx(1000)
    rng = np.random.default_rng(16)
    noise = rng.multinomial(8, [0.4, 0.2, 0.4], size=500)
    with pytest.warns(CalibrationWarning, match="with up to 8 votes a tie, whatever the votes"):
        fitted = calibrate(noise, rng.choice([-1, 0, 0, 1], size=500))
    assert not fitted.model.decide(noise).any()


@pytest.mark.usefixtures("quiet")
def test_extreme_weights_are_only_a_scale():
    counts, labels = simulated_set(np.random.default_rng(19))
    wanted = calibrate(counts, labels)
    for size in (2.0**-1074, 2.0**-1000, 2.0**1000):
        weights = np.full(len(labels), size)
        assert wanted.model.drps(counts, labels, weights) == wanted.drps
        assert calibrate(counts, labels, weights=weights).model == wanted.model
    with pytest.raises(InputError, match="weights of equal counts have no finite sum"):
        wanted.model.drps([[1, 2, 3]] * 4, [0] * 4, [1e308] * 4)


@pytest.mark.usefixtures("quiet")
def test_the_weak_prior_is_used_unless_bounds_are_given_which_are_of_the_papers_fit():
    counts, labels = simulated_set(np.random.default_rng(29))
    weak = btdagg.calibrate(counts, labels, prior="weak").model
    for fit in (btdagg.calibrate, lambda *of, **how: Calibrated(**how).fit(*of).calibration):
        assert fit(counts, labels).model == weak
        assert fit(counts, labels, bounds=Bounds()).model == calibrate(counts, labels).model
        for prior in ("weak", btdagg.fit_prior([(counts, labels)])):
            with refused("bounds", got=Bounds()):
                fit(counts, labels, prior=prior, bounds=Bounds())
    copied = pickle.loads(pickle.dumps(Calibrated(bounds=Bounds())))  # without a prior still
    assert copied.fit(counts, labels).calibration.model == calibrate(counts, labels).model
    refits = btdagg.bootstrap(counts, labels, n_refits=2)
    assert refits.calibration.model == weak
    boxed = btdagg.bootstrap(counts, labels, n_refits=2, bounds=Bounds(gamma=(0, 0)))
    assert not boxed.parameters[:, 2].any()


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_narrow_counts_are_summed_as_wide_ones():
    random = np.random.default_rng(0)
    labels = random.integers(-1, 2, 200)
    for n, dtype in ((300, np.uint8), (150, np.int8), (60_000, np.uint16)):
        shares = np.where(labels[:, None] == [-1, 0, 1], 0.4, 0.3)
        counts = np.array([random.multinomial(n, share) for share in shares])
        narrow = counts.astype(dtype)
        assert (narrow == counts).all()
        assert calibrate(narrow, labels).model == calibrate(counts, labels).model
