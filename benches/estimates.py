"""Coverage and width of estimates of shares, win rates and grades, and their time.

On RewardBench 2's votes (read from BTDAGG_SHARED) prompts are drawn with replacement, one pair of
each of 100 prompts is labelled, and the truth is the mean over all pairs. Simulated items come in
groups of one to nine with ties and sides of their own; the truth is the mean of 400,000 of them.
Of grades, RewardBench 2's responses are drawn with replacement, and simulated ones come in groups.
A release gate is shown candidates that are worse by just its margin, on either side of the pairs
and under either name of two systems. `--smoke` does little, `--grades` grades alone, and `--gates`
gates alone.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl

import btdagg
from btdagg.estimates import not_worse
from btdagg.inference.quantities import quantities_of
from btdagg.questions.estimate import Estimates

JUDGES = ["gpt-5.4", "gpt-5.4-mini", "claude-sonnet-4.6"]
TASKS = ["factuality", "focus", "math", "precise-if", "safety"]
SHOWN = ("A", "tie", "B", "net win rate")
N_ITEMS = 2000


def truth_of(labels: np.ndarray) -> dict[str, float]:
    return {name: np.array(quantities_of(btdagg.PAIRS)[name])[labels + 1].mean() for name in SHOWN}


class Tally:
    """How often intervals hold the truth, how wide they are, and what a label is worth."""

    def __init__(self, truth: dict[str, float]) -> None:
        self.truth = truth
        self.hits = defaultdict(list)
        self.widths, self.alone, self.worth = [], [], []

    def add(self, found: Estimates) -> None:
        for name in self.truth:
            one = found.estimates[name]
            self.hits[name].append(one.low <= self.truth[name] <= one.high)
        main = found.estimates[found.main]
        assert main.labels_only is not None
        self.widths.append(main.high - main.low)
        self.alone.append(main.labels_only.high - main.labels_only.low)
        self.worth.append(main.effective_labels / found.n_labels)

    @property
    def coverage(self) -> list[float]:
        return [float(np.mean(self.hits[name])) for name in self.truth]

    def row(self, name: str) -> str:
        covered = " ".join(f"{100 * share:7.1f}" for share in self.coverage)
        width = np.mean(self.widths) / np.mean(self.alone)
        return f"{name:32}{covered}{width:10.3f}{np.nanmean(self.worth):8.2f}"


def real(folder: Path, n_draws: int, strength: str) -> list[Tally]:
    votes = btdagg.read_votes(folder / "votes.parquet", strength=strength)
    votes = votes.filter({"template": "base", "temperature": "default"})
    labels = btdagg.read_labels(folder / "labels.csv")
    found = []
    for judge in JUDGES:
        for task in TASKS:
            items = votes.filter({"judge": judge, "task": task}).labelled(labels)
            numbers = np.unique(items.group, return_inverse=True)[1]
            prompts = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]
            tally = Tally(truth_of(items.label))
            for draw in range(n_draws):
                tally.add(one_pair_of_each(items, prompts, np.random.default_rng(draw)))
            print(tally.row(f"{judge}, {task}"), flush=True)
            found.append(tally)
    return found


def one_pair_of_each(items, prompts: list[np.ndarray], rng: np.random.Generator) -> Estimates:
    n = len(prompts)
    drawn = [prompts[number] for number in rng.integers(n, size=n)]
    rows, groups = np.concatenate(drawn), np.repeat(np.arange(n), list(map(len, drawn)))
    labels = np.full(len(rows), np.nan)
    for group in rng.choice(n, 100, replace=False):
        row = rng.choice(np.flatnonzero(groups == group))
        labels[row] = items.label[rows[row]]
    return btdagg.estimate(items.pooled[rows], labels, groups=groups)


def simulated(rng: np.random.Generator, n_items: int, ties: float, judge: float):
    """Counts, labels and groups; a judge of 0 does not see the label, and favours A."""
    groups = np.repeat(np.arange(n_items), rng.integers(1, 10, n_items))[:n_items]
    n = int(groups.max()) + 1
    tie = rng.beta(4 * ties, 4 * (1 - ties), n)[groups]
    lean = rng.beta(1.5, 1.2, n)[groups]
    side = np.where(rng.random(n_items) < lean, 1, -1)
    labels = np.where(rng.random(n_items) < tie, 0, side)
    seen = 1.5 * judge * labels + 0.4 + 0.8 * rng.normal(size=n_items)
    plus, minus = 1 / (1 + np.exp(0.7 - seen)), 1 / (1 + np.exp(0.7 + seen))
    counts = rng.multinomial(8, np.stack([minus, 1 - plus - minus, plus], axis=1))
    return counts, labels, groups


def in_groups(n_draws: int, judge: float, ties: tuple[float, ...], wholes: tuple[bool, ...]):
    found = []
    for share in ties:
        truth = truth_of(simulated(np.random.default_rng(99), 400_000, share, judge)[1])
        for n_labels in (25, 50, 100, 400):
            for whole in wholes:
                tally = Tally(truth)
                for draw in range(n_draws):
                    rng = np.random.default_rng([draw, n_labels, whole])
                    counts, gold, groups = simulated(rng, N_ITEMS, share, judge)
                    chosen = rng.permutation(N_ITEMS)[:n_labels]
                    if whole:
                        order = rng.permutation(groups.max() + 1)
                        enough = np.searchsorted(np.bincount(groups)[order].cumsum(), n_labels)
                        chosen = np.isin(groups, order[: enough + 1])
                    labels = np.full(N_ITEMS, np.nan)
                    labels[chosen] = gold[chosen]
                    tally.add(btdagg.estimate(counts, labels, groups=groups))
                by = "groups" if whole else "items"
                print(tally.row(f"{100 * share:.0f}% ties, {n_labels} labels by {by}"), flush=True)
                found.append(tally)
    return found


def graded(folder: Path, n_draws: int) -> list[Tally]:
    votes = pl.read_parquet(folder / "votes.parquet")
    labels = pl.read_csv(folder / "labels.csv")
    scales = {"scale": btdagg.Scale(range(1, 11)), "label_scale": btdagg.PASS_FAIL}
    by_number = {n_labels: Tally({}) for n_labels in (25, 50, 100)}
    for judge in JUDGES:
        table = votes.filter(judge=judge).pivot(
            "score", index="item", values="sample", aggregate_function="len"
        )
        for (task,), own in labels.join(table, "item").group_by("task"):
            counts = own.select(*scales["scale"].columns).fill_null(0).to_numpy()
            gold = own["label"].to_numpy().astype(np.float64)
            for n_labels, tally in by_number.items():
                tally.truth = dict.fromkeys(("mean grade", "pass rate"), gold.mean())
                for draw in range(n_draws):
                    seed = zlib.crc32(f"{judge} {task} {draw} {n_labels}".encode())
                    rows = np.random.default_rng(seed).integers(len(gold), size=N_ITEMS)
                    known = np.where(np.arange(N_ITEMS) < n_labels, gold[rows], np.nan)
                    tally.add(btdagg.estimate(counts[rows], known, **scales))
    for n_labels, tally in by_number.items():
        print(tally.row(f"accepted, {n_labels}"), flush=True)
    return list(by_number.values())


def simulated_grades(rng: np.random.Generator, n_items: int, judge: float):
    """Counts of 8 votes 1-10, grades 1-5 and groups; a judge of 0 does not see the grade."""
    groups = np.repeat(np.arange(n_items), rng.integers(1, 10, n_items))[:n_items]
    quality = rng.beta(2.5, 1.2, int(groups.max()) + 1)[groups] + rng.normal(0, 0.15, n_items)
    grades = 1 + np.clip(np.floor(5 * quality), 0, 4)
    seen = 5.5 + judge * 1.3 * (grades - 3) + 1.2 + rng.normal(0, 1.5, n_items)
    votes = np.clip(np.round(seen[:, None] + rng.normal(0, 1.2, (n_items, 8))), 1, 10)
    return np.stack([(votes == vote).sum(axis=1) for vote in range(1, 11)], axis=1), grades, groups


def grades_in_groups(n_draws: int, judge: float, least: float | None) -> list[Tally]:
    """Grades 1 to 5, or with `least` whether they are at least so high."""
    grades = btdagg.Scale(range(1, 6)) if least is None else btdagg.PASS_FAIL
    scales, found = {"scale": btdagg.Scale(range(1, 11)), "label_scale": grades}, []
    _, gold, _ = simulated_grades(np.random.default_rng(99), 400_000, judge)
    truth = {"mean grade": gold.mean(), "share >= 4": (gold >= 4).mean()}
    if least is not None:
        truth = dict.fromkeys(("mean grade", "pass rate"), (gold >= least).mean())
    for n_labels in (25, 50, 100):
        tally = Tally(truth)
        for draw in range(n_draws):
            rng = np.random.default_rng([draw, n_labels])
            counts, gold, groups = simulated_grades(rng, N_ITEMS, judge)
            gold = gold if least is None else (gold >= least).astype(np.float64)
            labels = np.where(rng.permutation(N_ITEMS) < n_labels, gold, np.nan)
            tally.add(btdagg.estimate(counts, labels, **scales, groups=groups))
        print(tally.row(f"{'1 to 5' if least is None else 'passes'}, {n_labels}"), flush=True)
        found.append(tally)
    return found


def of_grades(folder: Path, n_draws: int) -> None:
    print(f"{'':32}{'mean':>7}{'share':>8}{'width':>10}{'worth':>8}")
    if folder.exists():
        summary("RewardBench 2's grades", graded(folder, max(n_draws // 10, 1)))
    for least in (None, 4):
        summary("simulated grades", grades_in_groups(n_draws, 1.0, least))
    summary("grades of noise", grades_in_groups(n_draws, 0.0, None))


def gates(data: Path, n_draws: int) -> None:
    """Items of a label are drawn with replacement, so many of each that the truth is the margin."""
    votes = btdagg.read_votes(data / "rb2/votes.parquet")
    votes = votes.filter({"template": "base", "temperature": "default"})
    labels = btdagg.read_labels(data / "rb2/labels.csv")
    pairs = [votes.filter({"judge": j, "task": t}).labelled(labels) for j in JUDGES for t in TASKS]
    ten = btdagg.Scale(range(1, 11))
    scores = btdagg.read_votes(data / "rb2_scores/votes.parquet", scale=ten)
    grades = btdagg.read_labels(data / "rb2_scores/labels.csv", scale=btdagg.PASS_FAIL)
    tasks = grades.values("task")
    scores = [
        scores.filter({"judge": j, "task": t}).labelled(grades) for j in JUDGES for t in tasks
    ]
    sizes, margin, systems = (40, 100, 250), 0.05, np.repeat(["old", "new"], 600)
    for new, old in (("A", "B"), ("B", "A")):
        passed = np.zeros((2, len(pairs), n_draws))
        for cell, draw in np.ndindex(passed.shape[1:]):
            rng, n_labels = np.random.default_rng([draw, cell, ord(new)]), sizes[draw % 3]
            own, sign = pairs[cell], 1 if new == "A" else -1
            ties = (own.label == 0).mean()
            shares = np.array([1 - ties + sign * margin, 2 * ties, 1 - ties - sign * margin]) / 2
            rows = _of_labels(rng, own.label, (-1, 0, 1), shares, 600)
            known = np.where(np.arange(600) < n_labels, own.label[rows], np.nan)
            sides = {"candidate": new, "baseline": old, "margin": margin}
            passed[0, cell, draw] = not_worse(own.pooled[rows], known, **sides).passed
            own = scores[cell]
            good = np.clip(own.label.mean(), 2 * margin, 1 - margin)
            parts = [
                _of_labels(rng, own.label, (0, 1), (1 - share, share), 600)
                for share in (good, good - margin)
            ]
            rows = np.concatenate(parts)
            known = np.where(np.arange(1200) % 600 < n_labels, own.label[rows], np.nan)
            names = systems if new == "A" else systems[::-1]  # which comes first
            sides = {"by": names, "candidate": names[600], "baseline": names[0], "margin": margin}
            told = {"scale": ten, "label_scale": btdagg.PASS_FAIL, "quantity": "pass rate"}
            passed[1, cell, draw] = not_worse(own.pooled[rows], known, **sides, **told).passed
        for name, own in zip((f"candidate {new}", f"grades of {names[600]}"), passed, strict=True):
            error = 196 * (0.05 * 0.95 / own.size) ** 0.5
            print(
                f"gates, {name}, worse by the margin: {100 * own.mean():.1f}% of {own.size:,} "
                f"pass (5 ± {error:.1f} at most), a judge and task {100 * own.mean(1).max():.0f}%"
            )


def _of_labels(rng, labels, values, shares, n: int) -> np.ndarray:
    """Draw items so that their labels have these shares on the mean."""
    of_label = {value: np.flatnonzero(labels == value) for value in values}
    return np.array([rng.choice(of_label[value]) for value in rng.choice(values, n, p=shares)])


def summary(name: str, tallies: list[Tally]) -> None:
    covered = np.array([tally.coverage for tally in tallies])
    worth = np.array([np.nanmean(tally.worth) for tally in tallies])
    print(
        f"{name}: coverage {100 * covered.mean():.1f}%, least {100 * covered.min():.1f}%; a label "
        f"is worth {worth.mean():.2f} on the mean, {worth.max():.2f} at most\n"
    )


def timed(n_items: int) -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(8, [0.3, 0.3, 0.4], size=n_items)
    labels = np.full(n_items, np.nan)
    labels[rng.permutation(n_items)[:500]] = rng.integers(-1, 2, 500)
    values, prompts = rng.integers(0, 20, n_items), rng.integers(0, max(n_items // 5, 1), n_items)
    for name, options in {
        "alone": {},
        "20 groups": {"groups": values},
        "by 20 values": {"by": values},
        "by 20 values, prompts as groups": {"by": values, "groups": prompts},
    }.items():
        began = time.perf_counter()
        found = btdagg.estimate(counts, labels, **options)
        _ = found.differences
        print(f"{n_items:,} items, 500 labels, {name}: {time.perf_counter() - began:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--grades", action="store_true")
    parser.add_argument("--gates", action="store_true")
    options = parser.parse_args()
    n_draws = 1 if options.smoke else options.draws
    if options.smoke:
        del JUDGES[1:], TASKS[2:]
    data = Path(os.environ.get("BTDAGG_SHARED", "../shared")) / "data"
    if (data / "rb2").exists() and (data / "rb2_scores").exists() and not options.grades:
        gates(data, n_draws)
    if options.gates:
        return
    of_grades(data / "rb2_scores", n_draws)
    if options.grades:
        return
    print(f"{'':32}{'A':>7}{'tie':>8}{'B':>8}{'net':>8}{'width':>10}{'worth':>8}")
    folder = data / "rb2"
    if folder.exists():
        for strength in ("none", "margin"):
            name = f"RewardBench 2, 100 labels, strength {strength}"
            summary(name, real(folder, n_draws, strength))
    ties = (0.3,) if options.smoke else (0.03, 0.1, 0.3, 0.6)
    summary("simulated", in_groups(n_draws, 1.0, ties, (False, True)))
    summary("a judge of noise", in_groups(n_draws, 0.0, (0.3,), (False,)))
    for n_items in (10_000,) if options.smoke else (100_000, 1_000_000):
        timed(n_items)


if __name__ == "__main__":
    main()
