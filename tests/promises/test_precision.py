"""The kernels against fifty digits: values to 1e-13, decisions exactly."""

import math

import numpy as np
import pytest

from btdagg import DavidsonModel
from oracle import drps_terms, oracle

TOLERANCE = 1e-13
SMALLEST_NORMAL = 2.2250738585072014e-308
N_ITEMS = 100  # of each of 20 models, and in `make soak` of 900 more


def random_inputs(rng):
    """Parameters of one model and items of 0 to 2^32 votes a side, on all scales."""
    eta0 = rng.choice([rng.uniform(-9.3, 7), rng.uniform(-700, 700)])
    parameters = (rng.uniform(1e-3, 5), eta0, rng.uniform(-10, 10))
    smoothing = (1.0, 1.0) if rng.random() < 0.5 else tuple(10 ** rng.uniform(-3, 2, size=2))
    scale = rng.choice([4.0, 12.0, 100.0, 2.0**20, 2.0**32], size=(N_ITEMS, 1))
    counts = np.floor(rng.random((N_ITEMS, 3)) ** 2 * (scale + 1)).clip(0, 2**32)
    return parameters, smoothing, counts.astype(np.float64)


def assert_close(got, wanted, scale=None):
    """Relative to `scale`, or to the value itself unless that underflows."""
    scale = abs(wanted) if scale is None else scale
    error = abs(got - wanted)
    assert error <= TOLERANCE * scale + SMALLEST_NORMAL * 1e-3, (got, float(wanted), float(error))


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.soak) for part in range(1, 10))]
)
def test_values_and_decisions_agree_with_fifty_digits(part):
    rng = np.random.default_rng([20, part])
    for _ in range(100 if part else 20):
        (beta, eta0, gamma), (alpha, kappa), counts = random_inputs(rng)
        model = DavidsonModel(beta, eta0, gamma, alpha, kappa)
        labels = rng.integers(-1, 2, size=N_ITEMS)
        weights = rng.random(N_ITEMS)
        s, t = model.features(counts)
        p, risks, decided = model.predict_proba(counts), model.risks(counts), model.decide(counts)
        sums = [[] for _ in range(4)]
        for i in range(N_ITEMS):
            exact = oracle(counts[i], beta, eta0, gamma, alpha, kappa)
            assert_close(s[i], exact.s)
            assert_close(t[i], exact.t)
            for column in range(3):
                assert_close(p[i, column], exact.p[column])
                assert_close(risks[i, column], exact.risks[column])
            # Equal risks are a tie; so are risks that rounding cannot tell apart.
            if abs(exact.margin) > TOLERANCE * (1 + abs(eta0) + abs(gamma) * 25):
                assert decided[i] == exact.action
            for total, terms in zip(sums, drps_terms(exact, labels[i]), strict=True):
                total += [weights[i] * term for term in terms]
        got = [
            model.drps(counts, labels, weights),
            *model.drps_gradient(counts, labels, weights),
        ]
        for value, terms in zip(got, sums, strict=True):
            assert_close(value * math.fsum(weights), sum(terms), max(map(abs, terms)))


def test_equal_risks_give_a_tie():
    """Counts and parameters for which the risks are equal as rational numbers."""
    found = 0
    for a in range(2, 40):  # plus + 1
        for b in range(1, a):  # minus + 1
            # 2 sinh u = (a² - b²) / (ab) for beta = 2; exp(eta) = (tie + 1) / (n + 1) for gamma = 1
            numerator = a * b - (a * a - b * b) * (a + b - 1)
            denominator = a * a - b * b - a * b
            if numerator % denominator == 0 and numerator // denominator >= 0:
                tie = numerator // denominator
                model = DavidsonModel(beta=2, eta0=0, gamma=1)
                counts = np.array([[b - 1, tie, a - 1], [a - 1, tie, b - 1]])
                assert model.decide(counts).tolist() == [0, 0]
                assert model.decide_one(b - 1, tie, a - 1) == 0
                one_less = DavidsonModel(beta=2, eta0=-1e-12, gamma=1)
                assert one_less.decide(counts).tolist() == [1, -1]
                found += 1
    assert found >= 5


@pytest.mark.parametrize("u", [-700.0, -30.0, 0.0, 1e-30, 30.0, 700.0])
@pytest.mark.parametrize("eta", [-700.0, 0.0, 700.0])
def test_extreme_margins(u, eta):
    beta = u / (0.5 * math.log(3.0))
    model = DavidsonModel(beta, eta, 0.0)
    exact = oracle([0, 0, 2], beta, eta, 0.0)
    for got, wanted in zip(model.predict_proba([[0, 0, 2]])[0], exact.p, strict=True):
        # u itself carries the rounding of beta · s, times |u| in the exponent.
        assert abs(got - wanted) <= 4e-16 * (1 + abs(u)) * wanted + SMALLEST_NORMAL
    assert model.decide([[0, 0, 2]])[0] == exact.action


@pytest.mark.soak
def test_loss_of_a_large_set_keeps_its_accuracy():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 200, size=(20_000, 3))
    labels = rng.integers(-1, 2, size=20_000)
    theta = np.array([1.3, 0.4, 0.7])
    model = DavidsonModel(*theta)
    value, gradient = model.drps(counts, labels), model.drps_gradient(counts, labels)
    sums = [[] for _ in range(4)]
    for row, label in zip(counts, labels, strict=True):
        for total, terms in zip(sums, drps_terms(oracle(row, *theta), label), strict=True):
            total += terms
    for got, terms in zip([value, *gradient], sums, strict=True):
        # No float is closer to a sum than half its last digit.
        scale = max(abs(sum(terms)), *map(abs, terms))
        assert_close(got * len(counts), sum(terms), scale)
