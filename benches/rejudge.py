"""A change of the judge: errors of the old model, of a refit and of `recalibrate` on new votes.

Changes of judge, template and temperature of public votes: pairs with their strength, and grades.
100 labels of each task are drawn by group; some of them are judged again. Errors are on the items
without a label, means over tasks. BTDAGG_SHARED names the folder of the public votes.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import btdagg
from btdagg.evaluation import CrossFit

N_LABELS, AGAIN = 100, (0, 10, 20, 50, 100)
G, MINI, C = "gpt-5.4", "gpt-5.4-mini", "claude-sonnet-4.6"
PAIRS = [
    ((MINI, "base", "default"), (G, "base", "default")),
    ((G, "base", "default"), (MINI, "base", "default")),
    ((G, "base", "default"), (C, "base", "default")),
    ((C, "base", "default"), (MINI, "base", "default")),
    ((MINI, "base", "default"), (MINI, "criteria", "default")),
    ((MINI, "base", "default"), (MINI, "cal-cross", "default")),
    ((C, "base", "default"), (C, "criteria", "default")),
    ((G, "base", "0.0"), (G, "base", "default")),
]
GRADES = [(MINI, G), (C, G)]
NO_ERRORS = CrossFit(n_folds=2, n_repeats=1, n_refits=2)  # of which nothing is used here


def of_pairs(data):
    votes = pl.read_parquet(data / "rb2/votes.parquet").with_columns(
        pl.col("item", "judge", "task", "template", "temperature").cast(str)
    )
    labels = pl.read_csv(data / "rb2/labels.csv")
    for change in PAIRS:
        for task in sorted(labels["task"].unique()):
            tables = [
                votes.filter(judge=judge, template=template, temperature=temperature, task=task)
                for judge, template, temperature in change
            ]
            yield " → ".join(map("/".join, change)), tables, labels.filter(task=task), {}


def of_grades(data):
    votes = pl.read_parquet(data / "rb2_scores/votes.parquet").with_columns(
        pl.col("item", "judge", "task").cast(str)
    )
    labels = pl.read_csv(data / "rb2_scores/labels.csv")
    scales = {"scale": btdagg.Scale("1-10"), "label_scale": btdagg.Scale((0, 1))}
    for change in GRADES:
        for task in sorted(labels["task"].unique()):
            tables = [votes.filter(judge=judge, task=task) for judge in change]
            yield f"grades {' → '.join(change)}", tables, labels.filter(task=task), scales


def counted(tables, labels, scale=None, label_scale=None):
    """Counts of both judges on the items of both, labels, and groups."""
    gold = btdagg.read_labels(labels, scale=label_scale)
    items = [btdagg.read_votes(table, scale=scale).items(gold).labelled() for table in tables]
    ids = [list(map(str, own.ids)) for own in items]
    both = sorted(set(ids[0]) & set(ids[1]))
    rows = [[{name: row for row, name in enumerate(of)}[name] for name in both] for of in ids]
    old, new = (own[row] for own, row in zip(items, rows, strict=True))
    return old.pooled, new.pooled, old.label, old.group


def errors(old, new, gold, groups, n_splits, scales):
    """Errors, (splits, 1 + 2 sizes): old model; refit alone and rejudged at each size."""
    rows = []
    for seed in range(n_splits):
        rng = np.random.default_rng(seed)
        names, group = np.unique(groups, return_inverse=True)
        order = np.argsort(rng.permutation(len(names))[group], kind="stable")
        chosen = order[:N_LABELS]
        rest = np.flatnonzero(~np.isin(group, group[chosen]))  # no prompt of theirs

        def error(model, rest=rest):
            return np.abs(model.decide(new[rest]) - gold[rest]).mean()

        own = [error(btdagg.calibrate(old[chosen], gold[chosen], **scales).model)]
        for n in AGAIN:
            again = new[chosen].copy()
            again[n:] = 0
            alone = btdagg.calibrate(new[chosen[:n]], gold[chosen[:n]], **scales) if n else None
            given = old[chosen], again, gold[chosen]
            carried = btdagg.recalibrate(*given, **scales, protocol=NO_ERRORS)
            own += [np.nan if alone is None else error(alone.model), error(carried.model)]
        rows.append(own)
    return np.array(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    shared = os.environ.get("BTDAGG_SHARED")
    if shared is None:
        print("BTDAGG_SHARED is not set: nothing to measure")
        return
    warnings.simplefilter("ignore")
    data, found = Path(shared) / "data", {}
    for make in (of_pairs, of_grades):
        for name, tables, labels, scales in make(data):
            n_splits = 1 if options.smoke else options.splits
            table = errors(*counted(tables, labels, **scales), n_splits, scales)
            found.setdefault(name, []).append(table)
            if options.smoke:
                break
    print("| change | old model | " + " | ".join(f"{n}: alone, rejudged" for n in AGAIN) + " |")
    print("|---|---|" + "---|" * len(AGAIN))
    means = {name: np.mean(own, axis=(0, 1)) for name, own in found.items()}
    means["mean"] = np.mean(list(means.values()), axis=0)
    for name, (old, *own) in means.items():
        texts = [f"{own[k]:.3f}, {own[k + 1]:.3f}" for k in range(0, len(own), 2)]
        print(f"| {name} | {old:.3f} | " + " | ".join(texts) + " |")


if __name__ == "__main__":
    main()
