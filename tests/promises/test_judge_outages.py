"""Endpoints that go away and come back lose no vote; what never was right is said at once."""

import json
import re
import time

import pytest

from commands import Fork
from judge_endpoints import Endpoint, completion, error
from judging import asked_of, config, pairs_of, rows_of, statuses_of


@pytest.fixture
def folder(folder):
    """A folder to work in, with 10 pairs."""
    pairs_of(10).frame.write_ndjson("pairs.jsonl")
    return folder


class Failing:
    """Answers with a fault for some seconds, after so many answers."""

    def __init__(self, status, after, seconds):
        self.status, self.after, self.seconds = status, after, seconds
        self.began = None

    def __call__(self, asked):
        self.after -= 1
        if self.after < 0:
            self.began = self.began or time.monotonic()
            if time.monotonic() - self.began < self.seconds:
                return self.status, error("away")
        time.sleep(0.05)
        return 200, completion()


def test_an_outage_in_mid_run_is_waited_for(cli, folder, endpoint):
    server = endpoint(Failing(503, 10, 1))
    keys = config(max_attempts=3, concurrency=4)
    found, out, err = cli(*asked_of(server.url, "-s", "v.db", "-n", "4", *keys, "--json"))
    run = json.loads(out)
    assert (found, run["statuses"], run["is_complete"]) == (0, {"ok": 40}, True), err
    assert run["n_calls"] < 40 + 4 * 3 + 10  # one at a time looks whether it is back


@pytest.mark.soak
def test_while_nobody_listens_it_waits(folder, endpoint):
    server = endpoint(Failing(500, 0, 0))
    keys = config(max_attempts=2, max_wait=60, concurrency=4)
    process = Fork(folder, *asked_of(server.url, "-s", "v.db", "-n", "16", *keys))
    while len(server.requests) < 30:
        time.sleep(0.02)
    server.stop()
    time.sleep(5)
    again = Endpoint(lambda _: (200, completion()), port=server.port)
    _, err = process.communicate(timeout=60)
    again.stop()
    assert process.returncode == 0, err
    assert re.search(r"^\d+/160 votes, waiting: endpoint to come back", err, re.MULTILINE)
    assert statuses_of(folder / "v.db") == {"ok": 160}


def test_it_waits_as_long_as_is_said_and_goes_on_later(cli, folder, endpoint):
    server = endpoint(Failing(500, 6, 1000))
    began = time.monotonic()
    found, _, err = cli(
        *asked_of(server.url, "-s", "v.db", "-n", "4", *config(max_wait=1, concurrency=2))
    )
    assert time.monotonic() - began < 30
    assert found == 2
    assert "HTTP 500: away" in err
    assert "max_wait (1 s)" in err
    assert set(statuses_of(folder / "v.db")) == {"ok"}
    server = endpoint(lambda _: (200, completion()))
    assert cli(*asked_of(server.url, "-s", "v.db", "-n", "4"))[0] == 0
    assert statuses_of(folder / "v.db") == {"ok": 40}


def test_a_fault_of_some_requests_is_no_outage(cli, folder, endpoint):
    def answer(asked):
        if "What is 5 + 5?" in asked["messages"][-1]["content"]:
            return 500, error("crashed")
        return 200, completion()

    server = endpoint(answer)
    keys = {"n": 2, "concurrency": 8, "max_attempts": 4}
    found, out, err = cli(*asked_of(server.url, "-s", "v.db", *config(**keys)))
    assert "18 ok, 2 failed" in out
    # A vote that failed is no vote: the job is not done, now and when it is run again.
    assert (found, "2 votes failed" in err) == (3, True)
    assert cli(*asked_of(server.url, "-s", "v.db", *config(**keys)))[0] == 3
    assert cli(*asked_of(server.url, "-s", "v.db", *config(**keys, allow_missing=0.2)))[0] == 0
    assert {row["item"] for row in rows_of(folder / "v.db") if row["status"] == "failed"} == {"q5"}


@pytest.mark.parametrize("kind", ["500", "page", "nobody"])
def test_what_never_was_right_is_said_after_a_few_requests(cli, folder, endpoint, kind):
    def answer(asked):
        return (500, error("no model m")) if kind == "500" else (200, b"<html></html>")

    server = endpoint(answer)
    if kind == "nobody":
        server.stop()
    began = time.monotonic()
    found, _, err = cli(*asked_of(server.url, "-s", "v.db"))
    seconds = time.monotonic() - began
    assert found == 2
    assert len(server.requests) <= 4
    assert seconds < 20  # three on a machine with nothing else to do
    assert err.count("\n") == 1
    assert "all 4 requests failed" in err
    assert rows_of(folder / "v.db") == []
