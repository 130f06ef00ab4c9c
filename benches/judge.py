"""How fast votes are gathered, and in how much memory.

The engine, with its store on disk, against a bare loop of the same client library that keeps
nothing, in one run against the same server: a simulated judge of this machine that takes 20 ms to
answer. They take turns, and so does our client alone: its pools of connections are quicker than the
library's one, so the bare loop does not tell what the store costs. Then the engine's memory over
many votes, and how soon `btdagg judge` asks about the first of many long pairs.

    python benches/judge.py            # 5 rounds of 3,000 calls, 100,000 votes, 50,000 long pairs
    python benches/judge.py --smoke    # a few seconds, no verdict
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import openai
import sqlalchemy

from btdagg.judge import VoteStore
from btdagg.judge.client import (
    ChatReply,
    ChatRequest,
    Messages,
    Order,
    Verdict,
    samples_of,
)
from btdagg.judge.judging import JudgeJob, Judging, Work
from btdagg.judge.pairs import Pair
from btdagg.judge.provider import ModelClient
from btdagg.judge.runs import JudgeRun, Limits
from btdagg.judge.sampling import sample

SERVER = Path(__file__).parents[1] / "examples" / "judge_server"
LATENCY_MS = 20
CONCURRENCY = 256
N = 12
VOTES = {"A": 1, "B": -1, "C": 0}


def messages_of(number: int, order: Order) -> Messages:
    responses = [
        f"An answer of some length to question {number}, of which there are many. " * 4
    ] * 2
    first, second = responses if order == "AB" else responses[::-1]
    return (
        {"role": "system", "content": "Compare the two responses. End with [[A]], [[B]] or [[C]]."},
        {
            "role": "user",
            "content": f"<response_a>{first}</response_a>\n<response_b>{second}.</response_b>",
        },
    )


def plan(name: str, n_items: int) -> Iterator[Work]:
    for number in range(n_items):
        yield Work(
            Pair(f"{name}-{number}"),
            samples_of(N),
            lambda order, number=number: messages_of(number, order),  # type: ignore[misc]
            read=read,
        )


def read(reply: ChatReply, order: Order) -> Verdict:
    for word, vote in VOTES.items():
        if reply.text.endswith(f"[[{word}]]"):
            return Verdict("ok", vote if order == "AB" else -vote)
    return Verdict("unparsed")


class Rate(NamedTuple):
    """Calls per second, and microseconds of this process's processor per call."""

    per_second: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.per_second:.0f} ({self.cpu:.0f})"


class Clock:
    """Time from when it is made."""

    def __init__(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def rate(self, n_calls: int) -> Rate:
        """Rate of so many calls since then."""
        seconds, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        return Rate(n_calls / seconds, 1e6 * cpu / n_calls)


async def bare(url: str, n_calls: int) -> Rate:
    """Rate of the client library alone."""
    client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    numbers = iter(range(n_calls))

    async def work() -> None:
        for number in numbers:
            completion = await client.chat.completions.create(
                model="m", messages=messages_of(number, "AB"), temperature=0.5
            )
            assert completion.choices[0].message.content

    clock = Clock()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    rate = clock.rate(n_calls)
    await client.close()
    return rate


async def alone(url: str, n_calls: int) -> Rate:
    """Rate of our client without engine and store."""
    client = ModelClient("openai", url)
    numbers = iter(range(n_calls))

    async def work() -> None:
        for number in numbers:
            reply = await client.complete(ChatRequest(messages_of(number, "AB"), "m", 0.5))
            assert reply.text

    clock = Clock()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    rate = clock.rate(n_calls)
    await client.close()
    return rate


async def ours(url: str, place: str, name: str, n_calls: int) -> Rate:
    """Rate of the engine: answers read, votes and exchanges on disk."""
    client = ModelClient("openai", url)
    clock = Clock()
    with VoteStore(place) as store:
        run = await sample(
            plan(name, n_calls // N),
            Judging("m", judge="bench", limits=Limits(CONCURRENCY)),
            JudgeJob(store, client),
        )
    await client.close()
    rate = clock.rate(run.n_wanted)
    assert run.statuses == {"ok": run.n_wanted}, run
    return rate


async def memory(place: str, n_votes: int) -> None:
    """Resident memory of this process while votes come in; the answers cost no time."""

    async def complete(request: ChatRequest) -> ChatReply:
        await asyncio.sleep(0.001)
        return ChatReply("Both are good. " * 20 + "[[A]]", "Hm. " * 100)

    from btdagg.judge.client import FunctionClient

    seen: list[tuple[int, float]] = []
    step = n_votes // 10

    def watch(run: JudgeRun) -> None:
        if run.n_votes >= step * (len(seen) + 1):
            seen.append((run.n_votes, resident_mb()))

    began = time.perf_counter()
    with VoteStore(place) as store:
        await sample(
            plan("memory", n_votes // N),
            Judging("m", judge="memory", limits=Limits(CONCURRENCY)),
            JudgeJob(store, FunctionClient(complete), watch=watch),
        )
    print(f"{n_votes} votes without HTTP: {n_votes / (time.perf_counter() - began):,.0f} a second")
    print("resident MB at", ", ".join(f"{n:,}: {mb:.0f}" for n, mb in seen))


class FirstRequest:
    """An endpoint of this process that notes when it was first asked."""

    def __init__(self) -> None:
        self.at = 0.0
        self._content = json.dumps(
            {"choices": [{"message": {"content": "[[A]]"}, "finish_reason": "stop"}]}
        ).encode()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.at = outer.at or time.perf_counter()
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", str(len(outer._content)))
                self.end_headers()
                self.wfile.write(outer._content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def long_pairs(folder: str, n_pairs: int) -> None:
    """Time to the first request, and peak memory, of a command on pairs of 3 KB; then a dry run."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(1000)]

    def text(n_words: int) -> str:
        return 'Answer: "é"\n' + " ".join(draw.choices(words, k=n_words))

    with open(f"{folder}/pairs.jsonl", "w") as file:
        for number in range(n_pairs):
            pair = {"item": number, "prompt": text(28), "a": text(200), "b": text(200)}
            file.write(json.dumps(pair) + "\n")
    endpoint = FirstRequest()
    command = [sys.executable, "-m", "btdagg", "judge", f"{folder}/pairs.jsonl", "--model", "m"]
    command += [
        "--set",
        f"judge.base_url={endpoint.url}",
        "-n",
        "2",
        "--store",
        f"{folder}/long.db",
    ]
    config = f"{folder}/judge.toml"
    Path(config).write_text("max_calls = 20\n")
    for name, options in (("run", ["--config", config]), ("dry run", ["--dry-run"])):
        began = time.perf_counter()
        process = subprocess.Popen(
            [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, _, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        first = f"first request after {endpoint.at - began:.1f} s, " if name == "run" else ""
        print(f"{n_pairs:,} pairs, {name}: {first}{seconds:.1f} s, {usage.ru_maxrss / 1024:.0f} MB")
    endpoint.server.shutdown()


def resident_mb() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="small, to see that it runs")
    smoke = parser.parse_args().smoke
    rounds, n_calls, n_votes, n_pairs = (
        (1, 240, 2_400, 500) if smoke else (5, 3_000, 100_000, 50_000)
    )
    print(
        f"Python {platform.python_version()}, openai {openai.__version__}, "
        f"SQLAlchemy {sqlalchemy.__version__}; {LATENCY_MS} ms, concurrency {CONCURRENCY}"
    )
    command = [sys.executable, str(SERVER), "--port", "0", "--latency-ms", str(LATENCY_MS)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    try:
        with tempfile.TemporaryDirectory() as folder:
            ratios, of_client = [], []
            for number in range(rounds):
                loop = asyncio.run(bare(url, n_calls))
                client = asyncio.run(alone(url, n_calls))
                engine = asyncio.run(ours(url, f"{folder}/votes.db", str(number), n_calls))
                ratios.append(engine.per_second / loop.per_second)
                of_client.append(engine.per_second / client.per_second)
                print(
                    f"calls/s (us of processor): bare loop {loop}, our client {client}, "
                    f"with the store {engine}; {ratios[-1]:.2f} of the loop, "
                    f"{of_client[-1]:.2f} of our client",
                    flush=True,
                )
            print(
                f"median {statistics.median(ratios):.2f} of the bare loop, "
                f"{statistics.median(of_client):.2f} of our client alone"
            )
            asyncio.run(memory(f"{folder}/memory.db", n_votes))
            long_pairs(folder, n_pairs)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
