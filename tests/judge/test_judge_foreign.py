"""The main path against a server that nobody here wrote: llmock, and its limits.

It takes as long as the limits say. `make integrations` installs llmock and runs this.
"""

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from commands import Fork
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


def test_two_requests_a_second_lose_no_vote(run, llmock):
    status, found, err = run(llmock("--rpm", "120"), 40, "-n", "4")
    assert status == 0, err
    assert statuses_of("v.db") == {"ok": 160}
    assert found["is_complete"]
    # 120 at once and two a second from then on; some are used up while the server starts.
    assert found["seconds"] < 60  # 20 if every allowed request were used
    assert found["n_limited"] <= 0.5 * 160  # until the pace is known


def test_pairs_beyond_the_context_window(run, llmock):
    url = llmock("--context-window", "2000")
    status, found, err = run(url, 20, "-n", "2", long=(0, 10, 19), allow_missing=0.2)
    assert status == 0, err
    assert found["n_pair_faults"] == 6
    assert statuses_of("v.db") == {"ok": 34, "failed": 6}


def got(url):
    with urllib.request.urlopen(url, timeout=30) as reply:
        return reply.read()


def bought(url):
    """How often each request was asked by a batch, as the server's own files say."""
    found = Counter()
    after = ""
    while True:
        page = json.loads(got(f"{url}/batches?limit=5{after}"))
        for batch in page["data"]:
            content = got(f"{url}/files/{batch['input_file_id']}/content")
            found.update(json.loads(line)["custom_id"] for line in content.splitlines())
        if not page["has_more"]:
            return found
        after = f"&after={page['last_id']}"


def test_batches_killed_between_their_steps_and_within(cli, tmp_path, monkeypatch, llmock):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    pairs_of(20).frame.write_ndjson("pairs.jsonl")
    url = llmock()
    asking = ["pairs.jsonl", "--model", "gpt-4o", "-n", "4", "--set", f"judge.base_url={url}"]

    def killed_after(tenths, *command):
        process = Fork(tmp_path, *command)
        time.sleep(tenths / 10)
        process.kill()
        process.communicate()
        return process.returncode

    # Step by step, each a process of its own that is killed as it goes, and done again.
    where = asking[-2:]
    for step in (["write", *asking], ["send", *where], ["collect", "--wait", *where]):
        ends = [killed_after(tenths, "batch", *step) for tenths in (1, 3, 6, 9, 12)]
        assert ends[0] == -signal.SIGKILL
        process = Fork(tmp_path, "batch", *step)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert statuses_of("votes.db").total() == 80
    asked = bought(url)
    assert (len(asked), set(asked.values())) == (80, {1})
    # All of it in one command, for more votes.
    command = [
        "judge",
        "pairs.jsonl",
        "--model",
        "gpt-4o",
        "-n",
        "8",
        "--set",
        f"judge.base_url={url}",
        "--batch",
    ]
    command += config(allow_missing=1)
    ends = [killed_after(tenths, *command) for tenths in range(1, 40, 3)]
    assert ends[0] == -signal.SIGKILL
    process = Fork(tmp_path, *command)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert statuses_of("votes.db").total() == 160
    asked = bought(url)
    assert (len(asked), set(asked.values())) == (160, {1})
