"""Stopping rules for grades, against every way in which votes may come."""

import numpy as np
import pytest

import btdagg
from btdagg import GradeModel, InputError, Protocol, Scale
from btdagg.evaluation import CrossFit
from btdagg.methods import Calibrated
from btdagg.online import OnlineTally, StoppingRule, plan

FIVE = Scale(range(1, 6))
MODEL = GradeModel(beta=2, cuts=(1.5, 2.5, 3.5, 4.5), scale=FIVE)
RULE = StoppingRule.lossless(MODEL, 6)


def test_a_rule_for_grades_is_saved_with_its_model(tmp_path):
    RULE.save(tmp_path / "rule.json")
    assert StoppingRule.load(tmp_path / "rule.json") == RULE
    votes = np.random.default_rng(0).integers(1, 6, size=(50, 6))
    stopped = RULE.follow(votes)
    counts = (votes[:, :, None] == FIVE.values).sum(axis=1)
    np.testing.assert_array_equal(stopped.labels, MODEL.decide(counts))
    assert stopped.n_votes.mean() < 6


def test_fractions_of_votes_settle_too():
    shares = [0, 0.05, 0.9, 0.05, 0]
    counts = np.outer([3, 4, 5, 6], shares)
    np.testing.assert_array_equal(RULE.stops(counts), [False, False, True, True])
    assert RULE.votes_to_ask(counts).tolist() == [2, 1, 0, 0]


@pytest.mark.parametrize(
    ("call", "argument", "row"),
    [
        (lambda: RULE.stops([[1, 0, 0, 0, 0], [7, 0, 0, 0, 0]]), "counts", 1),
        (lambda: RULE.stops([[0.5, 0, 0, 0, 0]]), "counts", 0),
        (lambda: RULE.stops([[1, 2, 3]]), "counts", None),
        (lambda: RULE.decide([[1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]), "counts", 1),
        (lambda: RULE.follow([[1, 2, 3, 4, 5, 6]]), "votes", 5),
        (lambda: RULE.follow([[1, 2, 3]]), "votes", None),
        (lambda: StoppingRule.lossless(MODEL, 6, step=4), "n", None),
        (lambda: StoppingRule("risk-bounded", MODEL, 6, 1, None, epsilon=0.1), "kind", None),
        (lambda: OnlineTally(rule=RULE), "model", None),
        (lambda: RULE.expected_votes, "votes", None),
        (lambda: RULE.change_risk([[1, 0, 0, 0, 0]]), "votes", None),
    ],
)
def test_what_a_rule_for_grades_refuses(call, argument, row):
    with pytest.raises(InputError) as caught:
        call()
    assert (caught.value.argument, caught.value.row) == (argument, row)


def pilot(n=80, n_votes=8):
    rng = np.random.default_rng(5)
    quality = rng.normal(size=n)
    votes = np.rint(3 + quality[:, None] + 0.5 * rng.normal(size=(n, n_votes))).clip(1, 5)
    counts = (votes[:, :, None] == FIVE.values).sum(axis=1)
    return counts, np.rint(3.4 + quality).clip(1, 5).astype(int)


def test_a_plan_of_grades_follows_the_votes_of_the_pilot():
    counts, gold = pilot()
    model = GradeModel(beta=3, cuts=(1.2, 2.2, 3.2, 4.2), scale=FIVE)
    rule = StoppingRule.lossless(model, 8)
    planned = plan(counts, gold, n_items=100, n_votes=[4, 8], n_labels=[20, 40, 99], rule=rule)
    assert [(row.n, row.rule) for row in planned.budgets] == [
        (n, name) for n in (4, 8) for name in ("all votes", "lossless")
    ]
    every, stopped = planned.budgets[2:]
    # Cross-fitted: on items that a model did not see, whatever the given one makes of its own.
    how = {"aggregators": [Calibrated(scale=FIVE)], "protocol": Protocol(CrossFit(10, 3, 2), None)}
    (cell,) = btdagg.evaluate(counts, gold, scale=FIVE, **how).cells
    evaluated = cell.lines[0]["mae"].mean
    assert every.mae == stopped.mae == pytest.approx(evaluated, abs=0.02)
    assert every.low < every.mae < every.high
    orders = [np.repeat(FIVE.points, row) for row in counts]
    rng = np.random.default_rng(1)
    draws = [rule.follow([rng.permutation(order) for order in orders]).n_votes for _ in range(20)]
    assert stopped.votes == pytest.approx(np.mean(draws), abs=0.3)
    assert stopped.calls == pytest.approx(100 * stopped.votes + 40 * 8)
    assert [size for size, _ in planned.labels] == [20, 40]


@pytest.mark.parametrize(
    ("votes", "numbers", "argument"), [(1.0, [9], "n_votes"), (0.5, [4], "counts")]
)
def test_what_a_plan_of_grades_refuses(votes, numbers, argument):
    counts, gold = pilot(20)
    with pytest.raises(InputError) as caught:
        plan(counts * votes, gold, n_items=100, n_votes=numbers, rule=RULE)
    assert caught.value.argument == argument
