"""Permutation tests against SciPy's and NumPy's sign matrices, in one run on one thread.

Prints a Markdown table. `--smoke` runs everything on little data.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import combinations

# Before NumPy loads its BLAS: one thread for either side.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy
from scipy import stats

import btdagg

N_ITEMS, N_METHODS = 1000, 8
CHUNK = 200  # sign patterns that NumPy takes at once: the fastest of 100, 200, 500, 1,000, 2,000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="little data, one repetition")
    smoke = parser.parse_args().smoke
    repeats = 1 if smoke else 5
    n_resamples, n_matrix, n_splits = (100, 10, 2) if smoke else (10_000, 1_000, 100)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, size=(2, N_ITEMS))
    real_a, real_b = rng.random(size=(2, N_ITEMS))
    splits = list(rng.integers(0, 3, size=(n_splits, N_METHODS, N_ITEMS)))

    rows = []

    def compare(
        what: str, ours: Callable[[], object], peer: Callable[[], object], n_loops: int
    ) -> None:
        ours(), peer()  # neither pays for what happens once
        pairs = [(timed(ours, n_loops), timed(peer, 1)) for _ in range(repeats)]
        mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(other / one for one, other in pairs)
        rows.append((what, mine, theirs, ratio))

    compare(
        f"absolute errors, exact; SciPy {n_resamples:,} resamples",
        lambda: btdagg.paired_permutation_test(a, b, method="exact"),
        lambda: scipy_test(a, b, n_resamples),
        1 if smoke else 200,
    )
    compare(
        f"real losses, {n_resamples:,} resamples; SciPy the same",
        lambda: btdagg.paired_permutation_test(real_a, real_b, n_resamples=n_resamples),
        lambda: scipy_test(real_a, real_b, n_resamples),
        1 if smoke else 20,
    )
    n_pairs = N_METHODS * (N_METHODS - 1) // 2
    compare(
        f"{n_pairs} pairs × {n_splits} splits, exact; NumPy {n_matrix:,} resamples by matrix",
        lambda: btdagg.inference.significance.split_pvalues(splits, method="exact"),
        lambda: [sign_matrix(split, n_matrix, seed) for seed, split in enumerate(splits)],
        1,
    )

    n_methods, n_items = (5, 100) if smoke else (50, 10_000)
    many = rng.random(size=(n_methods, n_items))
    size = f"{n_methods} × {n_methods} methods, {n_items:,} items, real losses"
    size = f"{size}, {n_resamples:,} resamples"
    compare(
        f"{size}; NumPy with shared signs",
        lambda: btdagg.pairwise_pvalues(many, n_resamples=n_resamples),
        lambda: shared_signs(many, n_resamples),
        1,
    )
    compare(
        f"{size}, max-T; NumPy with shared signs",
        lambda: btdagg.pairwise_pvalues(many, correction="max-t", n_resamples=n_resamples),
        lambda: shared_signs_max_t(many, n_resamples),
        1,
    )

    print(
        f"btdagg {btdagg.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}, one thread, {N_ITEMS:,} items "
        "unless said\n"
    )
    print("| what | btdagg | peer | peer / btdagg |")
    print("|---|---:|---:|---:|")
    for what, mine, theirs, ratio in rows:
        print(f"| {what} | {shown(mine)} | {shown(theirs)} | {ratio:,.0f}× |")


def timed(work: Callable[[], object], n_loops: int) -> float:
    started = time.perf_counter()
    for _ in range(n_loops):
        work()
    return (time.perf_counter() - started) / n_loops


def shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def scipy_test(a: np.ndarray, b: np.ndarray, n_resamples: int) -> object:
    return stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=n_resamples,
        batch=1000,
        rng=np.random.default_rng(0),
    )


def sign_matrix(losses: np.ndarray, n_resamples: int, seed: int) -> np.ndarray:
    """P-values of all pairs from one product of random signs and differences."""
    pairs = np.array(list(combinations(range(len(losses)), 2)))
    differences = (losses[pairs[:, 0]] - losses[pairs[:, 1]]).T.astype(np.float64)
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, size=(n_resamples, len(differences)), dtype=np.int8) * 2.0 - 1.0
    hits = np.abs(signs @ differences) >= np.abs(differences.sum(axis=0)) - 1e-9
    return (hits.sum(axis=0) + 1) / (n_resamples + 1)


def signed_sums(losses: np.ndarray, n_resamples: int) -> Iterator[np.ndarray]:
    """Sums of signed losses, (methods, patterns) at a time, from a product for each chunk."""
    n_items = losses.shape[1]
    centred = np.ascontiguousarray((losses - losses.mean(axis=0)).T)
    total = centred.sum(axis=0)
    rng = np.random.default_rng(0)
    for start in range(0, n_resamples, CHUNK):
        n_patterns = min(CHUNK, n_resamples - start)
        random = np.frombuffer(rng.bytes(n_patterns * -(-n_items // 8)), dtype=np.uint8)
        bits = np.unpackbits(random.reshape(n_patterns, -1), axis=1, count=n_items)
        yield np.ascontiguousarray((2 * (bits.astype(np.float64) @ centred) - total).T)


def shared_signs(losses: np.ndarray, n_resamples: int) -> np.ndarray:
    """P-values of all pairs from differences of the methods' sums."""
    first, second = np.triu_indices(len(losses), 1)
    total = losses.sum(axis=1)
    observed = np.abs(total[first] - total[second])[:, np.newaxis] - 1e-9
    hits = np.zeros(len(first), dtype=np.int64)
    for sums in signed_sums(losses, n_resamples):
        differences = sums[first]
        differences -= sums[second]
        hits += np.count_nonzero(np.abs(differences, out=differences) >= observed, axis=1)
    return (hits + 1) / (n_resamples + 1)


def shared_signs_max_t(losses: np.ndarray, n_resamples: int) -> np.ndarray:
    """P-values of all pairs in ascending order of their statistics."""
    first, second = np.triu_indices(len(losses), 1)
    total = losses.sum(axis=1)
    norms = np.array(
        [np.linalg.norm(losses[i] - losses[j]) for i, j in zip(first, second, strict=True)]
    )
    statistics = np.abs(total[first] - total[second]) / norms
    order = np.argsort(statistics)
    first, second, norms = first[order], second[order], norms[order][:, np.newaxis]
    observed = statistics[order][:, np.newaxis] - 1e-12
    hits = np.zeros(len(first), dtype=np.int64)
    for sums in signed_sums(losses, n_resamples):
        largest = sums[first]
        largest -= sums[second]
        np.abs(largest, out=largest)
        largest /= norms
        np.maximum.accumulate(largest, axis=0, out=largest)
        hits += np.count_nonzero(largest >= observed, axis=1)
    return np.maximum.accumulate((hits[::-1] + 1) / (n_resamples + 1))[::-1]


if __name__ == "__main__":
    main()
