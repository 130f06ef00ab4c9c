"""1,000 bootstrap refits on 100 items against a loop over `btdagg.calibrate`, one thread each.

Prints a Markdown table of processor times, medians of three, and the largest excess of a refit's
loss. `--smoke` does little.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import btdagg
from btdagg import DavidsonModel, bootstrap, calibrate
from btdagg.model import CalibrationWarning
from btdagg.model.posterior import refitted
from btdagg.model.refits import _cells_of

JUDGES = ((0.62, 0.3, 0.5), (1.19, 2.66, 0.52), (1.41, 6.5, 1.94))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="20 refits")
    n_refits, n_loop = (20, 5) if parser.parse_args().smoke else (1000, 300)
    warnings.simplefilter("ignore", CalibrationWarning)
    print("| 100 items | refits | loop, per refit | bootstrap, per refit | ratio | excess |")
    print("|---|---:|---:|---:|---:|---:|")
    rng = np.random.default_rng(0)
    for n_votes in (4, 8, 12):
        for judge in JUDGES:
            chances = rng.dirichlet([1, 1, 1], size=100)
            counts = np.array([rng.multinomial(n_votes, p) for p in chances])
            p = DavidsonModel(*judge).predict_proba(counts)
            labels = (rng.random(100)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1) - 1
            ours, theirs = [], []
            for _ in range(3):
                start = time.process_time()
                bootstrap(counts, labels, n_refits=n_refits, prior=None)
                ours.append((time.process_time() - start) / n_refits)
                start = time.process_time()
                for _ in range(n_loop // 3):
                    drawn = rng.integers(100, size=100)
                    calibrate(counts[drawn], labels[drawn], prior=None)
                theirs.append((time.process_time() - start) / (n_loop // 3 or 1))
            items = _cells_of(counts, labels, None)
            (weights,) = items.draws(n_loop, 0)
            cells = items.counts, items.labels
            thetas = refitted(*cells, weights, None, 1.0, 1.0, btdagg.Bounds())
            excess = max(
                DavidsonModel(*theta).drps(*cells, weights=row)
                - calibrate(*cells, weights=row, prior=None).drps
                for theta, row in zip(thetas, weights, strict=True)
            )
            mine, loop = np.median(ours), np.median(theirs)
            print(
                f"| {n_votes} votes, beta, eta0, gamma {judge} | {n_refits} "
                f"| {loop * 1e6:.0f} µs | {mine * 1e6:.0f} µs | {loop / mine:.1f}× | {excess:.1e} |"
            )


if __name__ == "__main__":
    main()
