"""Data drawn anew for every interval and level that is printed, and whether the promise was kept.

A scenario draws data from real votes or with a seed, asks one public function, and yields for each
cell whether the interval held the truth, with its width, or whether a level was kept. `coverage`
counts them; test_coverage_of_intervals.py has the bounds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import public_votes as public
from scipy.stats import beta

import btdagg
from btdagg.datasets import simulate
from btdagg.estimates import change, not_worse, worth_a_look
from btdagg.evaluation import positional_bias
from btdagg.online import DriftMonitor, StoppingRule, VoteDistribution, plan
from btdagg.votes import Items

FIVE = btdagg.Scale(range(1, 6))
MODEL = btdagg.DavidsonModel(1.5, 0.5, 0.8)
PROMISED = 0.925  # of intervals of 95%, where nothing else is promised


class Draw(NamedTuple):
    """Whether a promise was kept in one draw, and the width of the interval if there is one."""

    cell: str
    is_kept: bool
    width: float | None = None


def held(cell, interval, truth):
    low, high = (interval.low, interval.high) if hasattr(interval, "low") else interval
    return Draw(cell, low - 1e-9 <= truth <= high + 1e-9, high - low)


class Scenario(NamedTuple):
    """How to draw, the least share of draws that keep the promise, and numbers of draws."""

    draw: Callable[[int], Iterator[Draw]]
    n_few: int = 20
    n_many: int = 200
    bound: float = PROMISED
    of_public_votes: bool = False


class Coverage(NamedTuple):
    n_draws: int
    share: float
    width: float | None

    @property
    def upper(self):
        """The upper 99% limit of the coverage, by Clopper and Pearson."""
        n_kept = round(self.share * self.n_draws)
        return 1.0 if n_kept == self.n_draws else beta.ppf(0.99, n_kept + 1, self.n_draws - n_kept)


def coverage(scenario, n_draws):
    """Return the coverage of each cell of a scenario."""
    kept, widths = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(n_draws):
            for draw in scenario.draw(seed):
                kept.setdefault(draw.cell, []).append(draw.is_kept)
                if draw.width is not None:
                    widths.setdefault(draw.cell, []).append(draw.width)
    return {
        cell: Coverage(
            len(of_cell),
            float(np.mean(of_cell)),
            float(np.mean(widths[cell])) if cell in widths else None,
        )
        for cell, of_cell in kept.items()
    }


def labels_of(labels, rows):
    known = np.full(len(labels), np.nan)
    known[rows] = labels[rows]
    return known


def counted(votes, points=(-1, 0, 1)):
    return np.stack([(votes == point).sum(axis=1) for point in points], axis=1)


def drawn_from(probabilities, rng):
    """A column of each row of probabilities, (n,)."""
    shares = probabilities / probabilities.sum(axis=1, keepdims=True)
    return (rng.random((len(shares), 1)) > shares.cumsum(axis=1)[:, :-1]).sum(axis=1)


# Estimates of new items


@cache
def rb2_cell(judge, task):
    (cell,) = (cell for cell in public.rb2() if (cell.judge, cell.task) == (judge, task))
    return cell, [np.flatnonzero(cell.groups == group) for group in np.unique(cell.groups)]


def prompts_drawn_anew(cell, prompts, rng, n_prompts):
    """Rows of prompts drawn with replacement, and the number of each prompt."""
    drawn = [prompts[number] for number in rng.integers(len(prompts), size=n_prompts)]
    return np.concatenate(drawn), np.repeat(np.arange(n_prompts), [len(rows) for rows in drawn])


def estimate_of_pairs(judge, task, seed):
    """Label one pair of each of 100 of 160 prompts of real votes."""
    rng = np.random.default_rng(seed)
    cell, prompts = rb2_cell(judge, task)
    rows, groups = prompts_drawn_anew(cell, prompts, rng, 160)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    chosen = (starts + rng.integers(sizes))[rng.choice(160, 100, replace=False)]
    labels = labels_of(cell.labels[rows].astype(float), chosen)
    found = btdagg.estimate(cell.counts[rows], labels, groups=groups).estimates
    truths = {"tie": (cell.labels == 0).mean(), "net win rate": cell.labels.mean()}
    for name, truth in truths.items():
        yield held(name, found[name], truth)
        yield held(f"{name}, labels alone", found[name].labels_only, truth)


def in_groups(rng, n_items, ties):
    """Counts, labels and groups of one to nine items, each with its own ties and sides."""
    groups = np.repeat(np.arange(n_items), rng.integers(1, 10, n_items))[:n_items]
    n = int(groups.max()) + 1
    tie = rng.beta(4 * ties, 4 * (1 - ties), n)[groups]
    side = np.where(rng.random(n_items) < rng.beta(1.5, 1.2, n)[groups], 1, -1)
    gold = np.where(rng.random(n_items) < tie, 0, side)
    seen = gold[:, None] + 0.3 + rng.normal(0, 1, (n_items, 8))
    return counted(np.where(np.abs(seen) < 0.5, 0, np.sign(seen))), gold, groups


@cache
def shares_in_groups(ties):
    gold = in_groups(np.random.default_rng(99), 400_000, ties)[1]
    return {"A": (gold == 1).mean(), "tie": (gold == 0).mean(), "net win rate": gold.mean()}


def estimate_in_groups(ties, is_whole, seed):
    """Label 25, 50 or 100 items, or whole groups with as many."""
    rng = np.random.default_rng([seed, is_whole])
    counts, gold, groups = in_groups(rng, 1500, ties)
    n_labels = (25, 50, 100)[seed % 3]
    chosen = rng.permutation(1500)[:n_labels]
    if is_whole:
        order = rng.permutation(groups.max() + 1)
        enough = np.searchsorted(np.bincount(groups)[order].cumsum(), n_labels)
        chosen = np.isin(groups, order[: enough + 1])
    found = btdagg.estimate(counts, labels_of(gold.astype(float), chosen), groups=groups).estimates
    for name, truth in shares_in_groups(ties).items():
        yield held(name, found[name], truth)


def estimate_with_few_others(n_others, size, seed):
    """Label all groups but the last few items: the mean of their votes varies much."""
    rng = np.random.default_rng(seed)
    n = 60 * size + n_others
    gold = rng.choice([-1, 0, 1], n, p=[0.3, 0.2, 0.5])
    seen = gold[:, None] + rng.normal(0, 2, (n, 8))
    counts = counted(np.where(np.abs(seen) < 0.5, 0, np.sign(seen)))
    labels = labels_of(gold.astype(float), np.arange(n - n_others))
    found = btdagg.estimate(counts, labels, groups=np.arange(n) // size).estimates
    yield held("net win rate", found["net win rate"], 0.2)


def estimate_of_grades(seed):
    """Label 25, 50 or 100 of 1,000 real grades drawn with replacement."""
    rng = np.random.default_rng(seed)
    cells = [(cell.judge, cell.task) for cell in public.graded("rb2_scores")]
    cell = public.graded("rb2_scores")[cells.index(("gpt-5.4", "factuality"))]
    rows = rng.integers(len(cell.labels), size=1000)
    labels = labels_of(cell.labels[rows].astype(float), np.arange((25, 50, 100)[seed % 3]))
    scales = {"scale": btdagg.Scale(range(1, 11)), "label_scale": btdagg.PASS_FAIL}
    found = btdagg.estimate(cell.counts[rows], labels, **scales)
    yield held("pass rate", found.estimates[found.main], cell.labels.mean())


def estimate_of_weighted_grades(seed):
    """Rare low grades have a sixteenth of the probability of most others; votes say nothing."""
    rng = np.random.default_rng([4, seed])
    grade = rng.choice(5, 1000, p=[0.01, 0.03, 0.08, 0.28, 0.6]) + 1.0
    agreed = rng.random(1000) < np.where(grade >= 4, 0.5, 0.8)
    p = np.where(agreed, 1, 16) * 60 / 8000
    labels = np.where(rng.random(1000) < p, grade, np.nan)
    model = btdagg.GradeModel(1e-6, (1.5, 2.5, 3.5, 4.5), FIVE)
    counts = np.full((1000, 5), 1)
    found = btdagg.estimate(counts, labels, scale=FIVE, probabilities=p, model=model).estimates
    for name, truth in {"mean grade": 4.43, "share >= 4": 0.88}.items():
        yield held(name, found[name], truth)


# Estimates of these items


@cache
def these_items():
    rng = np.random.default_rng(3)
    groups = np.arange(120) // 3
    lean = rng.beta(1.5, 1.2, 120)[groups]
    gold = np.where(rng.random(120) < 0.3, 0, np.where(rng.random(120) < lean, 1, -1))
    votes = np.sign(np.round(gold[:, None] + rng.normal(0, 1, (120, 8))))
    return counted(votes), gold, groups


def estimate_of_these(is_whole, is_weighted, seed):
    """Label half of the items or groups of one set, also with unequal probabilities."""
    counts, gold, groups = these_items()
    units = groups if is_whole else np.arange(120)
    n_units = units.max() + 1
    share = np.bincount(units, counts.min(axis=1) + 0.5) / np.bincount(units)
    p = np.minimum(share / share.mean() / 2, 1)
    rng = np.random.default_rng(seed)
    chosen = rng.random(n_units) < p if is_weighted else rng.permutation(n_units) < n_units // 2
    options = {"probabilities": p[units]} if is_weighted else {}
    if is_whole:
        options |= {"groups": groups, "units": groups}
    labels = np.where(chosen[units], gold, np.nan)
    found = btdagg.estimate(counts, labels, population="finite", **options).estimates
    yield held("net win rate", found["net win rate"], gold.mean())
    yield held("tie", found["tie"], (gold == 0).mean())


# Systems


def systems_of_pairs(rng, n_items):
    """Prompts that suit some systems more than others, ten items each."""
    prompt = np.arange(n_items) // 10
    skill = np.linspace(1, -1, 5) + rng.normal(0, 0.7, (prompt[-1] + 1, 5))
    a = rng.integers(0, 5, n_items)
    b = (a + rng.integers(1, 5, n_items)) % 5
    half = (skill[prompt, a] - skill[prompt, b]) / 2
    gold = drawn_from(np.stack([np.exp(-half), np.full(n_items, 0.8), np.exp(half)], axis=1), rng)
    judge = np.array([[0.6, 0.25, 0.15], [0.25, 0.4, 0.35], [0.1, 0.2, 0.7]])
    return rng.multinomial(8, judge[gold]), gold - 1, a, b, prompt


@cache
def true_systems():
    """Strengths and tie parameter, as everything labelled shows them."""
    counts, gold, a, b, _ = systems_of_pairs(np.random.default_rng(10**6), 120_000)
    found = btdagg.estimate_systems(counts, gold.astype(float), *np.array(list("vwxyz"))[[a, b]])
    strengths = {name: system.strength.estimate for name, system in found.systems.items()}
    return strengths, found.tie_parameter.estimate


def strengths(seed):
    rng = np.random.default_rng([9, seed])
    counts, gold, a, b, prompt = systems_of_pairs(rng, 2000)
    labels = labels_of(gold.astype(float), rng.permutation(2000)[:150])
    sides = np.array(list("vwxyz"))[[a, b]]
    found = btdagg.estimate_systems(counts, labels, *sides, groups=prompt)
    true_strengths, nu = true_systems()
    for name, truth in true_strengths.items():
        yield held(f"strength {name}", found.systems[name].strength, truth)
    yield held("tie parameter", found.tie_parameter, nu)


def tie_parameter(nu, n_labels, seed):
    """Ties are rare, or as usual, in few labels of four systems."""
    rng, judge = np.random.default_rng(seed), np.array([[3, 1, 1], [1, 2, 1], [1, 1, 3]])
    a = rng.integers(0, 4, 400)
    b = (a + rng.integers(1, 4, 400)) % 4
    half = np.linspace(-0.6, 0.6, 4)[[a, b]]
    half = (half[0] - half[1]) / 2
    gold = drawn_from(np.stack([np.exp(-half), np.full(400, nu), np.exp(half)], axis=1), rng)
    labels = labels_of(gold - 1.0, rng.permutation(400)[:n_labels])
    counts = rng.multinomial(5, (judge / judge.sum(axis=1, keepdims=True))[gold])
    try:
        found = btdagg.estimate_systems(counts, labels, a, b)
    except btdagg.InputError:  # a system won or lost all of its few labels
        return
    yield held("tie parameter", found.tie_parameter, nu)


def systems_of_grades(rng, means, n_prompts):
    """Counts, grades, systems and prompts: each of three systems answers each prompt."""
    prompt, system = np.divmod(np.arange(n_prompts * 3), 3)
    quality = np.array(means)[system] + rng.normal(0, 0.7, n_prompts)[prompt]
    gold = np.clip(np.round(quality + rng.normal(0, 0.6, len(prompt))), 1, 5).astype(int)
    votes = np.clip(np.round(gold[:, None] + rng.normal(0.5, 0.8, (len(gold), 6))), 1, 5)
    return counted(votes, FIVE.points), gold, system, prompt


@cache
def true_grades(means):
    _, gold, system, _ = systems_of_grades(np.random.default_rng(5), means, 200_000)
    return [gold[system == number].mean() for number in range(3)]


def mean_grades(means, seed):
    rng = np.random.default_rng([5, seed])
    counts, gold, system, prompt = systems_of_grades(rng, means, 120)
    labels = labels_of(gold.astype(float), np.isin(prompt, rng.permutation(120)[:40]))
    found = btdagg.estimate_systems(counts, labels, system, groups=prompt, scale=FIVE).systems
    for number, truth in enumerate(true_grades(means)):
        yield held("mean grade", found[number].mean, truth)


def equal_systems(seed):
    """Systems of one mean grade are told apart in 5% of draws."""
    rng = np.random.default_rng([6, seed])
    counts, gold, system, prompt = systems_of_grades(rng, (3.2, 3.2, 3.2), 120)
    labels = labels_of(gold.astype(float), np.isin(prompt, rng.permutation(120)[:40]))
    found = btdagg.estimate_systems(counts, labels, system, groups=prompt, scale=FIVE).systems
    yield Draw("not told apart", all(of_system.rank == 1 for of_system in found.values()))


# Errors of methods


def errors_on_new_items(judge, task, seed):
    """The error of the model of 40 prompts' labels on all other prompts, of real votes."""
    rng = np.random.default_rng([40, seed])
    cell, prompts = rb2_cell(judge, task)
    order = rng.permutation(len(prompts))
    rows = np.concatenate([rng.permutation(prompts[number])[:2] for number in order[:40]])
    others = np.concatenate([prompts[number] for number in order[40:]])
    own = cell.counts[rows], cell.labels[rows]
    found = btdagg.evaluate(*own, groups=cell.groups[rows]).to_frame().to_dicts()
    model = btdagg.calibrate(*own).model
    mine, majority = (
        np.abs(decide(cell.counts[others]) - cell.labels[others]).mean()
        for decide in (model.decide, btdagg.majority_vote)
    )
    first, second = sorted(found, key=lambda row: row["method"] != "calibrated")
    yield held("calibrated", (first["mae_low"], first["mae_high"]), mine)
    yield held("majority vote", (second["mae_low"], second["mae_high"]), majority)
    difference = first["mae_less_majority_low"], first["mae_less_majority_high"]
    yield held("difference", difference, mine - majority)


def compared_judges(seed):
    """Majority vote of two judges on the same 60 real items of as many prompts."""
    rng = np.random.default_rng([41, seed])
    (panel,) = (cell for cell in public.rb2_panel() if cell.task == "factuality")
    first = np.unique(panel.groups, return_index=True)[1]
    rows = rng.choice(len(first), 60)  # with replacement: new prompts like these
    rows = first[rows]
    votes, gold = panel.counts, panel.labels
    losses = [np.abs(btdagg.majority_vote(votes[first, j]) - gold[first]) for j in (0, 2)]
    method = btdagg.methods.MajorityVote()
    found = btdagg.compare(votes[rows, 0], votes[rows, 2], gold[rows], methods=method)
    yield held("difference", found.difference, losses[0].mean() - losses[1].mean())


def graded_by_a_generous_judge(rng, n_items):
    gold = rng.choice(5, n_items)
    seen = 0.25 + 0.15 * gold + rng.normal(0, 0.1, n_items)
    votes = np.exp(-6 * np.abs(np.linspace(0, 1, 5) - seen[:, None]))
    return rng.multinomial(8, votes / votes.sum(axis=1, keepdims=True)), gold + 1


@cache
def true_scores_of_grades():
    counts, gold = graded_by_a_generous_judge(np.random.default_rng(99), 100_000)
    away = btdagg.methods.MajorityVote(scale=FIVE).decide(counts).astype(float) - gold
    people, judge = (np.bincount(x.astype(int))[1:] / len(gold) for x in (gold, gold + away))
    by_chance = people @ np.subtract.outer(np.arange(5), np.arange(5)) ** 2 @ judge
    scores = {"mae": np.abs(away).mean(), "bias": away.mean()}
    return scores | {"kappa": 1 - (away**2).mean() / by_chance}


def scores_of_grades(seed):
    counts, gold = graded_by_a_generous_judge(np.random.default_rng(seed), (40, 80, 160)[seed % 3])
    found = btdagg.evaluate(counts, gold, scale=FIVE, aggregators=["majority"])
    (row,) = found.to_frame().to_dicts()
    for score, truth in true_scores_of_grades().items():
        yield held(score, (row[f"{score}_low"], row[f"{score}_high"]), truth)


def errors_left_after_looks(seed):
    """A judge that is sure by chance: 20 labels decide whether all items are ties."""
    rng = np.random.default_rng([9, seed])
    gold = rng.choice([-1, 0, 1], size=300, p=[0.3, 0.4, 0.3])
    counts = 8 * np.eye(3, dtype=int)[2 * rng.integers(0, 2, 300)]
    looks = worth_a_look(counts, labels_of(gold.astype(float), np.arange(20)), 0.1)
    errors = np.abs(btdagg.calibrate(counts[:20], gold[:20]).model.decide(counts) - gold)
    errors[:20] = 0
    yield held("before", looks.before, errors.mean())
    errors[looks.rows] = 0
    yield held("after", looks.after, errors.mean())


# Agreement


def repeated_votes(rng, n_groups):
    """Votes of a judge in both orders, which it favours, and labels of three raters, by prompt."""
    item = np.arange(3 * n_groups)
    lead = (rng.normal(0, 0.8, n_groups)[item // 3] + rng.normal(0, 0.8, len(item)))[:, None]
    first = np.array([1, 1, -1, -1])
    seen = lead + 0.3 * first + rng.normal(0, 0.7, (len(item), 4))
    said = lead + rng.normal(0, [0.4, 0.4, 1.0], (len(item), 3))
    votes, labels = (np.where(np.abs(x) < 0.4, 0, np.sign(x)).astype(int) for x in (seen, said))
    rows = {"item": item.repeat(4), "order": np.tile(["AB", "AB", "BA", "BA"], len(item))}
    raters = {"item": item.repeat(3), "rater": np.tile(["a", "b", "c"], len(item))}
    labelled = btdagg.read_labels(
        raters | {"label": labels.ravel(), "group": (item // 3).repeat(3)}
    )
    found = btdagg.agreement(rows | {"vote": votes.ravel()}, labelled)
    measures = dict(found.judges[0].measures) | dict(found.people[0].measures)
    measures |= {f"distance of {name}": distance for name, distance in found.people[0].raters}
    del measures["votes_for_reliability"]
    return measures


@cache
def true_agreement():
    measures = repeated_votes(np.random.default_rng(77), 30_000)
    return {name: measure.value for name, measure in measures.items()}


def agreements(seed):
    measures = repeated_votes(np.random.default_rng([77, seed]), (15, 30, 60)[seed % 3])
    for name, truth in true_agreement().items():
        yield held(name, measures[name], truth)


# Bias, change


def slopes(seed):
    """People and judge prefer a covariate alike: the difference of slopes is 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=60)
    quality = 0.8 * x + rng.normal(size=60) * 0.6
    odds = np.exp(np.column_stack([-quality, np.full(60, -0.3), quality]))
    labels, shares = drawn_from(odds, rng) - 1, odds / odds.sum(axis=1, keepdims=True)
    votes = rng.multinomial(4, shares)
    found = btdagg.bias(votes, labels, covariates={"x": x}, groups=np.arange(60) // 3)
    yield held("difference", found.covariates[0].difference, 0.0)


def place_in_prompt(seed):
    """A judge that favours the first place; votes of an item share how much better A is."""
    rng = np.random.default_rng(seed)
    lean = rng.normal(0, 1, 80)[:, None, None]
    sign = np.array([1, -1])[:, None]
    first = rng.random((80, 2, 2)) < 1 / (1 + np.exp(-(sign * lean + 0.5)))
    item, order, _ = (of.ravel() for of in np.indices(first.shape))
    vote = np.where(first, sign, -sign).ravel()
    rows = {"item": item, "order": np.array(["AB", "BA"])[order], "vote": vote}
    (found,) = positional_bias(btdagg.read_votes(rows))
    yield held("bias", found.interval, 0.20741)


def period(rng, n_items, moved):
    """Pairs whose quality moves by .4 and which the judge then dislikes by .3."""
    quality = rng.normal(0.4 * moved, 1, n_items)
    labels = np.sign(np.round(quality + rng.normal(0, 0.5, n_items)))
    seen = quality[:, None] - 0.3 * moved + rng.normal(0, 0.7, (n_items, 4))
    return counted(np.sign(np.round(seen))), labels


@cache
def true_change():
    means = []
    for moved in (0, 1):
        counts, labels = period(np.random.default_rng(moved), 400_000, moved)
        means.append((labels.mean(), (counts @ [-1, 0, 1]).mean() / 4))
    people, votes = np.subtract(means[1], means[0])
    return people, votes - people


def changes(seed):
    rng, periods = np.random.default_rng([7, seed]), []
    for moved in (0, 1):
        counts, labels = period(rng, 400, moved)
        labels = labels_of(labels, rng.permutation(400)[:80])
        periods.append(Items(counts=counts, labels=labels, ids=np.arange(400) + 400 * moved))
    found, (people, apart) = change(*periods), true_change()
    yield held("people", found.people, people)
    yield held("votes less people", found.apart, apart)


# Parameters of models

TRUTH = btdagg.DavidsonModel(1.3, 1.5, 0.8)


def judged(rng, n_items, n_votes):
    """Counts, and labels of the Davidson model."""
    chances = rng.dirichlet([1, 1, 1], size=n_items)
    counts = rng.multinomial(n_votes, chances)
    return counts, drawn_from(TRUTH.predict_proba(counts), rng) - 1


def held_parameter(name, interval):
    """Whether the true parameter is held; the width of nu is that of its logarithm."""
    draw = held(name, interval, getattr(TRUTH, name))
    if name == "nu":
        return draw._replace(width=float(np.log(interval.high / interval.low)))
    return draw


def parameters(n_labels, seed):
    counts, labels = judged(np.random.default_rng([2, seed]), n_labels, 8)
    found = btdagg.calibrate(counts, labels).intervals()
    for name, interval in found.items():
        yield held_parameter(name, interval)


@cache
def new_items_of_the_truth():
    return judged(np.random.default_rng(10), 20_000, 8)


def refits(n_labels, seed):
    counts, labels = judged(np.random.default_rng([9, seed]), n_labels, 8)
    found = btdagg.bootstrap(counts, labels, n_refits=200)
    for name in ("beta", "nu", "gamma"):
        yield held_parameter(name, getattr(found, name))


def error_of_refits(seed):
    counts, labels = judged(np.random.default_rng([9, seed]), 60, 8)
    found = btdagg.bootstrap(counts, labels, n_refits=200)
    new, gold = new_items_of_the_truth()
    yield held("error", found.mae, np.abs(found.calibration.model.decide(new) - gold).mean())


# Certificates and gates


@cache
def certified_items(n_items, noise):
    rng = np.random.default_rng(0)
    quality = rng.normal(size=n_items)
    votes = np.clip(np.round(quality[:, None] + rng.normal(size=(n_items, 8))), -1, 1)
    gold = np.clip(np.round(1.3 * quality + noise * rng.normal(size=n_items)), -1, 1)
    return counted(votes), gold


def agrees_as_promised(certificate, counts, gold, agreement):
    trusted = certificate.trusted(counts)
    right = certificate.model.decide(counts)[trusted] == gold[trusted]
    return not trusted.any() or right.mean() >= agreement


def certificates(fitted, seed):
    """A certificate of a model of before, or of a model fitted to the same labels."""
    counts, gold = certified_items(3000, 0.9)
    rows = np.random.default_rng(seed).permutation(3000)[:100]
    options = {} if fitted else {"model": MODEL}
    certificate = btdagg.certify(counts, labels_of(gold, rows), agreement=0.75, **options)
    yield Draw("agreement", agrees_as_promised(certificate, counts, gold, 0.75))


def weighted_certificates(seed):
    """A hard kind of items has a tenth of the probability of a label."""
    counts, gold = certified_items(2000, 0.3)
    fixed, rng = np.random.default_rng(8), np.random.default_rng([8, seed])
    hard = fixed.random(2000) < 0.15
    gold = np.where(hard, fixed.integers(-1, 2, 2000), gold)
    share = np.where(hard, 0.1, 1.0)
    p = 100 * share / share.sum()
    labels = np.where(rng.random(2000) < p, gold, np.nan)
    for agreement in (0.7, 0.8, 0.85):
        certificate = btdagg.certify(
            counts, labels, agreement=agreement, model=MODEL, probabilities=p
        )
        is_kept = agrees_as_promised(certificate, counts, gold, agreement)
        yield Draw(f"agreement {agreement}", is_kept)


def likeness_of_groups(seed):
    """New prompts of the same kind look unlike the certified ones in 1% of draws."""
    rng, sets = np.random.default_rng([9, seed]), []
    for n_groups in (60, 25):
        groups = np.arange(n_groups * 6) // 6
        quality = rng.normal(size=n_groups)[groups] + 0.3 * rng.normal(size=n_groups * 6)
        votes = np.clip(np.round(quality[:, None] + rng.normal(size=(len(groups), 8))), -1, 1)
        sets.append((counted(votes), groups))
    (counts, groups), (new, new_groups) = sets
    labels = labels_of(MODEL.decide(counts).astype(float), np.arange(100))
    certificate = btdagg.certify(counts, labels, model=MODEL, groups=groups)
    yield Draw("alike", certificate.likeness(new, groups=new_groups) >= 0.05)


def release_gates(side, seed):
    """A candidate that is worse by just the margin passes in 5% of draws; votes are real."""
    margin, rng = 0.05, np.random.default_rng([seed, 7])
    for judge, task in (("gpt-5.4-mini", "math"), ("claude-sonnet-4.6", "safety")):
        cell, _ = rb2_cell(judge, task)
        by_label = [np.flatnonzero(cell.labels == label) for label in (-1, 0, 1)]
        ties = len(by_label[1]) / len(cell.labels)
        chances = np.array([(1 - ties - margin) / 2, ties, (1 - ties + margin) / 2])
        chances = chances if side == "B" else chances[::-1]
        rows = np.array([rng.choice(by_label[k]) for k in rng.choice(3, 600, p=chances)])
        labels = labels_of(cell.labels[rows].astype(float), np.arange((40, 100, 250)[seed % 3]))
        sides = {"candidate": side, "baseline": "AB".replace(side, "")}
        found = not_worse(cell.counts[rows], labels, **sides, margin=margin)
        yield Draw("stopped", not found.passed)


def differences_of_judges(seed):
    """Errors of majority vote of two judges on real items, in their prompts or apart."""
    rng = np.random.default_rng([43, seed])
    for panel in public.rb2_panel():
        votes, gold = panel.counts, panel.labels
        losses = [np.abs(btdagg.majority_vote(votes[:, j]) - gold) for j in (0, 2)]
        rows = rng.integers(len(gold), size=(30, 100)[seed % 2])
        first, second = losses[0][rows], losses[1][rows]
        truth = losses[0].mean() - losses[1].mean()
        yield held("items", btdagg.difference(first, second).difference, truth)
        noise = 1e-3 * rng.random(len(rows)) - 5e-4
        found = btdagg.difference(first + noise, second, n_resamples=999)
        yield held("drawn signs", found.difference, truth)
        others = rng.permutation(losses[1])[: len(rows)]
        apart = btdagg.difference(first, others, paired=False)
        yield held("unpaired", apart.difference, truth)
        order = np.argsort(panel.groups, kind="stable")
        prompts = np.split(order, np.flatnonzero(np.diff(panel.groups[order])) + 1)
        drawn = [prompts[k] for k in rng.integers(len(prompts), size=(30, 100)[seed % 2])]
        rows, number = np.concatenate(drawn), np.repeat(np.arange(len(drawn)), [*map(len, drawn)])
        found = btdagg.difference(losses[0][rows], losses[1][rows], groups=number)
        yield held("prompts", found.difference, truth)


def sequences(seed):
    """Real labels in groups of unequal size, looked at after every group."""
    rng = np.random.default_rng([44, seed])
    cell = next(cell for cell in public.topical() if len(cell.points) > 2)
    ends = min(cell.label_points), max(cell.label_points)
    order = np.argsort(cell.groups, kind="stable")
    prompts = np.split(order, np.flatnonzero(np.diff(cell.groups[order])) + 1)
    prompts = [prompt[: 1 + k % len(prompt)] for k, prompt in enumerate(prompts)]
    truth = cell.labels[np.concatenate(prompts)].mean()
    drawn = [prompts[k] for k in rng.integers(len(prompts), size=300)]
    rows, number = np.concatenate(drawn), np.repeat(np.arange(300), [*map(len, drawn)])
    most = max(map(len, prompts))
    found = btdagg.ConfidenceSequence(ends, null=truth, largest_group=most)
    found.add(cell.labels[rows], number)
    yield held("grades in prompts, at all looks", found, truth)
    yield Draw("level", not found.is_decided)


def gates_at_every_look(population, seed):
    """Both bounds of a gate hold at all looks together, each at 95%; votes are real."""
    rng = np.random.default_rng([45, seed])
    cell, _ = rb2_cell("gpt-5.4-mini", "math")
    rows = rng.integers(len(cell.labels), size=250)
    labels = cell.labels[rows].astype(float)
    truth = (cell.labels if population == "new" else labels).mean()
    known = labels_of(labels, rng.permutation(250)[:150])
    sides = {"candidate": "A", "baseline": "B", "population": population}
    with TemporaryDirectory() as folder:
        state = Path(folder) / "gate.json"
        found = not_worse(cell.counts[rows], known, **sides, sequential=state)
    yield Draw("lower", found.lower <= truth + 1e-9)
    yield Draw("upper", found.upper >= truth - 1e-9)


# Tests, monitors and rules


def permutations(n_items, seed):
    """Exact and Monte Carlo p-values of two methods that differ by chance, also in groups."""
    rng = np.random.default_rng([3, seed])
    for name, losses in (
        ("whole losses", rng.integers(0, 3, (2, n_items)).astype(float)),
        ("real losses", rng.normal(size=(2, n_items))),
    ):
        found = btdagg.paired_permutation_test(*losses, n_resamples=199, seed=seed)
        yield Draw(f"{name}", found.pvalue > 0.05)
    groups = np.arange(n_items) // 3
    alike = losses + 2 * rng.normal(size=(2, n_items))[:, groups]
    found = btdagg.paired_permutation_test(*alike, n_resamples=199, seed=seed, groups=groups)
    yield Draw("groups", found.pvalue > 0.05)


VOTES = VoteDistribution([(0.7, (0.3, 0.4, 3.0)), (0.3, (2.0, 1.0, 2.0))])


def drift(seed):
    """400 items after 40 of the same kind raise an alarm in a fifth of streams."""
    stream = counted(VOTES.draw(440, 8, seed=seed))
    monitor = DriftMonitor(stream[:40], level=0.2, seed=seed)
    yield Draw("no alarm", not monitor.observe(stream[40:]).stale)


def drift_of_prompts(seed):
    """The same of pairs of prompts in a row."""
    rng = np.random.default_rng([7, seed])
    groups = np.arange(150).repeat(6)
    votes = rng.multinomial(8, rng.dirichlet([1.0, 0.6, 2.0], size=150)[groups])
    old = groups < 50
    monitor = DriftMonitor(votes[old], groups=groups[old], level=0.2, seed=seed)
    yield Draw("no alarm", not monitor.observe(votes[~old], groups=groups[~old]).stale)


@cache
def rules():
    return {
        "lossless": StoppingRule.lossless(MODEL, 8),
        "risk-bounded": StoppingRule.risk_bounded(MODEL, 8, VOTES, epsilon=0.05),
    }


def stopped_labels(kind, seed):
    """Labels of stopped items are those of all votes, but for a share of epsilon."""
    votes = VOTES.draw(50, 8, seed=11_000 + seed)
    followed = rules()[kind].follow(votes)
    for is_same in followed.labels == MODEL.decide(counted(votes)):
        yield Draw("same label", bool(is_same))


@cache
def judge_of_a_plan():
    return simulate("rb2-math", 1000 * 25 + 2000, 8, seed=11)


def planned_errors(seed):
    """A plan from 25 labels forecasts the error of the model that they make."""
    judge, rows = judge_of_a_plan(), slice(25 * seed, 25 * (seed + 1))
    pilot, new = (judge.counts[rows], judge.labels[rows]), slice(25_000, None)
    row = plan(*pilot, n_items=1, n_votes=[8], n_labels=[5]).budgets[0]
    decided = btdagg.calibrate(*pilot).model.decide(judge.counts[new])
    yield held("error", row, np.abs(judge.labels[new] - decided).mean())


REAL = {"of_public_votes": True}
SCENARIOS = {
    "estimate, rb2 math": Scenario(partial(estimate_of_pairs, "gpt-5.4-mini", "math"), **REAL),
    "estimate, rb2 focus": Scenario(partial(estimate_of_pairs, "gpt-5.4", "focus"), **REAL),
    "estimate, rb2 safety": Scenario(
        partial(estimate_of_pairs, "claude-sonnet-4.6", "safety"), **REAL
    ),
    "estimate, few ties in whole groups": Scenario(partial(estimate_in_groups, 0.03, True)),
    "estimate, ties in groups": Scenario(partial(estimate_in_groups, 0.3, False)),
    "estimate, many ties in whole groups": Scenario(partial(estimate_in_groups, 0.6, True)),
    "estimate, one item without a label": Scenario(partial(estimate_with_few_others, 1, 1)),
    "estimate, four items without a label": Scenario(partial(estimate_with_few_others, 4, 3)),
    "estimate, real grades": Scenario(estimate_of_grades, **REAL),
    "estimate, unequal probabilities": Scenario(estimate_of_weighted_grades),
    "estimate, these items": Scenario(partial(estimate_of_these, False, False)),
    "estimate, these groups": Scenario(partial(estimate_of_these, True, False)),
    "estimate, these items, weighted": Scenario(partial(estimate_of_these, False, True)),
    "estimate, these groups, weighted": Scenario(partial(estimate_of_these, True, True)),
    "agreement of judges and people": Scenario(agreements, 9, 300),
    "systems": Scenario(strengths, 6, 100),
    "systems, rare ties, 20 labels": Scenario(partial(tie_parameter, 0.05, 20), 6, 100),
    "systems, rare ties, 100 labels": Scenario(partial(tie_parameter, 0.05, 100), 6, 100),
    "systems, ties, 20 labels": Scenario(partial(tie_parameter, 1.0, 20), 6, 100),
    "systems of grades": Scenario(partial(mean_grades, (2.8, 3.2, 3.6)), 6, 100),
    "equal systems of grades": Scenario(equal_systems, 6, 100, 0.95),
    "evaluate, rb2 math": Scenario(
        partial(errors_on_new_items, "claude-sonnet-4.6", "math"), 5, 80, **REAL
    ),
    "evaluate, rb2 focus": Scenario(
        partial(errors_on_new_items, "gpt-5.4", "focus"), 5, 80, **REAL
    ),
    "compare two judges": Scenario(compared_judges, 5, 100, **REAL),
    "evaluate, grades": Scenario(scores_of_grades, 10, 100),
    "certify, error left after looks": Scenario(errors_left_after_looks, 5, 60),
    "bias": Scenario(slopes),
    "bias of place": Scenario(place_in_prompt, 10, 200),
    "change": Scenario(changes, 6, 100),
    "parameters, 50 labels": Scenario(partial(parameters, 50)),
    "parameters, 200 labels": Scenario(partial(parameters, 200)),
    "bootstrap, 400 labels": Scenario(partial(refits, 400), 5, 80),
    "bootstrap, error": Scenario(error_of_refits, 5, 80),
    "certify, a model of before": Scenario(partial(certificates, False), bound=0.9),
    "certify, a fitted model": Scenario(partial(certificates, True), bound=0.9),
    "certify, unequal probabilities": Scenario(weighted_certificates, 10, 150, 0.9),
    "certify, likeness": Scenario(likeness_of_groups, bound=0.95),
    "gate, the candidate is A": Scenario(partial(release_gates, "A"), 5, 100, 0.95, **REAL),
    "gate, the candidate is B": Scenario(partial(release_gates, "B"), 5, 100, 0.95, **REAL),
    "gate at every look, new": Scenario(partial(gates_at_every_look, "new"), 20, 300, 0.95, **REAL),
    "gate at every look, finite": Scenario(
        partial(gates_at_every_look, "finite"), 20, 300, 0.95, **REAL
    ),
    "difference": Scenario(differences_of_judges, 6, 100, **REAL),
    "confidence sequence": Scenario(sequences, 20, 400, 0.95, **REAL),
    "permutation test, 12 items": Scenario(partial(permutations, 12), 200, 1000, 0.95),
    "permutation test, 60 items": Scenario(partial(permutations, 60), 200, 1000, 0.95),
    "drift": Scenario(drift, 100, 1000, 0.8),
    "drift of prompts": Scenario(drift_of_prompts, 20, 400, 0.8),
    "lossless rule": Scenario(partial(stopped_labels, "lossless"), bound=1.0),
    "risk-bounded rule": Scenario(partial(stopped_labels, "risk-bounded"), bound=0.95),
    "plan": Scenario(planned_errors, 5, 60),
}
