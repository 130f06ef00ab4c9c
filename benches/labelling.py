"""`btdagg label` with 10,000 pairs of 5 KB: how soon the page is usable, and the next pair there.

The server is a process of its own. Labels are made over HTTP at the start, and again once the rater
has labelled almost all pairs, when progress takes longest to count. Each answer waits for the disk.
With playwright and a Chromium (on the path, or in BTDAGG_CHROMIUM) the page is timed as well: from
the address to the first pair, and from a key to the next pair. Prints JSON. `--smoke` has 60 pairs.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from btdagg.judge.pairs import read_pairs
from btdagg.labelling import Assignment, LabelStore
from btdagg.labelling.store import Answer

TOKEN = "a-token-of-the-bench"
TEXT = "the sum of *two* numbers is `x + y` and **not** more, as one sees here: so it was"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="60 pairs")
    given = parser.parse_args()
    n_pairs, n_labels = (60, 10) if given.smoke else (10_000, 100)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder), n_pairs, n_labels), indent=2))


def measured(folder: Path, n_pairs: int, n_labels: int) -> dict[str, Any]:
    path = folder / "pairs.jsonl"
    choose = random.Random(0)
    with path.open("w") as file:
        for number in range(n_pairs):
            a, b = (" ".join(choose.choices(TEXT.split(), k=560)) for _ in "ab")
            file.write(json.dumps({"item": number, "prompt": "Why?", "a": a, "b": b}) + "\n")
    found: dict[str, Any] = {
        "pairs": n_pairs,
        "bytes of a pair": round(path.stat().st_size / n_pairs),
    }
    place = folder / "human.db"
    for state in ("no label yet", "almost all labelled"):
        if state != "no label yet":
            fill(path, place, n_pairs - 3 * n_labels)
        start = time.perf_counter()
        process, port = served(folder)
        times = {"seconds to start": round(time.perf_counter() - start, 2)}
        try:
            times |= by_http(port, n_labels)
            times |= by_browser(port, n_labels)
        finally:
            process.kill()
            process.wait()
        found[state] = times
    return found


def served(folder: Path) -> tuple[subprocess.Popen[str], int]:
    program = "from btdagg.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "label", "pairs.jsonl", "-o", "human.csv", "--port", "0"],
        cwd=folder, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "BTDAGG_LABEL_TOKEN": TOKEN},
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline().split("/?")[0]
    return process, int(address.rpartition(":")[2])


def fill(path: Path, place: Path, n_labels: int) -> None:
    """Label the first items at once."""
    with LabelStore(place) as store:
        assignment = Assignment(read_pairs(path))
        sides, pair = assignment.sides, assignment.pair
        store.keep(*(
            Answer(item, "Ada", 1, 5.0, "", sides(item, "Ada"), pair(item).digest)
            for item in assignment.items[:n_labels]
        ))  # fmt: skip


def by_http(port: int, n_labels: int) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {
        "Cookie": f"btdagg_label_{port}={TOKEN}",
        "Origin": f"http://127.0.0.1:{port}",
        "Content-Type": "application/json",
    }

    def ask(method: str, path: str, body: Any = None) -> bytes:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return content

    start = time.perf_counter()
    ask("GET", "/")
    shown = json.loads(ask("GET", "/item?rater=Ada"))
    usable, times = time.perf_counter() - start, []
    for _ in range(n_labels):
        said = {"rater": "Ada", "key": shown["key"], "choices": ["tie"], "seconds": 5, "note": ""}
        start = time.perf_counter()
        shown = json.loads(ask("POST", "/label", said))
        times.append(time.perf_counter() - start)
    return {"page and first pair, ms": ms(usable), "next pair, ms": quantiles(times)}


def by_browser(port: int, n_labels: int) -> dict[str, Any]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = os.environ.get("BTDAGG_CHROMIUM") or next(filter(None, map(shutil.which, names)), "")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    if not program:
        return {}
    shown = "() => document.getElementById('place').textContent"
    # Timed in the page: from a key to the first picture of the next pair.
    press = """key => new Promise(done => {
      const place = document.getElementById('place'), start = performance.now();
      const seen = new MutationObserver(() => { seen.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
      });
      seen.observe(place, { childList: true });
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    })"""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--disable-gpu"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
        page.wait_for_selector("#start:not([hidden])")
        page.evaluate("sessionStorage.setItem('rater', 'Ada')")
        usable = [timed(lambda: until_shown(page, shown)) for _ in range(5)]
        times = []
        for _ in range(n_labels):
            times.append(page.evaluate(press, "t") / 1000)
            page.wait_for_timeout(20)
        browser.close()
    return {
        "in Chromium, reload to usable, ms": quantiles(usable),
        "in Chromium, key to next pair, ms": quantiles(times),
    }


def until_shown(page: Any, shown: str) -> None:
    page.reload()
    while not page.evaluate(shown):
        pass


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def quantiles(times: list[float]) -> dict[str, float]:
    return {"median": ms(np.median(times)), "95%": ms(np.quantile(times, 0.95)),
            "99%": ms(np.quantile(times, 0.99)), "most": ms(max(times))}  # fmt: skip


def ms(seconds: Any) -> float:
    return round(1000 * float(seconds), 1)


if __name__ == "__main__":
    main()
