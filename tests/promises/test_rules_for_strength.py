"""Votes with strength stop early without a loss, or not at all: by every door that makes a rule."""

import asyncio
import itertools

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import InputError
from btdagg.judge import FunctionClient, Judging
from btdagg.online import StoppingRule, VoteDistribution, plan
from btdagg.pipeline import label_pairs

N = 6
RNG = np.random.default_rng(0)
LEAN = RNG.normal(size=80)
MARGINS = np.rint(np.clip(RNG.normal(LEAN[:, None], 0.8, (80, N)), -2, 2) * 2) / 2
LABELS = np.where(np.abs(LEAN) < 0.4, 0, np.sign(LEAN)).astype(int)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: votes with margins, labels, and the model of both."""
    monkeypatch.chdir(tmp_path)
    votes = {
        "item": np.arange(80).repeat(N),
        "vote": np.sign(MARGINS).astype(int).ravel(),
        "margin": np.abs(MARGINS).ravel(),
        "sample": np.tile(np.arange(N), 80),
    }
    pl.DataFrame(votes).write_csv("votes.csv")
    pl.DataFrame({"item": np.arange(80), "label": LABELS}).write_csv("labels.csv")
    read = btdagg.read_votes("votes.csv", full_margin=2)
    btdagg.calibrate(read.items(btdagg.read_labels("labels.csv"))).model.save("model.json")
    return tmp_path


PLAN = ("plan", "model.json", "votes.csv", "labels.csv", "-n", N, "-o", "rule.json")


@pytest.mark.parametrize("stop", ["epsilon=0.05", "price=0.01", "budget=3"])
def test_plan_refuses_the_other_rules_and_names_the_lossless_one(cli, folder, stop):
    status, _, err = cli(*PLAN, "--stop", stop)
    assert status == 2
    assert "lossless" in err
    assert not (folder / "rule.json").exists()


def test_no_vote_of_any_strength_changes_a_label_that_plan_settles(cli, folder):
    status, _, err = cli(*PLAN, "--json")
    assert status == 0, err
    rule = StoppingRule.load("rule.json")
    assert rule.strengths
    shares = (
        np.stack([np.maximum(-MARGINS, 0), 2 - np.abs(MARGINS), np.maximum(MARGINS, 0)], -1) / 2
    )
    n_settled = 0
    for left, item in itertools.product((1, 2), range(80)):
        counts = shares[item, : N - left].sum(axis=0)
        if not rule.stops_one(*counts):
            continue
        n_settled += 1
        sides = np.array([(b, left - b - a, a) for b, a in reached(left)])
        assert set(rule.model.decide(counts + sides)) == {rule.decide_one(*counts)}
    assert n_settled > 20


def reached(left, parts=16):
    steps = np.arange(left * parts + 1) / parts
    return [(b, a) for b, a in itertools.product(steps, steps) if b + a <= left]


def test_a_plan_has_the_lossless_rule_and_expects_what_it_uses(folder):
    read = btdagg.read_votes("votes.csv", full_margin=2)
    items = read.items(btdagg.read_labels("labels.csv"))
    model = btdagg.DavidsonModel.load("model.json")
    rows = plan(items, n_items=100, n_votes=[N], rule=StoppingRule.lossless(model, N)).budgets
    assert [row.rule for row in rows] == ["all votes", "lossless"]
    used = StoppingRule.lossless(model, N).follow(MARGINS / 2).n_votes.mean()
    assert rows[1].votes == pytest.approx(used, abs=0.25)


@pytest.mark.parametrize(
    "settings", [{"template": "response-scores"}, {"confidence": "logprobs"}], ids=str
)
def test_a_run_refuses_the_other_rules_before_any_call(tmp_path, settings):
    asked = []
    pairs = pl.DataFrame({"item": [*"abcd"], "prompt": "1 + 1", "a": "2", "b": "3"})
    labels = pl.DataFrame({"item": [*"abc"], "label": [1, 0, -1]})
    with pytest.raises(InputError, match="lossless") as caught:
        asyncio.run(
            label_pairs(
                pairs,
                labels,
                Judging("m", n=N, **settings),
                store=tmp_path / "v.db",
                client=FunctionClient(asked.append),
                rule="epsilon=0.05",
            )
        )
    assert (caught.value.argument, asked) == ("stop", [])


def test_parts_of_votes_are_not_rounded_to_whole_ones():
    model = btdagg.DavidsonModel(1.2, 1.0, 0.8)
    votes = VoteDistribution([(1, (1, 1, 1))])
    for rule in (
        StoppingRule.lossless(model, N),
        StoppingRule.risk_bounded(model, N, votes),
        StoppingRule.cost_optimal(model, N, votes, price=0.01),
    ):
        for ask in (rule.stops, rule.decide, rule.votes_to_ask):
            with pytest.raises(InputError, match="lossless") as caught:
                ask([[0, 0, 3], [0.5, 0, 2.5]])
            assert (caught.value.argument, caught.value.row) == ("counts", 1)


def test_margins_of_a_judge_are_as_large_as_those_that_a_model_was_fitted_to():
    """By its judge and template, else by its judge: never by another judge's."""
    rows = [(item, judge, "t", size * (1 - item % 3), abs(size * (1 - item % 3)))
            for item in range(30) for judge, size in (("x", 4), ("y", 2))]  # fmt: skip
    names = ["item", "judge", "template", "vote", "margin"]
    votes = pl.DataFrame(rows, schema=names, orient="row").with_columns(pl.col("vote").sign())
    read = btdagg.read_votes(votes, full_margin={"x": 4, "y": 2})
    labels = {"item": list(range(30)), "label": [1 - item % 3 for item in range(30)]}
    model = btdagg.calibrate(read, btdagg.read_labels(labels)).model
    margins = model.provenance.full_margins
    for judge, template, full in (("x", "t", 4), ("y", "t", 2), ("x", "u", 4), ("y", "u", 2)):
        one = {"item": ["q"], "judge": [judge], "template": [template], "vote": [1], "margin": [1]}
        found = btdagg.read_votes(one, full_margin=margins).counts()[1].tolist()
        assert found == [[0, 1 - 1 / full, 1 / full]]
