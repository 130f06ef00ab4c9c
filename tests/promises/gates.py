"""How accurate fits are on public votes, and how far a change may fall behind the recorded figures.

`python tests/promises/gates.py` prints mean absolute errors and DRPS of each family by number of
labels, their differences to the recorded ones, and which gates fail; with `--intervals` coverage
and widths of intervals. `--record` writes figures that are better, or new, to gates.json, whose
first lines say when it may be changed. BTDAGG_SHARED names the folder of the public votes.

A split halves the groups of each cell. Labels are drawn from one half, always the first n of one
random order; errors are those of all items of the other half. The figure of a split is the mean
over the cells of a family that have enough items.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import interval_draws
import numpy as np
import public_votes as public
from scipy.stats import t as student

import btdagg

RECORDED = Path(__file__).with_name("gates.json")
ABOUT = [
    "Recorded figures that tests/promises hold every change to.",
    "Baselines follow improvements (a ratchet): a figure may be replaced only by a better one,",
    "or with a reason in CHANGELOG.md. `python tests/promises/gates.py --record` replaces figures",
    "that are better; `--accept NAME` those of a family, or a scenario, for which there is one.",
    "errors: mean absolute error or DRPS of each split, in units of 0.0001.",
    "widths: coverage and mean width of each interval, by number of draws.",
]
GATES = {"mae": (0.008, 0.004), "drps": (0.004, 0.002)}
"""The largest upper 95% limit of a difference, up to `FEW` labels and beyond."""
FEW = 20
SIZES = (10, 20, 50, 100, 300)


# The doors: all of btdagg that is called here


def calibrated(cell, labels, **options):
    if cell.points != public.PAIRS:
        options["scale"] = btdagg.Scale(cell.points)
        options["label_scale"] = btdagg.Scale(cell.label_points)
    return btdagg.calibrate(cell.counts, labels, **options).model


def prior_of(neighbours):
    """Return the prior of labelled cells: for grades the models fitted to them."""
    if neighbours[0].points == public.PAIRS:
        return btdagg.fit_prior([(cell.counts, cell.labels) for cell in neighbours])
    return [calibrated(cell, cell.labels) for cell in neighbours]


def fit(prior, cell, labelled):
    if not len(labelled):
        return btdagg.calibrate(cell.counts, None, prior=prior).model
    rows = cell.rows(labelled)
    return calibrated(rows, rows.labels, prior=prior)


def fit_panel(cell, labelled):
    rows = cell.rows(labelled)
    return btdagg.calibrate_panel(rows.counts, rows.labels, groups=rows.groups).model


def fit_covariates(cell, labelled):
    """Return a model whose covariates are scaled by all items."""
    labels = np.full(len(cell.labels), np.nan)
    labels[labelled] = cell.labels[labelled]
    return calibrated(cell, labels, covariates=cell.covariates)


def predictions(model, cell):
    """Return decided labels, and probabilities of the labels in their order."""
    covariates = {"covariates": cell.covariates} if cell.covariates else {}
    return model.decide(cell.counts, **covariates), model.predict_proba(cell.counts, **covariates)


def with_standing(cells):
    """Add what the judge says elsewhere of the same systems, and of the same dialogues."""
    cells_with_standing = []
    for cell in cells:
        if len(cell.systems) == 2:
            standings = {"standing": btdagg.standing(cell.counts, *cell.systems)}
        else:
            sources = {"standing": cell.systems[0], "group-standing": cell.groups}
            scale = btdagg.Scale(cell.points)
            standings = {
                name: btdagg.standing(cell.counts, source, scale=scale)
                for name, source in sources.items()
            }
        columns = cell.covariates | standings
        columns = {name: values for name, values in columns.items() if np.ptp(values) > 0}
        if columns:
            cells_with_standing.append(replace(cell, covariates=columns))
    return tuple(cells_with_standing)


# Families


@dataclass(frozen=True)
class Family:
    """Cells that are fitted in one way: `fitter` returns the fit of a cell, used in all splits."""

    kind: str
    cells: Callable[[], tuple[public.Cell, ...]]
    fitter: Callable[[public.Cell], Callable]
    sizes: tuple[int, ...] = SIZES
    draws: int = 1  # of each cell in a split, where cells are few


def always(fit):
    return lambda cell: fit


def neighbours(cells):
    """Return the fitter whose prior is learned from the cells of other tasks."""
    return lambda cell: partial(fit, prior_of([o for o in cells() if o.task != cell.task]))


rb2_strength = partial(public.rb2, kind="strength")
rb2_prompts, vicuna80, topical = public.rb2_other_prompts, public.vicuna80, public.topical
rubric, rb2_scores = partial(public.graded, "rubric"), partial(public.graded, "rb2_scores")


def unequal(way):
    return partial(public.rb2_unequal, way)


def noisy(cells, n_columns, judges):
    """Return cells of some judges with columns of noise."""
    return lambda: public.with_noise([cell for cell in cells() if cell.judge in judges], n_columns)


WEAK, PAPER = always(partial(fit, "weak")), always(partial(fit, None))
PANEL, COVARIATES = always(fit_panel), always(fit_covariates)
FROM_0, UP_TO_100, FROM_20, SOME = (0, *SIZES), SIZES[:4], SIZES[1:4], (0, 10, 50)
THREE = ("claude", "gpt35", "gpt4")

FAMILIES = {
    "rb2, weak prior": Family("pairs", public.rb2, WEAK, FROM_0),
    "rb2, paper's fit": Family("paper", public.rb2, PAPER),
    "rb2, neighbours": Family("neighbours", public.rb2, neighbours(public.rb2), FROM_0),
    "rb2, neighbours of vicuna80": Family("neighbours", public.rb2, neighbours(vicuna80), SOME),
    "rb2 other prompts, weak prior": Family("pairs", rb2_prompts, WEAK, SOME[1:]),
    "rb2 other prompts, neighbours": Family(
        "neighbours", rb2_prompts, neighbours(public.rb2), SOME
    ),
    "vicuna80, weak prior": Family("pairs", vicuna80, WEAK, FROM_0, draws=3),
    "vicuna80, paper's fit": Family("paper", vicuna80, PAPER, draws=3),
    "vicuna80, neighbours of rb2": Family(
        "neighbours", vicuna80, neighbours(public.rb2), SOME, draws=3
    ),
    "wmt23, weak prior": Family("pairs", public.wmt23, WEAK, (0, *UP_TO_100)),
    "wmt23, paper's fit": Family("paper", public.wmt23, PAPER, UP_TO_100),
    "rb2 thinned to 2 or 8 votes": Family("unequal", unequal("thinned"), WEAK, SIZES[1:]),
    "rb2 stopped after 2 equal votes": Family("unequal", unequal("stopped"), WEAK, SIZES[1:]),
    "rb2 with 3 to 8 votes": Family("unequal", unequal("3 to 8"), WEAK, SIZES[1:]),
    "rb2 strength, weak prior": Family("strength", rb2_strength, WEAK, FROM_0),
    "rb2 strength, neighbours": Family("strength", rb2_strength, neighbours(rb2_strength), SOME),
    "rb2 strength other prompts, neighbours": Family(
        "strength", partial(rb2_prompts, "strength"), neighbours(rb2_strength), SOME[1:]
    ),
    "rb2 panel of three": Family("panel", public.rb2_panel, PANEL),
    "rb2 panel of three, strength": Family("panel", partial(public.rb2_panel, "strength"), PANEL),
    "vicuna80 panel of five": Family("panel", public.vicuna80_panel, PANEL, draws=3),
    "rb2_scores, weak prior": Family("grades", rb2_scores, WEAK),
    "rb2_scores, neighbours": Family("neighbours", rb2_scores, neighbours(rb2_scores), SOME[1:]),
    "rubric, weak prior": Family("grades", rubric, WEAK, UP_TO_100),
    "rubric, neighbours": Family("neighbours", rubric, neighbours(rubric), SOME[1:]),
    "topical, weak prior": Family("grades", topical, WEAK, UP_TO_100, draws=4),
    "simulated grades, weak prior": Family("grades", public.simulated_grades, WEAK, UP_TO_100),
    "vicuna80 with standing and length": Family(
        "covariates", lambda: with_standing(vicuna80(THREE, True)), COVARIATES, draws=3
    ),
    "topical with standing and length": Family(
        "covariates", lambda: with_standing(topical(True)), COVARIATES, UP_TO_100, draws=4
    ),
    "rb2 with noise": Family("covariates", noisy(public.rb2, 3, ("gpt-5.4",)), COVARIATES, FROM_20),
    "rubric with noise": Family(
        "covariates", noisy(rubric, 3, ("gpt-3.5-turbo",)), COVARIATES, FROM_20
    ),
    "wmt23 with standing": Family(
        "covariates", lambda: with_standing(public.wmt23()), COVARIATES, FROM_20
    ),
    "vicuna80 with twelve columns of noise": Family(
        "covariates", noisy(vicuna80, 12, THREE), COVARIATES, FROM_20, draws=2
    ),
}


# Errors


def halves(cell, *seed):
    """Return the items to label, in random order, and those to judge by: halves of the groups."""
    rng = np.random.default_rng([59, *seed])
    groups = rng.permutation(np.unique(cell.groups))
    is_judged = np.isin(cell.groups, groups[: len(groups) // 2])
    return rng.permutation(np.flatnonzero(~is_judged)), np.flatnonzero(is_judged)


def errors(model, cell):
    """Return mean absolute error and DRPS on all items of a cell."""
    decided, probabilities = predictions(model, cell)
    observed = cell.labels[:, None] <= np.array(cell.label_points)[:-1]
    drps = ((probabilities.cumsum(axis=1)[:, :-1] - observed) ** 2).sum(axis=1)
    return np.abs(decided - cell.labels).mean(), drps.mean()


@cache
def cells_and_fits(name):
    family = FAMILIES[name]
    return [(cell, family.fitter(cell)) for cell in family.cells()]


def measured(name, splits, sizes=None):
    """Return a family's figure of each split, by number of labels and measure, in 0.0001."""
    family = FAMILIES[name]
    sizes = family.sizes if sizes is None else sizes
    figures = {(size, measure): [] for size in sizes for measure in GATES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for split in splits:
            by_size = {size: [] for size in sizes}
            for place, (cell, fit_cell) in enumerate(cells_and_fits(name)):
                for draw in range(family.draws):
                    pool, judged = halves(cell, split, draw, place)
                    rows = cell.rows(judged)
                    for size in sizes:
                        if size <= len(pool):
                            by_size[size].append(errors(fit_cell(cell, pool[:size]), rows))
            for size, by_cell in by_size.items():
                for measure, value in zip(GATES, np.mean(by_cell, axis=0), strict=True):
                    figures[size, measure].append(round(1e4 * value))
    return {key: np.array(values) for key, values in figures.items()}


# Recorded figures and gates


def recorded():
    if not RECORDED.exists():
        return {"errors": {}, "widths": {}}
    return json.loads(RECORDED.read_text("utf-8"))


def write(figures):
    """Write the recorded file, with a line for each series."""
    sections = [f'"about": {json.dumps(ABOUT, indent=1)}']
    for section in ("errors", "widths"):
        rows = [
            f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}"
            for key, value in sorted(figures[section].items())
        ]
        sections.append(f'"{section}": {{\n' + ",\n".join(rows) + "\n}")
    RECORDED.write_text("{" + ",\n".join(sections) + "}\n", "utf-8")


def key_of(name, size, measure):
    return f"{name}; {size} labels; {measure}"


class Gate(NamedTuple):
    """A figure beside the recorded one: the difference on the same splits, by split."""

    name: str
    size: int
    measure: str
    before: float
    now: float
    differences: np.ndarray

    @property
    def largest(self):
        """How much worse a figure may be."""
        return GATES[self.measure][self.size > FEW]

    @property
    def difference(self):
        return self.differences.mean()

    @property
    def error(self):
        return self.differences.std(ddof=1) / math.sqrt(len(self.differences))

    @property
    def upper(self):
        """The upper 95% limit of the difference."""
        return self.difference + student.ppf(0.95, len(self.differences) - 1) * self.error

    @property
    def holds(self):
        return bool(self.upper <= self.largest)

    def __str__(self):
        return (
            f"{self.name}, {self.size} labels, {self.measure.upper()}: {self.before:.4f} recorded, "
            f"{self.now:.4f} now, difference {self.difference:+.4f} ({self.error:.4f}), upper 95% "
            f"limit {self.upper:+.4f}, at most {self.largest}"
        )


def gates(name, figures, baseline):
    """Compare a family's figures of the first splits with the recorded ones."""
    compared = []
    for (size, measure), values in figures.items():
        before = np.array(baseline["errors"][key_of(name, size, measure)][: len(values)])
        means = before.mean() / 1e4, values.mean() / 1e4
        compared.append(Gate(name, size, measure, *means, (values - before) / 1e4))
    return compared


def is_recorded(name, figures, baseline):
    return all(
        len(baseline["errors"].get(key_of(name, *key), ())) >= len(values)
        for key, values in figures.items()
    )


def show(name, figures, baseline):
    """Print a family's figures with standard errors over splits; return whether its gates hold."""
    print(f"\n### {name} ({FAMILIES[name].kind}, {len(cells_and_fits(name))} cells)\n")
    sizes = list(dict.fromkeys(size for size, _ in figures))
    rows = {}
    for measure in GATES:
        for size in sizes:
            values = figures[size, measure] / 1e4
            error = values.std(ddof=1) / math.sqrt(len(values))
            rows.setdefault(measure.upper(), []).append(f"{values.mean():.4f} ({error:.4f})")
    failed = []
    has_record = is_recorded(name, figures, baseline)
    if has_record:
        for gate in gates(name, figures, baseline):
            text = f"{gate.difference:+.4f} ({gate.error:.4f})"
            rows.setdefault(f"{gate.measure.upper()} − recorded", []).append(text)
            failed += [gate] * (not gate.holds)
    print("| labels | " + " | ".join(map(str, sizes)) + " |\n|---|" + "---:|" * len(sizes))
    for label, cells in rows.items():
        print(f"| {label} | " + " | ".join(cells) + " |")
    print(*(f"\nFAILS: {gate}" for gate in failed), sep="")
    if not has_record:
        print("not recorded on as many splits")
    return has_record and not failed


def record(name, figures, baseline, is_accepted):
    """Replace each recorded series by a better one of at least as many splits."""
    for (size, measure), values in figures.items():
        key = key_of(name, size, measure)
        before = baseline["errors"].get(key, [])
        is_better = len(values) >= len(before) and (
            not before or values[: len(before)].mean() <= np.mean(before)
        )
        if is_better or is_accepted:
            baseline["errors"][key] = values.tolist()


# Intervals

WIDER = 1.02
"""How much wider an interval may be on the same draws, where its recorded coverage is enough."""
ENOUGH = 0.94


def key_of_width(name, cell, n_draws):
    return f"{name}; {cell}; {n_draws} draws"


def too_wide(name, n_draws, found, baseline):
    """Describe the intervals of a scenario that are wider than recorded by more than the gate."""
    for cell, coverage in found.items():
        if coverage.width is None:
            continue
        share, width = baseline["widths"][key_of_width(name, cell, n_draws)]
        if share >= ENOUGH and coverage.width > WIDER * width + 1e-4:
            yield f"{name}, {cell}: mean width {coverage.width:.4f}, {width:.4f} recorded"


def measure_intervals(names, is_recording, accepted):
    """Print coverage and widths of intervals, by few draws and by many; record new widths."""
    holds = True
    for name in names:
        scenario = interval_draws.SCENARIOS[name]
        for n_draws in (scenario.n_few, scenario.n_many):
            started = time.process_time()
            found = interval_draws.coverage(scenario, n_draws)
            spent = time.process_time() - started
            baseline = recorded()
            for cell, coverage in found.items():
                key = key_of_width(name, cell, n_draws)
                before = baseline["widths"].get(key)
                is_low = bool(coverage.upper < scenario.bound)
                holds &= not is_low
                print(f"{'FAILS: ' * is_low}{key}: {coverage.share:.1%}", end="")
                print(f" of {coverage.n_draws}, at least {scenario.bound:.1%}", end="")
                if coverage.width is None:
                    print()
                    continue
                print(f"; width {coverage.width:.4f}, recorded {before or 'none'}")
                is_better = before is None or (
                    coverage.width <= before[1] and coverage.share >= min(before[0], ENOUGH)
                )
                if is_recording and (is_better or name in accepted):
                    new = [round(coverage.share, 4), round(coverage.width, 4)]
                    baseline["widths"][key] = new
            print(f"{spent:.1f} s of processor time", flush=True)
            if is_recording:
                write(baseline)
            else:
                failed = list(too_wide(name, n_draws, found, baseline))
                print(*(f"FAILS: {text}\n" for text in failed), sep="", end="")
                holds &= not failed
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=50, help="at least 2")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--record", action="store_true", help="write what is better, or new")
    parser.add_argument(
        "--accept", nargs="*", default=[], choices=[*FAMILIES, *interval_draws.SCENARIOS]
    )
    parser.add_argument("--intervals", nargs="*", choices=interval_draws.SCENARIOS, help="or all")
    given = parser.parse_args()
    if public.data() is None:
        parser.error("BTDAGG_SHARED names no folder of the public votes")
    if given.intervals is not None:
        names = given.intervals or interval_draws.SCENARIOS
        return 0 if measure_intervals(names, given.record, given.accept) else 1
    holds = True
    for name in given.families:
        started = time.process_time()
        figures = measured(name, range(given.splits))
        baseline = recorded()
        holds &= show(name, figures, baseline)
        print(f"\n{time.process_time() - started:.1f} s of processor time", flush=True)
        if given.record:
            record(name, figures, baseline, name in given.accept)
            write(baseline)
    return 0 if holds or given.record else 1


if __name__ == "__main__":
    raise SystemExit(main())
