"""Covariates: weights that are optima, models that need their columns, standings."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import btdagg
from btdagg import InputError, reference
from btdagg.model import CalibrationWarning
from refusals import refused

# Numbers of votes are drawn, and few labels are meant.
pytestmark = [
    pytest.mark.filterwarnings("ignore:items have unequal numbers of votes"),
    pytest.mark.filterwarnings("ignore:5 labels. too few to calibrate on"),
]

SCALE = btdagg.Scale((1, 2, 3))


def judged(n=80, seed=0, slope=0.9):
    """Pairs whose labels depend on votes and on a covariate."""
    rng = np.random.default_rng(seed)
    counts, x = rng.multinomial(6, [1 / 3] * 3, size=n), rng.normal(size=n)
    s, t = reference.features(counts)
    p = reference.probabilities(s, t, 1.2, 0.4, 0.8, slope * x)
    labels = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1) - 1
    return counts, labels, x


def graded(n=90, seed=0):
    rng = np.random.default_rng(seed)
    counts, x = rng.multinomial(4, [0.3, 0.3, 0.4], size=n), rng.normal(3, 2, n)
    offsets = 0.9 * (x - 3) / 2
    p = reference.grade_probabilities(
        counts @ [1, 2, 3] / 4, 1.5, 1.5 * np.array([1.6, 2.4]), offsets
    )
    return counts, (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1) + 1, x


@pytest.mark.filterwarnings("ignore:this judge is not shown")
def test_weights_of_few_labels_are_drawn_to_0_and_those_of_noise_nearly_all_the_way():
    """By 40 labels, whose weight of most likelihood is further from 0 than the true one of 0.9."""
    of_noise, of_x = [], []
    for seed in range(8):
        counts, labels, x = judged(40, seed=seed)
        noise = np.random.default_rng([seed, 1]).normal(size=40)
        for column, weights in ((noise, of_noise), (x, of_x)):
            model = btdagg.calibrate(counts, labels, covariates={"x": column}).model
            weights.append(model.covariates[0].weight)
    assert np.abs(of_noise).mean() < 0.04
    assert 0.4 < np.mean(of_x) < 0.87


@pytest.mark.filterwarnings("ignore:this judge is not shown")  # by 60 labels
def test_a_fit_finds_the_weight_and_0_leaves_the_model_alone():
    counts, labels, x = judged(20_000)
    model = btdagg.calibrate(counts, labels, covariates={"x": x}).model
    (own,) = model.covariates
    assert own.weight / own.scale == pytest.approx(0.9, abs=0.05)
    assert (model.beta, model.eta0, model.gamma) == pytest.approx((1.2, 0.4, 0.8), abs=0.15)
    plain = btdagg.calibrate(counts[:60], labels[:60]).model
    zero = replace(plain, covariates=(replace(own, weight=0.0),))
    for name in ("decide", "predict_proba", "risks"):
        found = getattr(zero, name)(counts, covariates={"x": x})
        np.testing.assert_array_equal(found, getattr(plain, name)(counts))
    none = replace(model, covariates=())
    with refused("covariates", got=["x"]):
        none.decide(counts, covariates={"x": x})


@pytest.mark.parametrize("prior", ["weak", None])
def test_swapping_sides_and_rows_changes_no_bit(prior):
    counts, labels, x = judged(300)
    gold = np.where(np.arange(300) < 60, labels, np.nan)
    columns = {"x": x, "y": np.round(x + counts[:, 2], 1)}
    fitted = btdagg.calibrate(counts, gold, covariates=columns, prior=prior).model
    order = np.random.default_rng(3).permutation(300)
    turned = {name: -column[order] for name, column in columns.items()}
    mirrored = np.ascontiguousarray(counts[order, ::-1])
    other = btdagg.calibrate(mirrored, -gold[order], covariates=turned, prior=prior).model
    assert other == fitted
    decided = fitted.decide(counts, covariates=columns)
    np.testing.assert_array_equal(-other.decide(mirrored, covariates=turned), decided[order])
    p = other.predict_proba(mirrored, covariates=turned)[:, ::-1]
    np.testing.assert_array_equal(p, fitted.predict_proba(counts, covariates=columns)[order])


def test_unlabelled_rows_give_scales_alone():
    counts, labels, x = judged(200)
    gold = np.where(np.arange(200) < 50, labels, np.nan)
    (own,) = btdagg.calibrate(counts, gold, covariates={"x": x}).model.covariates
    assert (own.scale, own.centre) == (pytest.approx(math.sqrt((x**2).mean())), 0)
    few = btdagg.calibrate(counts[:50], labels[:50], covariates={"x": x[:50]})
    assert few.n_labels == 50
    assert few.model.covariates[0].scale != own.scale
    grades, labels, x = graded(200)
    gold = np.where(np.arange(200) < 50, labels, np.nan)
    (own,) = btdagg.calibrate(grades, gold, scale=SCALE, covariates={"x": x}).model.covariates
    assert (own.scale, own.centre) == (pytest.approx(x.std()), pytest.approx(x.mean()))


def test_a_column_may_come_with_its_scale():
    counts, labels, x = judged(60)
    fitted = btdagg.calibrate(counts, labels, covariates={"x": x}).model
    given = {"x": (x, fitted.covariates[0].scale)}
    assert btdagg.calibrate(counts, labels, covariates=given).model == fitted
    twice = btdagg.calibrate(counts, labels, covariates={"x": (x, 2.0)}).model.covariates[0]
    assert (twice.scale, twice.weight > 0) == (2.0, True)
    with refused("scale", got=0.0):
        btdagg.calibrate(counts, labels, covariates={"x": (x, 0)})
    grades, labels, x = graded()
    usual = btdagg.calibrate(grades, labels, scale=SCALE, covariates={"x": x}).model
    given = {"x": (x, float(x.std()) * 3)}
    other = btdagg.calibrate(grades, labels, scale=SCALE, covariates=given).model
    assert other.covariates[0].scale == 3 * x.std()
    assert other.covariates[0].centre == usual.covariates[0].centre


def test_columns_come_by_name_or_by_place():
    import polars as pl

    counts, labels, x = judged()
    named = btdagg.calibrate(counts, labels, covariates={"x0": x, "x1": x**3}).model
    array = np.column_stack([x, x**3])
    assert btdagg.calibrate(counts, labels, covariates=array).model == named
    frame = pl.DataFrame({"x1": x**3, "x0": x})
    decided = named.decide(counts, covariates={"x0": x, "x1": x**3})
    for columns in (frame, array):
        np.testing.assert_array_equal(named.decide(counts, covariates=columns), decided)
    one = {"x0": x[3], "x1": x[3] ** 3}
    label = named.decide_one(*counts[3].tolist(), covariates=one)
    assert (label, type(label)) == (decided[3], int)


@pytest.mark.filterwarnings("ignore:this judge is not shown")
def test_weights_of_items_have_no_unit_and_soft_labels_are_labels():
    counts, labels, x = judged(40)
    weights = np.tile([1.0, 2.0], 20)
    found, larger = (
        btdagg.calibrate(counts, labels, weights=weights * size, covariates={"x": x}).model
        for size in (1, 8)
    )
    assert larger.covariates[0].weight == pytest.approx(found.covariates[0].weight, rel=1e-9)
    plain = btdagg.calibrate(counts, labels, covariates={"x": x}).model
    assert found.covariates[0].weight != pytest.approx(plain.covariates[0].weight, rel=1e-3)
    soft = (labels[:, None] == [-1, 0, 1]) * 1.0
    assert btdagg.calibrate(counts, weights=soft, covariates={"x": x}).model == plain


def test_what_a_model_needs_is_asked_for_by_name():
    counts, labels, x = judged()
    model = btdagg.calibrate(counts, labels, covariates={"length": x, "mine": x**2 * x}).model
    assert "length 0." in str(btdagg.calibrate(counts, labels, covariates={"length": x}))
    for columns, message in [
        (None, "covariates is nothing, expected length, mine of each item"),
        ({"length": x}, r"covariates is \['length'\], expected exactly"),
        ({"length": x, "other": x}, "expected exactly length, mine"),
        ({"length": x, "mine": x[:5]}, r"covariates\['mine'\] has 5 rows, expected 80"),
        ({"length": x, "mine": np.where(x > 1, np.inf, x)}, r"covariates\['mine'\].* is inf"),
        (np.ones((80, 3)), r"expected \(n, 2\)"),
    ]:
        for decide in (model.decide, model.predict_proba, model.risks):
            with pytest.raises(InputError, match=message):
                decide(counts, covariates=columns)
    with refused("labels", got=None):
        btdagg.calibrate(counts, covariates={"length": x})


@pytest.mark.filterwarnings("ignore:this judge is not shown")
@pytest.mark.parametrize("make", [judged, graded])
def test_bad_columns_are_left_out_or_do_no_harm(make):
    counts, labels, x = make()
    scale = btdagg.PAIRS if make is judged else SCALE
    half = np.where(np.arange(len(x)) % 2, np.nan, x)

    def fit(**columns):
        return btdagg.calibrate(counts, labels, scale=scale, covariates=columns)

    with pytest.warns(CalibrationWarning, match="c is the same in every item and is left out"):
        found = fit(c=np.full(len(x), 3.0), x=x)
    assert [own.name for own in found.model.covariates] == ["x"]
    with pytest.warns(CalibrationWarning, match="c has no values and is left out"):
        found = fit(c=np.full(len(x), np.nan))
    plain = btdagg.calibrate(counts, labels, scale=scale).model
    assert found.model == plain
    with pytest.warns(CalibrationWarning, match=f"c is missing for {len(x) // 2} items"):
        found = fit(c=half)
    decided = found.model.decide(counts, covariates={"c": half})
    filled = np.where(np.isnan(half), found.model.covariates[0].centre, half)
    np.testing.assert_array_equal(found.model.decide(counts, covariates={"c": filled}), decided)
    usual = fit(x=x).model
    large = fit(x=x * 2.0**900).model
    assert large.covariates[0].weight == pytest.approx(usual.covariates[0].weight, rel=1e-9)
    for columns in ({"x": x}, {"x": x * 2.0**900}):
        model = usual if columns["x"] is x else large
        np.testing.assert_allclose(
            model.predict_proba(counts, covariates=columns),
            usual.predict_proba(counts, covariates={"x": x}),
            atol=1e-6,
        )
    twice = fit(x=x, y=2 * x).model
    total = sum(own.weight for own in twice.covariates)
    assert total == pytest.approx(usual.covariates[0].weight, rel=0.15)
    copied = fit(label=labels)
    (own,) = copied.model.covariates
    assert 1 < own.weight < 50
    assert (copied.model.decide(counts, covariates={"label": labels}) == labels).mean() > 0.97


@pytest.mark.parametrize("make", [judged, graded])
def test_models_are_values_and_files(make, tmp_path):
    counts, labels, x = make()
    scale = btdagg.PAIRS if make is judged else SCALE
    fitted = btdagg.calibrate(counts, labels, scale=scale, covariates={"x": x})
    model = replace(
        fitted.model, covariates=(replace(fitted.model.covariates[0], standings={"a": 0.5}),)
    )
    model.save(tmp_path / "model.json")
    read = type(model).load(tmp_path / "model.json")
    assert (read, hash(read)) == (model, hash(model))
    assert read.covariates[0].standings == {"a": 0.5}
    assert pickle.loads(pickle.dumps(fitted)).model == fitted.model
    np.testing.assert_array_equal(
        read.decide(counts, covariates={"x": x}), model.decide(counts, covariates={"x": x})
    )
    plain = replace(model, covariates=())
    assert plain != model
    assert "covariates" not in json.loads(plain.to_json())
    if make is judged:
        assert {*fitted.intervals()} == {"beta", "nu", "gamma"}


def strengths(counts, a, b, rows):
    """Ridge least squares of the mean votes of some items."""
    names = sorted({*a, *b})
    x = np.zeros((len(a), len(names)))
    for row, (first, second) in enumerate(zip(a, b, strict=True)):
        x[row, names.index(first)] += 1
        x[row, names.index(second)] -= 1
    means = (counts[:, 2] - counts[:, 0]) / counts.sum(axis=1)
    gram = x[rows].T @ x[rows] + np.eye(len(names))
    return x @ np.linalg.solve(gram, x[rows].T @ means[rows])


def test_standing_leaves_the_own_item_out():
    rng = np.random.default_rng(0)
    n = 60
    counts = rng.integers(0, 4, (n, 3)) + 1
    a = rng.choice([*"uvwxyz"], n)
    b = np.array([rng.choice([other for other in "uvwxyz" if other != own]) for own in a])
    found = btdagg.standing(counts, a, b)
    for row in range(n):
        rows = np.arange(n) != row
        assert found[row] == pytest.approx(strengths(counts, a, b, rows)[row], abs=1e-12)
    order = rng.permutation(n)
    turned = btdagg.standing(counts[order, ::-1], b[order], a[order])
    np.testing.assert_array_equal(turned, -found[order])
    system = rng.choice([*"pqr"], n)
    means = counts @ [1, 2, 3] / counts.sum(axis=1)
    grades = btdagg.standing(counts, system, scale=SCALE)
    for row in range(n):
        rows = (system == system[row]) & (np.arange(n) != row)
        assert grades[row] == pytest.approx(means[rows].mean())
    np.testing.assert_array_equal(
        btdagg.standing(counts[order], system[order], scale=SCALE), grades[order]
    )


def test_standings_that_nobody_knows():
    counts = np.tile([1, 0, 3], (5, 1))
    same = btdagg.standing(counts, ["new"] * 5, ["old"] * 5)
    np.testing.assert_array_equal(same, np.zeros(5))
    with pytest.warns(CalibrationWarning, match="standing is the same in every item"):
        btdagg.calibrate(counts, [1, 0, 1, 1, -1], covariates={"standing": same})
    alone = btdagg.standing(counts, ["x", "x", "y", "x", "once"], ["y", "z", "z", "z", "x"])
    np.testing.assert_array_equal(np.isnan(alone), [False, False, False, False, True])
    once = btdagg.standing(counts, ["x", "x", "y", "y", "once"], scale=SCALE)
    np.testing.assert_array_equal(np.isnan(once), [False, False, False, False, True])
    some = [[1, 0, 1], [0, 0, 0], [0, 0, 2], [0, 1, 0]]
    empty = btdagg.standing(some, [*"xxxy"], scale=SCALE)
    np.testing.assert_array_equal(empty, [3, 2.5, 2, np.nan])
    # Of one system it would be the own votes turned round.
    np.testing.assert_allclose(btdagg.standing(some, ["x"] * 4, scale=SCALE), 7 / 3)
    for wrong, message in [
        ({"system_a": ["x"] * 5}, "system_b is 'none', expected an array, since votes are pairs"),
        ({"system_a": ["x"] * 5, "system_b": ["y"] * 4}, "system_b has 4 rows, expected 5"),
    ]:
        with pytest.raises(InputError, match=message):
            btdagg.standing(counts, **wrong)
    with refused("system_b", got="given"):
        btdagg.standing(counts, ["x"] * 5, ["y"] * 5, scale=SCALE)


def test_items_have_covariates_where_votes_and_labels_are_on_two_scales():
    counts, labels, x = graded()
    passed = np.where(np.arange(len(x)) < 70, labels > 2, np.nan)
    scales = {"scale": SCALE, "label_scale": btdagg.PASS_FAIL}
    items = btdagg.votes.Items(counts=counts, labels=passed, **scales)
    model = btdagg.calibrate(items.with_covariates({"x": x})).model
    assert model == btdagg.calibrate(counts, passed, covariates={"x": x}, **scales).model
    assert (model.label_scale, model.covariates[0].name) == (btdagg.PASS_FAIL, "x")
