"""Coverage and width of estimates from chosen labels, and errors of calibrations on them.

Estimates: of RewardBench 2's pairs (read from BTDAGG_SHARED) 500 are drawn with replacement, some
of them are labelled, and the truth is the mean over all pairs. The bound is the ratio of widths
that no shares of the strata can go below: E s / sqrt(E s^2) for standard deviations s of labels.
Groups: prompts are drawn with replacement and 60 of them are labelled whole.
Calibrations: items are chosen among 300 of a judge and task (RewardBench 2, and vicuna80 by judge
and pooled), and the mean absolute error is that on all others.
Three designs are not in the package: `neyman` has shares by the standard deviations that the votes
predict, `balanced` as many items of each stratum, `divided` has divided items four times as often.
By a model: one of 100 labels with covariates stratifies the other items of vicuna80 and topical.
`--smoke` does little.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from covariates import topical, vicuna80

import btdagg
from btdagg.estimates import choose
from btdagg.inference.quantities import quantities_of

SHOWN = ("A", "tie", "B", "net win rate")
JUDGES = ("gpt-5.4", "gpt-5.4-mini", "claude-sonnet-4.6")
TASKS = ("factuality", "focus", "math", "precise-if", "safety")
N_ITEMS, N_POOL = 500, 300


def cells_of(folder: Path) -> dict[str, list[tuple[str, btdagg.votes.Items]]]:
    """Labelled counts of every judge and task."""
    votes = btdagg.read_votes(folder / "rb2/votes.parquet", strength="none")
    votes = votes.filter({"template": "base", "temperature": "default"})
    labels = btdagg.read_labels(folder / "rb2/labels.csv")
    pairs = [
        (f"{judge}, {task}", votes.filter({"judge": judge, "task": task}).labelled(labels))
        for judge in JUDGES
        for task in TASKS
    ]
    votes = btdagg.read_votes(folder / "vicuna80/votes.csv")
    labels = btdagg.read_labels(folder / "vicuna80/labels.csv")
    questions = [("pooled", votes.labelled(labels))]
    for judge in votes.values("judge").to_list():
        questions.append((judge, votes.filter({"judge": judge}).labelled(labels)))
    return {"RewardBench 2": pairs, "vicuna80": questions}


def predicted_deviation(counts: np.ndarray, stratum: np.ndarray) -> np.ndarray:
    """Standard deviations that smoothed votes predict by stratum, at least half the largest."""
    shares = (counts + 1) / (counts + 1).sum(axis=1, keepdims=True)
    net = shares[:, 2] - shares[:, 0]
    variance = shares[:, 2] + shares[:, 0] - net**2
    found = np.sqrt(np.bincount(stratum, variance) / np.bincount(stratum))
    return np.maximum(found, found.max() / 2)


WEIGHTS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "neyman": lambda counts, stratum, names: predicted_deviation(counts, stratum),
    "balanced": lambda counts, stratum, names: 1 / np.bincount(stratum),
    "divided": lambda counts, stratum, names: np.where(
        np.char.endswith(names.astype(str), "divided"), 4.0, 1.0
    ),
}


def drawn(design: str, counts: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and probabilities of a sample of a design."""
    if design not in WEIGHTS:
        found = choose(counts, n, design=design, seed=seed)
        return found.rows, found.probabilities
    every = choose(counts, len(counts), design="stratified", seed=seed)
    names, stratum = np.unique(every.strata, return_inverse=True)
    sizes = np.bincount(stratum)
    order = every.rows[np.argsort(stratum[every.rows], kind="stable")]
    of = stratum[order]
    rank = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[of]
    weight = sizes * WEIGHTS[design](counts, stratum, names)
    with np.errstate(divide="ignore"):
        rows = order[np.argsort(-weight[of] / np.sqrt(rank * (rank + 1.0)), kind="stable")[:n]]
    return rows, (np.bincount(stratum[rows], minlength=len(sizes)) / sizes)[stratum]


def bounds(counts: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return the bounds of net win rate and ties."""
    stratum = np.unique(
        choose(counts, len(counts), design="stratified").strata, return_inverse=True
    )[1]
    share = np.bincount(stratum) / len(labels)
    found = []
    for values in ("net win rate", "tie"):
        y = np.array(quantities_of(btdagg.PAIRS)[values])[labels + 1]
        deviation = np.array([y[stratum == number].std() for number in range(len(share))])
        found.append(float(share @ deviation / np.sqrt(share @ deviation**2)))
    return found


class Tally:
    """How often intervals hold the truth, how wide they are, and how far estimates are off."""

    def __init__(self, labels: np.ndarray) -> None:
        self.truth = [
            np.array(quantities_of(btdagg.PAIRS)[name])[labels + 1].mean() for name in SHOWN
        ]
        self.hits, self.widths, self.errors = [], [], []

    def add(self, found: btdagg.questions.estimate.Estimates) -> None:
        ones = [found.estimates[name] for name in SHOWN]
        self.hits.append([o.low <= t <= o.high for o, t in zip(ones, self.truth, strict=True)])
        self.widths.append([ones[3].high - ones[3].low, ones[1].high - ones[1].low])
        self.errors.append([ones[3].value - self.truth[3], ones[1].value - self.truth[1]])

    @property
    def coverage(self) -> np.ndarray:
        return np.mean(self.hits, axis=0)


def estimates(cells, n_labels: int, designs: tuple[str, ...], n_draws: int) -> None:
    print(f"\n{n_labels} labels, RewardBench 2: percent covered; width and error over simple")
    print(f"{'':32}{'A':>6}{'tie':>6}{'B':>6}{'net':>6}  net: width error  tie: width error")
    covered: dict[str, list[np.ndarray]] = {design: [] for design in designs}
    ratios: dict[str, list[np.ndarray]] = {design: [] for design in designs}
    for name, items in cells:
        tallies = {design: Tally(items.label) for design in designs}
        for draw in range(n_draws):
            rows = np.random.default_rng(draw).integers(len(items.label), size=N_ITEMS)
            for design, tally in tallies.items():
                chosen, probabilities = drawn(design, items.pooled[rows], n_labels, draw)
                labels = np.full(N_ITEMS, np.nan)
                labels[chosen] = items.label[rows[chosen]]
                counts = items.pooled[rows]
                tally.add(btdagg.estimate(counts, labels, probabilities=probabilities))
        shown = [f"{bound:.3f}" for bound in bounds(items.pooled, items.label)]
        print(f"{name}: bounds {' '.join(shown)}")
        add_rows(tallies, covered, ratios)
    summary(covered, ratios)


def add_rows(tallies: dict[str, Tally], covered, ratios) -> None:
    for design, tally in tallies.items():
        simple = tallies["simple"]
        width = np.mean(tally.widths, axis=0) / np.mean(simple.widths, axis=0)
        error = np.sqrt(np.mean(np.square(tally.errors), axis=0))
        error = error / np.sqrt(np.mean(np.square(simple.errors), axis=0))
        covered[design].append(tally.coverage)
        ratios[design].append(np.stack([width, error]))
        shown = "".join(f"{100 * share:6.1f}" for share in tally.coverage)
        net, tie = ratios[design][-1].T
        print(
            f"  {design:30}{shown}{net[0]:12.3f}{net[1]:6.3f}{tie[0]:12.3f}{tie[1]:6.3f}",
            flush=True,
        )


def summary(covered, ratios) -> None:
    for design, shares in covered.items():
        every = 100 * np.array(shares)
        (width, width_tie), (error, error_tie) = np.exp(np.mean(np.log(ratios[design]), axis=0))
        print(
            f"{design}: coverage {every.mean():.1f}%, least {every.min():.1f}%; net: width "
            f"{width:.3f}, error {error:.3f}; tie: width {width_tie:.3f}, error {error_tie:.3f}"
        )


def in_groups(cells, n_draws: int) -> None:
    print("\n60 whole prompts, RewardBench 2")
    designs = ("simple", "stratified")
    covered: dict[str, list[np.ndarray]] = {design: [] for design in designs}
    ratios: dict[str, list[np.ndarray]] = {design: [] for design in designs}
    for name, items in cells:
        numbers = np.unique(items.group, return_inverse=True)[1]
        prompts = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]
        tallies = {design: Tally(items.label) for design in designs}
        for draw in range(n_draws):
            picked = np.random.default_rng(draw).integers(len(prompts), size=len(prompts))
            rows = np.concatenate([prompts[number] for number in picked])
            groups = np.repeat(np.arange(len(picked)), [len(prompts[number]) for number in picked])
            for design, tally in tallies.items():
                chosen = choose(items.pooled[rows], 60, groups=groups, design=design, seed=draw)
                labels = np.full(len(rows), np.nan)
                labels[chosen.rows] = items.label[rows[chosen.rows]]
                found = btdagg.estimate(
                    items.pooled[rows], labels, groups=groups, probabilities=chosen.probabilities
                )
                tally.add(found)
        print(name)
        add_rows(tallies, covered, ratios)
    summary(covered, ratios)


def calibrations(name: str, cells, n_draws: int) -> None:
    designs = ("simple", "stratified", "balanced", "divided")
    print(f"\nMAE with the weak prior, {name}; differences from simple and their standard errors")
    for n_labels in (10, 20, 50):
        errors = np.empty((len(cells), n_draws, len(designs)))
        for cell, (_, items) in enumerate(cells):
            for draw in range(n_draws):
                order = np.random.default_rng([draw, n_labels]).permutation(len(items.label))
                pool, rest = order[:N_POOL], order[N_POOL:]
                for place, design in enumerate(designs):
                    rows = pool[drawn(design, items.pooled[pool], n_labels, draw)[0]]
                    known = items.pooled[rows], items.label[rows]
                    model = btdagg.calibrate(*known, prior="weak").model
                    decided = model.decide(items.pooled[rest])
                    errors[cell, draw, place] = np.abs(decided - items.label[rest]).mean()
        away = errors - errors[:, :, :1]
        spread = np.sqrt((away.var(axis=1) / n_draws).mean(axis=0) / len(cells))
        shown = [f"{design} {errors[..., k].mean():.4f}" for k, design in enumerate(designs[:1])]
        for k, design in list(enumerate(designs))[1:]:
            shown.append(f"{design} {away[..., k].mean():+.4f} ±{spread[k]:.4f}")
        print(f"{n_labels} labels: {'; '.join(shown)}", flush=True)


def by_model(data: Path, n_draws: int) -> None:
    """Error of the weighted mean of labels alone, and of models fitted to them, by strata."""
    print("\nStrata of none, of votes, and of a model with covariates that 100 other labels made")
    for cell in [*vicuna80(data), *topical(data)]:
        known, gold = cell.known(cell.counts, 0), cell.labels.astype(float)
        for n in (20, 50):
            means, errors = np.empty((2, n_draws, 3))
            for draw in range(n_draws):
                order = np.random.default_rng([draw, 5]).permutation(len(gold))
                rest, before = order[100:], np.full(len(gold), np.nan)
                before[order[:100]] = gold[order[:100]]
                how = {"scale": cell.scale, "covariates": known}
                model = btdagg.calibrate(cell.counts, before, **how).model
                own = {used.name: known[used.name][rest] for used in model.covariates}
                told = {"design": "stratified", "model": model, "covariates": own}
                for place, options in enumerate(({}, {"design": "stratified"}, told)):
                    pool = cell.counts[rest]
                    found = choose(pool, n, seed=draw, scale=cell.scale, **options)
                    weights = 1 / found.probabilities[found.rows]
                    labels = np.full(len(rest), np.nan)
                    labels[found.rows] = gold[rest[found.rows]]
                    mean = weights @ labels[found.rows] / weights.sum()
                    means[draw, place] = mean - gold[rest].mean()
                    every = {name: values[rest] for name, values in known.items()}
                    fitted = btdagg.calibrate(pool, labels, scale=cell.scale, covariates=every)
                    used = {own.name: every[own.name] for own in fitted.model.covariates} or None
                    decided = fitted.model.decide(pool, covariates=used)
                    errors[draw, place] = np.abs(decided - gold[rest])[np.isnan(labels)].mean()
            size = np.sqrt((means**2).mean(axis=0))
            shown = (" ".join(f"{own:.4f}" for own in row) for row in (size, errors.mean(axis=0)))
            print(f"{cell.name}, {n} labels: mean {next(shown)}; MAE {next(shown)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    folder = Path(os.environ.get("BTDAGG_SHARED", "../shared")) / "data"
    if not folder.exists():
        print("BTDAGG_SHARED has no data; nothing to measure")
        return
    warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
    n_draws = 2 if options.smoke else options.draws
    cells = cells_of(folder)
    pairs = cells["RewardBench 2"][:2] if options.smoke else cells["RewardBench 2"]
    estimates(pairs, 100, ("simple", "stratified", "neyman"), n_draws)
    estimates(pairs, 30, ("simple", "stratified"), n_draws)
    in_groups(pairs[:5], n_draws)
    for name, items in cells.items():
        calibrations(name, items[:2] if options.smoke else items, max(n_draws // 2, 2))
    by_model(folder, 1 if options.smoke else max(n_draws // 5, 1))


if __name__ == "__main__":
    main()
