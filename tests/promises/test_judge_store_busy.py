"""A store that another process writes to holds up neither calls nor time-outs nor readers."""

import asyncio
import sqlite3
import time
from contextlib import closing, contextmanager

import pytest

from btdagg.judge import judge
from judge_endpoints import completion
from judging import asked_of, pairs_of


@contextmanager
def written_by_another(place):
    options = {"isolation_level": None, "timeout": 10, "check_same_thread": False}
    with closing(sqlite3.connect(place, **options)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@pytest.fixture
def server(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def answer(asked):
        time.sleep(0.1)
        return 200, completion()

    return endpoint(answer)


def test_the_event_loop_goes_on(tmp_path, server):
    place, gaps = tmp_path / "v.db", []

    async def beat():
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    async def lock():
        while len(server.requests) < 10:
            await asyncio.sleep(0.01)
        another = written_by_another(place)
        await asyncio.to_thread(another.__enter__)  # the loop may hold the database till then
        gaps.clear()
        await asyncio.sleep(2)
        another.__exit__(None, None, None)

    async def main():
        beating, locking = asyncio.create_task(beat()), asyncio.create_task(lock())
        run = await judge(pairs_of(20), store=place, base_url=server.url, model="m", n=4)
        await locking
        beating.cancel()
        return run

    assert asyncio.run(main()).statuses == {"ok": 80}
    assert max(gaps) < 1.5  # a hundredth on a machine with nothing else to do


def test_who_only_looks_does_not_wait(tmp_path, server, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs_of(3).frame.write_ndjson("pairs.jsonl")
    asking = asked_of(server.url, "-n", "2")
    assert cli(*asking)[0] == 0
    with written_by_another("votes.db"):
        began = time.monotonic()
        assert cli(*asking, "--dry-run")[0] == 0
        assert cli("votes", "votes.db")[0] == 0
        assert time.monotonic() - began < 20
