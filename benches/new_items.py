"""Coverage of cross-fitted intervals, and level and power of their test, on real votes drawn anew.

A data set is some prompts of one judge and task of RewardBench 2's votes, drawn at random; the
truth is the error that the model written from it has on all other prompts, at least four times as
many. The null hypothesis is exact for one method on two disjoint halves of the votes of each item.
Votes are read from BTDAGG_SHARED.

`--few-votes` is about judges of one, two and three votes, whose decisions jump. They are simulated,
and the truth is exact: the difference to majority vote of the model that is written from the labels
drawn, summed over all counts and labels. `--smoke` does little.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import btdagg
from btdagg import Protocol
from btdagg.evaluation import RandomSplits, SplitTest
from btdagg.evaluation.engine import cross_scores
from btdagg.evaluation.new_items import Losses, NewItems
from btdagg.evaluation.protocol import CROSS_FITTED
from btdagg.votes import Items, as_items

CELLS = [
    ("claude-sonnet-4.6", "factuality"),
    ("claude-sonnet-4.6", "math"),
    ("gpt-5.4", "focus"),
    ("gpt-5.4-mini", "safety"),
    ("gpt-5.4-mini", "precise-if"),
]
PROMPTS = (20, 40, 60)

# Gold ties; a vote's chance to be right and to tie, of a decisive label; to tie, of a tie.
FEW_VOTES = {
    "even": (0.40, 0.62, 0.20, 0.35),
    "near even": (0.42, 0.62, 0.20, 0.35),
    "noisy": (0.50, 0.55, 0.20, 0.30),
    "good": (0.20, 0.75, 0.10, 0.30),
    "few ties": (0.10, 0.55, 0.05, 0.10),
    "many ties": (0.30, 0.50, 0.40, 0.60),
}
LABELS = (30, 50, 100)


def cell(folder: Path, judge: str, task: str) -> Items:
    where = {"judge": judge, "task": task, "template": "base", "temperature": "default"}
    votes = btdagg.read_votes(folder / "votes.parquet", strength="none").filter(where)
    labels = btdagg.read_labels(folder / "labels.csv")
    found = votes.labelled(labels)
    return as_items(found.pooled, found.label, found.group)


def part(items: Items, rows: np.ndarray) -> Items:
    return as_items(items.pooled[rows], items.label[rows], items.group[rows])


def drawn(items: Items, n_prompts: int, rng: np.random.Generator):
    """Some prompts' items, and the others."""
    prompts = np.unique(items.group)
    taken = np.isin(items.group, rng.choice(prompts, n_prompts, replace=False))
    return part(items, taken), part(items, ~taken)


def coverage(items: Items, n_prompts: int, n_sets: int) -> list[float]:
    hits, biases, widths = np.zeros(2), [], []
    for seed in range(n_sets):
        known, others = drawn(items, n_prompts, np.random.default_rng([n_prompts, seed]))
        ((found,),) = cross_scores([known], usual(), CROSS_FITTED)
        model = btdagg.calibrate(known.pooled, known.label, prior=None).model
        error = np.abs(model.decide(others.pooled) - others.label)
        majority = np.abs(btdagg.majority_vote(others.pooled) - others.label)
        intervals = found.methods[0].interval(), found.new_items.difference(0, 1)
        for place, truth in enumerate((error.mean(), (error - majority).mean())):
            hits[place] += intervals[place].low <= truth <= intervals[place].high
        biases.append(intervals[0].mean - error.mean())
        widths.append([interval.high - interval.low for interval in intervals])
    return [*(hits / n_sets), float(np.mean(biases)), *np.mean(widths, axis=0)]


def coverage_over_splits(items: Items, n_prompts: int, n_sets: int) -> list[float]:
    """Coverage of the paper's intervals: mean ± 1.96 standard errors over splits.

    The truth is the mean error of the same models, of 5% of the labels each, on all other prompts.
    """
    hits = np.zeros(2)
    for seed in range(n_sets):
        known, others = drawn(items, n_prompts, np.random.default_rng([n_prompts, seed]))
        fitted: list[tuple[btdagg.methods.Aggregator, ...]] = []
        splits = Protocol(RandomSplits(), test=None)
        ((found,),) = cross_scores([known], usual(), splits, observe=fitted.append)
        ours, majority = (method.mae for method in found.methods)
        gold = others.label
        errors = [np.abs(each[0].decide(others.pooled) - gold).mean() for each in fitted]
        constant = np.abs(btdagg.majority_vote(others.pooled) - gold).mean()
        for place, (losses, truth) in enumerate(
            ((ours, np.mean(errors)), (ours - majority, np.mean(errors) - constant))
        ):
            half = 1.96 * losses.std(ddof=1) / len(losses) ** 0.5
            hits[place] += abs(losses.mean() - truth) <= half
    return (hits / n_sets).tolist()


def level_and_power(items: Items, n_prompts: int, n_sets: int) -> list[float]:
    """Shares of p-values below 5%: under the null, and of Davidson against majority vote."""
    splits = Protocol(RandomSplits(), SplitTest())
    below = []
    for seed in range(n_sets):
        rng = np.random.default_rng([n_prompts, seed, 5])
        known, _ = drawn(items, n_prompts, rng)
        counts = known.pooled
        first = np.array([rng.multivariate_hypergeometric(row, row.sum() // 2) for row in counts])
        halves = [as_items(c, known.label, known.group) for c in (first, counts - first)]
        two = [cross_scores([half], usual()[:1], CROSS_FITTED)[0][0].new_items for half in halves]
        losses = {}
        for score, (*_, worst) in two[0].losses.items():
            pairs = zip(*(half.losses[score][:3] for half in two), strict=True)
            losses[score] = Losses(*map(np.concatenate, pairs), worst)
        both = NewItems(losses, two[0].groups)
        ((found,),) = cross_scores([known], usual(), CROSS_FITTED)
        ((paper,),) = cross_scores([known], usual(), splits)
        below.append(
            [
                both.pvalues()[0, 1] < 0.05,
                found.rankings["mae"].pvalues[0, 1] < 0.05,
                paper.rankings["mae"].pvalues[0, 1] < 0.05,
            ]
        )
    return np.mean(below, axis=0).tolist()


def few_votes(judge: str, n_votes: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of so many votes, (k, 3), and the chance of each with each label, (k, 3)."""
    ties, right, tie, of_tie = FEW_VOTES[judge]
    counts = np.array([c for c in np.ndindex(*[n_votes + 1] * 3) if sum(c) == n_votes])
    ways = [math.factorial(n_votes) // math.prod(map(math.factorial, c)) for c in counts.tolist()]
    wrong, side = 1 - right - tie, (1 - of_tie) / 2
    votes = np.array([[right, tie, wrong], [side, of_tie, side], [wrong, tie, right]])
    gold = np.array([(1 - ties) / 2, ties, (1 - ties) / 2])
    of_label = np.prod(votes ** counts[:, None], axis=2)
    return counts, gold * np.array(ways)[:, None] * of_label


def with_few_votes(judge: str, n_votes: int, n_labels: int, n_sets: int) -> list[float]:
    """Coverage, share called worse though it is not, and width: before and after.

    Before are intervals of cross-fitted losses alone.
    """
    counts, chances = few_votes(judge, n_votes)
    labels = np.arange(-1, 2)
    majority = np.abs(btdagg.majority_vote(counts)[:, None] - labels)
    place, measured = list(FEW_VOTES).index(judge), []
    for seed in range(n_sets):
        rng = np.random.default_rng([place, n_votes, n_labels, seed])
        cells = rng.choice(chances.size, size=n_labels, p=chances.ravel() / chances.sum())
        known, gold = counts[cells // 3], labels[cells % 3]
        model = btdagg.calibrate(known, gold, prior=None).model
        away = np.abs(model.decide(counts)[:, None] - labels) - majority
        truth = float((chances * away).sum())
        ((found,),) = cross_scores([as_items(known, gold)], usual(), CROSS_FITTED)
        after = found.new_items
        before = {score: losses._replace(written=None) for score, losses in after.losses.items()}
        for new_items in (replace(after, losses=before), after):
            low, high = new_items.difference(0, 1)[1:]
            covers = low - 1e-12 <= truth <= high + 1e-12
            measured.append([covers, low > 0 and truth <= 1e-12, high - low])
    return np.mean(np.reshape(measured, (n_sets, 6)), axis=0).tolist()


def show_few_votes(n_sets: int, smoke: bool) -> None:
    print("| votes | labels | coverage, before | after | called worse, before | after | width | |")
    print("|---:|---:|" + "---:|" * 6)
    for n_votes in (1,) if smoke else (1, 2, 3):
        for n_labels in LABELS[: 1 if smoke else None]:
            judges = list(FEW_VOTES)[: 1 if smoke else None]
            found = [with_few_votes(judge, n_votes, n_labels, n_sets) for judge in judges]
            numbers = np.mean(found, axis=0)[[0, 3, 1, 4, 2, 5]]
            cells = " | ".join(f"{number:.3f}" for number in numbers)
            print(f"| {n_votes} | {n_labels} | {cells} |", flush=True)


def usual():
    return btdagg.methods.Calibrated(prior=None), btdagg.methods.MajorityVote()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one cell, three data sets")
    parser.add_argument("--few-votes", action="store_true", help="simulated judges of few votes")
    parser.add_argument("--sets", type=int, default=300, help="data sets of each cell and size")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.few_votes or asked.smoke:
        show_few_votes(3 if asked.smoke else asked.sets, asked.smoke)
        if asked.few_votes:
            return
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
            if len(np.unique(items.group)) < 5 * n_prompts:
                continue
            error, difference, bias, *widths = coverage(items, n_prompts, n_sets)
            shares = coverage_over_splits(items, n_prompts, n_sets)
            shares += level_and_power(items, n_prompts, n_sets)
            numbers = [f"{error:.3f}", f"{difference:.3f}", f"{bias:+.4f}"]
            numbers += [f"{each:.3f}" for each in (*widths, *shares)]
            print(f"| {judge}, {task} | {n_prompts} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
