"""`btdagg serve` under load: mixed bodies, restarts and a kill; and bodies of ten million rows.

First one client asks for a label over a connection that it keeps open, 1,000 times each: of
a model of votes alone, and of one with covariates, by their numbers or by systems and characters.
The load comes from a process of its own. Every answer is checked against the model, whose digest it
bears. Four fifths of the time the server is restarted by SIGTERM: a request of which it has read
something has to be answered. In the last fifth it is killed: there an answer may be lost, but none
be wrong. Prints JSON. `--smoke` takes 10 seconds, `--minutes` says how many otherwise. `--rows`
sends one Arrow body of so many rows instead, and measures its seconds and the server's memory.
`--workers` measures requests per second of so many workers: bodies of one item, over connections
that two processes keep open.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from btdagg import Covariate, DavidsonModel
from btdagg._util.files import digest_of
from btdagg.serve.bodies import ARROW, write_stream

TOKEN = "a-token"
MAX_BODY = 1 << 20
MODEL = DavidsonModel(1.2, 2.0, 0.8)
DIGEST = digest_of(MODEL)
STANDINGS = {f"system {number}": number / 10 for number in range(10)}
KNOWING = DavidsonModel(
    *(1.2, 2.0, 0.8),
    covariates=(
        Covariate("standing", 0.6, 0.5, standings=STANDINGS),
        Covariate("length", 0.3, 1.0),
        Covariate("price", -0.2, 2.0),
    ),
)
COUNTS = {"counts": [[1, 0, 11]]}
# Bodies of one item, and the model that decides it.
ONE = {
    "votes alone": (MODEL, COUNTS),
    "covariates": (KNOWING, {**COUNTS, "standing": [0.3], "length": [0.7], "price": [1.5]}),
    "systems and characters": (
        KNOWING,
        {
            **COUNTS,
            **{"system_a": ["system 1"], "system_b": ["system 7"], "price": [1.5]},
            **{"chars_a": [250], "chars_b": [400]},
        },
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="10 seconds")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rows", type=int, help="of one Arrow body, such as 10_000_000")
    parser.add_argument("--workers", type=int, nargs="+", help="numbers of workers, such as 1 2")
    parser.add_argument("--clients", type=int, default=6, help="connections of the load")
    given = parser.parse_args()
    seconds = 10.0 if given.smoke else 60 * given.minutes
    with tempfile.TemporaryDirectory() as folder:
        if given.rows:
            found = one_body(Path(folder), given.rows)
        elif given.workers:
            found = {n: per_second(Path(folder), n, given.clients, seconds) for n in given.workers}
        else:
            found = measured(Path(folder), seconds, given.clients)
        print(json.dumps(found, indent=2))


def one_body(folder: Path, n_rows: int) -> dict[str, Any]:
    """Time and memory of one Arrow body of so many rows: counts of a byte, and integer ids."""
    port = free_port()
    server = Server(port, folder, max_body=1 << 32)
    counts = np.random.default_rng(0).integers(0, 9, size=(n_rows, 3)).astype(np.uint8)
    columns = dict(zip(("minus", "tie", "plus"), counts.T, strict=True))
    body = write_stream({"item": np.arange(n_rows), **columns}, "")
    before, times = server.peak(), []
    for _ in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": ARROW}
        start = time.perf_counter()
        connection.request("POST", "/v1/decide", body, headers)
        content = connection.getresponse().read()
        times.append(round(time.perf_counter() - start, 2))
        connection.close()
    labels = pl.read_ipc_stream(content)["label"].to_numpy()
    peak = server.peak()
    server.stop(signal.SIGTERM)
    return {
        "rows": n_rows,
        "body_mb": round(len(body) / 1e6, 1),
        "seconds": times,
        "memory_mb": round((peak - before) / 1e3),
        "wrong": int((labels != MODEL.decide(counts)).sum()),
    }


def measured(folder: Path, seconds: float, n_clients: int) -> dict[str, Any]:
    port = free_port()
    kept = {
        name: one_connection(free_port(), folder, model, item, 1000)
        for name, (model, item) in ONE.items()
    }
    server = Server(port, folder)
    graceful = Load(port, 0.8 * seconds, n_clients, seed=0)
    n_errors = 0
    for _ in range(n_restarts := 1 if seconds < 60 else 5):
        time.sleep(0.8 * seconds / (n_restarts + 1))
        n_errors += server.stop(signal.SIGTERM)
        server = Server(port, folder)
    first = graceful.result()
    n_errors += server.stop(signal.SIGTERM)

    server = Server(port, folder)
    killed = Load(port, 0.2 * seconds, n_clients, seed=1)
    time.sleep(0.1 * seconds)
    server.stop(signal.SIGKILL)
    at = time.monotonic()
    server = Server(port, folder)
    back = time.monotonic() - at
    second = killed.result()
    n_errors += server.stop(signal.SIGTERM)
    times = np.array(first["times"]) * 1e3
    return {
        "seconds": seconds,
        "one_connection_ms": {
            name: {f"p{p}": round(1e3 * float(np.quantile(own, p / 100)), 2) for p in (50, 99)}
            for name, own in kept.items()
        },
        "clients": n_clients,
        "answers": sum(first["statuses"].values()),
        "statuses": first["statuses"],
        "wrong": first["wrong"] + second["wrong"],
        "wrong_examples": (first["examples"] + second["examples"])[:5],
        "cut_answers": first["cut_answers"],
        "server_errors": first["statuses"].get("500", 0) + n_errors,
        "not_accepted": first["not_accepted"],
        "restarts": n_restarts,
        "throughput_per_second": round(len(times) / first["busy_seconds"], 1),
        "p50_ms": round(float(np.quantile(times, 0.5)), 2),
        "p99_ms": round(float(np.quantile(times, 0.99)), 2),
        "answers_after_the_kill": second["late"],
        "seconds_to_be_back": round(back, 2),
    }


class Server:
    """`btdagg serve` as a process."""

    def __init__(
        self,
        port: int,
        folder: Path,
        model: DavidsonModel = MODEL,
        max_body: int = MAX_BODY,
        workers: int = 1,
    ) -> None:
        self.log = (folder / f"log-{time.monotonic_ns()}").open("w+")
        file = folder / f"{digest_of(model)}.json"
        model.save(file)
        code = (
            "import os, sys; from btdagg import DavidsonModel; from btdagg.serve import run;"
            f"run(DavidsonModel.load(sys.argv[1]), port={port}, max_body={max_body},"
            f" workers={workers}, token=os.environ['BTDAGG_SERVE_TOKEN'])"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(file)],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "BTDAGG_SERVE_TOKEN": TOKEN},
        )
        while "listening on" not in Path(self.log.name).read_text():
            if self.process.poll() is not None:
                raise RuntimeError(Path(self.log.name).read_text())
            time.sleep(0.05)

    def peak(self) -> int:
        """Most memory that it has had, in kB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])

    def stop(self, how: signal.Signals) -> int:
        """Stop it; return how many tracebacks it has logged."""
        self.process.send_signal(how)
        self.process.wait(60)
        text = Path(self.log.name).read_text()
        self.log.close()
        return text.count("Traceback")


def one_connection(
    port: int, folder: Path, model: DavidsonModel, item: dict[str, Any], n_rounds: int
) -> list[float]:
    """Seconds from request to answer over a connection that is kept open."""
    server = Server(port, folder, model)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    body, times = json.dumps(item), []
    for _ in range(n_rounds):
        start = time.perf_counter()
        connection.request("POST", "/v1/decide", body, headers)
        response = connection.getresponse()
        content = response.read()
        times.append(time.perf_counter() - start)
        if response.status != 200:
            raise RuntimeError(content)
    connection.close()
    server.stop(signal.SIGTERM)
    return times


def per_second(folder: Path, n_workers: int, n_clients: int, seconds: float) -> dict[str, Any]:
    port = free_port()
    server = Server(port, folder, workers=n_workers)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        counts = pool.starmap(ask_often, [(port, -(-n_clients // 2), seconds)] * 2)
    server.stop(signal.SIGTERM)
    return {"clients": 2 * -(-n_clients // 2), "per_second": round(sum(counts) / seconds)}


def ask_often(port: int, n_clients: int, seconds: float) -> int:
    """Number of answers to clients that each wait for one answer before they ask again."""
    body = json.dumps(COUNTS)
    head = f"POST /v1/decide HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    request = (head + body).encode()

    async def client(end: float) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        n_answers = 0
        while time.monotonic() < end:
            writer.write(request)
            answer = await reader.readuntil(b"}")
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(answer)
            n_answers += 1
        writer.close()
        return n_answers

    async def clients() -> int:
        end = time.monotonic() + seconds
        return sum(await asyncio.gather(*(client(end) for _ in range(n_clients))))

    return asyncio.run(clients())


class Load:
    """The load as a process."""

    def __init__(self, port: int, seconds: float, n_clients: int, seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(
            target=load, args=(sender, port, seconds, n_clients, seed), daemon=True
        )
        self._process.start()

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = self._receiver.recv()
        self._process.join()
        return found


def load(sender: Any, port: int, seconds: float, n_clients: int, seed: int) -> None:
    end = time.monotonic() + seconds
    clients = [Client(port, end, seed * 1000 + number) for number in range(n_clients)]
    threads = [threading.Thread(target=each.run) for each in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = sum((client.statuses for client in clients), Counter())
    half = end - 0.2 * seconds
    sender.send(
        {
            "statuses": dict(statuses),
            "times": [each for client in clients for each in client.times],
            "wrong": sum(len(client.wrong) for client in clients),
            "examples": [text for client in clients for text in client.wrong][:5],
            "not_accepted": sum(client.not_accepted for client in clients),
            "cut_answers": sum(client.cut_answers for client in clients),
            "late": sum(client.last > half for client in clients),
            "busy_seconds": sum(client.busy for client in clients) / len(clients),
        }
    )


class Client:
    """Sends good and bad requests over one connection at a time and checks every answer."""

    def __init__(self, port: int, end: float, seed: int) -> None:
        self._port, self._end = port, end
        self._rng = np.random.default_rng(seed)
        self._connection: http.client.HTTPConnection | None = None
        self.statuses: Counter[str] = Counter()
        self.times: list[float] = []
        self.wrong: list[str] = []
        self.not_accepted, self.cut_answers, self.last, self.busy = 0, 0, 0.0, 0.0
        kinds = (self.counts, self.counts, self.counts, self.votes, self.arrow, self.bad)
        self._kinds = kinds

    def run(self) -> None:
        while time.monotonic() < self._end:
            make = self._kinds[self._rng.integers(len(self._kinds))]
            make()
        if self._connection is not None:
            self._connection.close()

    def ask(self, path: str, body: Any, *, token: str = TOKEN, kind: str = "application/json"):
        """Ask until there is an answer; a refused connection is not accepted."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        while True:
            start = time.monotonic()
            try:
                if self._connection is None:
                    self._connection = http.client.HTTPConnection(
                        "127.0.0.1", self._port, timeout=30
                    )
                sent = iter(body) if isinstance(body, list) else body
                self._connection.request("POST", path, sent, headers)
                response = self._connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                self.cut_answers += isinstance(error, http.client.IncompleteRead)
                with suppress(Exception):
                    self._connection.close()
                self._connection = None
                if time.monotonic() > self._end:
                    return None, None, b""
                self.not_accepted += 1
                time.sleep(0.05)
                continue
            self.statuses[str(response.status)] += 1
            self.last = time.monotonic()
            self.busy += self.last - start
            if response.status == 200:
                self.times.append(self.last - start)
            return response.status, response.headers.get("x-btdagg-model"), content

    def check(self, status: int | None, label: str | None, wanted: Any, found: Any) -> None:
        if status is None:  # no answer before the end
            return
        if status != 200 or label != DIGEST or found() != wanted(MODEL):
            self.wrong.append(f"status {status}, model {label}")

    def counts(self) -> None:
        size = int(self._rng.choice([1, 5, 50, 3000], p=[0.5, 0.3, 0.17, 0.03]))
        counts = self._rng.integers(0, 9, size=(size, 3))
        status, label, body = self.ask("/v1/decide", json.dumps({"counts": counts.tolist()}))
        self.check(
            status,
            label,
            lambda model: (label, model.decide(counts).tolist()),
            lambda: (json.loads(body)["model"], json.loads(body)["labels"]),
        )

    def votes(self) -> None:
        size = int(self._rng.choice([8, 400]))
        items, votes = self._rng.integers(0, 9, size), self._rng.integers(-1, 2, size)
        sent = json.dumps({"item": items.tolist(), "vote": votes.tolist()})
        status, label, body = self.ask("/v1/decide", sent)
        names = list(dict.fromkeys(items.tolist()))
        counts = [
            [int(((items == name) & (votes == vote)).sum()) for vote in (-1, 0, 1)]
            for name in names
        ]
        self.check(
            status,
            label,
            lambda model: [names, counts, model.decide(counts).tolist()],
            lambda: [json.loads(body)[key] for key in ("items", "counts", "labels")],
        )

    def arrow(self) -> None:
        size = int(self._rng.choice([10, 2000, 40_000], p=[0.5, 0.4, 0.1]))
        counts = self._rng.integers(0, 30, size=(size, 3)).astype(np.uint8)
        sent = write_stream(dict(zip(("minus", "tie", "plus"), counts.T, strict=True)), "")
        status, label, body = self.ask("/v1/decide", sent, kind=ARROW)
        self.check(
            status,
            label,
            lambda model: model.decide(counts).tolist(),
            lambda: pl.read_ipc_stream(body)["label"].to_list(),
        )

    def bad(self) -> None:
        cases: list[tuple[int, Any, dict[str, Any]]] = [
            (422, b'{"counts": [[1, 2', {}),
            (422, json.dumps({"counts": [[1, 2, 3], [1, -2, 3]]}), {}),
            (422, json.dumps({"item": ["x"], "vote": ["maybe"]}), {}),
            (422, b"ARROW1", {"kind": ARROW}),
            (401, b"{}", {"token": "wrong"}),
            (413, b"x" * (MAX_BODY + 1), {}),
            (413, [b"x" * (MAX_BODY // 4)] * 5, {}),  # in chunks, of no declared length
        ]
        wanted, body, options = cases[self._rng.integers(len(cases))]
        status, _, _ = self.ask("/v1/decide", body, **options)
        if status not in (wanted, None):
            self.wrong.append(f"status {status}, expected {wanted}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


if __name__ == "__main__":
    main()
