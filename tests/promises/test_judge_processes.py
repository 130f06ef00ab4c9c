"""Several processes on one store: what each claims, and what is left by those that die."""

import json
import time
from bisect import bisect_right
from collections import Counter

import pytest

from commands import Fork
from judging import config, statuses_of


def most_within(moments, seconds):
    moments = sorted(moments)
    return max(bisect_right(moments, first + seconds) - i for i, first in enumerate(moments))


@pytest.mark.soak
def test_eight_workers_of_which_two_are_killed(tmp_path, judge_server, postgres, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests-0123456789")
    n_items, per_second, concurrency = 225, 80, 16
    server = judge_server("--latency-ms", "200")
    place = postgres.database("eight_processes")
    pairs = tmp_path / "pairs.jsonl"
    rows = [{"item": f"q{i}", "prompt": "?", "a": f"{i}.", "b": f"{i}!"} for i in range(n_items)]
    pairs.write_text("\n".join(map(json.dumps, rows)))
    options = ["-m", "sim", "--set", f"judge.base_url={server.url}", "-n", "4", "--store", place]
    options += config(requests_per_minute=60 * per_second // 8, concurrency=concurrency)
    workers = [Fork(tmp_path, "judge", pairs, *options) for _ in range(8)]
    try:
        for worker in workers[:2]:
            n_before = len(server.log())
            while len(server.log()) < n_before + 150:
                assert any(each.poll() is None for each in workers)
                time.sleep(0.05)
            worker.kill()
        ended = [worker.communicate() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [-9, -9] + [0] * 6, ended
    assert statuses_of(place) == {"ok": 4 * n_items}
    log = server.log()
    # Asked twice is what the two had in flight.
    assert len(log) - 4 * n_items <= 2 * concurrency
    asked = Counter(line["prompt"] for line in log)
    assert len(asked) == 2 * n_items
    assert most_within([line["time"] for line in log], 10) <= 1.05 * 10 * per_second
