"""Who drifted: streams spliced from public votes, with items judged again beside them.

A monitor has 400 items of a judge as reference. On the stream the judge changes after 500 items, or
the mix of items does (three of four are then those whose votes lean to one side), or both, or
nothing. Every 100 items of the stream ten anchors are judged again. Beside it a schedule of the
same anchors: a t-test of all of them at each time, corrected for the number of times and facets.
BTDAGG_SHARED names the folder of the public votes.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

from btdagg.online import DriftMonitor

N_REFERENCE, BEFORE, N_ITEMS, EVERY, ANCHORS = 400, 500, 5000, 100, 10
OLD, NEW = ("gpt-5.4", "base"), ("gpt-5.4-mini", "base")
LEVEL = 0.05
N_ANCHORS = N_ITEMS // EVERY * ANCHORS


def counts_of(data):
    """Counts of eight votes of both judges on the same items, (items, 3) each."""
    votes = pl.read_parquet(data / "rb2/votes.parquet").with_columns(
        pl.col("item", "judge", "template", "temperature").cast(str)
    )
    tables = []
    for judge, template in (OLD, NEW):
        own = votes.filter(judge=judge, template=template, temperature="default")
        sums = [(pl.col("vote") == vote).sum().alias(str(vote)) for vote in (-1, 0, 1)]
        tables.append(own.group_by("item").agg(sums).filter(pl.sum_horizontal("-1", "0", "1") == 8))
    both = tables[0].join(tables[1], on="item", suffix="_new").sort("item")
    names = ["-1", "0", "1"]
    both = both.select(pl.exclude("item").cast(pl.Int64))
    return both.select(names).to_numpy(), both.select(f"{name}_new" for name in names).to_numpy()


def told(old, new, judge, mix, seed):
    """What was said first, after how many items, with how many anchors; and by the schedule."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(old))
    reference, anchors = order[:N_REFERENCE], order[N_REFERENCE : N_REFERENCE + N_ANCHORS]
    rest = order[N_REFERENCE + N_ANCHORS :]
    lean = rest[old[rest, 2] > old[rest, 0]]
    items = rng.choice(rest, N_ITEMS)
    if mix:
        leaning = rng.random(N_ITEMS) < 0.75
        leaning[:BEFORE] = False
        items = np.where(leaning, rng.choice(lean, N_ITEMS), items)
    after = np.arange(N_ITEMS) >= BEFORE
    stream = np.where((after & judge)[:, None], new[items], old[items])
    monitor, said = DriftMonitor(old[reference], level=LEVEL, seed=seed), None
    n_times, by_schedule, gaps = N_ITEMS // EVERY, None, []
    for time, end in enumerate(range(EVERY, N_ITEMS + 1, EVERY)):
        monitor.observe(stream[end - EVERY : end])
        rows = anchors[time * ANCHORS : (time + 1) * ANCHORS]
        first, again = old[rows], new[rows]
        if not (judge and end > BEFORE):  # the old judge again: votes drawn from those of the item
            first, again = ([rng.multinomial(8, own / 8) for own in old[rows]] for _ in range(2))
            first, again = np.array(first), np.array(again)
        report = monitor.judge_again(first, again)
        gaps.append(again - first)
        values = np.concatenate(gaps)
        facets = values[:, 1], values[:, 2] - values[:, 0]
        with np.errstate(invalid="ignore"):
            p = min(stats.ttest_1samp(own, 0).pvalue for own in facets)
        if by_schedule is None and p < LEVEL / n_times / len(facets):
            by_schedule = end
        if said is None and report.who in ("the judge", "the systems", "both"):
            said = report.who, end
    return (report.who, None if said is None else said[1]), by_schedule


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    shared = os.environ.get("BTDAGG_SHARED")
    if shared is None:
        print("BTDAGG_SHARED is not set: nothing to measure")
        return
    old, new = counts_of(Path(shared) / "data")
    n_streams = 3 if options.smoke else options.streams
    print("| changed | said at the end | first after items (median) | schedule: judge, after |")
    print("|---|---|---|---|")
    cells = {"judge": (1, 0), "mix": (0, 1), "both": (1, 1), "nothing": (0, 0)}
    for name, (judge, mix) in cells.items():
        found = [told(old, new, bool(judge), bool(mix), seed) for seed in range(n_streams)]
        ends = Counter(who for (who, _), _ in found)
        at = [end for (_, end), _ in found if end is not None]
        times = [end for _, end in found if end is not None]
        words = ", ".join(f"{who} {n / n_streams:.1%}" for who, n in ends.most_common())
        median = f"{np.median(at):.0f}" if at else "–"
        scheduled = f"{len(times) / n_streams:.1%}"
        scheduled += f", {np.median(times):.0f}" if times else ""
        print(f"| {name} | {words} | {median} | {scheduled} |", flush=True)


if __name__ == "__main__":
    main()
