"""The whole comparison of eight methods against the same protocol in NumPy and SciPy, in one run.

The peer has `btdagg.reference` for the model, SciPy's L-BFGS-B for the fit by DRPS, SciPy's
Nelder-Mead from eight starts for the fit by absolute error (which finds no proven optimum),
scikit-learn for isotonic regression as btdagg does, and `scipy.stats.permutation_test` at 100
resamples for every two methods, both scores. It is timed on the first splits and per split.
One thread. `--smoke` runs it on little data.

Votes are RewardBench 2's where the public votes are (see `BTDAGG_SHARED`), else simulated.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import optimize, stats
from sklearn.isotonic import IsotonicRegression

import btdagg
from btdagg import Protocol, evaluate, reference
from btdagg.datasets import simulate
from btdagg.evaluation import RandomSplits
from btdagg.methods import by_name
from btdagg.paper import DavidsonMae

METHODS = (
    "davidson", "davidson-mae", "majority", "median", "isotonic", "soft-sc-mean", "soft-sc-min",
    "ci-sc",
)  # fmt: skip
BUDGETS = (2, 4, 8)
BOUNDS = [(1e-3, 5.0), (np.log(1e-4), np.log(1e3)), (-10.0, 10.0)]
STARTS = [(b, e, g) for b in (0.5, 2.0) for e in (-1.0, 2.0) for g in (0.0, 1.0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="few splits")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--peer-splits", type=int, default=10)
    arguments = parser.parse_args()
    n_ours, n_peer = (2, 1) if arguments.smoke else (arguments.splits, arguments.peer_splits)
    votes, labels, what = data(200 if arguments.smoke else None)
    seconds = -time.perf_counter()
    found = evaluate(
        votes,
        labels,
        n_votes=BUDGETS,
        aggregators=by_name(METHODS, own={"davidson-mae": DavidsonMae}),
        confidence="margin",
        protocol=Protocol(RandomSplits(n_splits=n_ours)),
    )
    seconds += time.perf_counter()
    ours = seconds / n_ours
    seconds = -time.perf_counter()
    scores = [peer(votes, labels, n_votes, n_peer) for n_votes in BUDGETS]
    seconds += time.perf_counter()
    theirs = seconds / n_peer
    print(f"{what}; methods: {', '.join(METHODS)}\n")
    print(
        "| whole comparison, n in 2, 4, 8 | btdagg | peer | peer / btdagg |\n|---|---:|---:|---:|"
    )
    print(f"| per split | {1e3 * ours:.3g} ms | {1e3 * theirs:.3g} ms | {theirs / ours:.1f}× |")
    print(f"| {n_ours} splits | {ours * n_ours:.3g} s | {theirs * n_ours:.3g} s | |\n")
    print("| MAE on the splits of the peer | " + " | ".join(METHODS) + " |")
    print("|---|" + "---:|" * len(METHODS))
    for cell, mae in zip(found.cells, scores, strict=True):
        mine = [method.mae[:n_peer].mean() for method in cell.methods]
        for who, row in (("btdagg", mine), ("peer", mae)):
            print(f"| {cell.n_votes} votes, {who} | " + " | ".join(f"{m:.4f}" for m in row) + " |")


def data(n_items: int | None) -> tuple[btdagg.Votes, btdagg.Labels, str]:
    folder = Path(os.environ.get("BTDAGG_SHARED", "../shared")) / "data" / "rb2"
    if n_items is None and folder.is_dir():
        import polars as pl

        frame = pl.read_parquet(folder / "votes.parquet").filter(
            task="focus", judge="gpt-5.4", template="base", temperature="default"
        )
        votes = btdagg.read_votes(frame, strength="none")
        return votes, btdagg.read_labels(folder / "labels.csv"), "RewardBench 2, focus"
    sample = simulate("rb2-focus", n_items or 1000, 8, seed=0)
    confidence = np.random.default_rng(0).random(sample.votes.size)
    votes = btdagg.read_votes({**sample.vote_columns(), "margin": confidence}, strength="none")
    return votes, btdagg.read_labels(sample.label_columns()), "simulated rb2-focus"


def peer(votes: btdagg.Votes, labels: btdagg.Labels, n_votes: int, n_splits: int) -> np.ndarray:
    """Mean absolute error of every method over the splits; p-values are computed and dropped."""
    evidence = votes.labelled(labels, n_votes, confidence="margin")
    gold, groups, counts = evidence.label, evidence.group, evidence.pooled
    mae = np.empty((len(METHODS), n_splits))
    for number, split in enumerate(RandomSplits(n_splits=n_splits).draw(len(gold), groups)):
        known, left = split
        decided = np.stack(decisions(counts, evidence, gold, known, left))
        losses = np.abs(decided - gold[left])
        mae[:, number] = losses.mean(axis=1)
        for errors in (losses, (losses > 0).astype(np.int8)):
            for one, other in combinations(errors, 2):
                stats.permutation_test(
                    (one, other),
                    difference,
                    permutation_type="samples",
                    vectorized=True,
                    n_resamples=100,
                    rng=number,
                )
    return mae.mean(axis=1)


def difference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    return (a - b).mean(axis=axis)


def decisions(counts, evidence, gold, known, left):  # type: ignore[no-untyped-def]
    """Labels of the evaluation set, by method."""
    confidences, voted = evidence.facts["confidences"], counts[left] > 0
    return [
        davidson(fit_drps(counts[known], gold[known]), counts[left]),
        davidson(fit_mae(counts[known], gold[known]), counts[left]),
        leading(counts[left].astype(float)),
        median(counts[left]),
        isotonic(counts[known], gold[known], counts[left]),
        leading(np.where(voted, confidences.total[left] / np.maximum(counts[left], 1), -np.inf)),
        leading(np.where(voted, confidences.least[left], -np.inf)),
        leading(confidences.total[left]),
    ]


def fit_drps(counts, gold):  # type: ignore[no-untyped-def]
    s, t = reference.features(counts)

    def objective(x):  # type: ignore[no-untyped-def]
        p = reference.probabilities(s, t, *x)
        return reference.drps(p, gold), reference.drps_gradient(s, t, gold, *x)

    return optimize.minimize(
        objective, (1.0, 0.0, 0.0), jac=True, method="L-BFGS-B", bounds=BOUNDS
    ).x


def fit_mae(counts, gold):  # type: ignore[no-untyped-def]
    s, t = reference.features(counts)

    def objective(x):  # type: ignore[no-untyped-def]
        return np.abs(reference.decide(reference.probabilities(s, t, *x)) - gold).mean()

    found = [
        optimize.minimize(objective, start, method="Nelder-Mead", bounds=BOUNDS) for start in STARTS
    ]
    return min(found, key=lambda result: result.fun).x


def davidson(x, counts):  # type: ignore[no-untyped-def]
    return reference.decide(reference.probabilities(*reference.features(counts), *x))


def leading(scores):  # type: ignore[no-untyped-def]
    best = scores >= scores.max(axis=1, keepdims=True) * (1 - 1e-9)
    return np.where(best.sum(axis=1) > 1, 0, scores.argmax(axis=1) - 1).astype(np.int8)


def median(counts):  # type: ignore[no-untyped-def]
    total = counts.sum(axis=1)
    cumulative = counts.cumsum(axis=1)
    low = (cumulative >= ((total + 1) // 2)[:, None]).argmax(axis=1) - 1
    high = (cumulative >= (total // 2 + 1)[:, None]).argmax(axis=1) - 1
    middle = (low + high) / 2
    return np.where(np.abs(middle) >= 0.5, np.sign(middle), 0).astype(np.int8)


def isotonic(counts, gold, others):  # type: ignore[no-untyped-def]
    means, wanted = (
        (c[:, 2] - c[:, 0]) / np.maximum(c.sum(axis=1), 1).astype(float) for c in (counts, others)
    )
    regression = IsotonicRegression(y_min=-1, y_max=1, out_of_bounds="clip")
    regression.fit(np.concatenate([means, -means]), np.concatenate([gold, -gold]))
    expected = (regression.predict(wanted) - regression.predict(-wanted)) / 2
    return np.where(np.abs(expected) > 0.5 + 1e-9, np.sign(expected), 0).astype(np.int8)


if __name__ == "__main__":
    main()
