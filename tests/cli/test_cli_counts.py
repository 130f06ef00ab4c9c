"""Counts with a column judge or task, in commands."""

import json

import polars as pl
import pytest

import btdagg
from families import family

pytestmark = pytest.mark.usefixtures("quick_commands")
SAID = ("--set", "votes.scale=1-5", "--set", "labels.scale=1-3")


@pytest.fixture(params=["pairs", "grades"])
def counts(request, tmp_path, monkeypatch):
    """Votes of two judges, their counts by judge, and options that tell the scales."""
    monkeypatch.chdir(tmp_path)
    of = family(request.param, tmp_path)
    votes = pl.read_csv(of.votes).with_columns(judge=pl.lit("one"))
    other = votes.with_columns(judge=pl.lit("two")).filter(pl.col("sample") < 3)
    both = pl.concat([votes, other])
    both.write_csv("single.csv")
    scale = btdagg.PAIRS if request.param == "pairs" else btdagg.Scale("1-5")
    verdict = "vote" if request.param == "pairs" else "score"
    sums = [(pl.col(verdict) == p).sum().alias(name) for name, p in scale.columns.items()]
    both.group_by("item", "judge", "group", maintain_order=True).agg(sums).write_csv("counts.csv")
    return () if request.param == "pairs" else SAID


def test_counts_of_two_judges_are_read_as_their_votes(cli, counts):
    found = {}
    for name in ("counts.csv", "single.csv"):
        fit = ("calibrate", name, "labels.csv", *counts, "--prior", "weak", "-o", "m.json")
        status, _, err = cli(*fit)
        assert status == 0, err
        assert "pooling 2 values of judge (one, two)" in err
        status, out, err = cli("decide", "m.json", name)
        assert (status, len(out.splitlines())) == (0, 161), err
        drawn = cli("choose", name, "--items", "20", *counts)
        assert drawn[0] == 0, drawn
        estimated = cli("estimate", name, "labels.csv", *counts, "--json")
        assert estimated[0] == 0, estimated
        values = json.loads(estimated[1])["estimates"]
        found[name] = out, drawn[1], values
    assert found["counts.csv"] == found["single.csv"]
