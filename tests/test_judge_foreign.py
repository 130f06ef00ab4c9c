"""The main path against a server that nobody here wrote: llmock, with a limit of requests a minute.

It takes as long as the limit says, so it runs where llmock is installed: `pip install llmock`.
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

from judging import pairs_of, statuses_of

LLMOCK = shutil.which("llmock", path=str(Path(sys.executable).parent)) or shutil.which("llmock")

pytestmark = pytest.mark.skipif(LLMOCK is None, reason="llmock is not installed")


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


def test_sixty_requests_a_minute_lose_no_vote(cli, tmp_path, monkeypatch, llmock):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    pairs_of(40).frame.write_ndjson("pairs.jsonl")
    options = ["judge", "pairs.jsonl", "--model", "gpt-4o", "-n", "4", "--structured", "--json"]
    status, out, err = cli(*options, "--base-url", llmock("--rpm", "60"), "-s", "v.db")
    assert status == 0, err
    found = json.loads(out)
    assert statuses_of("v.db") == {"ok": 160}
    assert found["is_complete"]
    # Sixty at once and one a second from then on; some are used up while the server starts.
    assert found["seconds"] < 140  # 100 if every allowed request were used
    assert found["n_limited"] <= 0.05 * 160


def test_pairs_beyond_the_context_window(cli, tmp_path, monkeypatch, llmock):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    pairs = pairs_of(20).frame.to_dicts()
    for number in (0, 10, 19):
        pairs[number]["a"] *= 2000
    Path("pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    options = ["judge", "pairs.jsonl", "--model", "gpt-4o", "-n", "2", "--structured", "--json"]
    url = llmock("--context-window", "2000")
    status, out, err = cli(*options, "--base-url", url, "-s", "v.db", "--allow-missing", "0.2")
    assert status == 0, err
    assert json.loads(out)["n_pair_faults"] == 6
    assert statuses_of("v.db") == {"ok": 34, "failed": 6}
