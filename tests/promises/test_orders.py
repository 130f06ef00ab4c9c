"""Votes of one order that were not turned round are noticed, and those that were are not."""

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.check import check
from btdagg.votes.orders import about_orders

LABELLED = "seem not to be turned round"
CONTRADICT = "contradict each other"


def drawn(n, *, seed=0, skill=1.5, position=0.0, spread=0.0, both=True, turned=True):
    """Votes of a judge that prefers a position, by item and in all, and labels."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(-1, 2, n)
    preference = position + spread * rng.normal(size=n)
    rows = []
    for item in range(n):
        for order in ("AB", "BA") if both else [["AB", "BA"][item % 2]]:
            sign = 1 if order == "AB" else -1
            lead = skill * gold[item] + sign * preference[item] + rng.normal()
            vote = int(np.sign(lead)) if abs(lead) > 0.4 else 0
            rows.append((f"q{item}", order, vote if turned else sign * vote))
    votes = pl.DataFrame(rows, schema=["item", "order", "vote"], orient="row")
    return votes, pl.DataFrame({"item": [f"q{item}" for item in range(n)], "label": gold})


def said(votes, labels=None):
    read = btdagg.read_votes(votes)
    return " ".join(about_orders(read, None if labels is None else btdagg.read_labels(labels)))


def test_evaluations_estimates_and_calibrations_say_it_where_labels_show_it():
    for both in (True, False):
        votes, labels = drawn(160, turned=False, both=both)
        tables = btdagg.read_votes(votes), btdagg.read_labels(labels)
        for found in (
            btdagg.estimate(*tables).remarks,
            btdagg.evaluate(*tables).remarks,
            tables[0].labelled(tables[1]).origin.remarks,
        ):
            (remark,) = (text for text in found if LABELLED in text)
            assert "in order AB and" in remark
            assert "first or second" in remark
        good = btdagg.read_votes(drawn(160, both=both)[0]), tables[1]
        assert not any("order" in text for text in btdagg.evaluate(*good).remarks)


def test_the_shares_are_those_of_the_order():
    votes, labels = drawn(300, turned=False)
    both = votes.join(labels, on="item").filter((pl.col("vote") != 0) & (pl.col("label") != 0))
    same = both.with_columns(same=pl.col("vote") == pl.col("label"))
    shares = dict(same.group_by("order").agg(pl.col("same").mean()).iter_rows())
    text = f"{shares['AB']:.0%} in order AB and {shares['BA']:.0%} in order BA"
    assert text in said(votes, labels)
    turned = votes.with_columns(vote=-pl.col("vote"))  # now those of AB are the wrong ones
    assert f"{1 - shares['BA']:.0%} in order BA and" in said(turned, labels)


def test_commands_say_it(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    votes, labels = drawn(160, turned=False)
    votes.write_csv("votes.csv"), labels.write_csv("labels.csv")
    assert LABELLED in str(check(["votes.csv", "labels.csv"]))
    assert CONTRADICT in str(check(["votes.csv"]))
    for command, text in (
        (["check", "votes.csv", "labels.csv"], LABELLED),
        (["check", "votes.csv"], CONTRADICT),
        (["votes", "votes.csv"], CONTRADICT),
        (["import", "votes.csv", "-o", "mine.jsonl"], CONTRADICT),
        (["estimate", "votes.csv", "labels.csv"], LABELLED),
        (["calibrate", "votes.csv", "labels.csv", "-o", "model.json"], LABELLED),
    ):
        status, out, err = cli(*command)
        assert status == (2 if command[0] == "check" and text == LABELLED else 0)
        assert text in " ".join((out + err).split()), command
    assert cli("votes", "votes.csv", "--json")[0] == 0
    drawn(160)[0].write_csv("votes.csv")
    for command in (["check", "votes.csv"], ["votes", "votes.csv"]):
        assert "turned round" not in "".join(cli(*command)[1:])


def test_the_words_that_mend_it_are_those_that_are_named(tmp_path):
    votes, labels = drawn(160)
    is_ba = pl.col("order") == "BA"
    seen = votes.with_columns(vote=pl.when(is_ba).then(-pl.col("vote")).otherwise("vote"))
    words = seen.with_columns(pl.col("vote").replace_strict({1: "1st", 0: "none", -1: "2nd"}))
    gold = btdagg.read_labels(labels)
    for a, b, is_wrong in (("A", "B", True), ("first", "second", False)):
        read = btdagg.read_votes(words, words={"1st": a, "2nd": b, "none": "tie"})
        assert bool(about_orders(read, gold)) == bool(about_orders(read)) == is_wrong
        assert read.labelled(gold).origin.remarks == about_orders(read, gold)


@pytest.mark.parametrize("both", [True, False])
def test_a_judge_that_goes_by_position_is_not_accused(both):
    settings = [
        {"position": 1.5},
        {"position": 4.0},
        {"position": 4.0, "skill": 0.3},
        {"spread": 1.0},
        {"position": -1.0, "spread": 1.0, "skill": 0.7},
        {"skill": 0.0},
        {"skill": 0.0, "position": 2.0},
    ]
    n_said = [
        sum(bool(said(*drawn(60, seed=seed, both=both, **setting))) for seed in range(30))
        for setting in settings
    ]
    assert sum(n_said) <= 2, n_said


def test_labels_that_are_all_the_same_or_few_say_nothing():
    votes, labels = drawn(160, turned=False, both=False)
    assert not said(votes, labels.with_columns(label=1))
    assert not said(votes, labels.head(6))
    assert not said(votes.filter(pl.col("order") == "BA"), labels)
    assert not said(votes.drop("order"), labels)


def test_each_judge_is_looked_at_by_itself():
    (right, labels), (wrong, _) = drawn(120), drawn(120, turned=False)
    votes = pl.concat(
        [right.with_columns(judge=pl.lit("x")), wrong.with_columns(judge=pl.lit("y"))]
    )
    for text in (said(votes, labels), said(votes)):
        assert text.startswith("y: ")
        assert "x: " not in text


@pytest.mark.parametrize("name", ["vicuna80", "mtbench_order"])
def test_real_judges_are_told_from_their_turned_selves(shared, name):
    votes = pl.read_csv(shared / "data" / name / "votes.csv")
    is_ba = pl.col("order") == "BA"
    turned = votes.with_columns(vote=pl.when(is_ba).then(-pl.col("vote")).otherwise("vote"))
    labels = (
        btdagg.read_labels(shared / "data" / name / "labels.csv") if name == "vicuna80" else None
    )
    judges = votes["judge"].unique().to_list()
    assert not about_orders(btdagg.read_votes(votes), labels)
    assert not about_orders(btdagg.read_votes(votes))
    found = about_orders(btdagg.read_votes(turned), labels)
    assert len(found) == (5 if labels else 7), found
    assert {text.partition(": ")[0] for text in found} <= {*judges}


@pytest.mark.parametrize(
    "columns", [["item", "order", "vote"], ["item", "order", "sample", "vote"]]
)
@pytest.mark.parametrize("by", ["order", "vote"])
def test_the_first_votes_are_of_both_orders_in_turn(columns, by):
    """Votes for what stands first: an even number of them is balanced, however rows are sorted."""
    rows = [("q", order, sample, 1 if order == "AB" else -1)
            for order in ("AB", "BA") for sample in range(4)]  # fmt: skip
    table = pl.DataFrame(rows, schema=["item", "order", "sample", "vote"], orient="row")
    table = table.sort(by, maintain_order=True).select(columns)
    votes = btdagg.read_votes(table)
    for n_votes in range(1, 9):
        n_second = n_votes // 2
        assert votes.counts(n_votes)[1].tolist() == [[n_second, 0, n_votes - n_second]]
