"""What `estimates.change` says of simulated changes of systems, judge and items, and coverage.

Two periods of 600 responses, four votes and 100 labels each. What people think of a response is a
normal number, what a judge thinks the same and its bias. Some judges follow it more or less than
people do, or call more ties. In "other items" a second kind, on which the judge leans to A, becomes
more common. With anchors, some responses of the first period are judged again in the second.
Bounds, which do without labels of the second period, assume that votes and people moved apart by at
most as much as they did; of the last cell, half of that.
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
from typing import NamedTuple

import numpy as np

import btdagg
from btdagg.estimates import change
from btdagg.votes import Items

N_ITEMS, N_LABELS, N_VOTES = 600, 100, 4
GRADES = btdagg.Scale("1-5")


class Cell(NamedTuple):
    """How two periods differ, and how judge and people decide."""

    shift: float = 0.0  # what people think more of responses in the second period
    bias: float = 0.0  # what the judge adds in the second period
    mean: float = 0.0  # what people think of responses in the first
    steep: float = 1.0  # how much more a judge's votes follow a response than they usually do
    ties: float = 0.0  # how many more ties a judge calls, in logits
    indifferent: float = 0.4  # below which people call a tie
    others: tuple[float, float] = (0.0, 0.0)  # shares of a kind of which the judge likes A
    n_anchors: int = 0


CELLS = {
    "systems alone": Cell(0.3),
    "judge alone": Cell(0, 0.3),
    "both": Cell(0.3, 0.3),
    "neither": Cell(),
    "both, most are good": Cell(0.3, -0.3, 0.8),
    "better systems, judge of many ties": Cell(0.6, ties=3.0),
    "better systems, noisy judge": Cell(0.6, steep=0.25),
    "better systems, decisive judge": Cell(0.6, steep=3.0),
    "better systems, people of many ties": Cell(0.6, indifferent=1.6),
    "better systems, judge like people": Cell(0.6),
    "other items": Cell(others=(0.1, 0.7)),
    "judge of many ties, 40 anchors": Cell(0.6, ties=3.0, n_anchors=40),
    "other items, 40 anchors": Cell(others=(0.1, 0.7), n_anchors=40),
    "judge alone, 40 anchors": Cell(0, 0.3, n_anchors=40),
    "judge alone, 200 anchors": Cell(0, 0.3, n_anchors=200),
    "judge dislikes the new": Cell(0.4, -0.4),
}


def votes_of(rng, thought, kind, cell):
    """Counts, (n, points), of a judge that thinks so of responses."""
    if kind == "pairs":
        follows = np.outer(cell.steep * thought, [-1.5, 0, 1.5])
        weights = np.exp(follows + np.array([0, cell.ties, 0]))
        return rng.multinomial(N_VOTES, weights / weights.sum(1, keepdims=True))
    away = cell.steep * np.exp(-cell.ties / 2)
    votes = 3 + away * thought[:, None] + rng.normal(0, 0.8, (len(thought), N_VOTES))
    votes = np.clip(np.round(votes), 1, 5)
    return np.stack([(votes == point).sum(1) for point in GRADES.points], 1)


def drawn_period(rng, n, kind, cell, is_second):
    """What the judge thinks of n responses without its bias, and their labels."""
    liked = rng.normal(cell.mean + cell.shift * is_second, 1, n)
    is_other = rng.random(n) < cell.others[is_second]
    said = liked + rng.normal(0, 0.6, n)
    thought = liked + 0.7 * is_other
    if kind == "pairs":
        return thought, np.where(np.abs(said) < cell.indifferent, 0, np.sign(said)).astype(int)
    away = 0.4 / cell.indifferent
    return thought, np.clip(np.round(3 + away * said), 1, 5).astype(int)


def truth(kind, cell, n):
    """People's change and how far votes moved from it, by n responses of each period."""
    rng, means = np.random.default_rng(0), []
    points = (GRADES if kind == "grades" else btdagg.PAIRS).floats
    for is_second in (0, 1):
        thought, labels = drawn_period(rng, n, kind, cell, is_second)
        counts = votes_of(rng, thought + cell.bias * is_second, kind, cell)
        means.append((labels.mean(), (counts @ points).mean() / N_VOTES))
    people, votes = np.subtract(means[1], means[0])
    return people, votes - people


def drawn(seed, kind, name, most):
    """What is said of one pair of periods: change, and bounds without labels of the second."""
    warnings.simplefilter("ignore")
    rng, cell = np.random.default_rng([seed, 7]), CELLS[name]
    scale, periods, again = GRADES if kind == "grades" else btdagg.PAIRS, [], None
    for is_second in (0, 1):
        thought, labels = drawn_period(rng, N_ITEMS, kind, cell, is_second)
        ids = np.arange(N_ITEMS) + is_second * N_ITEMS
        labels = np.where(rng.permutation(N_ITEMS) < N_LABELS, labels, np.nan)
        if is_second:
            thought, ids = np.append(thought, again[0]), np.append(ids, again[1])
            labels = np.append(labels, again[2])
        again = [values[: cell.n_anchors] for values in (thought, ids, labels)]
        counts = votes_of(rng, thought + cell.bias * is_second, kind, cell)
        items = Items(counts=counts, ids=ids, scale=scale)
        periods.append(replace(items, labels=labels))
    found = change(*periods)
    blind = change(periods[0], items, most_of_judge=most)
    ends = [(part.low, part.high) for part in (found.people, found.apart)]
    return found.who, (*ends, blind.bounds), blind.people is None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    n_draws, n_large = (1, 20_000) if options.smoke else (options.draws, 400_000)
    workers = int(os.environ.get("N_PROCESSES", "2")), get_context("spawn")
    columns = ("cell", "people", "apart", "people held, %", "width", "apart held, %", "width")
    columns += ("judge named, %", "said", "bounds held, %", "width")
    print("|", " | ".join(columns), "|\n|" + "---|" * len(columns), flush=True)
    with ProcessPoolExecutor(*workers) as pool:
        for kind in ("pairs", "grades"):
            for cell in CELLS:
                people, apart = truth(kind, CELLS[cell], n_large)
                most = abs(apart) / 2 if cell == [*CELLS][-1] else abs(apart)
                of_draw = partial(drawn, kind=kind, name=cell, most=most)
                draws = pool.map(of_draw, range(n_draws), chunksize=20)
                who, ends, blind = zip(*draws, strict=True)
                assert all(blind)  # no estimate of what has no label
                low, high = np.array(ends).transpose(2, 0, 1)
                true = np.array([people, apart, people])
                held = 100 * ((low <= true) & (true <= high)).mean(axis=0)
                width = (high - low).mean(axis=0)
                of = [f"{held[k]:.1f} | {width[k]:.3f}" for k in range(3)]
                said = ", ".join(f"{name} {n}" for name, n in Counter(who).most_common())
                named = 100 * np.mean([name in ("the judge", "both") for name in who])
                row = (f"{kind}, {cell}", f"{people:+.3f}", f"{apart:+.3f}", *of[:2])
                row += (f"{named:.1f}", said, of[2])
                print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
