"""Coverage of `estimates.change` over simulated changes of systems and judge.

Two periods of 600 responses, four votes and 100 labels each. What people think of a response is a
normal number, what a judge thinks the same and its bias. Bounds, which do without labels of the
second period, assume that the judge's part is at most what it is; of the last cell, half of that.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np

import btdagg
from btdagg.estimates import change
from btdagg.votes import Items

N_ITEMS, N_LABELS, N_VOTES = 600, 100, 4
GRADES = btdagg.Scale("1-5")
# What people think less before, what the judge adds to it, and what people think on average.
CELLS = {
    "systems alone": (0.3, 0.0, 0.0),
    "judge alone": (0.0, 0.3, 0.0),
    "both": (0.3, 0.3, 0.0),
    "neither": (0.0, 0.0, 0.0),
    "both, most are good": (0.3, -0.3, 0.8),
    "judge dislikes the new": (0.4, -0.4, 0.0),
}


def votes_and_labels(rng, n, kind, mean, bias):
    """Counts, (n, points), and labels, (n,)."""
    liked = rng.normal(mean, 1, n)
    said = liked + rng.normal(0, 0.6, n)
    if kind == "pairs":
        labels = np.where(abs(said) < 0.4, 0, np.sign(said)).astype(int)
        weights = np.exp(np.outer(liked + bias, [-1.5, 0, 1.5]))
        return rng.multinomial(N_VOTES, weights / weights.sum(1, keepdims=True)), labels
    votes = 3 + (liked + bias)[:, None] + rng.normal(0, 0.8, (n, N_VOTES))
    votes = np.clip(np.round(votes), 1, 5)
    counts = np.stack([(votes == point).sum(1) for point in GRADES.points], 1)
    return counts, np.clip(np.round(3 + said), 1, 5).astype(int)


def truth(kind, cell, n):
    """People's change and the judge's part in that of votes, by n responses of each period."""
    rng, means = np.random.default_rng(0), []
    shift, bias, mean = CELLS[cell]
    points = (GRADES if kind == "grades" else btdagg.PAIRS).floats
    for of_people, of_judge in ((mean, 0), (mean + shift, bias)):
        counts, labels = votes_and_labels(rng, n, kind, of_people, of_judge)
        means.append((labels.mean(), (counts @ points).mean() / N_VOTES))
    people, votes = np.subtract(means[1], means[0])
    return people, votes - people


def drawn(seed, kind, cell, most_of_judge):
    """What is said of one pair of periods: change, and bounds without labels of the second."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, 7])
    shift, bias, mean = CELLS[cell]
    periods = []
    for start, of_people, of_judge in ((0, mean, 0), (N_ITEMS, mean + shift, bias)):
        counts, labels = votes_and_labels(rng, N_ITEMS, kind, of_people, of_judge)
        known = rng.permutation(N_ITEMS) < N_LABELS
        labels = np.where(known, labels, np.nan)
        scale = GRADES if kind == "grades" else btdagg.PAIRS
        items = Items(counts=counts, ids=np.arange(start, start + N_ITEMS), scale=scale)
        periods.append(replace(items, labels=labels))
    told = change(*periods)
    blind = change(periods[0], items, most_of_judge=most_of_judge)
    parts = [(part.low, part.high) for part in (told.people, told.judge)]
    return told.who, (*parts, blind.bounds), blind.people is None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    n_draws, n_large = (1, 20_000) if options.smoke else (options.draws, 400_000)
    workers = int(os.environ.get("N_PROCESSES", "2")), get_context("spawn")
    columns = ("cell", "people", "judge", "people held, %", "width", "judge held, %", "width")
    columns += ("said", "bounds held, %", "width")
    print("|", " | ".join(columns), "|\n|" + "---|" * len(columns), flush=True)
    with ProcessPoolExecutor(*workers) as pool:
        for kind in ("pairs", "grades"):
            for cell in CELLS:
                people, judge = truth(kind, cell, n_large)
                most = abs(judge) / 2 if cell == [*CELLS][-1] else abs(judge)
                of_draw = partial(drawn, kind=kind, cell=cell, most_of_judge=most)
                draws = pool.map(of_draw, range(n_draws), chunksize=20)
                who, ends, blind = zip(*draws, strict=True)
                assert all(blind)  # no estimate of what has no label
                low, high = np.array(ends).transpose(2, 0, 1)
                true = np.array([people, judge, people])
                held = 100 * ((low <= true) & (true <= high)).mean(axis=0)
                width = (high - low).mean(axis=0)
                of = [f"{held[k]:.1f} | {width[k]:.3f}" for k in range(3)]
                said = ", ".join(f"{name} {n}" for name, n in Counter(who).most_common())
                row = (f"{kind}, {cell}", f"{people:+.3f}", f"{judge:+.3f}", *of[:2], said, of[2])
                print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
