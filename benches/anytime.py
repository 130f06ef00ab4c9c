"""Level, power and length of tests that are looked at after every item, beside tests that are not.

Streams are drawn anew from public votes (BTDAGG_SHARED): labels of pairs, differences of grades,
and groups of unequal size. A stream is wrong if ever, at any of its looks, an end of the confidence
sequence passes the truth: the share of wrong ones is the level, and one less it the coverage of the
sequence at all times. Power and length are of a margin that a fixed test shows with 90%: beside it
O'Brien and Fleming's five looks, and the sequence, stopped when it has shown it. `--smoke` does
little.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.stats import norm

import btdagg
from btdagg.inference.anytime import _LEAST, Bet, _gains, _together

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/promises"))
import public_votes as public

LEVEL, POWER = 0.95, 0.9
# Two-sided 95% in the end by O'Brien and Fleming's bounds, of five looks: z at look k is
# 2.040 * sqrt(5 / k) (Jennison and Turnbull, Group Sequential Methods, 2000, table 2.3).
OBF = 2.040 * np.sqrt(5 / np.arange(1, 6))


def streams():
    """Populations of groups by name: values of each group, and their ends."""
    rubric = next(cell for cell in public.graded("rubric") if len(cell.labels) >= 200)
    topical = next(cell for cell in public.topical() if len(cell.points) > 2)
    for name, cell, in_prompts in (
        ("pairs, items", public.rb2()[0], False),
        ("pairs, prompts of unequal size", public.vicuna80()[0], True),
        ("grades, prompts of unequal size", topical, True),
        ("grades, items", rubric, False),
    ):
        labels = cell.labels.astype(float)
        points = (-1, 1) if name.startswith("pairs") else cell.label_points
        number = cell.groups if in_prompts else np.arange(len(labels))
        order = np.argsort(number, kind="stable")
        parts = np.split(labels[order], np.flatnonzero(np.diff(number[order])) + 1)
        yield name, thinned(parts) if in_prompts else parts, (min(points), max(points))


def thinned(parts):
    """Groups of one item up to all that they have."""
    rng = np.random.default_rng(0)
    return [part[: rng.integers(1, len(part) + 1)] for part in parts]


def run(job):
    """Whether either end passes the truth, and when a margin is shown, for some streams."""
    groups, ends, margin, n_groups, seeds = job
    sums, sizes = np.array([g.sum() for g in groups]), np.array([len(g) for g in groups])
    truth, most = sums.sum() / sizes.sum(), sizes.max()
    enough, found = -np.log(1 - LEVEL), []
    for seed in seeds:
        rows = np.random.default_rng(seed).integers(len(groups), size=n_groups)
        bets = np.array(
            [Bet(sums[k], sizes[k], -most * ends[0], most * ends[1], most) for k in rows]
        )
        # An end passes a mean when the wealth of bets against it reaches one over the error.
        wrong = [wealth_of(bets, truth, side).max() >= enough for side in (0, 1)]
        is_shown = wealth_of(bets, max(truth - margin, ends[0]), 0) >= enough
        shown = np.cumsum(sizes[rows])[is_shown.argmax()] if is_shown.any() else 0
        found.append((*wrong, shown))
    return np.array(found)


def wealth_of(bets, mean, side):
    """Log wealth of the bets against a mean after each group."""
    return _together(np.cumsum(_gains(bets, mean, side, _LEAST), axis=0))


def run_gate(job):
    """Whether either bound of a gate of these items passes the truth."""
    cell, n_labels, seeds = job
    wrong = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rows = rng.integers(len(cell.labels), size=400)
        counts, gold = cell.counts[rows], cell.labels[rows].astype(float)
        labels = np.full(len(gold), np.nan)
        chosen = rng.permutation(len(gold))[:n_labels]
        labels[chosen] = gold[chosen]
        with tempfile.TemporaryDirectory() as folder:
            found = btdagg.estimates.not_worse(
                counts,
                labels,
                candidate="A",
                baseline="B",
                margin=0.0,
                population="finite",
                sequential=Path(folder) / "gate.json",
            )
        wrong.append((found.lower > gold.mean() + 1e-9, found.upper < gold.mean() - 1e-9))
    return np.array(wrong)


def fixed_and_grouped(groups, null, n_groups, seeds):
    """Power of a fixed test by groups, and of five looks with their mean number of groups."""
    sums, sizes = np.array([g.sum() for g in groups]), np.array([len(g) for g in groups])
    shown, looks, length = [], [], []
    ends = np.round(np.linspace(n_groups / 5, n_groups, 5)).astype(int)
    for seed in seeds:
        rows = np.random.default_rng(seed).integers(len(groups), size=n_groups)
        away = np.cumsum(sums[rows] - null * sizes[rows])
        squares = np.cumsum((sums[rows] - null * sizes[rows]) ** 2)
        z = away[ends - 1] / np.sqrt(
            np.maximum(squares[ends - 1] - away[ends - 1] ** 2 / ends, 1e-9)
        )
        shown.append(z[-1] > norm.ppf(LEVEL))
        passed = np.flatnonzero(z > OBF * norm.ppf(LEVEL) / norm.ppf((1 + LEVEL) / 2))
        looks.append(len(passed) > 0)
        length.append(ends[passed[0]] if len(passed) else n_groups)
    return np.mean(shown), np.mean(looks), np.mean(length)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if public.data() is None:
        print("no public votes: set BTDAGG_SHARED")
        return
    n_streams = 4 if options.smoke else options.streams
    n_fixed = 60 if options.smoke else 200
    parts = [range(start, min(start + 50, n_streams)) for start in range(0, n_streams, 50)]
    n_processes = int(os.environ.get("N_PROCESSES", "2"))
    print(
        "| stream, groups of the fixed test | wrong below | wrong above | fixed test | five looks "
        "| their mean length | at every look, within 1, 2 and 4 times | mean length to 90% |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    # Polars' threads do not outlive a fork.
    with get_context("spawn").Pool(n_processes) as pool:
        for name, groups, ends in streams():
            sums, sizes = np.array([g.sum() for g in groups]), np.array([len(g) for g in groups])
            truth = sums.sum() / sizes.sum()
            spread = np.sqrt(np.mean((sums - truth * sizes) ** 2)) / sizes.mean()
            margin = (norm.ppf(LEVEL) + norm.ppf(POWER)) * spread / np.sqrt(n_fixed)
            jobs = [(groups, ends, margin, 4 * n_fixed, part) for part in parts]
            found = np.concatenate(pool.map(run, jobs))
            fixed, looks, length = fixed_and_grouped(
                groups, truth - margin, n_fixed, range(n_streams)
            )
            n_items = n_fixed * sizes.mean()
            shown = np.where(found[:, 2] > 0, found[:, 2], np.inf) / n_items
            within = ", ".join(f"{100 * (shown <= k).mean():.0f}%" for k in (1, 2, 4))
            most = np.quantile(shown, POWER)
            mean = np.minimum(shown, most).mean() if np.isfinite(most) else np.nan
            print(
                f"| {name}, {n_fixed} | {100 * found[:, 0].mean():.2f}% | "
                f"{100 * found[:, 1].mean():.2f}% | {100 * fixed:.0f}% | {100 * looks:.0f}% | "
                f"{length / n_fixed:.2f} | {within} | {mean:.2f} (at most {most:.2f}) |",
                flush=True,
            )
        for n_labels in (100, 300):
            jobs = [(public.rb2()[0], n_labels, part) for part in parts]
            wrong = np.concatenate(pool.map(run_gate, jobs)).mean(axis=0)
            print(
                f"| gate of these 400 items, with votes, {n_labels} labels | {100 * wrong[0]:.2f}% "
                f"| {100 * wrong[1]:.2f}% |  |  |  |  |  |",
                flush=True,
            )


if __name__ == "__main__":
    main()
