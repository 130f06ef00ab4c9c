"""Filters of commands: before values are checked, on votes and labels alike; keys of columns."""

import json

import numpy as np
import polars as pl
import pytest

import btdagg
from families import family

pytestmark = pytest.mark.usefixtures("quick_commands")

FIVE, TEN = btdagg.Scale(range(1, 6)), btdagg.Scale(range(1, 11))


@pytest.fixture
def criteria(tmp_path, monkeypatch):
    """Two criteria in one file: kind from 1 to 5, true from 1 to 10; people have the same."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    votes, labels = [], []
    for name, most in (("kind", 5), ("true", 10)):
        for item in range(60):
            mean = rng.uniform(1, most)
            scores = np.clip(np.rint(rng.normal(mean, 1, 4)), 1, most).astype(int)
            votes += [(item, name, k, int(score)) for k, score in enumerate(scores)]
            if item < 40:
                labels.append((item, name, int(np.clip(np.rint(mean), 1, most))))
    named = ["item", "criterion", "sample", "score"]
    pl.DataFrame(votes, named, orient="row").write_csv("votes.csv")
    pl.DataFrame(labels, ["item", "criterion", "label"], orient="row").write_csv("labels.csv")
    return tmp_path


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    """Votes of a judge on pairs, and labels of half of them."""
    monkeypatch.chdir(tmp_path)
    family("pairs", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "scale"), [("kind", FIVE), ("true", TEN)])
def test_two_criteria_with_two_scales_live_in_one_file(cli, criteria, name, scale):
    grades = f"1-{len(scale.points)}"
    how = ("--filter", f"criterion={name}", "--set", f"scale={grades}")
    status, out, err = cli("estimate", "votes.csv", "labels.csv", *how, "--json")
    assert status == 0, err
    tables = [
        read(file, scale=scale, where={"criterion": name})
        for read, file in ((btdagg.read_votes, "votes.csv"), (btdagg.read_labels, "labels.csv"))
    ]
    mean = btdagg.estimate(*tables).estimates["mean grade"]
    assert json.loads(out)["estimates"]["mean grade"]["value"] == pytest.approx(mean.value)
    for command in ("evaluate", "certify"):
        status, _, err = cli(command, "votes.csv", "labels.csv", *how)
        assert status == 0, err
    status, _, err = cli("calibrate", "votes.csv", "labels.csv", *how, "-o", "model.json")
    assert status == 0, err
    other = {"kind": "true", "true": "kind"}[name]
    assert (f"{other} is not used as a neighbour: labels.csv, row" in err) == (name == "kind")
    status, out, err = cli("decide", "model.json", "votes.csv", "--filter", f"criterion={name}")
    assert status == 0, err
    assert len(out.splitlines()) == 61


def test_a_filter_is_of_votes_or_labels_or_both(cli, pairs):
    votes = pl.read_csv("votes.csv").with_columns(temperature=pl.lit(1.0))
    votes.write_csv("warm.csv")
    labels = pl.read_csv("labels.csv").with_columns(
        rater=pl.when(pl.int_range(pl.len()) < 30).then(pl.lit("ann")).otherwise(pl.lit("bob"))
    )
    labels.write_csv("rated.csv")
    given = ("-f", "judge=one", "-f", "temperature=1", "-f", "rater=ann", "--json")
    status, out, err = cli("estimate", "warm.csv", "rated.csv", *given)
    assert status == 0, err
    assert json.loads(out)["n_labels"] == 30
    status, _, err = cli("estimate", "warm.csv", "rated.csv", "-f", "seed=1")
    assert status == 2
    assert "no column 'seed'; warm.csv has" in err
    assert "rated.csv has" in err


def test_bad_rows_that_are_filtered_out_are_nobody_s_business(cli, pairs):
    votes = pl.read_csv("votes.csv")
    bad = votes.head(1).with_columns(pl.lit("broken").alias("judge"), pl.lit("?").alias("vote"))
    pl.concat([votes.cast(pl.String), bad.cast(pl.String)]).write_csv("mixed.csv")
    for command in ("estimate", "evaluate", "calibrate"):
        written = ("--prior", "weak", "-o", "m.json") if command == "calibrate" else ()
        status, _, err = cli(command, "mixed.csv", "labels.csv", "-f", "judge=one", *written)
        assert status == 0, err


def test_an_id_may_be_of_two_columns(cli, pairs):
    split = pl.lit("c").alias("conversation"), pl.col("item").alias("bot")
    for name in ("votes", "labels"):
        pl.read_csv(f"{name}.csv").with_columns(*split).drop("item").write_csv(f"{name}2.csv")
    how = ("--json", "-f", "judge=one")
    plain = json.loads(cli("estimate", "votes.csv", "labels.csv", *how)[1])
    key = ("--set", "item=conversation+bot", "-f", "conversation=c")
    status, out, err = cli("estimate", "votes2.csv", "labels2.csv", *how, *key)
    assert status == 0, err
    assert json.loads(out)["estimates"] == plain["estimates"]
    pl.read_csv("votes.csv").rename({"item": "a+b"}).write_csv("plus.csv")
    assert cli("votes", "plus.csv", "--set", "item=a+b")[0] == 0
