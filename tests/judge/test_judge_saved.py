"""Stores of an earlier version: they are opened, gone on with and exported.

`saved/make.py` says how they were made: votes of two judges and templates, a decision of USC,
labels, pairs without a vote for every reason, and a batch that was sent.
"""

import asyncio
import json
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import btdagg
from batch_server import BatchServer
from btdagg.judge import Judging, judge, read_pairs
from btdagg.judge.batches import steps
from btdagg.judge.simulated import SimulatedClient
from btdagg.labelling import LabelStore
from judging import rows_of

SAVED = Path(__file__).parent / "saved"
NO_VOTES = {"unparsed": 4, "refused": 4, "empty": 4, "failed": 4}


@pytest.fixture
def saved(folder):
    """A copy of the files to work on."""
    shutil.copytree(SAVED, folder, dirs_exist_ok=True)
    return folder


def exported(cli, name):
    assert cli("votes", f"{name}.db", "--export", "now.csv")[0] == 0
    return pl.read_csv("now.csv", infer_schema=False)


@pytest.mark.parametrize("name", ["store", "grades"])
def test_votes_are_exported_as_they_were(cli, saved, name):
    then = pl.read_csv(f"{name}.csv", infer_schema=False)
    now = exported(cli, name)
    assert_frame_equal(now.select(then.columns), then, check_row_order=False)
    assert (now["method"].unique() == ["sample"]).all()


def test_votes_and_labels_are_read(saved):
    votes = btdagg.read_votes("store.db", strength="none")
    assert len(votes.filter({"judge": ["sure"]}).ids) == 2
    with LabelStore("store.db", create=False) as store:
        answers = [(each.item, each.rater, each.label, each.note) for each in store.answers()]
    assert answers == [
        ("q0", "ann", 1, "clear"),
        ("q0", "bob", 0, ""),
        ("q1", "ann", None, "skipped, as = is no sum"),
    ]
    with LabelStore("grades.db", create=False) as store:
        assert [(each.criterion, each.label) for each in store.answers()] == [
            ("clear", 4),
            ("right", 5),
        ]


def test_what_failed_is_asked_again_and_nothing_else(saved):
    """With more samples, and without those that the batch has."""
    retried = Judging("sim", n=4, request_seed=0, again=tuple(NO_VOTES))
    pairs = read_pairs("pairs.jsonl")
    before = Counter(row["status"] for row in rows_of("store.db"))
    assert {status: before[status] for status in NO_VOTES} == NO_VOTES
    run = asyncio.run(judge(pairs, retried, store="store.db", client=SimulatedClient()))
    assert run.n_calls == 16
    more = Judging("sim", n=6, request_seed=0)
    run = asyncio.run(judge(pairs, more, store="store.db", client=SimulatedClient()))
    assert run.n_calls == 12
    after = Counter(row["status"] for row in rows_of("store.db"))
    assert after == {"ok": before["ok"] + 28, None: 12}


def test_the_batch_under_way_is_collected(cli, saved, monkeypatch):
    monkeypatch.setattr(steps, "LOOK_AGAIN", (0.01, 0.02))
    server = BatchServer()
    file = server.add_file(Path("requests.jsonl").read_bytes(), "batch")
    asked = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    server.create(None, None, None, json.dumps({**asked, "input_file_id": file["id"]}))
    with sqlite3.connect("store.db") as database:
        database.execute("UPDATE btdagg_batches SET endpoint = ?", [server.url])
    database.close()
    there = ("--set", f"judge.base_url={server.url}")
    assert cli("batch", "collect", "--store", "store.db", "--wait", *there)[0] == 0
    server.stop()
    rows = [row for row in rows_of("store.db") if row["prompt_tokens"] == 1000]
    assert Counter(row["vote"] for row in rows) == {-1: 6, 1: 6}
    assert (exported(cli, "store")["judge"] == "m").sum() == 12
