"""The main path against a server that nobody here wrote: llmock, and its limits.

It takes as long as the limits say. `make integrations` installs llmock and runs this.
"""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from judging import config, pairs_of, statuses_of

LLMOCK = shutil.which("llmock", path=str(Path(sys.executable).parent)) or shutil.which("llmock")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(LLMOCK is None, reason="llmock is not installed"),
]


@pytest.fixture
def llmock():
    """Start llmock with some options; its address. It is stopped after the test."""
    started = []

    def start(*options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [LLMOCK, "serve", "--port", str(port), "--log-level", "error", *options]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, **quiet))
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5).close()
            except OSError:
                time.sleep(0.1)
            else:
                break
        return f"http://127.0.0.1:{port}/v1"

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture
def run(cli, tmp_path, monkeypatch):
    """Run `btdagg judge` on so many pairs in a folder of its own; status, report and messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def judge(url, n_pairs, *options, long=(), alone=False, **keys):
        pairs = pairs_of(n_pairs).frame.to_dicts()
        if alone:
            pairs = [{"item": p["item"], "prompt": p["prompt"], "response": p["a"]} for p in pairs]
        for number in long:
            pairs[number]["a"] *= 2000
        Path("pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
        command = ["judge", "pairs.jsonl", "--model", "gpt-4o", "--json"]
        status, out, err = cli(
            *command,
            "--set",
            f"judge.base_url={url}",
            "-s",
            "v.db",
            *options,
            *config(structured=True, **keys),
        )
        return status, json.loads(out) if out else {}, err

    return judge


def test_a_run_and_a_longer_one(run, cli, llmock):
    status, found, err = run(llmock(), 20, "-n", "2")
    assert (status, found["is_complete"]) == (0, True), err
    assert statuses_of("v.db") == {"ok": 40}
    status, found, err = run(llmock(), 20, "-n", "4")  # goes on
    assert (status, found["n_calls"]) == (0, 40), err
    assert statuses_of("v.db") == {"ok": 80}
    status, _, err = cli("votes", "v.db", "--json")
    assert status == 0, err


@pytest.mark.parametrize("template", ["pass-fail", "grade-5"])
def test_grades_go_on(run, llmock, template):
    for n, n_calls in (("3", 30), ("5", 20)):
        status, found, err = run(llmock(), 10, "-n", n, alone=True, template=template)
        assert (status, found["n_calls"], found["is_complete"]) == (0, n_calls, True), err


def test_a_limit_on_tokens_loses_no_vote(run, llmock):
    url = llmock("--tpm", "12000")
    status, found, err = run(url, 15, "-n", "4", max_answer_tokens=100)
    assert status == 0, err
    assert statuses_of("v.db") == {"ok": 60}
    assert found["n_limited"] > 0


def test_refusals_at_random_lose_no_vote(run, llmock):
    status, found, err = run(llmock("--error-rate", "429=0.2"), 12, "-n", "4")
    assert status == 0, err
    assert statuses_of("v.db") == {"ok": 48}
    assert found["n_limited"] > 0


def test_pairs_beyond_the_context_window(run, llmock):
    url = llmock("--context-window", "2000")
    status, found, err = run(url, 20, "-n", "2", long=(0, 10, 19), allow_missing=0.2)
    assert status == 0, err
    assert found["n_pair_faults"] == 6
    assert statuses_of("v.db") == {"ok": 34, "failed": 6}
