"""Votes that have a strength: stopping rules by enumeration, plans and forecasts."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import btdagg
from btdagg import DavidsonModel, InputError
from btdagg.online import OnlineTally, StoppingRule, VoteDistribution, fit_votes, forecast, plan
from btdagg.votes import Provenance, ProvenanceWarning
from refusals import refused

MODEL = DavidsonModel(beta=1.2, eta0=1.0, gamma=0.8)
models = st.builds(
    DavidsonModel,
    beta=st.floats(0.05, 5),
    eta0=st.floats(-3, 5),
    gamma=st.floats(-6, 6),
    alpha=st.sampled_from([0.3, 1.0, 2.0]),
    kappa=st.sampled_from([0.5, 1.0]),
)


def counts_of(votes):
    votes = np.asarray(votes)
    parts = [np.maximum(-votes, 0), 1 - np.abs(votes), np.maximum(votes, 0)]
    return np.stack(parts, axis=-1).sum(axis=-2)


def simulated(n, n_votes=8, full_margin=1.5, seed=0):
    """Votes of items that lean one way or the other, and gold labels."""
    rng = np.random.default_rng(seed)
    lean = rng.normal(size=n)
    votes = rng.normal(lean[:, None], 0.7, size=(n, n_votes)) / full_margin
    gold = np.where(np.abs(lean) < 0.4, 0, np.sign(lean)).astype(int)
    return np.rint(votes.clip(-1, 1) * 1024) / 1024, gold


VOTES, GOLD = simulated(300)


def reached(n, parts):
    """All (minus, tie, plus) of so many votes in such parts."""
    sums = {(0, 0)}
    for _ in range(n):
        sums = {
            (a + max(-vote, 0), b + max(vote, 0))
            for a, b in sums
            for vote in range(-parts, parts + 1)
        }
    return np.array([(a, n * parts - a - b, b) for a, b in sorted(sums)]) / parts


@given(models, st.sampled_from([2, 3]), st.integers(1, 5))
@example(DavidsonModel(beta=2.0, eta0=2.5, gamma=5.0), 2, 3)
@example(DavidsonModel(beta=4.0, eta0=-1.0, gamma=-6.0), 3, 3)
@settings(deadline=None, max_examples=30)
def test_a_lossless_rule_stops_where_no_votes_change_the_label_and_nowhere_else(model, parts, left):
    rule = StoppingRule.lossless(model, 6, strengths=True)
    strong = np.arange(left * 1024 + 1) / 1024
    sides = [strong, left - strong, np.zeros_like(strong)]
    # Votes of the smallest strengths, all for one side.
    some = np.stack([*sides, *sides[::-1]], axis=1).reshape(-1, 3)
    all_of_them = reached(left, parts)
    states = reached(6 - left, parts)
    for counts, stops, label in zip(states, rule.stops(states), rule.decide(states), strict=True):
        if stops:
            assert (model.decide(counts + all_of_them) == label).all(), counts
            assert (model.decide(counts + some) == label).all(), counts
        else:
            assert len(set(model.decide(counts + some).tolist())) > 1, counts


def test_whole_counts_too_foresee_votes_of_any_strength():
    model, votes = DavidsonModel(beta=1.8, eta0=1.5, gamma=0.8), [[0, 0, 4]]
    assert StoppingRule.lossless(model, 6).stops(votes)
    assert not StoppingRule.lossless(model, 6, strengths=True).stops(votes)
    for strength, stops in (("margin", False), ("none", True)):
        fitted = replace(model, provenance=Provenance(strength=strength))
        assert StoppingRule.lossless(fitted, 6).stops(votes) == stops
    # Two votes of strength 7/8 for B do what whole ones do not.
    after = [[0, 0, 6], [0, 2, 4], [1, 1, 4], [2, 0, 4], [1.75, 0.25, 4]]
    assert model.decide(after).tolist() == [1, 1, 1, 1, 0]


def test_rules_mirror_save_and_ask():
    states = counts_of(simulated(500, 6, seed=2)[0])
    rule = StoppingRule.lossless(MODEL, 8, step=2, strengths=True)
    stops, labels = rule.stops(states), rule.decide(states)
    assert 0 < stops.sum() < len(stops)
    assert (rule.stops(states[:, ::-1]) == stops).all()
    assert (rule.decide(states[:, ::-1]) == -labels).all()
    asked = rule.votes_to_ask(states)
    assert ((asked == 0) == stops).all()
    assert (asked % rule.step == 0).all()
    assert rule.votes_to_ask_one(*states[0]) == asked[0]
    assert (rule.stops_one(*states[0]), rule.decide_one(*states[0])) == (stops[0], labels[0])
    assert StoppingRule.from_json(rule.to_json()) == rule == pickle.loads(pickle.dumps(rule))
    full = counts_of(simulated(50, seed=3)[0])
    assert (rule.decide(full) == MODEL.decide(full)).all()


WHOLE = VoteDistribution([(1, (1, 1, 1))])
STRONG = replace(MODEL, provenance=Provenance(strength="margin"))


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("kind", lambda: StoppingRule.risk_bounded(STRONG, 8, WHOLE)),
        ("kind", lambda: StoppingRule.cost_optimal(STRONG, 8, WHOLE, price=0.01)),
        ("kind", lambda: StoppingRule.cost_optimal(STRONG, 8, WHOLE, budget=4)),
        ("votes", lambda: StoppingRule.lossless(STRONG, 8, WHOLE)),
        ("votes", lambda: StoppingRule.lossless(MODEL, 8, WHOLE, strengths=True)),
        ("counts", lambda: fit_votes([[7.5, 0.5, 0]], [-1])),
        ("counts", lambda: StoppingRule.risk_bounded(MODEL, 8, WHOLE).stops([[0.5, 0, 3.5]])),
        ("counts", lambda: StoppingRule.lossless(MODEL, 8).decide([[0.5, 0, 3.5]])),
        ("counts", lambda: StoppingRule.lossless(MODEL, 8, WHOLE).votes_left([[0.5, 0, 3.5]])),
        (
            "rule",
            lambda: plan(
                counts_of(VOTES),
                GOLD,
                n_items=9,
                n_votes=[8],
                rule=StoppingRule.risk_bounded(MODEL, 8, WHOLE),
            ),
        ),
    ],
)
def test_whatever_needs_whole_votes_refuses_strength_and_says_what_to_use(argument, make):
    with pytest.raises(InputError, match="lossless") as caught:
        make()
    assert caught.value.argument == argument


def test_a_file_says_strengths_only_where_the_model_does_not():
    for model, strengths, is_written in (
        (MODEL, False, False),
        (MODEL, True, True),
        (STRONG, True, False),
        (STRONG, False, True),
    ):
        rule = StoppingRule.lossless(model, 8, strengths=strengths)
        assert ("strengths" in rule.as_dict()) == is_written
        assert StoppingRule.from_json(rule.to_json()) == rule
    with refused("strengths", got="yes"):
        StoppingRule.lossless(MODEL, 8, strengths="yes")


def test_a_saved_rule_with_a_distribution_of_strengths_is_to_be_made_anew():
    saved = StoppingRule.lossless(MODEL, 8).as_dict() | {"votes": {"strengths": [1.0, 0, 0]}}
    with refused("votes", expected="make this rule anew, as lossless"):
        StoppingRule.from_dict(saved)


def test_plans_and_forecasts():
    pilot = simulated(1000, seed=6)
    planned = plan(counts_of(pilot[0]), pilot[1], n_items=1000, n_votes=[4, 8], n_labels=[50])
    rows = {(row.n, row.rule): row for row in planned.budgets}
    votes, gold = simulated(4000, seed=5)
    for n in (4, 8):
        model = btdagg.calibrate(counts_of(votes[:, :n]), gold, prior="weak").model
        mae = np.abs(model.decide(counts_of(votes[:, :n])) - gold).mean()
        assert rows[n, "all votes"].mae == pytest.approx(mae, abs=0.02)
        rule = StoppingRule.lossless(model, n, strengths=True)
        used = rule.follow(votes[:, :n]).n_votes.mean()
        assert rows[n, "lossless"].votes == pytest.approx(used, abs=0.15)
    assert {name for _, name in rows} == {"all votes", "lossless"}
    tasks = {str(k): simulated(200, full_margin=1.5 + k / 4, seed=k) for k in range(3)}
    prior = btdagg.fit_prior({k: (counts_of(v), gold) for k, (v, gold) in tasks.items()})
    ahead = forecast(prior, n_items=100, n_votes=[4, 8], n_labels=[20], n_draws=2)
    assert ahead.rows[1].mae < 0.3
    assert [row.votes < row.n for row in ahead.rows] == [True, True]


def test_messages():
    rule = StoppingRule.lossless(MODEL, 8, strengths=True)
    with pytest.raises(InputError, match=r"counts\[0\] has 9.0 votes|counts\[0\] has 9 votes"):
        rule.stops([[0.5, 0, 8.5]])
    with refused("counts", row=1, got=7.5, expected="a whole number of at most"):
        plan([[0.5, 0, 7.5], [0.5, 0, 7]], [1, 1], n_items=9, n_votes=[8])
    with pytest.warns(ProvenanceWarning, match="their margin: a tally counts whole votes"):
        tally = OnlineTally(STRONG)
    with refused("votes", row=1, got=0.5):
        tally.add(["x", "x"], [1, 0.5], [0, 1])
    with refused("votes", row=(0, 1), got=1.5, expected="a number from -1 to 1"):
        replace(rule, n=2).follow([[0.5, 1.5]])


def test_votes_with_a_part_for_either_side_are_foreseen_too():
    # Probabilities of a vote: no sequence of strengths has such sums.
    counts = np.array([[0.5, 0, 0.5], [0.25, 0.5, 0.25], [0, 0.25, 0.75], [1, 0, 0]] * 10)
    planned = plan(counts, [0, 0, 1, -1] * 10, n_items=9, n_votes=[1, 4], n_labels=[20])
    assert all(0 < row.votes <= row.n for row in planned.budgets)
    assert all(np.isfinite(row.mae) for row in planned.budgets)
