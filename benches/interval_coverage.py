"""Coverage and width of every interval of an estimate, in one table.

Items are drawn anew from public votes (BTDAGG_SHARED): pairs of RewardBench 2 with a tie in a third
of the labels or so, grades of a rubric, and passes; items alone, or prompts with their items. Of
1,000 items some are labelled: a simple sample, or independently with probabilities that are up to
four times as high where votes disagree. New items' truth is the mean of all that is drawn from,
these items' that of the 1,000. A cell fails, marked `!`, whose coverage
is below 92.5% beyond chance (its upper 99% limit). `--json FILE` writes the cells, with which
another run is compared (`--beside FILE`). `--smoke` does little.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.stats import beta

import btdagg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/promises"))
import public_votes as public

N_ITEMS = 1000
KINDS = ("pairs", "grades", "passes")
LABELS = (30, 60, 100, 300)


def sources(kind, in_groups):
    if kind == "pairs":
        return public.rb2()
    if kind == "grades" and in_groups:
        return [cell for cell in public.topical() if len(cell.points) > 2]
    if kind == "grades":
        return [cell for cell in public.graded("rubric") if len(cell.labels) >= 200]
    return [cell for cell in public.graded("rb2_scores") if len(cell.labels) >= 200]


def drawn(cell, in_groups, rng):
    """Rows of a source and their groups, drawn with replacement."""
    if not in_groups:
        return rng.integers(len(cell.labels), size=N_ITEMS), None
    order = np.argsort(cell.groups, kind="stable")
    prompts = np.split(order, np.flatnonzero(np.diff(cell.groups[order])) + 1)
    chosen, n = [], 0
    while n < N_ITEMS:
        chosen.append(prompts[rng.integers(len(prompts))])
        n += len(chosen[-1])
    return np.concatenate(chosen), np.repeat(np.arange(len(chosen)), [*map(len, chosen)])


def labelled(counts, n_labels, is_unequal, rng):
    """Which items have a label, and the probabilities of that."""
    n = len(counts)
    if not is_unequal:
        return rng.permutation(n)[:n_labels], None
    share = counts.max(axis=1) / counts.sum(axis=1)
    p = 1 + 3 * (1 - share) / max(1 - share.min(), 1e-9)
    p = np.minimum(p * n_labels / p.sum(), 1)
    return np.flatnonzero(rng.random(n) < p), p


def cell_of(kind, in_groups, is_unequal, population, n_labels, seed):
    cells = sources(kind, in_groups)
    rng = np.random.default_rng([seed, n_labels, in_groups, is_unequal])
    cell = cells[seed % len(cells)]
    rows, groups = drawn(cell, in_groups, rng)
    counts, gold = cell.counts[rows], cell.labels[rows].astype(float)
    chosen, p = labelled(counts, n_labels, is_unequal, rng)
    labels = np.full(len(gold), np.nan)
    labels[chosen] = gold[chosen]
    how = {"population": population, "groups": groups}
    if kind != "pairs":
        scales = btdagg.Scale(cell.points), btdagg.Scale(cell.label_points)
        how |= dict(zip(("scale", "label_scale"), scales, strict=True))
    if is_unequal:
        how["probabilities"] = p
    if in_groups and population == "finite":
        how["units"] = np.arange(len(gold))
    found = btdagg.estimate(counts, labels, **how)
    of_all = cell.labels.astype(float) if population == "new" else gold
    for name, truth in truths(kind, of_all, cell.label_points).items():
        one = found.estimates[name]
        for way, estimate in (("", one), (" alone", one.labels_only)):
            held = estimate.low - 1e-9 <= truth <= estimate.high + 1e-9
            yield name + way, held, estimate.high - estimate.low


def truths(kind, gold, points):
    if kind == "pairs":
        shares = {name: (gold == k).mean() for k, name in ((1, "A"), (0, "tie"), (-1, "B"))}
        return shares | {"win rate": (gold.mean() + 1) / 2}
    if kind == "passes":
        return {"pass rate": gold.mean()}
    at_least = {f"share >= {point}": (gold >= point).mean() for point in points[1:]}
    return {"mean grade": gold.mean(), **at_least}


def run(cell):
    *key, seeds = cell
    held, widths = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            for name, is_held, width in cell_of(*key, seed):
                held.setdefault(name, []).append(bool(is_held))
                widths.setdefault(name, []).append(float(width))
    return key, {name: (sum(held[name]), len(held[name]), np.mean(widths[name])) for name in held}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    n_processes = int(os.environ.get("N_PROCESSES", "2"))
    parser.add_argument("--processes", type=int, default=n_processes)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    n_draws = 3 if options.smoke else options.draws
    numbers = LABELS[:1] if options.smoke else LABELS
    keys = [*product(KINDS, (False, True), (False, True), ("new", "finite"), numbers)]
    if public.data() is None:
        print("no public votes: set BTDAGG_SHARED")
        return
    before = json.loads(options.beside.read_text()) if options.beside else {}
    cells, least = {}, 1.0
    # Polars' threads do not outlive a fork.
    with get_context("spawn").Pool(options.processes) as pool:
        for key, of_names in pool.imap(run, [(*key, range(n_draws)) for key in keys]):
            kind, in_groups, is_unequal, population, n_labels = key
            where = f"{kind}, {'prompts' if in_groups else 'items'}, "
            where += f"{'unequal' if is_unequal else 'equal'}, {population}, {n_labels}"
            for name, (n_held, n, width) in of_names.items():
                upper = 1.0 if n_held == n else float(beta.ppf(0.99, n_held + 1, n - n_held))
                cell = f"{where}, {name}"
                cells[cell] = n_held / n, width
                least = min(least, n_held / n)
                text = f"{cell:58}{100 * n_held / n:7.1f}{width:9.4f}"
                if cell in before:
                    share, old = before[cell]
                    text += f"{100 * share:7.1f}{old:9.4f}{width / old:7.3f}"
                print(text + " !" * (upper < 0.925), flush=True)
    print(f"least coverage {100 * least:.1f}% of {n_draws} draws a cell")
    if options.json:
        options.json.write_text(json.dumps(cells))


if __name__ == "__main__":
    main()
