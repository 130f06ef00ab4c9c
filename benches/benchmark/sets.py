"""The sets: items of a judge and task with their first n votes, from public or simulated votes."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

import btdagg
from btdagg.datasets import Thurstone, simulate

sys.path.insert(0, str(Path(__file__).parents[1]))
import covariates

TEN, FOUR = btdagg.Scale(range(1, 11)), btdagg.Scale(range(1, 5))
MOST = 8


@dataclass(frozen=True)
class Data:
    """What is known of items: votes (n, J) by label, and labels (n,), NaN where there is none.

    `strong` are votes with strength, `known` columns of what else is known, `by_judge` the votes of
    a panel (n, judges, J), and `near` pairs of votes and labels of other tasks. `groups` are
    numbers, and `group_names` their names, by which judges and tasks of a set share groups.
    """

    counts: np.ndarray
    labels: np.ndarray
    scale: btdagg.Scale
    label_scale: btdagg.Scale
    groups: np.ndarray
    group_names: np.ndarray
    strong: np.ndarray | None = None
    known: dict = field(default_factory=dict)
    by_judge: np.ndarray | None = None
    near: tuple = ()

    def __getitem__(self, rows):
        arrays = ("counts", "labels", "groups", "strong", "by_judge")
        own = {k: v[rows] for k in arrays if (v := getattr(self, k)) is not None}
        return replace(self, **own, known={k: v[rows] for k, v in self.known.items()})


def numbered(groups):
    """The number of each item's group, and the names of the groups."""
    names, numbers = np.unique(groups, return_inverse=True)
    return numbers, names.astype(str)


def of_cells(load, numbers):
    """A set of `benches/covariates.py`, whose cells have systems or lengths."""

    def cells(data):
        found = {}
        for n in numbers:
            for cell in load(data, n) if len(numbers) > 1 else load(data):
                own = cell.counts, cell.labels.astype(float), cell.scale, cell.scale
                known = cell.make(cell.counts)
                found.setdefault(cell.name, {})[n] = Data(*own, *numbered(cell.groups), known=known)
        return found

    return cells


def with_others(tasks):
    """The same of judges and tasks, each with the judge's other tasks as neighbours."""
    found = {}
    for (judge, task), by_number in tasks.items():
        for n, own in by_number.items():
            near = [
                (other[n].counts, other[n].labels)
                for (same, name), other in tasks.items()
                if same == judge and name != task
            ]
            found.setdefault(f"{judge} {task}", {})[n] = replace(own, near=tuple(near))
    return found


def of_votes(folder, column, scales):
    """A table of votes with samples, by judge and task."""

    def cells(data):
        votes = pl.read_parquet(data / folder / "votes.parquet")
        names = {"item", "judge", "task", "template", "temperature"} & {*votes.columns}
        votes = votes.with_columns(pl.col(*names).cast(pl.String)).drop_nulls(column)
        if "template" in names:
            votes = votes.filter(template="base", temperature="default")
        labels = pl.read_csv(data / folder / "labels.csv").select("item", "group", "label")
        points, tasks = scales[0].points, {}
        for n in (1, 2, 4, 8):
            first = votes.filter(pl.col("sample").rank("dense").over("judge", "task", "item") <= n)
            sums = [(pl.col(column) == p).sum().cast(pl.Int64).alias(f"n{p}") for p in points]
            if "margin" in votes.columns:
                full = 2 * pl.col("margin").abs().mean().over("judge")
                first = first.with_columns(pl.col("margin").abs().truediv(full).clip(0, 1))
                for side in (-1, 1):
                    share = pl.when(pl.col(column) == side).then(pl.col("margin")).otherwise(0.0)
                    sums.append(share.sum().alias(f"s{side}"))
            counted = first.group_by("judge", "task", "item").agg(sums)
            joined = counted.join(labels, on="item").sort("judge", "task", "item")
            parts = joined.partition_by("judge", "task", as_dict=True)
            for key, part in parts.items():
                counts, strong = part.select(f"n{p}" for p in points).to_numpy(), None
                if "s1" in part.columns:
                    sides = part.select("s-1", "s1").to_numpy()
                    tie = counts.sum(axis=1) - sides.sum(axis=1)
                    strong = np.column_stack([sides[:, 0], tie, sides[:, 1]])
                gold, groups = part["label"].to_numpy().astype(float), part["group"].to_numpy()
                own = Data(counts, gold, *scales, *numbered(groups), strong)
                tasks.setdefault(key, {})[n] = own
        return with_others(tasks)

    return cells


def panels(data):
    """The three judges of rb2 on the same items, by task."""
    votes = btdagg.read_votes(data / "rb2/votes.parquet", strength="none")
    votes = votes.filter({"template": "base", "temperature": "default"})
    labels = btdagg.read_labels(data / "rb2/labels.csv")
    judges, found = votes.values("judge").sort().to_list(), {}
    for (task,), part in votes.partition(["task"]):
        items = part.labelled(labels, judges=judges)
        gold = np.asarray(items.label, dtype=float)
        own = items.pooled, gold, btdagg.PAIRS, btdagg.PAIRS, *numbered(items.group)
        found[task] = {MOST: Data(*own, by_judge=np.asarray(items.counts))}
    return found


def simulated(data):
    """Regimes of the paper, drawn from Thurstone's model, which nobody here fits."""
    tasks = {}
    for name in ("wmt-zh-en", "rb2-math", "rb2-focus"):
        judge = simulate(name, 600, MOST, seed=7, truth=Thurstone())
        groups = numbered([f"{name} {item:03}" for item in range(600)])
        own = btdagg.PAIRS, btdagg.PAIRS, *groups
        gold = judge.labels.astype(float)
        tasks["simulated", name] = {n: Data(judge.first(n), gold, *own) for n in (1, 2, 4, 8)}
    return with_others(tasks)


PASS = btdagg.PASS_FAIL
SETS = {
    "vicuna80": of_cells(covariates.vicuna80, (1, 2)),
    "topical": of_cells(covariates.topical, (1, 2, 4, 8)),
    "wmt23": of_cells(covariates.wmt23, (1,)),
    "rb2": of_votes("rb2", "vote", (btdagg.PAIRS, btdagg.PAIRS)),
    "rb2, panel": panels,
    "rb2_scores": of_votes("rb2_scores", "score", (TEN, PASS)),
    "rubric": of_votes("rubric", "score", (FOUR, FOUR)),
    "simulated": simulated,
}
