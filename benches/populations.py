"""Coverage and width of estimates for new items and of these items, drawn in several ways.

120 items, of which 30 or 60 are labelled: single items, or whole groups of one to five; a simple
sample, or items drawn independently with probabilities that rise 16-fold with the disagreement of
their votes. Pairs, and skewed grades, are simulated anew for each draw: the truth for new items is
the mean of 400,000 of them, and for these items that of the 120. Models are cross-fitted, as by
default. Then 120 items of public data (read from BTDAGG_SHARED) stay the same, and only labels are
drawn anew. `--smoke` does little; `--real` does the public data alone, and `--simulated` the other.
`--few-errors` has judges that err seldom: on such items, or groups, labels show few errors or none.
A cell fails, marked `!`, whose coverage is below 92.5% beyond chance (its upper 99% limit).
`--quick` cross-fits by the paper's fit, without a prior.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

import btdagg
from btdagg.inference import population
from btdagg.inference.estimate import MeanEstimate
from btdagg.inference.quantities import quantities_of

N_ITEMS = 120
LEVEL = 0.95
SCALES = {"pairs": btdagg.PAIRS, "grades": btdagg.Scale(range(1, 6))}
SHOWN = {
    "pairs": ("net win rate", "A", "tie"),
    "grades": ("mean grade", "share >= 4", "share >= 5"),
    "passes": ("mean grade", "pass rate"),
}


def pairs(rng: np.random.Generator, n_items: int, largest: int):
    groups = np.repeat(np.arange(n_items), rng.integers(1, largest + 1, n_items))[:n_items]
    n = groups.max() + 1
    tie, lean = rng.beta(1.2, 2.8, n)[groups], rng.beta(1.5, 1.2, n)[groups]
    side = np.where(rng.random(n_items) < lean, 1, -1)
    labels = np.where(rng.random(n_items) < tie, 0, side)
    seen = 1.5 * labels + 0.4 + 0.8 * rng.normal(size=n_items)
    plus, minus = 1 / (1 + np.exp(0.7 - seen)), 1 / (1 + np.exp(0.7 + seen))
    counts = rng.multinomial(8, np.stack([minus, 1 - plus - minus, plus], axis=1))
    return counts, labels, groups


def grades(rng: np.random.Generator, n_items: int, largest: int):
    """Mostly high grades, on which votes disagree more often than on the rare low ones."""
    groups = np.repeat(np.arange(n_items), rng.integers(1, largest + 1, n_items))[:n_items]
    quality = rng.beta(4, 1, groups.max() + 1)[groups] + rng.normal(0, 0.12, n_items)
    labels = 1 + np.floor(5 * np.clip(quality, 0, 0.999))
    noise = np.where(rng.random(n_items) < np.where(labels >= 4, 0.35, 0.15), 1.2, 0.15)
    seen = labels + rng.normal(0, 0.8, n_items)
    votes = np.round(seen[:, None] + noise[:, None] * rng.normal(size=(n_items, 6)))
    votes = np.clip(votes, 1, 5)
    return np.stack([(votes == vote).sum(axis=1) for vote in range(1, 6)], axis=1), labels, groups


SIMULATED = {"pairs": pairs, "grades": grades}


def probabilities(counts: np.ndarray, values: np.ndarray, units: np.ndarray, n: int) -> np.ndarray:
    """Those of units, n of them on the mean, by the standard deviation of their votes."""
    n_votes = counts.sum(axis=1)
    mean = counts @ values / n_votes
    spread = np.sqrt(np.maximum(counts @ values**2 / n_votes - mean**2, 0))
    of_unit = np.bincount(units, spread) / np.bincount(units)
    times = 1 + 15 * np.clip(of_unit / 0.8, 0, 1)
    low, high = 0.0, 1e3
    for _ in range(60):
        middle = (low + high) / 2
        enough = np.minimum(1, middle * times).sum() >= n
        low, high = (low, middle) if enough else (middle, high)
    return np.minimum(1, high * times)


def means(scale: btdagg.Scale, labels: np.ndarray) -> dict[str, float]:
    place = scale.places(labels)
    return {name: float(np.array(of)[place].mean()) for name, of in quantities_of(scale).items()}


class Cell:
    """How often intervals hold the truth, and how wide they are, with the judge and without."""

    def __init__(self) -> None:
        self.hits, self.widths = defaultdict(list), defaultdict(list)

    def add(self, items, truths: dict[str, dict[str, float]], shown) -> None:
        for of, truth in truths.items():
            means = replace(items, population=of).domain()
            found = {name: MeanEstimate.of(means[name], LEVEL) for name in shown}
            for name in shown:
                for way, own in (("", found[name]), (" alone", found[name].labels_only)):
                    key = of + way, name
                    low, high = own.low - 1e-12, own.high + 1e-12
                    self.hits[key].append(low <= truth[name] <= high)
                    self.widths[key].append(own.high - own.low)

    def row(self, way: str, shown) -> str:
        return " | ".join(
            f"{100 * np.mean(self.hits[way, name]):.1f} ({np.mean(self.widths[way, name]):.3f})"
            for name in shown
        )


def one_draw(rng, counts, labels, groups, scales, whole, n, weighted, prior):
    """Label units drawn by chance; None where too few came."""
    values = scales[0].floats
    units = groups if whole else np.arange(len(counts))
    n_units = int(units.max()) + 1
    n = round(n * n_units / len(counts)) if whole else n
    p = None
    if weighted:
        of_unit = probabilities(counts, values, units, n)
        drawn, p = rng.random(n_units) < of_unit, of_unit[units]
    else:
        drawn = rng.permutation(n_units) < n
    if drawn.sum() < 2:
        return None
    known = np.where(drawn[units], labels, np.nan)
    group = groups if whole else None
    how = {"groups": group, "probabilities": p, "units": group}
    items = population.items_of(counts, known, scale=scales[0], label_scale=scales[1], **how)
    return population.PredictedItems.of(items, prior=prior)


def simulated(n_draws: int, quick: bool) -> None:
    for name, make in SIMULATED.items():
        shown, scale, prior = SHOWN[name], SCALES[name], None if quick else "weak"
        print(f"\n| {name}, drawn by, labels, of | {' | '.join(shown)} | labels alone: the same |")
        for whole in (False, True):
            largest = 5 if whole else 1
            truth = means(scale, make(np.random.default_rng(99), 400_000, largest)[1])
            for n in (30, 60):
                for weighted in (False, True):
                    cell, n_few = Cell(), 0
                    for draw in range(n_draws):
                        rng = np.random.default_rng([draw, n, weighted, whole])
                        counts, labels, groups = make(rng, N_ITEMS, largest)
                        told = counts, labels, groups, (scale, scale), whole, n, weighted
                        items = one_draw(rng, *told, prior)
                        if items is None:
                            n_few += 1
                            continue
                        these = means(scale, labels)
                        cell.add(items, {"new": truth, "finite": these}, shown)
                    by = f"{'groups' if whole else 'items'}, {n}{', by votes' * weighted}"
                    report(cell, by, ("new", "finite"), shown, n_few)


LEAST_COVERAGE, Z99 = 0.925, 2.326


def few_errors(rng: np.random.Generator, n_items: int, kind: str, rate: float, error: str):
    """Items whose judge is unanimous and errs at a rate: labels, votes and groups."""
    sizes = rng.integers(1, 6, n_items) if "group" in error else np.ones(n_items, dtype=int)
    groups = np.repeat(np.arange(n_items), sizes)[:n_items]
    points = {"pairs": 3, "grades": 5, "passes": 2}[kind]
    shares = {"pairs": (0.5, 0, 0.5), "grades": (0.1, 0.1, 0.2, 0.3, 0.3), "passes": (0.3, 0.7)}[
        kind
    ]
    if error == "with ties":
        shares = 0.35, 0.3, 0.35
    labels = rng.choice(points, n_items, p=shares)
    errs = rng.random(n_items) < rate
    if error == "whole groups":
        errs = (rng.random(n_items) < rate)[groups]
    if error == "on one side":
        errs = (rng.random(n_items) < 2 * rate) & (labels == 0)
    if error == "same items":  # a share of the items, the first, for good
        labels = np.arange(n_items) % 2 * (points - 1)
        errs = (np.arange(n_items) < round(rate * n_items)) | (labels < 0)
        labels[errs] = 0
    other = points - 1 - labels
    if kind == "grades" and error != "far":
        other = np.clip(labels + rng.choice((-1, 1), n_items), 0, points - 1)
    if error == "with ties":
        other = (labels + rng.integers(1, points, n_items)) % points
    counts = 4 * np.eye(points, dtype=int)[np.where(errs, other, labels)]
    return counts, labels, groups


FEW_ERRORS = [
    ("pairs", 0.02, "", 120, 60, False),
    ("pairs", 0.02, "", 120, 30, False),
    ("pairs", 0.02, "", 120, 100, False),
    ("pairs", 0.05, "", 120, 60, False),
    ("pairs", 0.01, "", 240, 60, False),
    ("pairs", 0.02, "", 200, 100, False),
    ("passes", 0.02, "", 120, 60, False),
    ("passes", 0.02, "on one side", 120, 60, False),
    ("pairs", 0.02, "with ties", 120, 60, False),
    ("grades", 0.03, "", 120, 60, False),
    ("grades", 0.02, "far", 120, 60, False),
    ("pairs", 0.02, "", 120, 60, True),
    ("passes", 0.02, "", 120, 60, True),
    ("pairs", 0.02, "in groups", 120, 60, False),
    ("pairs", 0.03, "whole groups", 120, 60, False),
    ("pairs", 0.02, "on one side", 120, 60, False),
    ("pairs", 0.04, "same items", 120, 60, False),
    ("pairs", 0.1, "", 120, 60, False),
    ("pairs", 0.25, "", 120, 60, False),
]
SHOWN_OF_FEW = {
    "pairs": ("net win rate", "A"),
    "grades": ("mean grade", "share >= 4"),
    "passes": ("pass rate",),
}


def labels_of_few_errors(n_draws: int, settings) -> None:
    print("\n| votes, errors, of items, labels | estimate of | coverage (width) | labels alone |")
    scales = {**SCALES, "passes": btdagg.PASS_FAIL}
    for number in settings:
        kind, rate, error, n_items, n, weighted = FEW_ERRORS[number]
        scale, shown = scales[kind], SHOWN_OF_FEW[kind]
        large, *_ = few_errors(np.random.default_rng(99), 400_000, kind, rate, error)[1:]
        truth = means(scale, scale.floats[large])
        cell, n_few = Cell(), 0
        for draw in range(n_draws):
            rng = np.random.default_rng([draw, number])
            counts, places, groups = few_errors(rng, n_items, kind, rate, error)
            labels, whole = scale.floats[places], "group" in error
            told = counts, labels, groups, (scale, scale), whole, n, weighted
            items = one_draw(rng, *told, "weak")
            if items is None:
                n_few += 1
                continue
            cell.add(items, {"new": truth, "finite": means(scale, labels)}, shown)
        name = f"{kind}, {rate:.0%} {error}, {n_items}, {n}{', by votes' * weighted}"
        for of in ("new", "finite")[error == "same items" :]:
            for quantity in shown:
                rows = (cell.row(of + way, (quantity,)) for way in ("", " alone"))
                hits = np.mean(cell.hits[of, quantity])
                limit = hits + Z99 * np.sqrt(LEAST_COVERAGE * (1 - LEAST_COVERAGE) / n_draws)
                bad = "!" if limit < LEAST_COVERAGE else ""
                print(f"| {name} | {quantity}, {of} | {' | '.join(rows)} | {bad}")
        print(end="", flush=True)


def report(cell: Cell, by: str, populations, shown, n_few: int) -> None:
    for of in populations:
        few = f" ({n_few} draws of fewer than 2)" if n_few else ""
        print(f"| {by}, {of}{few} | {cell.row(of, shown)} | {cell.row(of + ' alone', shown)} |")
    print(end="", flush=True)


def public(data: Path):
    """Yield names, kinds and 120 items each of public data."""
    votes = btdagg.read_votes(data / "rb2/votes.parquet", strength="none")
    votes = votes.filter({"template": "base", "temperature": "default", "judge": "gpt-5.4"})
    gold = btdagg.read_labels(data / "rb2/labels.csv")
    items = votes.filter({"task": "focus"}).labelled(gold)
    yield "RewardBench 2, focus", "pairs", (btdagg.PAIRS, btdagg.PAIRS), items
    scales = btdagg.Scale(range(1, 11)), btdagg.PASS_FAIL
    scores = btdagg.read_votes(data / "rb2_scores/votes.parquet", scale=scales[0])
    scores = scores.filter({"judge": "gpt-5.4", "task": "focus"})
    gold = btdagg.read_labels(data / "rb2_scores/labels.csv", scale=scales[1])
    yield "RewardBench 2, scores, focus", "passes", scales, scores.labelled(gold)


def real(data: Path, n_draws: int) -> None:
    for name, of, scales, items in public(data):
        shown = SHOWN[of]
        print(f"\n| {name}, drawn by, labels, of | {' | '.join(shown)} | labels alone: the same |")
        rng = np.random.default_rng(0)
        numbers = np.arange(len(items.label))
        if items.group is not None:
            numbers = np.unique(items.group, return_inverse=True)[1]
        some = np.flatnonzero(np.isin(numbers, rng.permutation(numbers.max() + 1)[:N_ITEMS]))
        for whole in (False, True):
            rows = some[:N_ITEMS] if whole else rng.permutation(len(numbers))[:N_ITEMS]
            groups = np.unique(numbers[rows], return_inverse=True)[1]
            if whole and len(np.unique(groups)) == N_ITEMS:
                continue
            counts, labels = items.pooled[rows], items.label[rows].astype(np.float64)
            truth = {"finite": means(scales[1], labels)}
            for n in (30, 60, 110):
                for weighted in (False, True):
                    cell, n_few = Cell(), 0
                    for draw in range(n_draws):
                        own = np.random.default_rng([draw, n, weighted, whole])
                        told = counts, labels, groups, scales, whole, n, weighted
                        drawn = one_draw(own, *told, "weak")
                        if drawn is None:
                            n_few += 1
                            continue
                        cell.add(drawn, truth, shown)
                    by = f"{'groups' if whole else 'items'}, {n}{', by votes' * weighted}"
                    report(cell, by, ("finite",), shown, n_few)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--few-errors", action="store_true")
    parser.add_argument("--settings", type=int, nargs="*", help="numbers of settings of few errors")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    n_draws = 2 if options.smoke else options.draws
    if options.few_errors or options.smoke:
        labels_of_few_errors(n_draws, options.settings or range(len(FEW_ERRORS)))
    if options.few_errors:
        return
    if not options.real:
        simulated(n_draws, options.quick)
    data = Path(os.environ.get("BTDAGG_SHARED", "../shared")) / "data"
    if data.exists() and not options.simulated:
        real(data, n_draws)


if __name__ == "__main__":
    main()
