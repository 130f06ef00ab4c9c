"""The benchmark: how many labels, how many votes, which method, which judge.

Writes results.parquet, a row for each task, set, entrant, number of votes and of labels, split and
metric, of which the page `docs/benchmark.md` is made (`page.py`). Rows without a split have, of a
metric's difference to btdagg, half of the 95% interval for new items. BTDAGG_SHARED names the
folder of the public votes; `--download` gets them from their sources. An entrant is a file of
`entrants/` with one function.
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

import numpy as np
import polars as pl
from scipy import stats
from sets import SETS
from tasks import TASKS

import btdagg

HERE = Path(__file__).parent
SIZES, N_SPLITS = (0, 10, 20, 50, 100, 300), 20


@cache
def cells_of(name):
    return SETS[name](Path(os.environ["BTDAGG_SHARED"]) / "data")


def job(task, name, cell, n_splits, sizes):
    """Rows of results, and how far each group moves the mean of a metric over the splits."""
    rows, by_group = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in TASKS[task](cells_of(name)[cell], n_splits, sizes):
            entrant, votes, labels, split, metric, value, *influences = row
            rows.append((task, name, cell, entrant, votes, labels, split, metric, float(value)))
            key = entrant, votes, labels, metric
            by_group.setdefault(key, []).extend(influences)
    frames = []
    for (entrant, votes, labels, metric), influences in by_group.items():
        if influences:
            data = cells_of(name)[cell][votes]
            part = {"group": data.group_names, "influence": np.mean(influences, axis=0)}
            part |= {"set": name, "entrant": entrant, "votes": votes, "labels": labels}
            part |= {"metric": metric, "share": labels / len(data.labels)}
            frames.append(pl.DataFrame(part))
    return rows, frames


COLUMNS = ("task", "set", "cell", "entrant", "votes", "labels", "split", "metric", "value")


def for_new_items(frame, groups):
    """Half of the 95% interval, for new items, of each metric's difference to btdagg.

    Its variance is that of the groups, which a set's judges and tasks share, and that of the
    splits, times one over their number and the share of items with a label: another sample would
    have other labels too.
    """
    keys = ["set", "votes", "labels", "metric"]
    ours = pl.col("entrant") == "btdagg"
    splits = frame.filter(pl.col("task") == "labels")
    splits = splits.join(
        splits.filter(ours).select(*keys, "split", of_ours="value"), on=[*keys, "split"]
    )
    apart = pl.col("value") - pl.col("of_ours")
    splits = splits.group_by(*keys, "entrant", maintain_order=True).agg(
        of_splits=apart.var(), n_splits=pl.len(), cells=pl.col("cells").first()
    )
    sums = groups.group_by(*keys, "entrant", "group").agg(
        pl.col("influence").sum(), pl.col("share").mean()
    )
    sums = sums.join(splits, on=[*keys, "entrant"]).with_columns(
        pl.col("influence") / pl.col("cells")
    )
    of_ours = sums.filter(ours).select(*keys, "group", of_ours="influence")
    sums = sums.join(of_ours, on=[*keys, "group"])
    apart = pl.col("influence") - pl.col("of_ours")
    found = sums.group_by(*keys, "entrant", "cells", maintain_order=True).agg(
        n=pl.len(),
        of_groups=(apart**2).sum() * pl.len() / (pl.len() - 1),
        more=pl.col("of_splits").first()
        * (pl.col("share").mean() + 1 / pl.col("n_splits").first()),
    )
    quantile = pl.col("n").map_elements(lambda n: stats.t.ppf(0.975, n - 1), pl.Float64)
    half = (pl.col("of_groups") + pl.col("more").fill_null(0.0)).sqrt() * quantile
    found = found.with_columns(value=half, task=pl.lit("labels"), split=pl.lit(None))
    return found.select(frame.columns).cast(frame.schema)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one split of one cell of each set")
    parser.add_argument("--splits", type=int, default=N_SPLITS)
    parser.add_argument("--sets", nargs="*", default=[*SETS])
    parser.add_argument("--tasks", nargs="*", default=[*TASKS], choices=[*TASKS])
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
                jobs += [
                    pool.submit(job, task, name, cell, n_splits, sizes) for task in options.tasks
                ]
        groups = []
        for done in jobs:
            own, by_group = done.result()
            rows, groups = rows + own, groups + by_group
    frame = pl.DataFrame(rows, schema=[*COLUMNS], orient="row", infer_schema_length=None)
    # Cells of a set are one split together: its splits are what intervals are of.
    by = [name for name in COLUMNS if name not in ("cell", "value")]
    frame = frame.group_by(by, maintain_order=True).agg(
        pl.col("value").mean().cast(pl.Float32), cells=pl.len()
    )
    if groups:
        frame = pl.concat([frame, for_new_items(frame, pl.concat(groups))])
    if {*options.tasks} != {*TASKS}:  # the others are as they were
        before = pl.read_parquet(options.output).filter(~pl.col("task").is_in(options.tasks))
        frame = pl.concat([frame, before.cast(frame.schema)])
    versions = {"btdagg": btdagg.__version__, "python": platform.python_version()}
    versions |= {"splits": n_splits, "minutes": round((time.time() - started) / 60, 1)}
    frame.write_parquet(options.output, metadata={"benchmark": json.dumps(versions)})
    print(f"{frame.height:,} rows, {versions['minutes']} minutes: {options.output}")


if __name__ == "__main__":
    main()
