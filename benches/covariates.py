"""Covariates on public votes: mean absolute error with them less that of counts alone.

Calibration sets are drawn by item with seeds 0 to n - 1; both models see the same labels, and the
difference is paired. Standings are of all items of a cell, lengths log(1 + chars). Cells without
systems show what useless covariates cost: columns of seeded noise. `--votes` compares one vote with
covariates with more votes without. BTDAGG_SHARED names the folder of the public votes.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl

import btdagg

SIZES = (10, 20, 50, 100, 300)
POINTS = {"engagingness": (1, 2, 3), "groundedness": (0, 1), "rubric": (1, 2, 3, 4)}


class Cell:
    """Items of one judge and task: votes in an order, labels, and covariates of any votes."""

    def __init__(self, family, name, counts, labels, scale, make=lambda counts: {}, groups=None):
        self.family, self.name, self.scale, self.groups = family, name, scale, groups
        self.counts, self.labels, self.make = counts, labels, make

    def known(self, counts, noise):
        known = self.make(counts)
        rng = np.random.default_rng(2024)
        return known | {f"noise {i}": rng.normal(size=len(counts)) for i in range(noise)}


def half_up(labels):
    return np.floor(np.asarray(labels) + 0.5).astype(np.int64)


def counted(frame, column, points, by=("item",)):
    """Counts of each item, in the order of the items' names."""
    sums = [(pl.col(column) == point).sum().cast(pl.Int64).alias(f"n{point}") for point in points]
    return frame.group_by(*by).agg(sums), [f"n{point}" for point in points]


def of_pairs(frame, columns, family, name, *, lengths=False):
    a, b = (frame[f"system_{side}"].to_numpy() for side in "ab")
    known = {}
    if lengths:
        chars = (np.log1p(frame[f"chars_{side}"].to_numpy()) for side in "ab")
        known["length"] = next(chars) - next(chars)

    def make(counts):
        return {"standing": btdagg.standing(counts, a, b)} | known

    counts = frame.select(columns).to_numpy()
    groups = frame["group"].to_numpy() if "group" in frame.columns else None
    return Cell(family, name, counts, half_up(frame["label"]), btdagg.PAIRS, make, groups)


def vicuna80(data, samples=2):
    votes = pl.read_csv(data / "vicuna80/votes.csv")
    known = pl.read_csv(data / "vicuna80/items.csv").join(
        pl.read_csv(data / "vicuna80/labels.csv").select("item", "label"), on="item"
    )
    for judge in ("gpt4", "gpt35", "claude"):
        own = votes.filter(judge=judge)
        if samples == 1:  # the orders take turns
            own = own.with_columns(odd=pl.col("item").rank("dense") % 2 == 1)
            own = own.filter((pl.col("order") == "AB") == pl.col("odd"))
        counts, columns = counted(own, "vote", (-1, 0, 1))
        frame = counts.join(known, on="item").sort("item")
        yield of_pairs(frame, columns, "vicuna80", judge, lengths=True)


def panel(data):
    """The three judges as one panel, whose standings are of pooled votes."""
    cells = list(vicuna80(data))
    counts = np.stack([cell.counts for cell in cells], axis=1)
    name, scale = "panel of three", btdagg.PAIRS
    yield Cell("panel", name, counts, cells[0].labels, scale, cells[0].make, cells[0].groups)


def topical(data, samples=8):
    votes = pl.read_csv(data / "topical/votes.csv").filter(pl.col("sample") < samples)
    labels = pl.read_csv(data / "topical/labels.csv")
    for criterion in ("engagingness", "groundedness"):
        points = POINTS[criterion]
        counts, columns = counted(votes.filter(criterion=criterion), "score", points)
        frame = counts.join(labels.filter(criterion=criterion), on="item").sort("item")
        frame = frame.filter(pl.sum_horizontal(columns) > 0)
        scale = btdagg.Scale(points)
        system, group = frame["system"].to_numpy(), frame["group"].to_numpy()
        length = np.log1p(frame["chars"].to_numpy())

        def make(counts, system=system, group=group, length=length, scale=scale):
            of = {"standing": system, "group-standing": group}
            known = {k: btdagg.standing(counts, v, scale=scale) for k, v in of.items()}
            return known | {"length": length}

        labels_of = half_up(frame["mean_of_three"])
        counts = frame.select(columns).to_numpy()
        yield Cell("topical", criterion, counts, labels_of, scale, make, group)


def wmt23(data):
    """A rater as judge of one vote, the mean of the others as gold."""
    for pair in ("zhen", "ende"):
        ratings = pl.read_csv(data / f"wmt23/ratings_{pair}.csv").filter(identical=0)
        for rater in sorted(ratings["rater"].unique()):
            own, others = (
                ratings.filter((pl.col("rater") == rater) == is_own) for is_own in (1, 0)
            )
            gold = others.group_by("item").agg(label=pl.col("vote").mean().sign())
            own = own.with_columns(group=pl.concat_str("doc", pl.lit(" "), "segment"))
            by = ("item", "group", "system_a", "system_b")
            counts, columns = counted(own, "vote", (-1, 0, 1), by)
            frame = counts.join(gold, on="item").sort("item")
            if frame.height >= 40:
                yield of_pairs(frame, columns, "wmt23", f"{pair} {rater}")


def rb2(data):
    votes = pl.read_parquet(data / "rb2/votes.parquet")
    votes = votes.with_columns(pl.col("item", "judge", "task", "template", "temperature").cast(str))
    votes = votes.filter(template="base", temperature="default")
    labels = pl.read_csv(data / "rb2/labels.csv").select("item", "group", "label")
    counts, columns = counted(votes, "vote", (-1, 0, 1), ("judge", "task", "item"))
    joined = counts.join(labels, on="item").sort("judge", "task", "item")
    sides = [
        pl.concat_str("group", pl.lit("/"), pl.col("item").str.slice(at, 1)) for at in (-2, -1)
    ]
    joined = joined.with_columns(system_a=sides[0], system_b=sides[1])
    for (judge, task), frame in joined.partition_by("judge", "task", as_dict=True).items():
        yield of_pairs(frame, columns, "rb2", f"{judge} {task}")


def rubric(data):
    votes = pl.read_parquet(data / "rubric/votes.parquet")
    votes = votes.with_columns(pl.col("item", "judge", "task").cast(str)).drop_nulls("score")
    counts, columns = counted(votes, "score", POINTS["rubric"], ("judge", "task", "item"))
    labels = pl.read_csv(data / "rubric/labels.csv").select("item", "label")
    joined = counts.join(labels, on="item").sort("judge", "task", "item")
    scale = btdagg.Scale(POINTS["rubric"])
    for (_, task), frame in joined.partition_by("judge", "task", as_dict=True).items():
        counts = frame.select(columns).to_numpy()
        yield Cell("rubric", task, counts, half_up(frame["label"]), scale)


def error_of(cell, counts, labelled, known):
    """Mean absolute error on the items without a label of a model of these votes."""
    rest = np.setdiff1d(np.arange(len(counts)), labelled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if known:
            labels = np.full(len(counts), np.nan)
            labels[labelled] = cell.labels[labelled]
            fitted = btdagg.calibrate(counts, labels, scale=cell.scale, covariates=known)
            used = {own.name: known[own.name] for own in fitted.model.covariates} or None
            decided = fitted.model.decide(counts, covariates=used)[rest]
        else:
            own = counts[labelled], cell.labels[labelled]
            decided = btdagg.calibrate(*own, scale=cell.scale).model.decide(counts[rest])
    return np.abs(decided - cell.labels[rest]).mean()


def differences(cell, n_splits, noise):
    """Errors of both models on each split, by number of labels: {size: (n_splits, 2)}."""
    known, found = cell.known(cell.counts, noise), {}
    for size in SIZES:
        if size > len(cell.labels) // 2:
            continue
        rows = []
        for seed in range(n_splits):
            labelled = np.random.default_rng(seed).permutation(len(cell.labels))[:size]
            rows.append([error_of(cell, cell.counts, labelled, own) for own in ({}, known)])
        found[size] = np.array(rows)
    return found


def shown(errors):
    alone, difference = errors[:, 0].mean(), errors[:, 1] - errors[:, 0]
    spread = difference.std(ddof=1) / np.sqrt(len(difference))
    return f"{alone:.3f} {difference.mean():+.4f} ({spread:.4f})"


def show(pool, title, cells, n_splits, noise, by_cell):
    rows = {}
    jobs = [(cell, pool.submit(job, cell.family, cell.name, n_splits, noise)) for cell in cells]
    for cell, result in jobs:
        rows.setdefault(cell.name if by_cell else cell.family, []).append(result.result())
    print(f"\n{title}: error of counts alone, difference with covariates (standard error)\n")
    print("| | " + " | ".join(map(str, SIZES)) + " |\n|---|" + "---|" * len(SIZES))
    for name, of_cells in rows.items():
        texts = []
        for size in SIZES:
            given = [found[size] for found in of_cells if size in found]
            texts.append(shown(np.mean(given, axis=0)) if given else "–")
        print(f"| {name} | " + " | ".join(texts) + " |", flush=True)


FAMILIES = {
    "vicuna80": vicuna80,
    "panel": panel,
    "topical": topical,
    "wmt23": wmt23,
    "rb2": rb2,
    "rubric": rubric,
}
CELLS = {}


def cells_of(family):
    if family not in CELLS:
        data = Path(os.environ["BTDAGG_SHARED"]) / "data"
        CELLS[family] = {cell.name: cell for cell in FAMILIES[family](data)}
    return CELLS[family]


def job(family, name, n_splits, noise):
    return differences(cells_of(family)[name], n_splits, noise)


def show_votes(data, n_splits):
    """One vote with covariates against more votes without, at 100 labels."""
    print("\nOne vote with covariates and more votes without, 100 labels\n")
    print("| | 1, with | 1 | 2 | 4 | 8 |\n|---|---|---|---|---|---|")
    most = {"vicuna80": (vicuna80, (1, 2)), "topical": (topical, (1, 2, 4, 8))}
    for family, numbers in most.values():
        by_number = {n: list(family(data, n)) for n in numbers}
        for place, cell in enumerate(by_number[1]):
            errors = {}
            for seed in range(n_splits):
                labelled = np.random.default_rng(seed).permutation(len(cell.labels))[:100]
                for n in numbers:
                    own = by_number[n][place]
                    errors.setdefault(n, []).append(error_of(own, own.counts, labelled, {}))
                known = cell.known(cell.counts, 0)
                errors.setdefault(0, []).append(error_of(cell, cell.counts, labelled, known))
            texts = [f"{np.mean(errors[n]):.3f}" if n in errors else "–" for n in (0, 1, 2, 4, 8)]
            print(f"| {cell.name} | " + " | ".join(texts) + " |", flush=True)


def show_times(sizes=(50, 1_000, 100_000, 1_000_000)):
    rng = np.random.default_rng(0)
    print("\nTimes of the processor, one thread\n")
    for n in sizes:
        counts = rng.multinomial(8, [0.3, 0.2, 0.5], size=n)
        labels = np.sign(counts[:, 2] - counts[:, 0] + rng.normal(0, 3, n)).astype(np.int8)
        known = {f"x{i}": rng.normal(size=n) for i in range(3)}
        spent = []
        for _ in range(20 if n < 10_000 else 1):
            start = time.process_time()  # which other work on the machine does not count in
            fitted = btdagg.calibrate(counts, labels, covariates=known)
            spent.append(time.process_time() - start)
        print(f"calibrate, {n:,} labels, three covariates: {np.median(spent):.4f} s", flush=True)
    kernel, offsets = fitted.model._kernel, rng.normal(size=n)
    for name, how in (("without", ()), ("with an offset", (offsets,))):
        spent = []
        for _ in range(31):
            start = time.perf_counter()
            kernel.decide(counts, 1, *how)
            spent.append(time.perf_counter() - start)
        print(f"decide, {n:,} int64 items, {name}: {min(spent) * 1e3:.2f} ms at best")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--noise", type=int, default=3, help="columns of noise of harm cells")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--votes", action="store_true")
    options = parser.parse_args()
    n_splits = 1 if options.smoke else options.splits
    shared = os.environ.get("BTDAGG_SHARED")
    if shared is None:
        return show_times(*[(50, 1_000)] * options.smoke)
    if options.votes:
        return show_votes(Path(shared) / "data", n_splits)
    # Polars' threads do not outlive a fork.
    workers = int(os.environ.get("N_PROCESSES", "2")), get_context("spawn")
    with ProcessPoolExecutor(*workers) as pool:
        for family in options.families:
            cells = [*cells_of(family).values()][: 1 if options.smoke else None]
            if family != "rubric":
                show(pool, family, cells, n_splits, 0, family in ("vicuna80", "topical"))
            show(pool, f"{family}, with noise", cells, n_splits, options.noise, by_cell=False)
    show_times(*[(50, 1_000)] * options.smoke)


if __name__ == "__main__":
    main()
