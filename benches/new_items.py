"""Coverage of cross-fitted intervals, and level and power of their test, on real votes drawn anew.

A data set is some prompts of one judge and task of RewardBench 2's votes, drawn at random; the
truth is the error that the model written from it has on all other prompts, at least four times as
many. The null hypothesis is exact for one method on two disjoint halves of the votes of each item.
Votes are read from BTDAGG_SHARED. `--smoke` does little.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np

import btdagg
from btdagg.evaluation import CROSS_FITTED, Protocol, RandomSplits, SplitTest
from btdagg.evaluation.engine import cross_scores
from btdagg.evaluation.items import LabelledItems
from btdagg.evaluation.new_items import NewItems

CELLS = [
    ("claude-sonnet-4.6", "factuality"),
    ("claude-sonnet-4.6", "math"),
    ("gpt-5.4", "focus"),
    ("gpt-5.4-mini", "safety"),
    ("gpt-5.4-mini", "precise-if"),
]
PROMPTS = (20, 40, 60)


def cell(folder: Path, judge: str, task: str) -> LabelledItems:
    where = {"judge": judge, "task": task, "template": "base", "temperature": "default"}
    votes = btdagg.read_votes(folder / "votes.parquet").filter(where)
    labels = btdagg.read_labels(folder / "labels.csv")
    found = votes.labelled(labels)
    return LabelledItems(found.counts, found.labels, found.groups)


def part(items: LabelledItems, rows: np.ndarray) -> LabelledItems:
    return LabelledItems(items.evidence.counts[rows], items.labels[rows], items.groups[rows])


def drawn(items: LabelledItems, n_prompts: int, rng: np.random.Generator):
    """Some prompts' items, and the others."""
    prompts = np.unique(items.groups)
    taken = np.isin(items.groups, rng.choice(prompts, n_prompts, replace=False))
    return part(items, taken), part(items, ~taken)


def coverage(items: LabelledItems, n_prompts: int, n_sets: int) -> list[float]:
    hits, biases, widths = np.zeros(2), [], []
    for seed in range(n_sets):
        known, others = drawn(items, n_prompts, np.random.default_rng([n_prompts, seed]))
        ((found,),) = cross_scores([known], usual(), CROSS_FITTED)
        model = btdagg.calibrate(known.evidence.counts, known.labels).model
        error = np.abs(model.decide(others.evidence.counts) - others.labels)
        majority = np.abs(btdagg.majority_vote(others.evidence.counts) - others.labels)
        intervals = found.methods[0].mae_interval, found.new_items.difference(0, 1)
        for place, truth in enumerate((error.mean(), (error - majority).mean())):
            hits[place] += intervals[place].low <= truth <= intervals[place].high
        biases.append(intervals[0].mean - error.mean())
        widths.append([interval.high - interval.low for interval in intervals])
    return [*(hits / n_sets), float(np.mean(biases)), *np.mean(widths, axis=0)]


def coverage_over_splits(items: LabelledItems, n_prompts: int, n_sets: int) -> list[float]:
    """Coverage of the paper's intervals: mean ± 1.96 standard errors over splits.

    The truth is the mean error of the same models, of 5% of the labels each, on all other prompts.
    """
    hits = np.zeros(2)
    for seed in range(n_sets):
        known, others = drawn(items, n_prompts, np.random.default_rng([n_prompts, seed]))
        fitted: list[tuple[btdagg.aggregators.Aggregator, ...]] = []
        splits = Protocol(RandomSplits(), test=None)
        ((found,),) = cross_scores([known], usual(), splits, observe=fitted.append)
        ours, majority = (method.mae for method in found.methods)
        gold = others.labels
        errors = [np.abs(each[0].decide(others.evidence) - gold).mean() for each in fitted]
        constant = np.abs(btdagg.majority_vote(others.evidence.counts) - gold).mean()
        for place, (losses, truth) in enumerate(
            ((ours, np.mean(errors)), (ours - majority, np.mean(errors) - constant))
        ):
            half = 1.96 * losses.std(ddof=1) / len(losses) ** 0.5
            hits[place] += abs(losses.mean() - truth) <= half
    return (hits / n_sets).tolist()


def level_and_power(items: LabelledItems, n_prompts: int, n_sets: int) -> list[float]:
    """Shares of p-values below 5%: under the null, and of Davidson against majority vote."""
    splits = Protocol(RandomSplits(), SplitTest())
    below = []
    for seed in range(n_sets):
        rng = np.random.default_rng([n_prompts, seed, 5])
        known, _ = drawn(items, n_prompts, rng)
        counts = known.evidence.counts
        first = np.array([rng.multivariate_hypergeometric(row, row.sum() // 2) for row in counts])
        halves = [LabelledItems(c, known.labels, known.groups) for c in (first, counts - first)]
        two = [cross_scores([half], usual()[:1], CROSS_FITTED)[0][0].new_items for half in halves]
        both = NewItems(
            np.concatenate([one.errors for one in two]),
            np.concatenate([one.wrong for one in two]),
            np.concatenate([one.refit_errors for one in two]),
            np.concatenate([one.refit_wrong for one in two]),
            two[0].groups,
        )
        ((found,),) = cross_scores([known], usual(), CROSS_FITTED)
        ((paper,),) = cross_scores([known], usual(), splits)
        below.append(
            [
                both.pvalues()[0, 1] < 0.05,
                found.mae_ranking.pvalues[0, 1] < 0.05,
                paper.mae_ranking.pvalues[0, 1] < 0.05,
            ]
        )
    return np.mean(below, axis=0).tolist()


def usual():
    return btdagg.aggregators.Davidson(), btdagg.aggregators.MajorityVote()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one cell, three data sets")
    parser.add_argument("--sets", type=int, default=300, help="data sets of each cell and size")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    shared = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared"))
    folder = shared / "data" / "rb2"
    if not folder.is_dir():
        print("the public votes are not here: set BTDAGG_SHARED")
        return
    n_sets = 3 if asked.smoke else asked.sets
    print(
        "| judge, task | prompts | error | difference | bias | width | width of the difference "
        "| error, over splits | difference, over splits | level | power | power, twice the median |"
    )
    print("|---|" + "---:|" * 11)
    for judge, task in CELLS[: 1 if asked.smoke else None]:
        items = cell(folder, judge, task)
        for n_prompts in PROMPTS[: 1 if asked.smoke else None]:
            if len(np.unique(items.groups)) < 5 * n_prompts:
                continue
            error, difference, bias, *widths = coverage(items, n_prompts, n_sets)
            shares = coverage_over_splits(items, n_prompts, n_sets)
            shares += level_and_power(items, n_prompts, n_sets)
            numbers = [f"{error:.3f}", f"{difference:.3f}", f"{bias:+.4f}"]
            numbers += [f"{each:.3f}" for each in (*widths, *shares)]
            print(f"| {judge}, {task} | {n_prompts} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
