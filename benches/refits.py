"""1,000 bootstrap refits on 100 items against a loop over `btdagg.calibrate`, one thread each.

Prints a Markdown table of processor times, medians of three, without a prior and with the weak one,
and how far a refit is from its calibration: the largest excess of the loss, and the largest
difference of a parameter. `--smoke` does little.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import btdagg
from btdagg import DavidsonModel, bootstrap, calibrate
from btdagg.model import CalibrationWarning
from btdagg.model.fit import refitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

JUDGES = ((0.62, 0.3, 0.5), (1.19, 2.66, 0.52), (1.41, 6.5, 1.94))


def times(
    counts: NDArray[np.int64], labels: NDArray[np.int64], prior: Any, n_refits: int, n_loop: int
) -> tuple[float, float]:
    """Seconds of a refit and of a calibration of the loop."""
    rng, ours, theirs = np.random.default_rng(0), [], []
    for _ in range(3):
        start = time.process_time()
        bootstrap(counts, labels, n_refits=n_refits, prior=prior)
        ours.append((time.process_time() - start) / n_refits)
        start = time.process_time()
        for _ in range(n_loop):
            drawn = rng.integers(len(counts), size=len(counts))
            calibrate(counts[drawn], labels[drawn], prior=prior)
        theirs.append((time.process_time() - start) / n_loop)
    return float(np.median(ours)), float(np.median(theirs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="20 refits")
    n_refits, n_loop = (20, 2) if parser.parse_args().smoke else (1000, 100)
    warnings.simplefilter("ignore", CalibrationWarning)
    print("| votes | beta, eta0, gamma | prior | loop | bootstrap | ratio | apart |")
    print("|---:|---|---|---:|---:|---:|---:|")
    rng = np.random.default_rng(0)
    for n_votes, judge in itertools.product((4, 8, 12), JUDGES):
        chances = rng.dirichlet([1, 1, 1], size=100)
        counts = np.array([rng.multinomial(n_votes, p) for p in chances])
        p = DavidsonModel(*judge).predict_proba(counts)
        labels = (rng.random(100)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1) - 1
        cells, place = np.unique(np.column_stack([counts, labels]), axis=0, return_inverse=True)
        cells = cells[:, :3], cells[:, 3]
        drawn = rng.multinomial(100, np.full(100, 0.01), size=3 * n_loop)
        weights = np.stack([np.bincount(place.ravel(), row, len(cells[0])) for row in drawn])
        outcomes = weights[:, :, None] * np.eye(3)[cells[1] + 1]
        for prior in (None, "weak"):
            models = refitted(cells[0], outcomes, (btdagg.PAIRS, btdagg.PAIRS), prior)
            apart = 0.0
            for model, row in zip(models, weights, strict=True):
                some = np.repeat(np.arange(len(row)), row.astype(int))
                fit = calibrate(*(values[some] for values in cells), prior=prior)
                away = model.drps(*cells, weights=row) - fit.drps
                if prior is not None:
                    away = max(abs(model.beta - fit.model.beta), abs(model.gamma - fit.model.gamma))
                apart = max(apart, away)
            mine, loop = times(counts, labels, prior, n_refits, n_loop)
            print(
                f"| {n_votes} | {', '.join(map(str, judge))} | {prior} | {loop * 1e6:.0f} µs "
                f"| {mine * 1e6:.0f} µs | {loop / mine:.1f}× | {apart:.1e} |"
            )


if __name__ == "__main__":
    main()
