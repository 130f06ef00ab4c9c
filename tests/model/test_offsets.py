"""Offsets of items in the core: against the plain NumPy version, mirrored, and 0."""

import numpy as np
import pytest

import btdagg
from btdagg import _core, reference
from oracle import oracle


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(5)
    return rng.integers(0, 9, (4_000, 3)), rng.normal(0, 2, 4_000)


def test_pairs_are_those_of_the_reference(items):
    counts, offsets = items
    for numbers in [(1.2, 0.6, 0.8), (0.05, -3.0, 0.1), (3.0, 4.0, -1.0)]:
        model = _core.Model(*numbers, 1.0, 1.0)
        s, t = reference.features(counts)
        p = reference.probabilities(s, t, *numbers, offsets)
        np.testing.assert_allclose(model.predict_proba(counts, 1, offsets), p, rtol=1e-12)
        np.testing.assert_allclose(model.risks(counts, 1, offsets), reference.risks(p), rtol=1e-12)
        for dtype in (np.uint8, np.int64, np.float64):
            decided = model.decide(counts.astype(dtype), 2, offsets)
            np.testing.assert_array_equal(decided, reference.decide(p))


def test_probabilities_are_those_of_high_precision():
    model = _core.Model(1.7, -0.4, 0.9, 1.0, 1.0)
    counts = np.array([[0, 1, 7], [5, 0, 2], [3, 3, 3], [0, 0, 0], [2**40, 1, 0]])
    for offset in (-700.0, -3.25, 1e-12, 0.7, 30.0):
        found = model.predict_proba(counts, 1, np.full(5, offset))
        for row, p in zip(counts.tolist(), found.tolist(), strict=True):
            wanted = oracle(row, 1.7, -0.4, 0.9, offset=offset).p
            np.testing.assert_allclose(p, [float(x) for x in wanted], rtol=1e-12)


def test_offsets_mirror_to_the_last_bit_and_0_changes_none(items):
    counts, offsets = items
    model = _core.Model(1.2, 0.6, 0.8, 1.0, 1.0)
    turned = np.ascontiguousarray(counts[:, ::-1])
    zeros = np.zeros(len(counts))
    for name in ("decide", "predict_proba", "risks"):
        of = getattr(model, name)
        np.testing.assert_array_equal(of(counts, 1, zeros), of(counts, 1))
        mirrored = of(turned, 1, -offsets)
        wanted = -mirrored if name == "decide" else mirrored[:, ::-1]
        np.testing.assert_array_equal(of(counts, 1, offsets), wanted)


def test_loss_and_gradient_are_those_of_the_reference(items):
    counts, offsets = (values[:300] for values in items)
    labels = np.random.default_rng(1).integers(-1, 2, 300)
    weights = (labels[:, None] == [-1, 0, 1]) * 1.0
    found = _core.CalibrationSet.with_offsets(counts, weights, offsets, 1.0, 1.0)
    loss, gradient = found.loss(np.array([1.2, 0.6, 0.8]), 1)
    s, t = reference.features(counts)
    p = reference.probabilities(s, t, 1.2, 0.6, 0.8, offsets)
    assert loss == pytest.approx(reference.drps(p, labels), rel=1e-13)
    wanted = reference.drps_gradient(s, t, labels, 1.2, 0.6, 0.8, offsets=offsets)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-11)
    counted = _core.CalibrationSet(counts, labels.astype(np.int8), None, 1.0, 1.0)
    none = _core.CalibrationSet.with_offsets(counts, weights, 0 * offsets, 1.0, 1.0)
    theta = np.array([0.4, -0.6, 0.3])
    np.testing.assert_allclose(none.loss(theta, 1)[0], counted.loss(theta, 1)[0], rtol=1e-14)
    for wrong, message in [
        (offsets[:-1], r"offsets has 299 rows, expected 300 as in counts"),
        (np.where(np.arange(300) == 7, np.nan, offsets), r"offsets\[7\] is NaN"),
    ]:
        with pytest.raises(btdagg.InputError, match=message):
            _core.CalibrationSet.with_offsets(counts, weights, wrong, 1.0, 1.0)
        with pytest.raises(btdagg.InputError, match=message):
            _core.Model(1.2, 0.6, 0.8, 1.0, 1.0).decide(counts, 1, wrong)


def test_grades_are_those_of_the_reference(items):
    _, offsets = items
    points = np.array([1.0, 2.0, 3.0, 4.0])
    counts = np.random.default_rng(2).integers(1, 5, (4_000, 4))
    means = _core.grade_means(counts, points, 1)
    beta, intercepts = 1.8, 1.8 * np.array([1.4, 2.6, 3.2])
    p = reference.grade_probabilities(means, beta, intercepts, offsets)
    found = _core.grade_probabilities(means, beta, intercepts, 1, offsets)
    np.testing.assert_allclose(found, p, rtol=1e-11)
    thresholds = _core.grade_thresholds(beta, intercepts)
    decided = _core.grade_decisions(counts, points, thresholds, 1, None, offsets / beta)
    np.testing.assert_array_equal(decided, reference.grade_decisions(p))
    plain = _core.grade_decisions(counts, points, thresholds, 1)
    none = _core.grade_decisions(counts, points, thresholds, 1, None, 0 * offsets)
    np.testing.assert_array_equal(none, plain)
