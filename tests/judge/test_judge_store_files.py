"""Stores as files: that may not be written, that were edited or damaged, or are somebody else's."""

import json
import os
import random
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from btdagg.judge.store import StoreError, VoteStore, summaries, votes_frame
from commands import one_line
from judging import pairs_of

pytestmark = pytest.mark.usefixtures("figures_not_drawn")

NOBODY = 65534
MODEL = ["--model", "m", "-n", "4"]


@pytest.fixture
def folder(monkeypatch, judge_server):
    """A folder that anybody may enter, with pairs and a store of 24 votes and 6 decisions."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    monkeypatch.chdir(place)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    yield place
    for path in (place, *place.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(place)


@pytest.fixture
def store(cli, folder, judge_server):
    """A store of 24 votes and 6 decisions."""
    pairs_of(6).frame.write_ndjson("pairs.jsonl")
    served = [*MODEL, "--base-url", judge_server().url, "-s", "v.db"]
    assert cli("judge", "pairs.jsonl", *served)[0] == 0
    assert cli("judge", "pairs.jsonl", *served, "--method", "gsa")[0] == 0
    assert sorted(file.name for file in folder.glob("v.db*")) == ["v.db"]
    return folder / "v.db"


def edit(store, statement, *values):
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(statement, values)
        connection.commit()


@contextmanager
def as_nobody():
    """Without the rights of root, for whom nothing is read-only."""
    root = os.getuid() == 0
    if root:
        os.setresgid(NOBODY, NOBODY, 0)
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)


READING = [
    ["votes", "v.db"],
    ["votes", "v.db", "--json"],
    ["judge", "pairs.jsonl", *MODEL, "-s", "v.db", "--dry-run", "--json"],
]


def leave_a_log(store):
    """As a run leaves it that is killed: half of the votes are in the log alone."""
    copy = store.with_suffix(".copy")
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        rows = connection.execute("SELECT * FROM btdagg_votes WHERE sample = 1").fetchall()
        connection.execute("DELETE FROM btdagg_votes WHERE sample = 1")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO btdagg_votes VALUES ({marks})", rows)
        connection.commit()
        for end in ("", "-wal"):
            shutil.copyfile(f"{store}{end}", f"{copy}{end}")
    for end in ("", "-wal"):
        os.replace(f"{copy}{end}", f"{store}{end}")


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("folders", "files"), [(0o555, 0o444), (0o777, 0o444), (0o555, 0o666)])
def test_a_store_that_may_not_be_written_is_read(cli, store, log, folders, files):
    wanted = [cli(*command)[1] for command in READING]
    if log:
        leave_a_log(store)
    for file in store.parent.iterdir():
        file.chmod(files)
    store.parent.chmod(folders)
    before = {file: file.read_bytes() for file in store.parent.iterdir()}
    with as_nobody():
        assert not (os.access(store, os.W_OK) and os.access(store.parent, os.W_OK))
        found = [cli(*command) for command in READING]
    assert [(status, out) for status, out, _ in found] == [(0, out) for out in wanted]
    assert json.loads(wanted[2])["n_there"] == 24
    after = {file: file.read_bytes() for file in store.parent.iterdir()}
    if folders == 0o555 or not log:
        assert after == before
    else:  # SQLite may index the log beside it
        assert {file: after[file] for file in before} == before


def test_a_store_that_may_not_be_written_is_exported(cli, store):
    cli("votes", "v.db", "-o", "wanted.csv")
    with tempfile.TemporaryDirectory() as elsewhere:
        os.chmod(elsewhere, 0o777)
        store.chmod(0o444)
        store.parent.chmod(0o555)
        with as_nobody():
            status, _, err = cli("votes", "v.db", "-o", f"{elsewhere}/votes.csv")
        assert status == 0, err
        assert Path(elsewhere, "votes.csv").read_bytes() == Path("wanted.csv").read_bytes()


def test_a_store_that_may_not_be_written_is_refused_for_asking(cli, store):
    store.chmod(0o444)
    store.parent.chmod(0o555)
    with as_nobody():
        message = one_line(*cli("judge", "pairs.jsonl", *MODEL, "-s", "v.db"))
    assert message.startswith("v.db: it cannot be ")


def test_a_store_that_is_being_written_is_read(cli, store):
    wanted = json.loads(cli("votes", "v.db", "--json")[1])
    with VoteStore(store) as writing, writing.owner() as owner:
        assert owner.id > 0
        assert json.loads(cli("votes", "v.db", "--json")[1]) == wanted


# Somebody else's


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize(
    "command",
    [
        ["votes", "mine.db"],
        ["votes", "mine.db", "-o", "votes.csv"],
        ["judge", "pairs.jsonl", *MODEL, "-s", "mine.db"],
        ["judge", "pairs.jsonl", *MODEL, "-s", "mine.db", "--dry-run"],
        ["run", "pairs.jsonl", "--labels", "labels.csv", *MODEL, "-s", "mine.db"],
    ],
)
def test_a_database_of_something_else_is_not_changed(cli, folder, mode, command):
    pairs_of(6).frame.write_ndjson("pairs.jsonl")
    pl.DataFrame({"item": ["q0", "q1"], "label": [1, 0]}).write_csv("labels.csv")
    with closing(sqlite3.connect("mine.db")) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE mine (x)")
        connection.execute("INSERT INTO mine VALUES (1)")
        connection.commit()
    before = Path("mine.db").read_bytes()
    status, _, err = cli(*command)
    if "--dry-run" not in command:
        assert status == 2
        assert re.search("no vote store there|an SQLite database of something else", err)
    assert Path("mine.db").read_bytes() == before
    assert [file.name for file in folder.glob("mine.db*")] == ["mine.db"]


def test_an_empty_file_becomes_a_store(folder):
    Path("v.db").touch()
    VoteStore("v.db").close()
    VoteStore("v.db", create=False).close()


# Edited


EVERY = [
    ["votes", "v.db"],
    ["votes", "v.db", "--json"],
    ["votes", "v.db", "-o", "x.parquet"],
    ["votes", "v.db", "-o", "x.csv", "--exchanges"],
]


def test_a_vote_of_7_is_no_vote(cli, store):
    where = """ WHERE item = 'q3' AND "order" = 'BA' AND sample = 1"""
    edit(store, "UPDATE btdagg_votes SET vote = 7" + where)
    for command in EVERY:
        assert one_line(*cli(*command)) == (
            "v.db: btdagg_votes, ask 1, item 'q3', order 'BA', sample 1: vote is 7, expected -1, "
            "0 or "
            "1, or nothing"
        )
    assert not Path("x.parquet").exists()
    line = "v.db: item 'q3', order BA, sample 1: vote is 7, expected -1, 0 or 1, or nothing"
    assert one_line(*cli("judge", "pairs.jsonl", *MODEL, "-s", "v.db", "--dry-run")) == line


@pytest.mark.parametrize(
    ("table", "column", "value", "wanted"),
    [
        ("votes", "vote", "x", "vote is 'x', expected an integer"),
        ("votes", "vote", 0.5, "vote is 0.5, expected an integer"),
        ("votes", "vote", None, "vote is nothing, expected one where the status is ok"),
        ("votes", "status", "failed", "want one where the status is ok, and none elsewhere"),
        ("votes", "status", "good", "status is 'good', expected one of ok, unparsed, refused"),
        ("votes", "order", "CD", "order is 'CD', expected AB or BA"),
        ("votes", "sample", -1, "sample is -1, expected at least 0"),
        ("votes", "confidence", "high", "confidence is 'high', expected a finite number"),
        ("votes", "cost", float("inf"), "cost is inf, expected a finite number"),
        ("votes", "reason", b"\xff", r"reason is b'\xff', expected text"),
        ("votes", "prompt_tokens", "many", "prompt_tokens is 'many', expected an integer"),
        ("asks", "temperature", "warm", "temperature is 'warm', expected a finite number"),
        ("asks", "judge", b"\x00", r"judge is b'\x00', expected text"),
    ],
)
def test_a_value_that_no_run_has_written_is_refused_by_its_row(
    cli, store, table, column, value, wanted
):
    where = """ WHERE item = 'q3' AND "order" = 'BA' AND sample = 1""" if table == "votes" else ""
    edit(store, f'UPDATE btdagg_{table} SET "{column}" = ?{where} ', value)
    for command in EVERY:
        message = one_line(*cli(*command))
        assert message.startswith(f"v.db: btdagg_{table}, ")
        assert wanted in message
        if column not in ("order", "sample") and table == "votes":
            assert "item 'q3', order 'BA', sample 1: " in message


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        (
            "UPDATE btdagg_decisions SET decision = 7 WHERE item = 'q2'",
            "decision is 7, expected -1, 0",
        ),
        (
            "UPDATE btdagg_items SET task = x'ff' WHERE item = 'q2'",
            r"task is b'\xff', expected text",
        ),
        ("UPDATE btdagg_exchanges SET answer = x'ff' WHERE item = 'q2'", "answer is b"),
    ],
)
def test_what_is_exported_with_votes_is_looked_at_too(cli, store, statement, wanted):
    edit(store, statement)
    message = one_line(*cli("votes", "v.db", "-o", "x.csv", "--exchanges"))
    assert "item 'q2'" in message
    assert wanted in message


def test_a_database_server_is_looked_at_too(postgres):
    place = postgres.database("edited")
    votes = 'btdagg_votes (ask, item, "order", sample, attempts, status, vote, reason)'
    with VoteStore(place) as store, store._engine.begin() as connection:
        for statement in (
            "INSERT INTO btdagg_asks VALUES (1, 'm', 'p', 't', 'd', 'sample', 0.5, NULL, '{}')",
            f"INSERT INTO {votes} VALUES (1, 'q', 'AB', 0, 1, 'ok', 7, '')",
        ):
            connection.execute(sa.text(statement))
    with VoteStore(place, create=False) as store:
        for look in (summaries, votes_frame):
            with pytest.raises(
                StoreError, match="item 'q', order 'AB', sample 0: vote is 7, expected"
            ):
                look(store)


# Damaged


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_store_is_a_line(cli, store, seed):
    """Whatever bytes are changed, a command works or says what is wrong; it has no bug."""
    rng = random.Random(seed)
    whole = store.read_bytes()
    refused = 0
    for _ in range(12):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 20, 400])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        store.write_bytes(damaged)
        for command in (*EVERY[1:], READING[2]):
            found = cli(*command)
            if found[0]:
                one_line(*found)
                refused += 1
    assert refused > 5
