"""Level and coverage of `btdagg.compare` on data drawn anew.

Level is the share of 95% intervals of the difference that exclude 0 where both ways are equally
good: a judge and its twin (simulated), and two judges of RewardBench 2 that swap roles at random,
prompt by prompt. Coverage is the share of intervals that hold the difference which the two models
written from the labels have on all other items: of three votes and eight (simulated), and of signs
and strength. Items are drawn by prompt, with all their items (groups) or one of them (items).
BTDAGG_SHARED names the folder of the public votes; `--smoke` does little.
"""

from __future__ import annotations

import argparse
import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np

import btdagg
from btdagg.datasets import simulate

REGIMES = ("rb2-factuality", "rb2-math", "rb2-ties")
CELLS = [("claude-sonnet-4.6", "math"), ("gpt-5.4", "focus"), ("gpt-5.4-mini", "precise-if")]
BESIDE = {"claude-sonnet-4.6": "gpt-5.4", "gpt-5.4": "gpt-5.4-mini", "gpt-5.4-mini": "gpt-5.4"}
SIZES = (30, 60)
N_OTHERS = 5000


def error(counts, labels, model):
    return np.abs(model.decide(counts) - labels).mean()


def excludes(first, second, labels, groups=None):
    _, low, high = btdagg.compare(first, second, labels, groups=groups).difference
    return low > 0 or high < 0


def covers(ways, labels, drawn, others, groups=None):
    """Whether the interval holds the difference of the written models on the others; its width."""
    first, second = ways
    truth = 0.0
    for counts, sign in ((first, 1), (second, -1)):
        model = btdagg.calibrate(counts[drawn], labels[drawn], prior="weak").model
        truth += sign * error(counts[others], labels[others], model)
    of_drawn = None if groups is None else groups[drawn]
    result = btdagg.compare(first[drawn], second[drawn], labels[drawn], groups=of_drawn)
    _, low, high = result.difference
    return low - 1e-12 <= truth <= high + 1e-12, high - low


def simulated(regime, size, n_sets):
    level, held = [], []
    for seed in range(n_sets):
        sample = simulate(regime, N_OTHERS, 8, seed=seed)
        drawn, others = np.arange(size), np.arange(size, N_OTHERS)
        half = sample.first(4)
        twins = half[:size], (sample.counts - half)[:size]
        level.append(excludes(*twins, sample.labels[:size]))
        held.append(covers((sample.first(3), sample.counts), sample.labels, drawn, others))
    return level, held


@cache
def labelled(folder, judge, task):
    where = {"judge": judge, "task": task, "template": "base", "temperature": "default"}
    votes = btdagg.read_votes(folder / "votes.parquet").filter(where)
    gold = btdagg.read_labels(folder / "labels.csv")
    items = votes.labelled(gold)
    return items, votes.signs().labelled(gold).pooled


def real(folder, judge, task, size, n_sets, *, grouped):
    (own, signs), (beside, _) = (labelled(folder, name, task) for name in (judge, BESIDE[judge]))
    row_of = {item: row for row, item in enumerate(beside.ids.tolist())}
    both = [row for row, item in enumerate(own.ids.tolist()) if item in row_of]
    second = beside.pooled[[row_of[item] for item in own.ids[both].tolist()]]
    pair = np.stack([own.pooled[both], second], axis=1)
    level, held = [], []
    for seed in range(n_sets):
        rng = np.random.default_rng([size, grouped, seed])
        prompts = rng.permutation(np.unique(own.group))[:size]
        of_drawn = np.isin(own.group, prompts)
        drawn, others = np.flatnonzero(of_drawn), np.flatnonzero(~of_drawn)
        rows = np.flatnonzero(np.isin(own.group[both], prompts))
        if not grouped:
            drawn = drawn[np.unique(own.group[drawn], return_index=True)[1]]
            rows = rows[np.unique(own.group[both][rows], return_index=True)[1]]
        groups, number = own.group[both][rows], np.unique(own.group[both], return_inverse=True)[1]
        swapped = rng.integers(0, 2, number.max() + 1)[number[rows]]
        first, second = (pair[rows, side] for side in (swapped, 1 - swapped))
        of_rows = groups if grouped else None
        level.append(excludes(first, second, own.label[both][rows], of_rows))
        ways = signs, own.pooled
        held.append(covers(ways, own.label, drawn, others, own.group if grouped else None))
    return level, held


def show(name, size, kind, level, held):
    coverage, width = np.mean(held, axis=0)
    print(
        f"| {name} | {size} {kind} | {np.mean(level):.3f} | {coverage:.3f} | {width:.3f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one data set of each kind")
    parser.add_argument("--sets", type=int, default=200, help="data sets of each line")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    n_sets, few = (1, 1) if args.smoke else (args.sets, None)
    print("| votes | labels | level | coverage | width |\n|---|---|---:|---:|---:|")
    for regime in REGIMES[:few]:
        for size in SIZES[:few]:
            show(f"simulated, {regime}", size, "items", *simulated(regime, size, n_sets))
    shared = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared"))
    folder = shared / "data" / "rb2"
    if not folder.is_dir():
        print("the public votes are not here: set BTDAGG_SHARED")
        return
    for judge, task in CELLS[:few]:
        for size in SIZES[:few]:
            for grouped in (False, True):
                kind = "prompts" if grouped else "items"
                measured = real(folder, judge, task, size, n_sets, grouped=grouped)
                show(f"{judge}, {task}", size, kind, *measured)


if __name__ == "__main__":
    main()
