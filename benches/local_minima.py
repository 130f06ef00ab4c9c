"""Whether a fit is left in a local minimum: `calibrate` against 100 random starts.

Small calibration sets of simulated judges and, where the environment variable BTDAGG_SHARED names
the folder of the public votes, of real ones. Prints the largest excess of the DRPS found over the
best of the random starts. `--smoke` takes one set of each.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import btdagg
from btdagg import _core
from btdagg.datasets import REGIMES, simulate

N_STARTS = 100
LOWER = np.array([1e-3, np.log(1e-4), -10.0])
UPPER = np.array([5.0, np.log(1e3), 10.0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one set of each")
    n_sets = 1 if parser.parse_args().smoke else 500
    warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
    sources = {"simulated judges": simulated()}
    shared = Path(os.environ.get("BTDAGG_SHARED", "../shared")) / "data/rb2"
    if shared.is_dir():
        sources["RewardBench 2 votes"] = real(shared)
    print("| sets of 20 to 100 items | sets | largest excess | above 1e-8 |")
    print("|---|---:|---:|---:|")
    for name, tasks in sources.items():
        rng = np.random.default_rng(2026)
        pool = list(tasks)
        excess = np.array([excess_of_one(pool, rng) for _ in range(n_sets)])
        print(f"| {name} | {n_sets} | {excess.max():.1e} | {(excess > 1e-8).sum()} |")


def excess_of_one(pool: list[tuple[np.ndarray, np.ndarray]], rng: np.random.Generator) -> float:
    counts, labels = pool[rng.integers(len(pool))]
    chosen = rng.choice(len(labels), rng.integers(20, 101), replace=False)
    counts, labels = counts[chosen], labels[chosen]
    items = _core.CalibrationSet(counts, labels, None, 1.0, 1.0, None)
    best = min(
        minimize(
            lambda theta: items.loss(theta, 1),
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(LOWER, UPPER, strict=True)),
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000},
        ).fun
        for start in rng.uniform(LOWER, UPPER, size=(N_STARTS, 3))
    )
    return btdagg.calibrate(counts, labels, prior=None).drps - best


def simulated() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for name in REGIMES:
        sample = simulate(name, 2000, 20, seed=0)
        for n_votes in (2, 4, 8, 12, 20):
            yield sample.first(n_votes), sample.labels


def real(folder: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    votes = btdagg.read_votes(folder / "votes.parquet", strength="none")
    votes = votes.filter({"template": "base", "temperature": "default"})
    labels = btdagg.read_labels(folder / "labels.csv")
    for _, part in votes.partition(["task", "judge"]):
        for n_votes in (2, 4, 8):
            items = btdagg.align(*part.counts(n_votes), labels)
            yield items.by_judge, items.label


if __name__ == "__main__":
    main()
