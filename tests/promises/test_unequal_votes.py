"""Where items have unequal numbers of votes, every door says so, and none makes votes up."""

import json
import warnings

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.estimates import not_worse
from btdagg.model import CalibrationWarning
from btdagg.online import plan
from refusals import refused

N_ITEMS, N_LABELS = 120, 80


def thinned(n_items=N_ITEMS, few=2, seed=0):
    """Votes, of which every other item has few and the others eight, and labels of some items."""
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 0, 1], n_items, p=[0.3, 0.35, 0.35])
    seen = gold[:, None] + rng.normal(0, 0.8, (n_items, 8))
    vote = np.where(np.abs(seen) < 0.5, 0, np.sign(seen)).astype(int)
    item, sample = (part.ravel() for part in np.indices((n_items, 8)))
    rows = pl.DataFrame({"item": item, "sample": sample, "vote": vote.ravel()})
    rows = rows.filter((pl.col("item") % 2 == 0) | (pl.col("sample") < few))
    return rows, pl.DataFrame({"item": np.arange(N_LABELS), "label": gold[:N_LABELS]})


@pytest.fixture
def files(folder):
    for name, table in zip(("votes.csv", "labels.csv"), thinned(), strict=True):
        table.write_csv(name)
    return folder


GATE = ("--candidate", "A", "--baseline", "B", "--margin", 0.9)
COMMANDS = {
    "evaluate": (),
    "calibrate": ("-o", "model.json"),
    "certify": (),
    "check": (),
    "estimate": (),
    "gate": GATE,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_how_many_items_have_how_many_votes(cli, files, command):
    status, printed, remarks = cli(command, "votes.csv", "labels.csv", *COMMANDS[command])
    n_items = N_LABELS if command in ("evaluate", "calibrate") else N_ITEMS
    expected = f"{n_items // 2} items have 2, {n_items // 2} have 8"
    assert status == 0
    assert (printed + remarks).count(expected) == 1
    assert (printed + remarks).count("unequal numbers") == 1
    assert "with -n 2 no item counts more than its first 2 votes" in printed + remarks
    if command != "check":
        remarks = cli(command, "votes.csv", "labels.csv", *COMMANDS[command], "-n", 2)[2]
        assert "unequal" not in remarks


def test_a_plan_says_it_too(cli, files):
    cli("calibrate", "votes.csv", "labels.csv", "-o", "model.json")
    status, _, remarks = cli("plan", "model.json", "votes.csv", "labels.csv", "-n", 8)
    assert (status, "40 items have 2, 40 have 8" in remarks) == (0, True)


def test_a_comparison_says_it_once_or_of_the_way_with_such_items(cli, files):
    votes, _ = thinned()
    every = votes.filter(pl.col("sample") < 2).with_columns(judge=pl.lit("even"))
    pl.concat([votes.with_columns(judge=pl.lit("uneven")), every]).write_csv("judges.csv")
    said = cli("compare", "judges.csv", "labels.csv")[2]
    assert said.count("unequal numbers") == 1
    assert "judge=uneven: items have unequal numbers of votes: 40 items have 2, 40 have 8" in said
    assert "with n=2 no item counts more than its first 2 votes" in said
    ways = ("--first", "method=weak", "--second", "method=isotonic")
    said = cli("compare", "votes.csv", "labels.csv", *ways)[2]
    assert said.count("items have unequal numbers of votes: 40 items have 2, 40 have 8") == 1
    ways = ("--first", "n=2", "--second", "n=8")
    assert "unequal" not in cli("compare", "votes.csv", "labels.csv", *ways)[2]


def test_decisions_of_a_fitted_model_say_it(cli, files):
    cli("calibrate", "votes.csv", "labels.csv", "-o", "model.json")
    said = cli("decide", "model.json", "votes.csv", "-o", "decided.csv")[2]
    assert said.count("items have unequal numbers of votes: 60 items have 2, 60 have 8") == 1
    said = cli("decide", "model.json", "votes.csv", "-n", 2, "-o", "decided.csv")[2]
    assert "unequal" not in said
    votes, labels = thinned()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        btdagg.decide(votes, labels, agreement=0.3)
    (text,) = (str(w.message) for w in warned if "unequal" in str(w.message))
    assert "60 items have 2, 60 have 8" in text


def test_a_period_of_other_numbers_of_votes_is_its_own(cli, files):
    votes, labels = thinned()
    votes.filter(pl.col("sample") < 2).with_columns(pl.col("item") + 1000).write_csv("old.csv")
    pl.concat([labels, labels.with_columns(pl.col("item") + 1000)]).write_csv("both.csv")
    said = cli("estimate", "votes.csv", "both.csv", "--before", "old.csv")[2]
    assert said.count("unequal numbers") == 1
    assert "60 items have 2, 60 have 8" in said


def test_systems_and_their_bias_say_it(cli, folder):
    votes, labels = thinned(n_items=400)
    is_first = pl.col("item") // 2 % 2 == 0
    votes = votes.with_columns(
        system_a=pl.when(is_first).then(pl.lit("x")).otherwise(pl.lit("y")),
        system_b=pl.when(is_first).then(pl.lit("y")).otherwise(pl.lit("z")),
    )
    found = btdagg.read_votes(votes), btdagg.read_labels(labels)
    items = found[0].items(found[1], systems=("system_a", "system_b"))
    for result in (btdagg.estimate_systems(items), btdagg.bias(items)):
        (remark,) = (text for text in result.remarks if text.code == "unequal-votes")
        assert "200 items have 2, 200 have 8" in remark


def test_python_says_it_in_remarks_and_warnings():
    votes, labels = (
        read(table)
        for read, table in zip((btdagg.read_votes, btdagg.read_labels), thinned(), strict=True)
    )
    with pytest.warns(CalibrationWarning, match="40 items have 2, 40 have 8"):
        btdagg.calibrate(votes, labels)
    sides = {"candidate": "A", "baseline": "B"}
    for result in (
        btdagg.certify(votes, labels),
        btdagg.evaluate(votes, labels),
        btdagg.estimate(votes, labels),
        not_worse(votes, labels, **sides),
        btdagg.compare(votes, votes, labels, methods=("weak", "isotonic")),
    ):
        (remark,) = (text for text in result.remarks if text.code == "unequal-votes")
        assert (remark.values["n_votes"], "n_votes=2" in remark) == (2, True)


@pytest.mark.parametrize(
    ("numbers", "n_votes"),
    [
        ([8] * 100, None),
        ([8] * 60 + [7] * 40, None),  # calls that failed
        ([8] * 96 + [2] * 4, None),  # a few
        ([8] * 90 + [2] * 10, 2),
        ([0] * 50 + [8] * 50, None),  # items without votes have no model
        ([3, 4, 5, 6, 7, 8] * 20, 3),
        ([1] * 50 + [2] * 50, 1),
    ],
)
def test_numbers_of_votes_that_are_nearly_equal_are_no_remark(numbers, n_votes):
    counts = np.zeros((len(numbers), 3), int)
    counts[:, 2] = numbers
    labels = np.resize([1, -1, 0], len(numbers))
    with warnings.catch_warnings(action="ignore"):
        remarks = btdagg.calibrate(counts, labels).warnings
    assert [of.values["n_votes"] for of in remarks if of.code == "unequal-votes"] == [
        *filter(None, [n_votes])
    ]


def test_two_numbers_of_votes_are_compared_on_items_that_have_both(cli, files):
    ways = ("--first", "n=2", "--second", "n=8")
    done = json.loads(cli("compare", "votes.csv", "labels.csv", *ways, "--json")[1])
    assert (done["n_items"], done["n_fewer"]) == (N_LABELS // 2, N_LABELS // 2)
    # As where those items are all there are.
    votes, labels = thinned()
    votes.filter(pl.col("item") % 2 == 0).write_csv("both.csv")
    labels.filter(pl.col("item") % 2 == 0).write_csv("both_labels.csv")
    both = json.loads(cli("compare", "both.csv", "both_labels.csv", *ways, "--json")[1])
    assert [both[k] for k in ("difference", "pvalue")] == [
        done[k] for k in ("difference", "pvalue")
    ]
    said = cli("compare", "votes.csv", "labels.csv", *ways)[2]
    assert f"{N_LABELS // 2} labelled items lack votes of n=2 or n=8" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "-n", "9"),
        ("evaluate", "-n", "2,9"),
        ("calibrate", "-n", "9", "-o", "model.json"),
        ("certify", "-n", "9"),
        ("estimate", "-n", "9"),
        ("compare", "--first", "n=2", "--second", "n=9"),
        ("compare", "--first", "n=9", "--second", "n=2"),
    ],
)
def test_commands_refuse_a_number_of_votes_that_no_item_has(cli, files, arguments):
    command, *options = arguments
    status, _, errors = cli(command, "votes.csv", "labels.csv", *options)
    assert (status, "expected at most 8" in errors) == (2, True), errors


def test_decide_refuses_it_too(cli, files):
    cli("calibrate", "votes.csv", "labels.csv", "-o", "model.json")
    status, _, errors = cli("decide", "model.json", "votes.csv", "-n", 9, "-o", "decided.csv")
    assert (status, "expected at most 8" in errors) == (2, True)
    status, _, errors = cli("plan", "model.json", "votes.csv", "labels.csv", "-n", 9)
    assert status == 2


def test_python_refuses_a_number_of_votes_that_no_item_has():
    rows, gold = thinned()
    votes, labels = btdagg.read_votes(rows), btdagg.read_labels(gold)
    judged = btdagg.read_votes(rows.with_columns(judge=pl.lit("x")))
    for refuse in (
        lambda: votes.counts(9),
        lambda: votes.tally(9),
        lambda: votes.items(n_votes=9),
        lambda: votes.items(labels, n_votes=9),
        lambda: votes.labelled(labels, 9),
        lambda: votes.with_labels(labels, 9),
        lambda: judged.items(panel="judge", n_votes=9),
        lambda: btdagg.evaluate(votes, labels, n_votes=[2, 9]),
        lambda: btdagg.compare(votes, votes, labels, n_votes=(2, 9)),
        lambda: btdagg.decisions(votes, _model(), n_votes=9),
    ):
        with refused("n_votes", got=9, expected="at most 8"):
            refuse()


def _model():
    return btdagg.DavidsonModel(1.0, 0.0, 0.0)


def test_labelled_items_with_fewer_votes_than_others_are_no_reason_to_use_fewer():
    rows, gold = thinned()
    odd = gold.filter(pl.col("item") % 2 == 1)
    votes, labels = btdagg.read_votes(rows), btdagg.read_labels(odd)
    with refused("n_votes", got=4, expected="at most 2"):
        btdagg.evaluate(votes, labels, n_votes=[4])


def test_a_task_of_fewer_votes_is_used_beside_one_that_has_them():
    rows, gold = thinned()
    rows = rows.with_columns(
        task=pl.when(pl.col("item") % 2 == 0).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    gold = gold.with_columns(
        task=pl.when(pl.col("item") % 2 == 0).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    items = btdagg.read_votes(rows).items(btdagg.read_labels(gold), n_votes=8)
    assert sorted({*items.pooled.sum(axis=1).tolist()}) == [2, 8]


def test_more_labels_are_not_advised_where_votes_are_unequal():
    rows, gold = thinned(n_items=N_LABELS)
    scores = btdagg.evaluate(btdagg.read_votes(rows), btdagg.read_labels(gold))
    assert not any("label more items" in text for text in scores.remarks)
    certificate = btdagg.certify(
        btdagg.read_votes(rows), btdagg.read_labels(gold[:40]), agreement=0.99
    )
    assert (certificate.threshold, certificate.labels_wanted) == (None, None)


def test_an_average_over_judges_of_different_items_says_so():
    rows, gold = thinned()
    rows = rows.filter(pl.col("sample") < 2)
    other = rows.filter(pl.col("item") >= 20).with_columns(judge=pl.lit("y"))
    first = rows.filter(pl.col("item") < 60).with_columns(judge=pl.lit("x"))
    labels = btdagg.read_labels(gold)
    scores = btdagg.evaluate(btdagg.read_votes(pl.concat([first, other])), labels)
    assert any("different labelled items (60, 60; 40 in common)" in r for r in scores.remarks)
    same = pl.concat([rows.with_columns(judge=pl.lit(name)) for name in "xy"])
    scores = btdagg.evaluate(btdagg.read_votes(same), labels)
    assert scores.averages
    assert not any("in common" in r for r in scores.remarks)


def test_a_plan_from_arrays_still_forecasts_more_votes_than_the_pilot_has():
    votes, labels = thinned()
    items = btdagg.read_votes(votes).labelled(btdagg.read_labels(labels))
    assert plan(items, n_items=100, n_votes=[4, 12]).budgets[-1].n == 12


def test_a_judge_of_fewer_votes_is_evaluated_at_those_it_has():
    rows, gold = thinned()
    every = rows.filter(pl.col("item") % 2 == 0)
    few = every.filter(pl.col("sample") < 4).with_columns(judge=pl.lit("few"))
    votes = btdagg.read_votes(pl.concat([every.with_columns(judge=pl.lit("all")), few]))
    scores = btdagg.evaluate(votes, btdagg.read_labels(gold), n_votes=[8, 4])
    assert [(cell.key, cell.n_votes) for cell in scores.cells] == [
        (("all",), 8),
        (("all",), 4),
        (("few",), 4),
    ]
    ((key, reason),) = scores.skipped
    assert (key, "expected at most 4" in reason) == (("few",), True)
    assert {line["n_votes"] for line in scores.averages} == {4}
