"""The strength of a vote on public votes: signs and strength, few labels, neighbours and a panel.

Mean absolute error over random calibration sets of judges and tasks, on items whose prompts gave no
label. BTDAGG_SHARED names the folder of the public votes.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import btdagg

SIZES = (0, 10, 20, 50, 100, 300)


def cells_of(data, full_margin):
    """Labels, groups and counts of signs and of strength of every judge and task."""
    votes = pl.read_parquet(data / "rb2/votes.parquet").with_columns(
        pl.col("item", "judge", "task", "template", "temperature").cast(str)
    )
    votes = votes.filter(template="base", temperature="default").with_columns(
        margin=pl.col("vote") * pl.col("margin")
    )
    labels = pl.read_csv(data / "rb2/labels.csv").select("item", "group", "label")
    cells = {}
    for (judge,), of_judge in votes.partition_by("judge", as_dict=True).items():
        full = full_margin or 2 * of_judge["margin"].abs().mean()
        for (task,), of_task in of_judge.partition_by("task", as_dict=True).items():
            rows = of_task.drop_nulls("vote").join(labels, on="item").sort("item", "sample")
            items = rows["item"].to_numpy()
            counts = [
                btdagg.tally(items, rows["vote"].to_numpy())[1],
                btdagg.tally(items, rows["margin"].to_numpy(), full_margin=full)[1],
            ]
            first = rows.unique("item", maintain_order=True)
            cells[judge, task] = (
                first["label"].to_numpy(),
                np.unique(first["group"].to_numpy(), return_inverse=True)[1],
                counts,
                first["item"].to_list(),
            )
    return cells


def model_of(counts, labels, known, prior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not len(known):
            return btdagg.calibrate(counts, None, prior=prior).model
        return btdagg.calibrate(counts[known], labels[known], prior=prior).model


def mean_of(errors):
    """Mean over cells of the mean over sets."""
    return np.mean([np.mean(of_cell) for of_cell in errors.values()])


def show_cells(cells, n_sets):
    errors = {}
    for place, (key, (labels, groups, both, _)) in enumerate(cells.items()):
        others = [pair for name, pair in cells.items() if name[1] != key[1]]
        near = [btdagg.fit_prior([(pair[2][kind], pair[0]) for pair in others]) for kind in (0, 1)]
        rng = np.random.default_rng([2025, place])
        for _ in range(n_sets):
            order = rng.permutation(len(labels))
            for size in SIZES:
                known = order[:size]
                if size > len(labels) // 2:
                    continue
                rest = np.flatnonzero(~np.isin(groups, groups[known]))
                for kind, name in enumerate(("signs", "strength")):
                    for prior in ("weak", "near"):
                        if not size and prior == "weak":
                            continue
                        given = near[kind] if prior == "near" else "weak"
                        model = model_of(both[kind], labels, known, given)
                        error = np.abs(labels[rest] - model.decide(both[kind][rest])).mean()
                        errors.setdefault((size, name, prior), {}).setdefault(key, []).append(error)
    columns = [(name, prior) for prior in ("weak", "near") for name in ("signs", "strength")]
    print("| labels | signs, weak | strength, weak | signs, neighbours | strength, neighbours |")
    print("|---:|---:|---:|---:|---:|")
    for size in SIZES:
        means = [errors.get((size, *column)) for column in columns]
        shown = [
            "–" if m is None else f"{np.mean([np.mean(v) for v in m.values()]):.4f}" for m in means
        ]
        print(f"| {size} | " + " | ".join(shown) + " |", flush=True)


def show_panel(cells, n_sets):
    judges = sorted({judge for judge, _ in cells})
    errors = {}
    for place, task in enumerate(sorted({task for _, task in cells})):
        own = [cells[judge, task] for judge in judges]
        common = sorted(set.intersection(*(set(cell[3]) for cell in own)))
        rows = [[cell[3].index(item) for item in common] for cell in own]
        labels, groups = own[0][0][rows[0]], own[0][1][rows[0]]
        rng = np.random.default_rng([2026, place])
        for _ in range(n_sets):
            order = rng.permutation(len(labels))
            for size in SIZES[2:]:
                known = order[:size]
                if size > len(labels) // 2:
                    continue
                rest = np.flatnonzero(~np.isin(groups, groups[known]))
                for kind, name in enumerate(("signs", "strength")):
                    counts = np.stack(
                        [c[2][kind][r] for c, r in zip(own, rows, strict=True)], axis=1
                    )
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        fitted = btdagg.calibrate_panel(counts[known], labels[known])
                    error = np.abs(labels[rest] - fitted.model.decide(counts[rest])).mean()
                    errors.setdefault((size, name), {}).setdefault(task, []).append(error)
    print("\n| labels | panel, signs | panel, strength |\n|---:|---:|---:|")
    for size in SIZES[2:]:
        means = [
            np.mean([np.mean(v) for v in errors[size, n].values()]) for n in ("signs", "strength")
        ]
        print(f"| {size} | {means[0]:.4f} | {means[1]:.4f} |", flush=True)


def show_times():
    rng = np.random.default_rng(7)
    strengths = rng.normal(rng.normal(0, 0.5, (100_000, 1)), 0.4, (100_000, 8))
    items = np.repeat(np.arange(100_000), 8)
    started = time.perf_counter()
    _, counts = btdagg.tally(items, strengths.ravel(), full_margin=1)
    print(f"\ntally of 800,000 votes with strength: {time.perf_counter() - started:.2f} s")
    labels = np.sign(np.round(strengths.mean(axis=1) * 1.5)).astype(np.int8)
    for name, options in (
        ("calibrate, weak prior, no labels", {"prior": "weak"}),
        (
            "calibrate, neighbours, no labels",
            {"prior": btdagg.fit_prior({"x": (counts[:500], labels[:500])})},
        ),
    ):
        started = time.perf_counter()
        btdagg.calibrate(counts, None, **options)
        print(f"{name}: {time.perf_counter() - started:.2f} s")
    started = time.perf_counter()
    model = btdagg.calibrate(counts, labels, prior=None).model
    print(f"calibrate, 100,000 labels: {time.perf_counter() - started:.2f} s")
    started = time.perf_counter()
    model.decide(counts)
    print(f"decide: {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one set of two tasks")
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--full-margin", type=float)
    args = parser.parse_args()
    n_sets = 1 if args.smoke else args.sets
    data = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    if data.is_dir():
        cells = cells_of(data, args.full_margin)
        if args.smoke:
            some = sorted({task for _, task in cells})[:2]
            cells = {key: cell for key, cell in cells.items() if key[1] in some}
        show_cells(cells, n_sets)
        show_panel(cells, n_sets)
    show_times()
