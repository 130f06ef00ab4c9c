"""btdagg against its peers, in one run on the same data and one thread.

The peer is the NumPy reference (`btdagg.reference`), and for fits SciPy's L-BFGS-B with the NumPy
objective and one start. Prints a Markdown table. `--smoke` runs everything on little data.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy
from scipy.optimize import minimize

import btdagg
from btdagg import DavidsonModel, calibrate, reference
from btdagg.model import CalibrationWarning

MODEL = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
THETA = (MODEL.beta, MODEL.eta0, MODEL.gamma)
BOUNDS = [(1e-3, 5.0), (np.log(1e-4), np.log(1e3)), (-10.0, 10.0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="little data, one repetition")
    smoke = parser.parse_args().smoke
    repeats = 1 if smoke else 7
    n_many, n_million = (4_000, 1_000) if smoke else (4_000_000, 1_000_000)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(12, [0.3, 0.2, 0.5], size=n_many)
    narrow = counts.astype(np.uint8)
    labels = rng.integers(-1, 2, size=n_million).astype(np.int8)
    million = counts[:n_million]
    small_sets = [
        (counts[start : start + 50], labels[start : start + 50])
        for start in range(0, 50 * (2 if smoke else 20), 50)
    ]
    warnings.simplefilter("ignore", CalibrationWarning)

    rows = []

    def compare(what: str, ours: Callable[[], object], peer: Callable[[], object], n: int) -> None:
        ours(), peer()  # neither pays for what happens once
        pairs = [(timed(ours), timed(peer)) for _ in range(repeats)]
        mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(other / one for one, other in pairs)
        rows.append((what, mine / n, theirs / n, ratio))

    compare("decide, int64", lambda: MODEL.decide(counts), lambda: decide(counts), n_many)
    compare("decide, uint8", lambda: MODEL.decide(narrow), lambda: decide(narrow), n_many)
    compare("(copying the int64 counts)", counts.copy, lambda: decide(counts), n_many)
    compare("(copying the uint8 counts)", narrow.copy, lambda: decide(narrow), n_many)
    compare("predict_proba", lambda: MODEL.predict_proba(counts), lambda: proba(counts), n_many)
    compare("features", lambda: MODEL.features(counts), lambda: reference.features(counts), n_many)
    one = counts[:1]
    minus, tie, plus = one[0].tolist()
    n_loops = 10 if smoke else 2000
    compare(
        "decide_one",
        lambda: [MODEL.decide_one(minus, tie, plus) for _ in range(n_loops)],
        lambda: [decide(one) for _ in range(n_loops)],
        n_loops,
    )
    compare(
        "DRPS and gradient",
        lambda: (MODEL.drps(million, labels), MODEL.drps_gradient(million, labels)),
        lambda: loss(THETA, *reference.features(million), labels),
        n_million,
    )
    compare(
        f"calibrate, the paper's fit, {n_million:,} items",
        lambda: calibrate(million, labels, prior=None),
        lambda: numpy_fit(million, labels),
        1,
    )
    compare(
        "calibrate, the paper's fit, 50 items, against one start",
        lambda: [calibrate(*one_set, prior=None) for one_set in small_sets],
        lambda: [numpy_fit(*one_set) for one_set in small_sets],
        len(small_sets),
    )
    items = rng.integers(0, n_million // 10, size=n_million)
    compare(
        "tally, integer ids",
        lambda: btdagg.tally(items, labels),
        lambda: numpy_tally(items, labels),
        n_million,
    )
    compare("import (whole process)", importing("btdagg"), importing("numpy"), 1)

    print(
        f"btdagg {btdagg.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}, one thread\n"
    )
    print("| what | btdagg | peer | peer / btdagg |")
    print("|---|---:|---:|---:|")
    for what, mine, theirs, ratio in rows:
        print(f"| {what} | {shown(mine)} | {shown(theirs)} | {ratio:.1f}× |")


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def proba(counts: np.ndarray) -> np.ndarray:
    return reference.probabilities(*reference.features(counts), *THETA)


def decide(counts: np.ndarray) -> np.ndarray:
    return reference.decide(proba(counts))


def loss(
    theta: tuple[float, float, float], s: np.ndarray, t: np.ndarray, labels: np.ndarray
) -> tuple[float, np.ndarray]:
    p = reference.probabilities(s, t, *theta)
    return reference.drps(p, labels), reference.drps_gradient(s, t, labels, *theta)


def numpy_fit(counts: np.ndarray, labels: np.ndarray) -> object:
    s, t = reference.features(counts)
    return minimize(
        loss, [1.0, 0.0, 0.0], args=(s, t, labels), jac=True, method="L-BFGS-B", bounds=BOUNDS
    )


def numpy_tally(items: np.ndarray, votes: np.ndarray) -> np.ndarray:
    ids, place = np.unique(items, return_inverse=True)
    return np.bincount(3 * place + votes + 1, minlength=3 * len(ids)).reshape(-1, 3)


def importing(module: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


if __name__ == "__main__":
    main()
