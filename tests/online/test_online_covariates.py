"""Stopping rules and tallies of models with covariates, against all votes that may still come."""

import pickle
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import btdagg
from btdagg import Covariate, DavidsonModel, GradeModel, InputError, Protocol, Scale
from btdagg.evaluation import CrossFit
from btdagg.methods import Calibrated
from btdagg.online import OnlineTally, StoppingRule, fit_votes, plan
from btdagg.votes import Items, Provenance
from refusals import refused

KNOWN = (Covariate("size", 0.7, 1.5), Covariate("tone", -0.4, 0.5))
MODEL = DavidsonModel(beta=1.2, eta0=0.5, gamma=0.8, covariates=KNOWN)
RULE = StoppingRule.lossless(MODEL, 8)
NUMBERS = st.tuples(st.floats(-0.5, 5), st.floats(-4, 4), st.floats(-3, 3))


def states(n, width=3):
    if width == 1:
        return [(k,) for k in range(n + 1)]
    return [(k, *rest) for k in range(n + 1) for rest in states(n - k, width - 1)]


def columns(n, seed=0):
    x = np.random.default_rng(seed).normal(0, 2, (2, n))
    return dict(zip(("size", "tone"), x, strict=True))


def check_against_endings(rule, decide, rows, offsets):
    """Every sequence of votes is followed to its end, at each offset."""
    model, n, step = rule.model, rule.n, rule.step
    width = len(rows[0])

    def followers(row):
        return [(*row[:i], row[i] + 1, *row[i + 1 :]) for i in range(width)]

    for offset in offsets:

        @cache
        def endings(*row, offset=offset):
            if sum(row) == n:
                return frozenset([decide(row, offset)])
            return frozenset().union(*(endings(*after) for after in followers(row)))

        @cache
        def fewest(*row):
            if len(endings(*row)) == 1 and sum(row) % step == 0:
                return 0
            return 1 + min(fewest(*after) for after in followers(row))

        known = {"x": np.full(len(rows), offset)}
        may = [len(endings(*row)) == 1 and sum(row) % step == 0 for row in rows]
        np.testing.assert_array_equal(rule.stops(rows, covariates=known), may)
        asked = rule.votes_to_ask(rows, covariates=known)
        np.testing.assert_array_equal(asked, [fewest(*row) for row in rows])
        held = [row for row, stops in zip(rows, may, strict=True) if stops or sum(row)]
        labels = rule.decide(held, covariates={"x": np.full(len(held), offset)}).tolist()
        for row, label in zip(held, labels, strict=True):
            alike = endings(*row)
            assert label == (next(iter(alike)) if len(alike) == 1 else decide(row, offset))
        one = {"covariates": {"x": offset}}
        assert rule.stops_one(*rows[-1], **one) == may[-1]
        assert rule.votes_to_ask_one(*rows[-1], **one) == asked[-1]
        assert rule.decide_one(*held[-1], **one) == labels[-1]
        assert model.covariates


@given(NUMBERS, st.sampled_from([(1, 1), (5, 1), (6, 2), (8, 4), (9, 1)]), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_pairs_stop_exactly_where_no_votes_can_change_the_label(numbers, size, seed):
    model = DavidsonModel(*numbers, covariates=(Covariate("x", 1.3, 0.5),))
    rule = StoppingRule.lossless(model, size[0], step=size[1])

    def decide(row, offset):
        return model.decide_one(*row, covariates={"x": offset})

    rng = np.random.default_rng(seed)
    rows = [states(size[0])[i] for i in rng.permutation(len(states(size[0])))[:40]]
    check_against_endings(rule, decide, rows, [0.0, *rng.normal(0, 1.5, 3)])


@given(
    st.sampled_from([(1, 2, 3), (0, 1), (-2, 0, 2, 4)]),
    st.lists(st.sampled_from([0.25, 0.5, 1, 1.5, 2.5]), min_size=1, max_size=3),
    st.floats(0.2, 9),
    st.sampled_from([(1, 1), (4, 2), (5, 1)]),
    st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_grades_stop_exactly_where_no_votes_can_change_them(votes, cuts, beta, size, seed):
    known = (Covariate("x", 0.8, 2.0, 0.3),)
    labels = Scale(range(len(cuts) + 1))
    model = GradeModel(beta, cuts, Scale(votes), labels, covariates=known)
    rule = StoppingRule.lossless(model, size[0], step=size[1])

    def decide(row, offset):
        return model.decide_one(*row, covariates={"x": offset})

    offsets = np.random.default_rng(seed).normal(0, 3 * max(beta, 1), 3)
    check_against_endings(rule, decide, states(size[0], len(votes)), offsets)


@given(NUMBERS, st.integers(2, 5), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_fractions_settle_where_no_votes_of_any_strength_change_the_label(numbers, n, seed):
    rng = np.random.default_rng(seed)
    known = (Covariate("x", 1.3, 0.5),)
    origin = Provenance(strength="confidence")
    model = DavidsonModel(abs(numbers[0]), *numbers[1:], covariates=known, provenance=origin)
    rule = StoppingRule.lossless(model, n)
    totals = rng.integers(0, n + 1, size=12)
    counts = rng.dirichlet([0.5] * 3, size=12) * totals[:, None]
    counts[::3] = np.rint(counts[::3])
    counts[::3, 1] = totals[::3] - counts[::3, 0] - counts[::3, 2]
    good = counts.min(axis=1) >= 0
    counts, totals = counts[good], totals[good]
    x = rng.normal(0, 1.5, len(counts))
    stops = rule.stops(counts, covariates={"x": x})
    labels = rule.decide(counts, covariates={"x": x})
    for row, total, offset, stop, label in zip(counts, totals, x, stops, labels, strict=True):
        left = int(n - total)
        sides = np.array(states(left * 24, 2))
        ends = row + np.insert(sides, 1, left * 24 - sides.sum(axis=1), axis=1) / 24
        decided = model.decide(ends, covariates={"x": np.full(len(ends), offset)})
        if stop:
            assert set(decided.tolist()) == {label}
    assert not (~stops & (totals == n)).any()


def test_mirrored_items_stop_alike_to_the_last_bit():
    counts, known = np.array(states(8)), columns(len(states(8)))
    mirrored = {"covariates": {name: -x for name, x in known.items()}}
    for ask, sign in ((RULE.stops, 1), (RULE.votes_to_ask, 1), (RULE.decide, -1)):
        own = ask(counts, covariates=known)
        np.testing.assert_array_equal(ask(counts[:, ::-1], **mirrored), sign * own.astype(int))


def test_a_rule_is_followed_and_saved_with_its_covariates(tmp_path):
    votes = np.random.default_rng(1).integers(-1, 2, size=(300, 8))
    known = columns(300)
    stopped = RULE.follow(votes, covariates=known)
    counts = (votes[:, :, None] == [-1, 0, 1]).sum(axis=1)
    np.testing.assert_array_equal(stopped.labels, MODEL.decide(counts, covariates=known))
    assert stopped.n_votes.mean() < 7
    assert (stopped.n_votes == 0).any()
    RULE.save(tmp_path / "rule.json")
    for again in (StoppingRule.load(tmp_path / "rule.json"), pickle.loads(pickle.dumps(RULE))):
        assert again == RULE
        for own, other in zip(again.follow(votes, covariates=known), stopped, strict=True):
            np.testing.assert_array_equal(own, other)
    columns_of_votes = {name: x.repeat(8) for name, x in known.items()}
    rows = {"item": np.arange(300).repeat(8), "vote": votes.ravel(), **columns_of_votes}
    decided = btdagg.decisions(pl.DataFrame(rows), RULE).sort("item")
    assert decided["label"].to_list() == stopped.labels.tolist()
    assert decided["settled"].all()


def test_what_a_rule_of_covariates_cannot_do_is_said():
    votes = fit_votes([[0, 1, 2], [2, 1, 0]], [1, -1])
    with refused("model", got="one with size, tone", expected="a risk-bounded rule"):
        StoppingRule.risk_bounded(MODEL, 8, votes)
    with refused("model", got="one with size, tone", expected="a cost-optimal rule"):
        StoppingRule.cost_optimal(MODEL, 8, votes, price=0.1)
    with refused("votes", got=votes):
        StoppingRule.lossless(MODEL, 8, votes)
    counts, known = [[0, 1, 2]], columns(1)
    for ask in (RULE.stops, RULE.decide, RULE.votes_to_ask):
        with refused("covariates", got=None, expected="size, tone of each item, as in the"):
            ask(counts)
        with pytest.raises(InputError, match=r"covariates\['size'\] has 2 rows, expected 1"):
            ask(counts, covariates=columns(2))
        with pytest.raises(InputError, match=r"counts\[0\] has 9 votes, expected at most 8"):
            ask([[0, 0, 9]], covariates=known)
    for ask_one in (RULE.stops_one, RULE.decide_one):
        with refused("covariates", got=None, expected="size, tone of each item"):
            ask_one(0, 1, 2)
    plain = StoppingRule.lossless(DavidsonModel(1.2, 0.5, 0.8), 8)
    with refused("covariates", got=["size"]):
        plain.stops_one(minus=0, tie=1, plus=2, covariates={"size": 1.0})
    with refused("covariates", got=None, expected="size, tone of each item"):
        plan(np.tile([[0, 1, 7], [7, 1, 0]], (9, 1)), [1, -1] * 9, n_items=99, rule=RULE)
    for forecast in (lambda: RULE.votes_left(counts), lambda: RULE.expected_votes):
        with pytest.raises(InputError, match="the distribution of the votes"):
            forecast()


# Tallies


def test_a_tally_decides_and_settles_as_its_model_and_rule_do_given_covariates():
    rng = np.random.default_rng(2)
    items, votes = rng.integers(0, 60, 400), rng.integers(-1, 2, 400)
    by_model, by_rule = OnlineTally(MODEL), OnlineTally(rule=RULE)
    for tally in (by_model, by_rule):
        tally.add([f"i{item}" for item in items], votes)
    ids, counts = by_model.counts()
    known = columns(len(ids))
    found, labels = by_model.decide(covariates=known)
    assert found.tolist() == ids.tolist()
    np.testing.assert_array_equal(labels, MODEL.decide(counts, covariates=known))
    within = counts.sum(axis=1) <= 8
    few = {name: x[within] for name, x in known.items()}
    wanted, settled = MODEL.decide(counts, covariates=known), ~within
    wanted[within] = RULE.decide(counts[within], covariates=few)
    settled[within] = RULE.stops(counts[within], covariates=few)
    np.testing.assert_array_equal(by_rule.decide(covariates=known)[1], wanted)
    again = pickle.loads(pickle.dumps(by_rule))
    first = again.settle(covariates=known)
    assert 0 < settled.sum() < len(ids)
    assert first.ids.tolist() == ids[settled].tolist()
    assert first.labels.tolist() == wanted[settled].tolist()
    assert first.counts.tolist() == counts[settled].tolist()
    assert not len(again.settle(covariates=known).ids)
    with pytest.raises(InputError, match="is settled"):
        again.add(first.ids[:1], [1])


def test_a_tally_asks_for_its_covariates_by_name():
    tally = OnlineTally(rule=RULE)
    tally.add([1, 2], [1, 0])
    for ask in (tally.decide, tally.settle):
        with refused("covariates", got=None, expected="size, tone of each item"):
            ask()
        with pytest.raises(InputError, match=r"covariates\['size'\] has 3 rows, expected 2"):
            ask(covariates=columns(3))
    plain = OnlineTally(rule=StoppingRule.lossless(DavidsonModel(1.2, 0.5, 0.8), 8))
    plain.add([1, 2], [1, 0])
    for ask in (plain.decide, plain.settle):
        with refused("covariates", got=["size", "tone"]):
            ask(covariates=columns(2))


def test_a_rule_decides_items_without_votes_by_what_is_known():
    covariates = (Covariate("length", 0.5, 1.0),)
    model = GradeModel(2, (1.5, 2.5), Scale((1, 2, 3)), covariates=covariates)
    rule, length = StoppingRule.lossless(model, 4), np.array([0.1, 30.0, 0.0, 2.0])
    counts = np.array([[2, 0, 0], [0, 0, 0], [0, 0, 0], [0, 4, 0]])
    items = Items(counts=counts, scale=model.scale).known_by({"length": length})
    decided = btdagg.decisions(items, rule).select("item", "label", "settled").rows()
    assert decided == [(0, 1, False), (1, 3, True), (2, None, None), (3, 2, True)]


# Plans


def pilot(scale, n=120, n_votes=4):
    """Items whose covariate says more than their votes, and a copy of it that is noise."""
    rng = np.random.default_rng(3)
    size = rng.normal(size=n)
    quality = size + 0.6 * rng.normal(size=n)
    shares = np.exp(0.4 * quality[:, None] * np.arange(-1, 2))
    counts = rng.multinomial(n_votes, shares / shares.sum(axis=1, keepdims=True))
    labels = scale.labels[np.digitize(quality + 0.3 * rng.normal(size=n), [-0.5, 0.5])]
    columns = {"size": size, "noise": rng.normal(size=n)}
    return Items(counts=counts, labels=labels, scale=scale).with_covariates(columns)


@pytest.mark.parametrize("scale", [btdagg.PAIRS, Scale((1, 2, 3))], ids=["pairs", "grades"])
def test_a_plan_says_what_covariates_save(scale):
    items = pilot(scale)
    known = {"size": items.covariates["size"]}
    job = {"n_items": 1000, "n_votes": [1, 4], "n_labels": [20]}
    planned = plan(items.counts, items.label, covariates=known, scale=scale, **job)
    rows = {(row.n, row.rule): row for row in planned.budgets}
    names = ("all votes", "lossless")
    assert [*rows] == [(n, k + c) for n in (1, 4) for c in ("", ", covariates") for k in names]
    one, four = rows[1, "all votes, covariates"], rows[4, "all votes"]
    assert one.mae < four.mae - 0.05
    assert planned.saved == (
        f"1 vote per item with covariates: MAE {one.mae:.4f}; "
        f"4 votes without them: {four.mae:.4f}; {four.calls - one.calls:,.0f} calls saved"
    )
    assert planned.sentence().endswith(planned.saved)
    assert [size for size, _ in planned.labels_known] == [20]
    # As an evaluation finds it, of items that a model did not see.
    methods = [Calibrated(scale=scale, label_scale=scale)]
    how = {"aggregators": methods, "protocol": Protocol(CrossFit(10, 1, 2), test=None)}
    (cell,) = btdagg.evaluate(items.with_covariates(known), **how).cells
    evaluated = cell.lines[0]["mae"].mean
    assert rows[4, "all votes, covariates"].mae == pytest.approx(evaluated, abs=0.03)
    # The lossless rule of a model with covariates asks fewer votes, for the labels of all.
    model = btdagg.calibrate(items.counts, items.label, covariates=known, scale=scale).model
    rule = StoppingRule.lossless(model, 4)
    own = plan(items.with_covariates(known), rule=rule, **job | {"n_votes": [4], "n_labels": [20]})
    (stopped,) = (row for row in own.budgets if (row.n, row.rule) == (4, "lossless, covariates"))
    orders = [np.repeat(scale.points, row) for row in items.pooled]
    rng = np.random.default_rng(1)
    draws = [
        rule.follow([rng.permutation(order) for order in orders], covariates=known).n_votes
        for _ in range(20)
    ]
    assert stopped.votes == pytest.approx(np.mean(draws), abs=0.25)
    assert stopped.votes < rows[4, "lossless"].votes


def test_a_plan_with_covariates_that_are_noise_says_so():
    items = pilot(btdagg.PAIRS)
    noise = items.with_covariates({"noise": items.covariates["noise"]})
    planned = plan(noise, n_items=1000, n_votes=[1, 4], n_labels=[20])
    rows = {(row.n, row.rule): row.mae for row in planned.budgets}
    assert abs(rows[4, "all votes, covariates"] - rows[4, "all votes"]) < 0.1
    if rows[4, "all votes, covariates"] > rows[4, "all votes"]:
        assert (
            planned.saved == "with covariates the error is not below that of 4 votes without them"
        )
    assert plan(items.counts, items.label, n_items=9, n_votes=[4], n_labels=[20]).saved == ""
