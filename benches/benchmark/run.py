"""The benchmark: how many labels, how many votes, which method, which judge.

Writes results.parquet, a row for each task, set, entrant, number of votes and of labels, split and
metric, of which the page `docs/benchmark.md` is made (`page.py`). BTDAGG_SHARED names the folder of
the public votes; `--download` gets them from their sources. An entrant is a file of `entrants/`
with one function.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import polars as pl
from sets import SETS
from tasks import TASKS

import btdagg

HERE = Path(__file__).parent
SIZES, N_SPLITS = (0, 10, 20, 50, 100, 300), 20


@cache
def cells_of(name):
    return SETS[name](Path(os.environ["BTDAGG_SHARED"]) / "data")


def job(task, name, cell, n_splits, sizes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [*TASKS[task](cells_of(name)[cell], n_splits, sizes)]
    return [(task, name, cell, *row[:-1], float(row[-1])) for row in rows]


COLUMNS = ("task", "set", "cell", "entrant", "votes", "labels", "split", "metric", "value")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one split of one cell of each set")
    parser.add_argument("--splits", type=int, default=N_SPLITS)
    parser.add_argument("--sets", nargs="*", default=[*SETS])
    parser.add_argument("--download", action="store_true", help="get the sets from their sources")
    parser.add_argument("--output", type=Path, default=HERE / "results.parquet")
    options = parser.parse_args()
    if options.download:
        from download import download

        os.environ.setdefault("BTDAGG_SHARED", str(HERE.parents[1] / "build/benchmark"))
        download(Path(os.environ["BTDAGG_SHARED"]) / "data")
    if "BTDAGG_SHARED" not in os.environ:
        return print("BTDAGG_SHARED is not set: nothing to measure; --download gets the sets")
    for name in [*options.sets]:
        folder = Path(os.environ["BTDAGG_SHARED"]) / "data" / name.partition(",")[0]
        if name != "simulated" and not folder.is_dir():
            print(f"{name} is left out: there is no {folder}")
            options.sets.remove(name)
    n_splits, sizes = (1, (0, 20, 50, 100)) if options.smoke else (options.splits, SIZES)
    started, rows, jobs = time.time(), [], []
    # Polars' threads do not outlive a fork.
    workers = int(os.environ.get("N_PROCESSES", "2")), get_context("spawn")
    with ProcessPoolExecutor(*workers) as pool:
        for name in options.sets:
            for cell in [*cells_of(name)][: 1 if options.smoke else None]:
                jobs += [pool.submit(job, task, name, cell, n_splits, sizes) for task in TASKS]
        for done in jobs:
            rows += done.result()
    frame = pl.DataFrame(rows, schema=[*COLUMNS], orient="row", infer_schema_length=None)
    # Cells of a set are one split together: its splits are what intervals are of.
    by = [name for name in COLUMNS if name not in ("cell", "value")]
    frame = frame.group_by(by, maintain_order=True).agg(
        pl.col("value").mean().cast(pl.Float32), cells=pl.len()
    )
    versions = {"btdagg": btdagg.__version__, "python": platform.python_version()}
    versions |= {"splits": n_splits, "minutes": round((time.time() - started) / 60, 1)}
    frame.write_parquet(options.output, metadata={"benchmark": json.dumps(versions)})
    print(f"{frame.height:,} rows, {versions['minutes']} minutes: {options.output}")


if __name__ == "__main__":
    main()
