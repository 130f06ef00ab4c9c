"""Stores as files: that may not be written, that were edited or damaged, or are somebody else's."""

import json
import os
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from btdagg import InputError
from btdagg.judge import VoteStore
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
    served = [*MODEL, "--set", f"judge.base_url={judge_server().url}", "-s", "v.db"]
    first = cli("judge", "pairs.jsonl", *served)
    assert first[0] == 0, first
    assert cli("judge", "pairs.jsonl", *served, "--method", "gsa")[0] == 0
    assert sorted(file.name for file in folder.glob("v.db*")) == ["v.db"]
    return folder / "v.db"


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


@pytest.mark.parametrize("folders", [0o555, 0o777])
def test_a_store_that_may_not_be_written_is_read(cli, store, folders):
    wanted = [cli(*command)[1] for command in READING]
    for file in store.parent.iterdir():
        file.chmod(0o444)
    store.parent.chmod(folders)
    before = {file: file.read_bytes() for file in store.parent.iterdir()}
    with as_nobody():
        assert not (os.access(store, os.W_OK) and os.access(store.parent, os.W_OK))
        results = [cli(*command) for command in READING]
    assert [(status, out) for status, out, _ in results] == [(0, out) for out in wanted]
    assert json.loads(wanted[2])["n_stored"] == 24
    assert {file: file.read_bytes() for file in store.parent.iterdir()} == before


def test_a_store_that_may_not_be_written_is_refused_for_asking(cli, store):
    store.chmod(0o444)
    store.parent.chmod(0o555)
    with as_nobody():
        message = one_line(*cli("judge", "pairs.jsonl", *MODEL, "-s", "v.db"))
    assert message == "v.db: attempt to write a readonly database"


# Somebody else's


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize(
    "command", [["votes", "mine.db"], ["judge", "pairs.jsonl", *MODEL, "-s", "mine.db"]]
)
def test_a_database_of_something_else_is_not_changed(cli, folder, mode, command):
    pairs_of(6).frame.write_ndjson("pairs.jsonl")
    with closing(sqlite3.connect("mine.db")) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE mine (x)")
        connection.execute("INSERT INTO mine VALUES (1)")
        connection.commit()
    before = Path("mine.db").read_bytes()
    line = one_line(*cli(*command))
    assert re.search("no vote store there|an SQLite database of something else", line)
    assert Path("mine.db").read_bytes() == before
    assert [file.name for file in folder.glob("mine.db*")] == ["mine.db"]


def test_an_empty_file_becomes_a_store(folder):
    Path("v.db").touch()
    VoteStore("v.db").close()
    VoteStore("v.db", create=False).close()


# Edited


def test_a_damaged_store_is_a_line(cli, store):
    whole = store.read_bytes()
    for damaged in (whole[:5000], b"\0" * 100 + whole[100:], whole[:4096] + b"\xff" * 9000):
        store.write_bytes(damaged)
        assert one_line(*cli("votes", "v.db")).startswith("v.db: ")


@pytest.mark.parametrize("place", [":memory:", "sqlite://"])
def test_a_store_in_memory_is_refused_before_votes_are_lost(place):
    with pytest.raises(InputError, match="is no file, expected one that keeps the votes"):
        VoteStore(place)
