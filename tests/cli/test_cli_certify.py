"""`btdagg certify`, decisions by a certificate, and items for people to look at."""

import json

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.estimates import Certificate, worth_a_look

N = 400


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Eight votes of two judges on each item, and the labels of 120 items drawn by chance."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    quality = rng.normal(size=N)
    votes = np.clip(np.round(quality[:, None] + rng.normal(size=(N, 8))), -1, 1).astype(int)
    items = np.array([f"q{number}" for number in range(N)])
    judges = np.tile(["x"] * 4 + ["y"] * 4, N)
    rows = {"item": np.repeat(items, 8), "judge": judges, "sample": np.tile([0, 1, 2, 3], 2 * N)}
    pl.DataFrame(rows | {"vote": votes.ravel()}).write_csv("votes.csv")
    gold = np.clip(np.round(1.3 * quality + 0.4 * rng.normal(size=N)), -1, 1).astype(int)
    drawn = np.sort(rng.permutation(N)[:120])
    labels = pl.DataFrame({"item": items, "label": gold, "probability": 0.3})
    labels = labels.with_columns(least_probability=0.3)
    labels.write_csv("gold.csv")
    labels[drawn.tolist()].write_csv("labels.csv")
    return tmp_path


def arrays():
    votes, labels = btdagg.read_votes("votes.csv"), pl.read_csv("labels.csv")
    ids, counts = votes.counts()
    known = dict(labels.select("item", "label").iter_rows())
    return counts, np.array([known.get(item, np.nan) for item in ids.tolist()])


@pytest.mark.parametrize("options", [(), ("--set", "panel=judge")])
def test_decide_marks_what_a_certificate_trusts(cli, folder, options):
    common = ("votes.csv", "labels.csv", "--agreement", "0.75", "-o", "c.json", *options)
    assert cli("certify", *common)[0] == 0
    status, out, _ = cli("decide", "c.json", "votes.csv", "-o", "d.csv")
    assert status == 0
    decided, certificate = pl.read_csv("d.csv"), Certificate.load("c.json")
    votes = btdagg.read_votes("votes.csv")
    if options:
        assert certificate.model.judges == ("x", "y")
        counts = votes.items(panel="judge").counts
    else:
        counts = votes.counts()[1]
    assert decided["label"].to_list() == certificate.model.decide(counts).tolist()
    assert decided["trusted"].to_list() == certificate.trusted(counts).tolist()
    assert f"{decided['trusted'].sum()} trusted" in out
    assert decided["trusted"].mean() == pytest.approx(certificate.coverage)


@pytest.mark.parametrize("options", [(), ("--set", "panel=judge")])
def test_votes_unlike_those_that_were_certified_are_not_trusted(cli, folder, options):
    cli("certify", "votes.csv", "labels.csv", "--agreement", "0.6", "-o", "c.json", *options)
    votes = pl.read_csv("votes.csv")
    noise = pl.Series(np.random.default_rng(5).integers(-1, 2, votes.height))
    votes.with_columns(vote=noise).write_csv("noise.csv")
    status, out, err = cli("decide", "c.json", "noise.csv", "-o", "d.csv", "--json")
    assert status == 0
    assert json.loads(out)["n_trusted"] == 0
    assert "differ from those that were certified" in " ".join(err.split())
    more = ("-o", "d.csv", "--trust-unlike")
    _, _, err = cli("decide", "c.json", "noise.csv", *more)
    assert "differ from those" in " ".join(err.split())
    btdagg.DavidsonModel(1.0, 0.5, 0.5).save("model.json")
    status, _, err = cli("decide", "model.json", "noise.csv", *more)
    assert (status, err) == (
        2,
        "btdagg: --trust-unlike needs a certificate (of btdagg certify), but model.json is a "
        "model\n",
    )
    counts = btdagg.read_votes("noise.csv").counts()[1]
    if options:
        counts = btdagg.read_votes("noise.csv").items(panel="judge").counts
    trusted = Certificate.load("c.json").trusted(counts)
    assert pl.read_csv("d.csv")["trusted"].to_list() == trusted.tolist()
    assert trusted.any()
    # Votes of an item end when one side leads by two.
    own = ("item", "judge")
    lead = pl.col("vote").cum_sum().over(own).abs().cum_max().over(own)
    stopped = votes.filter(lead.shift(1, fill_value=0).over(own) < 2)
    assert stopped.height < 0.8 * votes.height
    for name, table in (("same", votes), ("stopped", stopped)):
        table.write_csv(f"{name}.csv")
        assert "differ from those" not in " ".join(
            cli("decide", "c.json", f"{name}.csv")[2].split()
        )
    # Of groups, not of their items, the means vary.
    grouped = votes.with_columns(group=pl.col("item").str.slice(0, 3))
    grouped.write_csv("grouped.csv")
    assert "differ from those" not in " ".join(cli("decide", "c.json", "grouped.csv")[2].split())


@pytest.mark.parametrize(
    ("dropped", "options"),
    [(4, ("--set", "panel=judge")), (0, ("--model", "m.json", "-n", "4"))],
)
def test_an_item_has_all_votes_if_it_has_those_of_the_certificate(cli, folder, dropped, options):
    fewer = (pl.col("judge") == "y") & (pl.col("sample") >= 4 - dropped // 2)
    pl.read_csv("votes.csv").filter(~fewer).write_csv("own.csv")
    cli("calibrate", "votes.csv", "labels.csv", "-o", "m.json")
    common = ("--agreement", "0.6", "-o", "c.json", *options)
    status, _, err = cli("certify", "own.csv", "labels.csv", *common)
    assert status == 0
    assert "ProvenanceWarning" not in err
    cli("decide", "c.json", "own.csv", "-o", "d.csv", *options[2:])
    trusted = pl.read_csv("d.csv")["trusted"].mean()
    assert trusted == pytest.approx(Certificate.load("c.json").coverage)
    assert trusted > 0


def test_people_get_the_items_that_a_look_helps_most_and_their_labels_certify_nothing(cli, folder):
    look = ("--people", "10%", "--to-label", "look.csv")
    status, out, _ = cli("certify", "votes.csv", "labels.csv", *look)
    assert status == 0
    counts, labels = arrays()
    looks = worth_a_look(counts, labels, 0.1)
    table = pl.read_csv("look.csv")
    assert table["item"].to_list() == [f"q{row}" for row in looks.rows]
    assert set(table["design"]) == {"people"}
    assert str(looks) in out
    # People label these, and all labels are in one file.
    gold = pl.read_csv("gold.csv").select("item", "label")
    labelled = table.select("item", "probability").join(gold, on="item", maintain_order="left")
    drawn = pl.read_csv("labels.csv")
    pl.concat([drawn, labelled], how="diagonal").write_csv("both.csv")
    before, after = (
        cli("certify", "votes.csv", name, "--agreement", "0.7", "-o", "c.json")
        for name in ("labels.csv", "both.csv")
    )
    assert before[1] == after[1]
    assert "40 labels of both.csv are left out" in " ".join(after[2].split())
    estimates = [cli("estimate", "votes.csv", name)[1] for name in ("labels.csv", "both.csv")]
    assert estimates[0] == estimates[1]
    # A task that only labelled items have does not change the names of the others.
    drawn.with_columns(task=pl.lit("t")).write_csv("tasks.csv")
    assert cli("certify", "votes.csv", "tasks.csv", *look)[0] == 0
    assert pl.read_csv("look.csv")["item"].to_list() == [f"q{row}" for row in looks.rows]


@pytest.mark.parametrize("decider", ["c.json", "m.json"])
def test_labels_of_people_replace_those_of_the_model(cli, folder, decider):
    look = ("-o", "c.json", "--people", "10%", "--to-label", "look.csv", "--agreement", "0.75")
    certified = cli("certify", "votes.csv", "labels.csv", *look)[1]
    cli("calibrate", "votes.csv", "labels.csv", "-o", "m.json")
    gold = pl.read_csv("gold.csv").select("item", "label")
    looked = pl.read_csv("look.csv").drop("label").join(gold, on="item", maintain_order="left")
    looked.write_csv("looked.csv")
    cli("decide", decider, "votes.csv", "-o", "before.csv")
    own = ("--labels", "looked.csv", "--labels", "labels.csv", "-o", "d.csv")
    status, out, err = cli("decide", decider, "votes.csv", *own)
    assert status == 0
    left = certified.rpartition(" to ")[0].rpartition(" to ")[2] + " to"
    assert f"remaining mean absolute error: {left}" in out
    assert "160 by people" in out
    assert "errors are cross-fitted" in err
    before, after = pl.read_csv("before.csv"), pl.read_csv("d.csv").join(gold, on="item")
    of_people = (after["source"] == "people").to_numpy()
    expected = np.where(of_people, after["label_right"], before["label"])
    assert after["label"].to_list() == expected.tolist()
    people = {*looked["item"], *pl.read_csv("labels.csv")["item"]}
    assert {*after.filter(of_people)["item"]} == people
    if decider == "c.json":
        assert after["trusted"].to_list() == (before["trusted"].to_numpy() | of_people).tolist()
    # Without those that were drawn by chance nobody knows the error.
    _, out, err = cli("decide", decider, "votes.csv", "--labels", "looked.csv", "--json", *own[-2:])
    assert json.loads(out)["n_by_people"] == 40
    assert "error_left" not in json.loads(out)
    assert "drawn at random" in err


def test_bad_labels_of_people_are_refused(cli, folder):
    cli("calibrate", "votes.csv", "labels.csv", "-o", "m.json")
    for text, field in (
        ("item,label\nq1,1\nq1,0\n", "q1"),
        ("item,label\nq1,7\n", "label"),
        ("item\nq1\n", "label"),
        ("item,label\nother,1\n", "item"),
    ):
        (folder / "bad.csv").write_text(text)
        status, _, err = cli("decide", "m.json", "votes.csv", "--labels", "bad.csv")
        assert status == 2
        assert "bad.csv" in err
        assert field in err


def test_a_look_at_some_of_the_items_with_the_same_votes_takes_its_share_of_their_error():
    labels = np.tile([1, 0, np.nan, np.nan], 100)
    looks = worth_a_look(np.tile([0, 4, 4], (400, 1)), labels, 0.1)
    assert looks.after.mean == pytest.approx(looks.before.mean * 160 / 200)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (("--people", "10%"), "people"),
        (("--people", "many", "--to-label", "l.csv"), "people"),
        (("--people", "120%", "--to-label", "l.csv"), "share"),
        (("--agreement", "1"), "agreement"),
        (("--confidence", "1"), "confidence"),
        (("-o", "votes.csv"), "output"),
    ],
)
def test_bad_options_are_refused(cli, folder, options, field):
    status, _, err = cli("certify", "votes.csv", "labels.csv", *options)
    assert status == 2
    assert field in err
