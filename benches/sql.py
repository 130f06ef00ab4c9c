"""Votes to labels by the query of docs/sql.md in DuckDB, against its group-by and `btdagg decide`.

The votes are those of `tables.py`: ten an item, in Parquet files, sorted integer ids, with the
number of the sample. Each task is a process of its own, timed whole, with its peak memory; times
are the best of two. `--votes 100000000` is the large run, of which each task runs once. `--spark`
also runs Spark on two cores, timed within its session: the best of five runs after one that warms
it up, by the processor time of its Java process. The first table is of the expression alone, over
counts that a database holds in memory: one thread, the best of five. `--smoke` does little.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from tables import MODEL, PER_ITEM, make_votes

import btdagg

# The group-by of docs/sql.md: of every row, or of the different rows.
GROUP_BY = (
    "SELECT item, COUNT(CASE WHEN vote = -1 THEN 1 END) AS minus, "
    "COUNT(CASE WHEN vote = 0 THEN 1 END) AS tie, COUNT(CASE WHEN vote = 1 THEN 1 END) AS plus "
    "FROM {} GROUP BY item"
)
TABLES = {
    "every row a vote": GROUP_BY.format("votes"),
    "one vote of each sample": GROUP_BY.format("(SELECT DISTINCT item, sample, vote FROM votes) v"),
}
IN_DUCKDB = """
import sys, duckdb
duckdb.sql("SET threads = 2; SET preserve_insertion_order = false")
duckdb.sql("SET temp_directory = '{folder}/spill'")
duckdb.sql("CREATE VIEW votes AS FROM '{place}/*.parquet'")
duckdb.sql("COPY (" + open("{folder}/query.sql").read() + ") TO '{folder}/out.parquet'")
"""


def whole(command: list[str], times: int) -> tuple[float, float, float]:
    """Wall and processor time of a process in seconds, the best of some, and its peak in MB."""
    walls, busy, peaks = [], [], []
    for _ in range(times):
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
        walls.append(time.perf_counter() - start)
        busy.append(used.ru_utime + used.ru_stime)
        peaks.append(used.ru_maxrss / 1024)
    return min(walls), min(busy), max(peaks)


def in_duckdb(folder: Path, place: Path, query: str, times: int) -> tuple[float, float, float]:
    (folder / "query.sql").write_text(query)
    code = IN_DUCKDB.format(folder=folder, place=place)
    return whole([sys.executable, "-c", code], times)


def same_labels(folder: Path) -> None:
    """Stop unless the query and the command have decided every item alike."""
    import duckdb

    names = "item, CAST(minus AS BIGINT), CAST(tie AS BIGINT), CAST(plus AS BIGINT), label"
    one, other = (
        f"SELECT {names} FROM '{folder}/{name}'"
        for name in ("by_sql.parquet", "by_command.parquet")
    )
    different = duckdb.sql(f"({one} EXCEPT {other}) UNION ALL ({other} EXCEPT {one})")
    if different.limit(1).fetchall():
        raise SystemExit("the query and btdagg decide do not agree")


def decide_alone(n_items: int) -> None:
    """Print the time that databases take to decide counts which they have."""
    import duckdb

    model = btdagg.DavidsonModel(**MODEL)
    counts = np.random.default_rng(0).multinomial(PER_ITEM, [0.4, 0.2, 0.4], n_items)
    expected = int(model.decide(counts).sum())
    duck, lite = duckdb.connect(), sqlite3.connect(":memory:")
    duck.execute("SET threads = 1")
    frame = pl.DataFrame(counts, ["minus", "tie", "plus"], orient="row")
    duck.register("frame", frame)
    duck.execute("CREATE TABLE counts AS FROM frame")
    lite.execute("CREATE TABLE counts (minus INTEGER, tie INTEGER, plus INTEGER)")
    lite.executemany("INSERT INTO counts VALUES (?, ?, ?)", counts.tolist())
    print("| the expression alone | characters | a million items |\n|---|---:|---:|")
    for name, database in (("duckdb", duck), ("sqlite", lite)):
        label, times = model.to_sql(name), []
        for _ in range(5):
            start = time.perf_counter()
            ((total,),) = database.execute(f"SELECT SUM({label}) FROM counts").fetchall()
            times.append(time.perf_counter() - start)
            if total != expected:
                raise SystemExit(f"{name} and the model do not agree")
        taken = min(times) / n_items * 1e9
        print(f"| {name} | {len(label):,} | {taken:.0f} ms |", flush=True)


def compare(n_votes: int, folder: Path, times: int) -> Path:
    place = folder / "votes"
    make_votes(n_votes, place, text_ids=False, sorted_ids=True, sample=True)
    model = btdagg.DavidsonModel(**MODEL)
    model.save(folder / "model.json")
    print(
        f"| {n_votes:,} votes of {n_votes // PER_ITEM:,} items | wall | processor | peak | ratio |"
    )
    print("|---|---:|---:|---:|---:|")
    for name, counts in TABLES.items():
        peer = in_duckdb(folder, place, counts, times)
        query = f"SELECT *, {model.to_sql('duckdb')} AS label FROM ({counts}) c"
        ours = in_duckdb(folder, place, query, times)
        show(f"{name}: DuckDB's group-by", peer, peer)
        show(f"{name}: the query", ours, peer)
    (folder / "out.parquet").rename(folder / "by_sql.parquet")
    out = str(folder / "by_command.parquet")
    command = [sys.executable, "-m", "btdagg", "decide", str(folder / "model.json")]
    show(
        "one vote of each sample: btdagg decide",
        whole([*command, f"{place}/*.parquet", "-o", out], times),
        peer,
    )
    same_labels(folder)
    return place


def show(name: str, found: tuple[float, float, float], peer: tuple[float, float, float]) -> None:
    wall, busy, peak = found
    print(
        f"| {name} | {wall:.2f} s | {busy:.2f} s | {peak:,.0f} MB | {busy / peer[1]:.2f} |",
        flush=True,
    )


def processor_time(process: int) -> float:
    """Seconds that a process has had, its own and the system's."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def compare_in_spark(place: Path) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = (
        builder.config("spark.driver.memory", "8g")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.read.parquet(str(place)).createOrReplaceTempView("votes")
    model = btdagg.DavidsonModel(**MODEL)
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    print("\n| Spark, local[2] | wall | processor | ratio |\n|---|---:|---:|---:|")
    for name, counts in TABLES.items():
        query = f"SELECT *, {model.to_sql('spark')} AS label FROM ({counts}) c"
        queries = {"group-by": counts, "query": query}
        taken: dict[str, list[tuple[float, float]]] = {which: [] for which in queries}
        for _ in range(6):  # the first warms up
            for which, text in queries.items():
                start, busy = time.perf_counter(), processor_time(java)
                spark.sql(text).write.format("noop").mode("overwrite").save()
                busy = processor_time(java) - busy
                taken[which].append((time.perf_counter() - start, busy))
        best = {which: list(map(min, zip(*each[1:], strict=True))) for which, each in taken.items()}
        for which, (wall, busy) in best.items():
            ratio = busy / best["group-by"][1]
            print(f"| {name}: {which} | {wall:.2f} s | {busy:.2f} s | {ratio:.2f} |", flush=True)
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="20,000 votes")
    parser.add_argument("--votes", type=int, default=10_000_000)
    parser.add_argument(
        "--spark", action="store_true", help="also Spark, which wants pyspark and Java"
    )
    asked = parser.parse_args()
    n_votes = 20_000 if asked.smoke else asked.votes
    times = 2 if 20_000 < n_votes <= 10_000_000 else 1
    decide_alone(20_000 if asked.smoke else 2_000_000)
    with tempfile.TemporaryDirectory() as name:
        place = compare(n_votes, Path(name), times)
        if asked.spark:
            compare_in_spark(place)


if __name__ == "__main__":
    main()
