"""The kinds of votes that every part of the product knows, as small files with a seed."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

N_ITEMS, N_LABELS = 160, 80


class Family(NamedTuple):
    """Files of one kind of votes, and how commands and Python are told to read them."""

    name: str
    votes: Path
    labels: Path
    options: tuple[str, ...] = ()
    panel: tuple[str, ...] = ()


def written(path, columns, rows):
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(columns)
        out.writerows(rows)
    return path


def pairs(folder, rng, judges=("one",), is_strong=False):
    """Six votes of each judge; the third judge votes at random and leaves every fifth item out.

    What is returned is how much better A is, of each item.
    """
    quality = rng.normal(0, 1.2, N_ITEMS)
    rows, labels = [], []
    for item, mean in enumerate(quality):
        systems = ("red", "blue", "green")[item % 3], ("blue", "green", "red")[item % 3]
        for place, judge in enumerate(judges):
            if place == 2 and item % 5 == 0:
                continue
            margins = np.round(rng.normal(0 if place == 2 else mean, 1.0, 6), 1)
            for sample, margin in enumerate(margins.tolist()):
                vote = int(np.sign(margin)) if abs(margin) >= 0.5 else 0
                strong = [abs(margin) if vote else 0] if is_strong else []
                rows.append([item, judge, sample, vote, f"g{item // 2}", *systems, *strong])
        if item < N_LABELS:
            seen = mean + rng.normal(0, 0.7)
            labels.append([item, int(np.sign(seen)) if abs(seen) > 0.6 else 0, f"g{item // 2}"])
    columns = ["item", "judge", "sample", "vote", "group", "system_a", "system_b"]
    written(folder / "votes.csv", [*columns, *["margin"] * is_strong], rows)
    written(folder / "labels.csv", ["item", "label", "group"], labels)
    return quality


def grades(folder, rng):
    """Five votes from 1 to 5 by a judge who is too kind; people have three grades."""
    rows, labels = [], []
    for item, mean in enumerate(rng.normal(3, 1, N_ITEMS)):
        scores = np.clip(np.rint(mean + 0.6 + rng.normal(0, 0.8, 5)), 1, 5).astype(int)
        system = ("red", "blue")[item % 2]
        rows += [[item, k, score, f"g{item // 2}", system] for k, score in enumerate(scores)]
        if item < N_LABELS:
            grade = int(np.clip(np.rint((mean + rng.normal(0, 0.5)) / 2 + 0.5), 1, 3))
            labels.append([item, grade, f"g{item // 2}"])
    written(folder / "votes.csv", ["item", "sample", "score", "group", "system"], rows)
    written(folder / "labels.csv", ["item", "label", "group"], labels)


def shares(folder, rng):
    """Pairs, whose labels are the means of up to three raters."""
    labels = []
    for item, mean in enumerate(pairs(folder, rng)[:N_LABELS]):
        n_raters = int(rng.integers(1, 4))
        raters = np.clip(np.rint(mean + rng.normal(0, 0.7, n_raters)), -1, 1)
        labels.append([item, round(float(raters.mean()), 3), n_raters, f"g{item // 2}"])
    written(folder / "labels.csv", ["item", "label", "n_raters", "group"], labels)


def counts(folder, rng):
    """Pairs, whose votes were counted elsewhere: a row for each item."""
    pairs(folder, rng)
    rows = {}
    with (folder / "votes.csv").open() as file:
        for row in csv.DictReader(file):
            told = [row["group"], row["system_a"], row["system_b"]]
            rows.setdefault(row["item"], [row["item"], 0, 0, 0, *told])[2 + int(row["vote"])] += 1
    columns = ["item", "minus", "tie", "plus", "group", "system_a", "system_b"]
    written(folder / "votes.csv", columns, rows.values())


def grade_counts(folder, rng):
    """Grades that were counted elsewhere, and means of two raters as labels."""
    grades(folder, rng)
    rows = {}
    with (folder / "votes.csv").open() as file:
        for row in csv.DictReader(file):
            told = [row["group"], row["system"]]
            rows.setdefault(row["item"], [row["item"], *[0] * 5, *told])[int(row["score"])] += 1
    written(folder / "votes.csv", ["item", *range(1, 6), "group", "system"], rows.values())
    with (folder / "labels.csv").open() as file:
        labels = [
            [row["item"], int(row["label"]) + rng.choice([0, 0.5, 1, 1.5]), 2, row["group"]]
            for row in csv.DictReader(file)
        ]
    written(folder / "labels.csv", ["item", "label", "n_raters", "group"], labels)


def _of_grades(votes, labels):
    return {"options": ("--set", f"votes.scale={votes}", "--set", f"labels.scale={labels}")}


_MADE = {
    "pairs": (pairs, {}, {}),
    "grades": (grades, {}, _of_grades("1-5", "1-3")),
    "panel": (pairs, {"judges": ("one", "two", "noise")}, {"panel": ("--set", "panel=judge")}),
    "strength": (pairs, {"is_strong": True}, {}),
    "shares": (shares, {}, {}),
    "counts": (counts, {}, {}),
    "grade counts": (grade_counts, {}, _of_grades("1-5", "1-5")),
}
NAMES = tuple(_MADE)


def family(name, folder):
    """Write the files of a family to a folder."""
    make, arguments, told = _MADE[name]
    folder.mkdir(parents=True, exist_ok=True)
    make(folder, np.random.default_rng(NAMES.index(name)), **arguments)
    return Family(name, folder / "votes.csv", folder / "labels.csv", **told)
