"""`btdagg plan`: what it prints is what the library finds; the rule it writes; refusals."""

import json

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import DavidsonModel, GradeModel, Scale
from btdagg.datasets import simulate
from btdagg.online import StoppingRule, fit_votes, plan, plan_anchors

SAMPLE = simulate("wmt-zh-en", 150, 8, seed=1)
MODEL = DavidsonModel(beta=0.9, eta0=-0.5, gamma=0.1)
PLAN = ["plan", "model.json", "votes.csv", "labels.csv", "-n", 8]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in: votes, counts, labels and a model."""
    monkeypatch.chdir(tmp_path)
    votes = pl.DataFrame(SAMPLE.vote_columns())
    votes.write_csv("votes.csv")
    votes.with_columns(judge=pl.lit("g")).write_csv("one.csv")
    pl.DataFrame(SAMPLE.label_columns()).write_csv("labels.csv")
    counts = dict(zip(("minus", "tie", "plus"), SAMPLE.counts.T, strict=True))
    pl.DataFrame({"item": SAMPLE.items, **counts}).write_csv("counts.csv")
    MODEL.save("model.json")


VOTES = fit_votes(SAMPLE.counts, SAMPLE.labels)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ([], StoppingRule.lossless(MODEL, 8, VOTES)),
        (["--stop", "epsilon=0.1"], StoppingRule.risk_bounded(MODEL, 8, VOTES, epsilon=0.1)),
        (["--stop", "price=0.01"], StoppingRule.cost_optimal(MODEL, 8, VOTES, price=0.01)),
        (
            ["--stop", "budget=4.5", "--step", 2],
            StoppingRule.cost_optimal(MODEL, 8, VOTES, budget=4.5, step=2),
        ),
    ],
)
def test_a_plan_is_what_the_library_finds_and_the_rule_is_written(cli, options, rule):
    job = ["--items", 500, "-o", "rule.json", "--json"]
    status, out, err = cli(*PLAN, *options, *job)
    assert (status, err) == (0, "")
    assert StoppingRule.load("rule.json") == rule
    told = json.loads(out)
    names = ("kind", "n", "step", "epsilon", "price")
    assert told["rule"] == {name: getattr(rule, name) for name in names}

    def fields(row):
        return {name: value for name, value in vars(row).items() if name != "price"}

    assert told["expected"]["votes"] == rule.expected_votes
    assert told["expected"]["calls"] == 500 * rule.expected_votes
    sizes = sorted({row["n"] for row in told["budgets"]})
    job = {"n_items": 500, "n_votes": sizes, "rule": rule, "prior": "weak"}
    by_hand = plan(SAMPLE.counts, SAMPLE.labels, **job)
    assert told["budgets"] == [fields(row) for row in by_hand.budgets]
    assert told["labels"] == [{"n_labels": n, "excess_mae": e} for n, e in by_hand.labels]
    assert sizes[-1] == 8
    assert all(n % rule.step == 0 for n in sizes)
    assert (told["n_labels"], told["output"]) == (150, "rule.json")
    # What is said above the table is what its row says, but for the calls of a calibration set.
    (row,) = (row for row in told["budgets"] if (row["n"], row["rule"]) == (8, rule.kind))
    for name in ("votes", "mae", "change_rate"):
        assert row[name] == pytest.approx(told["expected"][name], rel=1e-12)


def test_a_plan_is_printed(cli):
    rule = StoppingRule.risk_bounded(MODEL, 8, VOTES, epsilon=0.05)
    status, out, err = cli(*PLAN, "--stop", "epsilon=0.05", "--items", 2000)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "risk-bounded rule, epsilon 0.05: at most 8 votes per item"
    assert lines[1].startswith(f"expected: {rule.expected_votes:.2f} votes (")
    assert lines[2] == f"2,000 items: {2000 * rule.expected_votes:,.0f} votes"
    assert "price" not in out
    assert out.count("risk-bounded") == 1 + 6
    assert "200 labels: error " in out
    assert cli(*PLAN, "--stop", "price=0")[1].startswith("cost-optimal rule, price 0: at most 8")


def test_a_plan_has_the_anchors_that_find_a_drift(cli):
    status, out, err = cli(*PLAN, "--drift", 0.2, "--items", 800)
    planned = plan_anchors(VOTES, n_votes=8, drift=0.2, within=800)
    assert (status, err, out.splitlines()[3]) == (0, "", f"anchors: {planned}")
    again = f"judge {planned.anchors} items again: one for every {800 / planned.anchors:.3g} items"
    assert str(planned) == (
        "to find with probability 90%, within 800 items, that the judge casts 20% of its "
        f"votes for the tie, or for one side, whatever it reads, {again}"
    )
    _, out, _ = cli(*PLAN, "--drift", 0.2, "--items", 800, "--json")
    assert json.loads(out)["anchors"] == planned._asdict()


def test_items_of_a_group_widen_the_interval(cli):
    by_four = np.repeat(np.arange(150), 4)  # each item stands there four times
    votes = pl.DataFrame(SAMPLE.vote_columns()).to_dict(as_series=False)
    copies = [pl.DataFrame(votes | {"item": [f"{i}-{n}" for i in votes["item"]]}) for n in range(4)]
    pl.concat(copies).write_csv("votes.csv")
    labels = pl.DataFrame(SAMPLE.label_columns())
    labels = pl.concat([
        labels.with_columns(pl.format("{}-{}", "item", pl.lit(n)).alias("item"), group="item")
        for n in range(4)
    ])  # fmt: skip
    widths = []
    for table in (labels, labels.drop("group")):
        table.write_csv("labels.csv")
        status, out, err = cli(*PLAN, "--json")
        assert (status, err) == (0, "")
        row = json.loads(out)["budgets"][0]
        widths.append(row["high"] - row["low"])
    assert 1.4 < widths[0] / widths[1] < 2.4
    counts, gold = SAMPLE.counts[by_four], SAMPLE.labels[by_four]
    how = {"n_items": 1000, "n_votes": [8], "n_labels": [25]}
    (alone, *_), (grouped, *_) = (
        plan(counts, gold, **how).budgets,
        plan(btdagg.votes.as_items(counts, gold, by_four), **how).budgets,
    )
    assert 1.4 < (grouped.high - grouped.low) / (alone.high - alone.low) < 2.4


def test_counts_filters_and_labels_of_some_items(cli):
    asked = ["-n", 8, "--json"]
    _, votes, _ = cli("plan", "model.json", "votes.csv", "labels.csv", *asked)
    status, counts, err = cli("plan", "model.json", "counts.csv", "labels.csv", *asked)
    assert (status, err, counts) == (0, "", votes)
    _, one, _ = cli("plan", "model.json", "one.csv", "labels.csv", *asked, "-f", "judge=g")
    assert one == votes
    pl.read_csv("labels.csv")[:40].write_csv("some.csv")
    _, some, _ = cli("plan", "model.json", "votes.csv", "some.csv", *asked)
    assert json.loads(some)["n_labels"] == 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-n", 129], "-n is 129, expected an integer of at most 128"),
        (["-n", 9, "--step", 2], "-n is 9, expected a multiple of the step 2"),
        (["--step", 0], "--step is 0, expected at least 1"),
        (
            ["--stop", "epsilon=0.5"],
            "--stop epsilon is 0.5, expected a number above 0 and below 0.5",
        ),
        (["--stop", "epsilon=nan"], "--stop epsilon is nan, expected a finite number"),
        (
            ["--stop", "soon"],
            "--stop is 'soon', expected lossless, epsilon=0.05, price=0.01 or budget=5",
        ),
        (["-f", "judge"], "--filter is 'judge', expected COLUMN=VALUE"),
        (["--drift", 1], "--drift is 1.0, expected a number above 0 and below 1"),
    ],
)
def test_refusals(cli, tmp_path, options, message):
    status, out, err = cli(*PLAN, *options, "-o", "rule.json")
    assert (status, out, err) == (2, "", f"btdagg: {message}\n")
    assert not (tmp_path / "rule.json").exists()


def test_a_population_is_that_of_a_pilot(cli):
    status, _, err = cli("plan", "--prior", "rb2-math", "-n", 8, "--set", "population=finite")
    assert (status, err) == (
        2,
        "btdagg: --set population=finite needs a pilot: give MODEL, VOTES and LABELS\n",
    )


def test_a_plan_of_grades_is_made_from_a_model_of_grades(cli):
    scale = Scale(range(1, 6))
    model = GradeModel(beta=2, cuts=(1.5, 2.5, 3.5, 4.5), scale=scale)
    model.save("grades.json")
    scores = np.random.default_rng(0).integers(1, 6, size=(30, 1)).repeat(4, axis=1)
    items = [f"i{number}" for number in range(30)]
    votes = {"item": np.repeat(items, 4), "sample": [0, 1, 2, 3] * 30, "score": scores.ravel()}
    pl.DataFrame(votes).write_csv("scores.csv")
    pl.DataFrame({"item": items, "label": scores[:, 0]}).write_csv("graded.csv")
    arguments = [
        "plan",
        "grades.json",
        "scores.csv",
        "graded.csv",
        "--set",
        "votes.scale=1-5",
        "-n",
        4,
    ]
    status, out, _ = cli(*arguments, "-o", "rule.json", "--json")
    told = json.loads(out)
    assert status == 0
    assert told["expected"]["mae"] == 0
    assert told["expected"]["votes"] < 4
    assert StoppingRule.load("rule.json") == StoppingRule.lossless(model, 4)
    for options, text in [(["--stop", "price=0.1"], "lossless"), (["--prior", "weak"], "prior")]:
        status, _, err = cli(*arguments, *options)
        assert status != 0
        assert text in err
    status, _, err = cli(*PLAN[:1], "grades.json", *PLAN[2:])
    assert status != 0
    assert "expected 1, 2, 3, 4 or 5" in err
