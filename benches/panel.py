"""A panel of judges on public votes, beside its judges and their pooled votes.

Mean absolute error over tasks and random calibration sets, with standard errors over the sets.
BTDAGG_SHARED names the folder of the public votes.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import btdagg

SIZES = (50, 100, 300)


def tasks_of(data):
    """The judges, and of every task the counts by judge and labels of its items."""
    votes = pl.read_parquet(data / "rb2/votes.parquet")
    votes = votes.with_columns(pl.col("template", "temperature").cast(pl.String))
    votes = votes.filter(template="base", temperature="default")
    votes = btdagg.read_votes(votes, strength="none")
    labels = btdagg.read_labels(data / "rb2/labels.csv")
    judges = votes.values("judge").sort().to_list()
    tasks = {
        task: part.labelled(labels, judges=judges) for (task,), part in votes.partition(["task"])
    }
    return judges, tasks


def errors_of(task, judges, known, clock):
    """Mean absolute error on the rest of what is calibrated on `known`."""
    rest = np.setdiff1d(np.arange(len(task.label)), known)
    counts, labels = task.counts[known], task.label[known]
    start = time.process_time()
    panel = btdagg.calibrate_panel(counts, labels, judges=judges)
    clock.append(time.process_time() - start)
    found = {"panel": panel.model.decide(task.counts[rest])}
    for place, name in enumerate(judges):
        alone = btdagg.calibrate(counts[:, place], labels, prior=None).model
        found[name] = alone.decide(task.counts[rest, place])
    pooled = btdagg.calibrate(counts.sum(axis=1), labels, prior=None).model
    found["pooled votes"] = pooled.decide(task.counts[rest].sum(axis=1))
    found["majority of pooled votes"] = btdagg.majority_vote(task.counts[rest].sum(axis=1))
    return {name: np.abs(task.label[rest] - decided).mean() for name, decided in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="little data, to show that it runs")
    parser.add_argument("--sets", type=int, default=20, help="calibration sets of each task")
    given = parser.parse_args()
    data = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    if not data.is_dir():
        print(f"no public votes in {data}")
        return
    warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
    n_sets = 2 if given.smoke else given.sets
    judges, tasks = tasks_of(data)
    rows, clock = {}, {size: [] for size in SIZES}
    for size in SIZES[:1] if given.smoke else SIZES:
        found = {}
        for place, task in enumerate(tasks.values()):
            for number in range(n_sets):
                rng = np.random.default_rng([2024, size, place, number])
                known = rng.permutation(len(task.label))[:size]
                for name, error in errors_of(task, judges, known, clock[size]).items():
                    found.setdefault(name, {}).setdefault(place, []).append(error)
        hindsight = min(
            judges, key=lambda name: np.mean([np.mean(v) for v in found[name].values()])
        )
        found["best single judge in hindsight"] = found[hindsight]
        for name, by_task in found.items():
            values = np.array(list(by_task.values()))
            away = values - np.array(list(found["panel"].values()))
            error = np.sqrt((values.var(axis=1, ddof=1) / n_sets).sum()) / len(values)
            apart = np.sqrt((away.var(axis=1, ddof=1) / n_sets).sum()) / len(values)
            rows.setdefault(name, []).append(
                f"{values.mean():.4f} ({error:.4f}); {away.mean():+.4f} ({apart:.4f})"
            )
    print(f"mean over {len(tasks)} tasks, {n_sets} sets each; then minus the panel's\n")
    shown = SIZES[:1] if given.smoke else SIZES
    print("| method | " + " | ".join(f"{size} labels" for size in shown) + " |")
    print("|---|" + "---:|" * len(shown))
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |")
    for size in shown:
        print(f"\n{size} labels: {np.median(clock[size]) * 1e3:.0f} ms of processor time a fit")


if __name__ == "__main__":
    main()
