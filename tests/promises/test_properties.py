"""What holds for every model and every item."""

import math
import pickle
import sqlite3
from contextlib import closing
from dataclasses import fields
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import btdagg
from btdagg import DavidsonModel, GradeModel, PanelModel, Scale, reference
from btdagg.methods import by_name
from btdagg.online import StoppingRule

models = st.builds(
    DavidsonModel,
    beta=st.floats(-5, 5),
    eta0=st.floats(-20, 20),
    gamma=st.floats(-10, 10),
    alpha=st.floats(1e-3, 10),
    kappa=st.floats(1e-3, 10),
)
items = hnp.arrays(
    np.int64,
    st.tuples(st.integers(1, 40), st.just(3)),
    elements=st.one_of(st.integers(0, 12), st.integers(0, 300), st.integers(0, 2**40)),
)

fractions = hnp.arrays(np.float64, (20, 3), elements=st.floats(0, 30))


@st.composite
def labelled_items(draw):
    counts = draw(items)
    return counts, draw(hnp.arrays(np.int8, len(counts), elements=st.integers(-1, 1)))


@st.composite
def long_votes(draw):
    n = draw(st.integers(0, 60))
    ids = draw(st.one_of(st.just(st.integers(-3, 9)), st.just(st.text(max_size=3))))
    return (
        draw(st.lists(ids, min_size=n, max_size=n)),
        draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n)),
    )


@given(models, st.one_of(items, fractions))
def test_compiled_equals_reference(model, counts):
    s, t = reference.features(counts, model.alpha, model.kappa)
    p = reference.probabilities(s, t, model.beta, model.eta0, model.gamma)
    np.testing.assert_allclose(model.predict_proba(counts), p, rtol=1e-7, atol=1e-300)
    clear = abs(2 * p.max(axis=1) - 1) > 1e-9
    np.testing.assert_array_equal(model.decide(counts)[clear], reference.decide(p)[clear])


@st.composite
def panels(draw):
    """A panel, and votes of its judges, of whom any may have none on an item."""
    n_judges, n_items = draw(st.integers(1, 4)), draw(st.integers(1, 12))

    def numbers(low, high):
        return draw(st.lists(st.floats(low, high), min_size=n_judges, max_size=n_judges))

    model = PanelModel(
        tuple("abcd"[:n_judges]),
        beta=numbers(0, 5),
        eta0=draw(st.floats(-10, 10)),
        gamma=numbers(-5, 5),
        alpha=draw(st.floats(1e-3, 10)),
        kappa=draw(st.floats(1e-3, 10)),
    )
    shape = n_items, n_judges
    counts = draw(hnp.arrays(np.int64, (*shape, 3), elements=st.integers(0, 12)))
    return model, counts * draw(hnp.arrays(np.bool_, shape))[..., None]


@given(panels())
def test_a_panel_equals_reference_whoever_has_no_votes(panel):
    model, counts = panel
    numbers = model.beta, model.eta0, model.gamma, 0.0, model.alpha, model.kappa
    p = reference.panel_probabilities(counts, *numbers)
    np.testing.assert_allclose(model.predict_proba(counts), p, rtol=1e-7, atol=1e-300)
    clear = abs(2 * p.max(axis=1) - 1) > 1e-9
    np.testing.assert_array_equal(model.decide(counts)[clear], reference.decide(p)[clear])


@st.composite
def even_means(draw):
    """A model of three grades, and votes from 1 to 5 whose mean makes two equally good."""
    counts = draw(st.lists(st.integers(0, 3), min_size=5, max_size=5).filter(any))
    mean = np.dot(counts, range(1, 6)) / sum(counts)
    beta, odds = draw(st.floats(0.5, 4)), draw(st.floats(0.1, 0.9))
    # Odds of 2 against 1, and of 3 against 2, by which 1 is as likely as 2 and 3 together.
    cuts = mean - math.log(odds) / beta, mean - math.log((1 - odds) / odds) / beta
    return GradeModel(beta, cuts, Scale(range(1, 6)), Scale((1, 2, 3))), counts, mean


@given(even_means(), st.booleans())
def test_of_two_grades_that_are_equally_good_the_one_nearer_the_middle_is_decided(given, turn):
    model, counts, mean = given
    if turn:
        cuts = [6 - cut for cut in reversed(model.cuts)]
        model = GradeModel(model.beta, cuts, model.scale, model.label_scale)
        counts, mean = counts[::-1], 6 - mean
    p = reference.grade_probabilities(np.array([mean]), model.beta, model.intercepts)
    assert (p[0, -1] if turn else p[0, 0]) == pytest.approx(0.5, abs=1e-12)
    assert reference.grade_decisions(p).tolist() == [1]
    assert model.decide([counts]).tolist() == [2]
    assert model.decide(np.array([counts], dtype=float)).tolist() == [2]
    with closing(sqlite3.connect(":memory:")) as base:
        query = f"select {model.to_sql('sqlite')} from (select ? as mean)"
        assert base.execute(query, [mean]).fetchall() == [(2,)]


@pytest.mark.parametrize("name", ["mean", "median", "isotonic"])
def test_half_way_between_grades_the_one_nearer_the_middle_is_decided(name):
    """In the middle the lower; of four grades, two votes for each two neighbours."""
    counts = 2 * np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])
    (method,) = by_name([name], scale=Scale((1, 2, 3, 4)))
    fitted = method.fit(6 * np.eye(4, dtype=int), [1, 2, 3, 4])
    assert fitted.decide(counts).tolist() == [2, 2, 3]
    assert fitted.decide(counts[:, ::-1]).tolist() == [3, 2, 2]


def every_count(n_votes, n_points):
    """Each way in which so many votes can be spread over the points of a scale."""
    every = product(range(n_votes + 1), repeat=n_points)
    return np.array([counts for counts in every if sum(counts) == n_votes])


@pytest.mark.parametrize("points", [(0, 1), (0, 1, 2, 3), (1, 2, 3), (-2, 0, 2), (2, 3, 4)])
@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.15])
def test_a_lossless_rule_settles_grades_that_no_votes_to_come_can_change(points, shift):
    n, cuts = 5, [(low + high) / 2 + shift for low, high in pairwise(points)]
    model = GradeModel(2.0, cuts, Scale(points))
    rule = StoppingRule.lossless(model, n)
    for n_votes in range(1, n):
        counts, more = every_count(n_votes, len(points)), every_count(n - n_votes, len(points))
        ends = [{*model.decide(row + more).tolist()} for row in counts]
        settled = [len(grades) == 1 for grades in ends]
        assert rule.stops(counts).tolist() == settled, n_votes
        for row, grades in zip(counts, ends, strict=True):
            assert len(grades) > 1 or {rule.decide_one(*row.tolist())} == grades
    # Votes to ask are the fewest after which the grade may be settled.
    every = np.concatenate([every_count(n_votes, len(points)) for n_votes in range(n + 1)])
    fewest = dict(zip(map(tuple, every.tolist()), np.where(rule.stops(every), 0, n), strict=True))
    for row in sorted(fewest, key=sum, reverse=True):
        after = (tuple(more) for more in np.array(row) + np.eye(len(points), dtype=int))
        fewest[row] = min([fewest[row], *(1 + fewest[more] for more in after if more in fewest)])
    assert rule.votes_to_ask(every).tolist() == [fewest[tuple(row)] for row in every.tolist()]


@given(models, st.one_of(items, fractions))
def test_swapping_the_sides_mirrors_every_bit(model, counts):
    mirrored = counts[:, ::-1]
    np.testing.assert_array_equal(model.decide(mirrored), -model.decide(counts))
    np.testing.assert_array_equal(
        model.predict_proba(mirrored), model.predict_proba(counts)[:, ::-1]
    )
    np.testing.assert_array_equal(model.risks(mirrored), model.risks(counts)[:, ::-1])
    np.testing.assert_array_equal(model.features(mirrored).s, -model.features(counts).s)
    np.testing.assert_array_equal(model.features(mirrored).t, model.features(counts).t)


@given(models, labelled_items(), st.randoms(use_true_random=False))
def test_the_loss_sees_neither_order_nor_sides(model, labelled, random):
    counts, labels = labelled
    order = np.array(random.sample(range(len(counts)), len(counts)))
    value, gradient = model.drps(counts, labels), model.drps_gradient(counts, labels)
    assert model.drps(counts[order], labels[order]) == value
    assert model.drps(counts[:, ::-1], -labels) == value
    np.testing.assert_array_equal(model.drps_gradient(counts[order], labels[order]), gradient)
    np.testing.assert_array_equal(model.drps_gradient(counts[:, ::-1], -labels), gradient)
    assert 0 <= value <= 2


@given(models, labelled_items())
def test_the_gradient_is_the_slope(model, labelled):
    counts, labels = labelled
    gradient = model.drps_gradient(counts, labels)
    for place, name in enumerate(("beta", "eta0", "gamma")):
        step = 1e-6

        def at(shift, name=name):
            moved = {**vars_of(model), name: getattr(model, name) + shift}
            return DavidsonModel(**moved).drps(counts, labels)

        slope = (at(step) - at(-step)) / (2 * step)
        feature = max(1, *(abs(x).max() for x in model.features(counts)))
        assert math.isclose(gradient[place], slope, rel_tol=1e-5, abs_tol=1e-7 * feature**3)
    features = reference.features(counts, model.alpha, model.kappa)
    by_reference = reference.drps_gradient(*features, labels, model.beta, model.eta0, model.gamma)
    np.testing.assert_allclose(gradient, by_reference, rtol=1e-7, atol=1e-9)


def vars_of(model):
    return {field.name: getattr(model, field.name) for field in fields(model)}


@given(models, items)
def test_the_decision_is_the_least_risk_and_the_median(model, counts):
    decided, risks, p = model.decide(counts), model.risks(counts), model.predict_proba(counts)
    for label, risk, (minus, _, plus) in zip(decided, risks, p, strict=True):
        assert risk[label + 1] <= risk.min() + 1e-12
        if label == 1:
            assert plus > 0.5 - 1e-12
        elif label == -1:
            assert minus > 0.5 - 1e-12
        else:
            assert max(minus, plus) < 0.5 + 1e-12


@given(models, items)
def test_one_item_is_decided_as_many(model, counts):
    one_by_one = [model.decide_one(*row) for row in counts.tolist()]
    assert one_by_one == model.decide(counts).tolist()


@given(models)
def test_models_survive_json_and_pickle(model):
    assert DavidsonModel.from_json(model.to_json()) == model
    assert pickle.loads(pickle.dumps(model)) == model
    assert hash(pickle.loads(pickle.dumps(model))) == hash(model)
    assert eval(repr(model), {"DavidsonModel": DavidsonModel}) == model


@given(models, st.integers(0, 9))
def test_always_ties_is_what_enumeration_says(model, n_votes):
    every = [
        (minus, tie, plus)
        for minus in range(n_votes + 1)
        for tie in range(n_votes + 1 - minus)
        for plus in range(n_votes + 1 - minus - tie)
    ]
    assert model.always_ties(n_votes) == (not model.decide(every).any())


@given(long_votes(), st.integers(0, 60))
def test_tallies_add_up(long, cut):
    ids, votes = long
    wanted = {}
    for item, vote in zip(ids, votes, strict=True):
        wanted.setdefault(item, [0, 0, 0])[vote + 1] += 1
    found, counts = btdagg.tally(ids, votes)
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == wanted
    assert found.tolist() == list(wanted)  # first-seen order
    both = {item: np.zeros(3, int) for item in wanted}
    for part in (slice(None, cut), slice(cut, None)):
        for item, row in zip(*btdagg.tally(ids[part], votes[part]), strict=True):
            both[item if isinstance(item, str) else int(item)] += row
    assert {item: row.tolist() for item, row in both.items()} == wanted


@given(labelled_items())
def test_a_fit_sees_neither_order_nor_sides(labelled):
    import warnings

    counts, labels = labelled
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
        fitted = btdagg.calibrate(counts, labels, prior=None)
        assert btdagg.calibrate(counts[::-1], labels[::-1], prior=None) == fitted
        assert btdagg.calibrate(counts[:, ::-1], -labels, prior=None).model == fitted.model
