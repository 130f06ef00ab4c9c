"""Reading votes, tallying them and deciding a file, against polars' own reading and polars by hand.

Every task runs in a process of its own, so that its peak memory is its own; times are without the
start of Python and without imports, but for deciding, which is timed whole, and of votes with
margins too. The votes are ten an item, in the order in which a job collects them: first one of
every item, then a second. Prints Markdown tables of wall and processor times, the best of two.
`--python` compares with another btdagg: the interpreter of an environment that has it.
`--votes 100000000` is the large run, which only decides, from a folder of Parquet files.
`--smoke` does little.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl

PER_ITEM = 10
BLOCK = 10_000_000
MODEL = {"beta": 1.2, "eta0": 0.3, "gamma": 0.8}


def by_hand(votes: str, output: str) -> None:
    """What one would write with polars and `model.decide` alone."""
    import btdagg

    vote = pl.col("vote")
    sums = [(vote == side).sum().alias(name) for name, side in SIDES.items()]
    rows = pl.scan_parquet(votes).group_by("item").agg(sums).collect(engine="streaming")
    counts = rows.select(*SIDES).to_numpy()
    model = btdagg.DavidsonModel(**MODEL)
    shares = model.predict_proba(counts)
    rows.with_columns(
        pl.Series("label", model.decide(counts)),
        *(pl.Series(f"p_{name}", shares[:, n]) for n, name in enumerate(SIDES)),
    ).write_parquet(output)


SIDES = {"minus": -1, "tie": 0, "plus": 1}


def engine_reads(path: str) -> Callable[[], object]:
    readers = {".csv": pl.read_csv, ".jsonl": pl.read_ndjson, ".parquet": pl.read_parquet}
    return lambda: readers[Path(path).suffix](path)


def task(name: str, path: str, output: str) -> dict[str, float]:
    """Run one task in this process and return its times and its peak memory."""
    import narwhals  # noqa: F401

    import btdagg

    run: Callable[[], object]
    if name == "engine":
        run = engine_reads(path)
    elif name == "by hand":

        def run() -> None:
            by_hand(path, output)
    else:
        btdagg.read_votes({"item": [1], "vote": [1]}).counts()  # all that is loaded when first used
        run = lambda: btdagg.read_votes(path)  # noqa: E731
        if name == "counts":
            votes = btdagg.read_votes(path)
            run = votes.counts
        elif name == "group_by":
            frame = pl.scan_parquet(path)
            sums = [(pl.col("vote") == side).sum().alias(n) for n, side in SIDES.items()]
            run = lambda: frame.group_by("item").agg(sums).collect(engine="streaming")  # noqa: E731
    start, busy = time.perf_counter(), time.process_time()
    run()
    return {
        "wall": time.perf_counter() - start,
        "cpu": time.process_time() - busy,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure(
    python: str, name: str, path: str, output: str = "", times: int = 2
) -> dict[str, float]:
    """Run a task in processes of their own and return the best times and the largest peak.

    What decides a file is timed with the start of its process.
    """
    command = [python, str(Path(__file__).resolve()), "--task", name, path, output]
    if name == "decide":
        model = "strong.json" if MARGINS in path else "model.json"
        command = [python, "-m", "btdagg", "decide", model, path, "-o", output]
    found = []
    for _ in range(times):
        start = time.perf_counter()
        # A child begins with the peak of its parent, which is why votes are made by another one.
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        out = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = status
        if status:
            raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
        if output:
            cpu = used.ru_utime + used.ru_stime
            found.append({"wall": wall, "cpu": cpu, "peak": used.ru_maxrss / 1024})
        else:
            found.append(json.loads(out))
    return {key: (max if key == "peak" else min)(one[key] for one in found) for key in found[0]}


def make_votes(n_votes: int, folder: Path, **options: bool) -> Path:
    """Write votes as Parquet files of ten million rows at most, and return where they are."""
    making = get_context("spawn").Process(target=_make, args=(n_votes, folder), kwargs=options)
    making.start()
    making.join()
    return folder


def _make(
    n_votes: int,
    folder: Path,
    *,
    text_ids: bool,
    sorted_ids: bool,
    sample: bool,
    margin: bool = False,
) -> None:
    n_items = n_votes // PER_ITEM
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number, start in enumerate(range(0, n_votes, BLOCK)):
        rows = np.arange(start, min(start + BLOCK, n_votes))
        items = rows // PER_ITEM if sorted_ids else rows % n_items
        samples = rows % PER_ITEM if sorted_ids else rows // n_items
        columns = {"item": items, "vote": rng.integers(-1, 2, len(rows), dtype=np.int8)}
        if margin:
            columns["margin"] = rng.random(len(rows)) * 9
        frame = pl.DataFrame({**columns, **({"sample": samples} if sample else {})})
        if text_ids:
            name = pl.format("item-{}", pl.col("item").cast(pl.String).str.zfill(9))
            frame = frame.with_columns(item=name)
        frame.write_parquet(folder / f"{number:03}.parquet")


KINDS = {
    "text ids": {"text_ids": True, "sorted_ids": False, "sample": False},
    "text ids, with samples": {"text_ids": True, "sorted_ids": False, "sample": True},
    "text ids, sorted, with samples": {"text_ids": True, "sorted_ids": True, "sample": True},
    "integer ids, with samples": {"text_ids": False, "sorted_ids": False, "sample": True},
    "integer ids, sorted": {"text_ids": False, "sorted_ids": True, "sample": False},
}
MARGINS = " and margins"  # ends the names of kinds that have them too


def reading(
    n_votes: int, pythons: dict[str, str], folder: Path, kinds: list[str], times: int
) -> None:
    print(f"\n| {n_votes:,} votes, ns a vote: wall (processor) |", end="")
    print(
        "".join(f" {who} |" for who in (*pythons, "polars")),
        "\n|---|" + "---:|" * (len(pythons) + 1),
    )
    for kind in kinds:
        place = make_votes(n_votes, folder / f"{kind} {n_votes}", **KINDS[kind])
        path = place / "000.parquet"
        paths = {"Parquet": path}
        if kind == "text ids" and n_votes <= 1_000_000:
            frame = pl.read_parquet(path)
            paths |= {"CSV": place / "v.csv", "JSONL": place / "v.jsonl"}
            frame.write_csv(paths["CSV"])
            frame.write_ndjson(paths["JSONL"])
            del frame
        for suffix, file in paths.items():
            tasks = {"read_votes": "engine"} | (
                {"counts": "group_by"} if suffix == "Parquet" else {}
            )
            for name, peer in tasks.items():
                cells = [
                    measure(python, name, str(file), times=times) for python in pythons.values()
                ]
                cells.append(measure(sys.executable, peer, str(file), times=times))
                shown = " | ".join(
                    f"{c['wall'] / n_votes * 1e9:.0f} ({c['cpu'] / n_votes * 1e9:.0f})"
                    for c in cells
                )
                print(f"| {name}, {suffix}, {kind} | {shown} |", flush=True)


def deciding(
    n_votes: int, pythons: dict[str, str], folder: Path, kinds: list[str], times: int
) -> None:
    import btdagg

    btdagg.DavidsonModel(**MODEL).save("model.json")
    origin = btdagg.votes.Provenance(strength="margin", full_margins=(("", "", 4.5),))
    btdagg.DavidsonModel(**MODEL, provenance=origin).save("strong.json")
    print(
        f"\n| decide {n_votes:,} votes of {n_votes // PER_ITEM:,} items | wall | processor | peak |"
    )
    print("|---|---:|---:|---:|")
    for kind in (kind + margins for kind in kinds for margins in ("", MARGINS)):
        options = KINDS[kind.removesuffix(MARGINS)] | {"margin": kind.endswith(MARGINS)}
        place = folder / f"{kind} {n_votes}"
        if not place.exists():
            make_votes(n_votes, place, **options)
        several = len(list(place.glob("*.parquet"))) > 1
        path = str(place / "*.parquet" if several else place / "000.parquet")
        found = {
            who: measure(p, "decide", path, "out.parquet", times) for who, p in pythons.items()
        }
        if MARGINS not in kind:
            found["polars by hand"] = measure(
                sys.executable, "by hand", path, "hand.parquet", times
            )
        for who, one in found.items():
            cells = f"{one['wall']:.2f} s | {one['cpu']:.2f} s | {one['peak']:.0f} MB"
            print(f"| {kind}, {who} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="20,000 votes of one kind")
    parser.add_argument("--votes", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--python", help="interpreter of another btdagg to compare with")
    parser.add_argument("--task", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.task:
        print(json.dumps(task(*asked.task)))
        return
    sizes = [20_000] if asked.smoke else asked.votes
    pythons = {"btdagg": sys.executable}
    if asked.python:
        pythons = {"before": asked.python, "after": sys.executable}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        for n_votes in sizes:
            # The large run would take the disk of a small machine for every kind.
            kinds = ["text ids"] if asked.smoke else list(KINDS)
            times = 1 if asked.smoke else 2
            if n_votes <= BLOCK:
                reading(n_votes, pythons, folder, kinds, times)
            else:
                kinds, times = ["integer ids, sorted"], 1
            deciding(n_votes, pythons, folder, kinds, times)


if __name__ == "__main__":
    main()
