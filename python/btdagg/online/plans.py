"""Forecasts of error and calls: a plan from a pilot, a forecast from other tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from btdagg._util.display import Drawn
from btdagg._util.errors import expect, forbid
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    as_checked_counts,
    as_integer,
    as_number,
    require_rows,
)
from btdagg._util.wording import counted, fixed, in_lines, percent
from btdagg.evaluation.engine import cross_scores
from btdagg.evaluation.protocol import CrossFit, Protocol, RandomSplits
from btdagg.methods import Aggregator, Calibrated
from btdagg.model.calibration import quiet
from btdagg.model.covariates import columns_for, offsets_of
from btdagg.model.davidson import DavidsonModel
from btdagg.model.fit import calibrate
from btdagg.model.prior import Neighbour, Prior
from btdagg.online.predictive import VoteDistribution, _log_chances, fit_votes
from btdagg.online.rule import StoppingRule
from btdagg.online.strengths import StrengthDistribution, fit_strengths, shares_of
from btdagg.remarks import Remark
from btdagg.result import Curve, CurveFigure, Entry, Interval, Panel, Result, ResultTable, Row
from btdagg.votes.by_id import as_items
from btdagg.votes.items import Items
from btdagg.votes.scale import PAIRS, Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    _Votes: TypeAlias = VoteDistribution | StrengthDistribution
    _Row: TypeAlias = tuple[str, float, Interval, float]

# A forecast needs no more than this: an evaluation deals and resamples more often.
_CROSS_FIT = CrossFit(n_repeats=1, n_refits=12)
_N_WORLDS, _N_SETS = 5, 8
_ALL = "all votes"
WITH_COVARIATES = ", covariates"  # after the name of a rule


@dataclass(frozen=True)
class PlannedBudget(Readable):
    """Forecast for one number of votes and one rule.

    Attributes
    ----------
    n, rule : int, str
        Votes per item at most, for which the model is calibrated; and one of ``all votes``,
        ``lossless``, ``risk-bounded``, ``cost-optimal``, or of the first two with ``, covariates``.
    votes, mae, change_rate : float
        Mean votes per item; MAE on new items, calibrated on the pilot's number of labels; share of
        labels that all votes would change.
    calls, price : float
        Votes of the job's items, plus `n` for each labelled item; and their price.
    low, high : float
        95% interval of the error.
    """

    n: int
    rule: str
    votes: float
    mae: float
    change_rate: float
    calls: float
    price: float
    low: float
    high: float


@dataclass(frozen=True)
class Plan(Drawn, Result):
    """Forecast of a job: `budgets` by number of votes and rule, the curve of error against votes.

    `labels` are pairs of a number of labels and the mean excess of the error over unlimited labels
    (of grades, and with covariates: over all of the pilot) at the most votes; `labels_known` with
    covariates.
    """

    budgets: tuple[PlannedBudget, ...]
    labels: tuple[tuple[int, float], ...]
    labels_known: tuple[tuple[int, float], ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def saved(self) -> str:
        """Calls saved by covariates at no more error than by the most votes alone; else empty."""
        known = [row for row in self.budgets if row.rule == _ALL + WITH_COVARIATES]
        if not known:
            return ""
        most = [row for row in self.budgets if row.rule == _ALL][-1]
        fewest = next((row for row in known if row.mae <= most.mae), None)
        if fewest is None:
            return f"with covariates the error is not below that of {most.n} votes without them"
        return (
            f"{counted(fewest.n, 'vote')} per item with covariates: MAE {fewest.mae:.4f}; "
            f"{counted(most.n, 'vote')} without them: {most.mae:.4f}; "
            f"{most.calls - fewest.calls:,.0f} calls saved"
        )

    def sentence(self) -> str:
        """Return the error that is forecast at the most votes, and what fewer labels cost."""
        row = [row for row in self.budgets if row.rule == _ALL][-1]
        texts = [
            f"with {counted(row.n, 'vote')} an item the forecast error is MAE {row.mae:.4f} "
            f"({row.low:.3f} to {row.high:.3f})"
        ]
        known = dict(self.labels_known)
        for size, excess in self.labels:
            remark = f", with covariates {known[size]:.4f}" if size in known else ""
            texts.append(f"{size} labels: error {excess:.4f} above that of many labels{remark}")
        return "; ".join([*texts, self.saved] if self.saved else texts)

    def table(self) -> ResultTable:
        """Return the forecast by number of votes and rule."""
        note = "Changed: labels that differ from those with all votes."
        rows = []
        for row in self.budgets:
            cells: dict[str, str | Entry] = {
                "votes": fixed(row.votes, 2),
                "MAE": Entry(fixed(row.mae, 4), True),
                "95% interval": f"{fixed(row.low, 3)} to {fixed(row.high, 3)}",
                "changed": percent(row.change_rate),
                "calls": f"{row.calls:,.0f}",
            }
            if row.price not in (0, row.calls):  # a vote has a price
                cells["price"] = f"{row.price:,.2f}"
            rows.append(Row((str(row.n), row.rule), cells, [vars(row)]))
        labels = ("at most", "rule")
        return ResultTable.of_rows("plan", "Plan of a job", note, labels, rows)

    def figure(self) -> CurveFigure:
        """Return the expected error against the votes that items get, by rule."""
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in self.budgets:
            lines.setdefault(row.rule, []).append((row.votes, row.mae))
        curves = {rule: Curve(*zip(*points, strict=True)) for rule, points in lines.items()}
        note = (
            "Expected mean absolute error against the average votes per item. Each point of a rule "
            "is a maximum number of votes, which rises along the line."
        )
        panel = Panel(curves, "votes per item", "mean absolute error")
        return CurveFigure("plan", "Expected error by votes", note, (panel,))


def plan(
    counts: ArrayLike,
    labels: Any = None,
    *,
    n_items: int,
    n_votes: Sequence[int] = (2, 4, 6, 8, 12, 16, 20),
    n_labels: Sequence[int] = (25, 50, 100, 200),
    price: float = 1.0,
    step: int = 1,
    rule: StoppingRule | None = None,
    prior: Prior | Literal["weak"] | None = "weak",
    population: Literal["new", "finite"] = "new",
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    covariates: Any = None,
    seed: int = 0,
) -> Plan:
    """Forecast a job from the votes and labels of a few items, the pilot.

    Errors are cross-fitted (`btdagg.evaluation.new_items.NewItems`): items are decided by models
    that did not see them, from random votes. A small pilot gives a rough forecast. Rules, and votes
    beyond the pilot's, are computed as sums over all counts, with `fit_votes` of the pilot. Votes
    with strength have the lossless rule alone.

    For grades, and with covariates, the pilot's own votes are taken in random order, by the
    lossless rule alone, up to their number. Covariates are compared on the same votes; standings
    stay those of all votes.

    Parameters
    ----------
    counts, labels
        Votes (n, 3) and gold labels (n,) of the pilot, or (n, J) and grades, or its `Items`.
    n_items : int
        Items of the job, without the labelled ones; of a finite population with the pilot's.
    n_votes, n_labels : sequence of int
        Numbers of votes (1 to 128, multiples of `step`) and labels to compare; calls include votes
        for the middle number of labels.
    price : float
        Price of one vote, in any currency.
    step : int
        2 if votes come in pairs, one in each order.
    rule : StoppingRule, optional
        Has the epsilon, price, step and votes of the plan (else 0.05, 0.01, `step`, `fit_votes`);
        its model decides at its `n` votes, not one fitted to unlimited labels.
    prior : "weak", Prior or None
        With which few labels of pairs are calibrated, as for `btdagg.calibrate`.
    population : "new" or "finite"
        New items, or `n_items` of which the pilot's are some: these take no votes and have no
        error.
    scale, label_scale : Scale, optional
        Scales of votes and labels, as for `btdagg.calibrate`.
    covariates : optional
        Covariates of the pilot, as for `btdagg.calibrate`; items may have them already.
    seed : int
        Seed of folds, of votes that are drawn, and of the simulated calibration sets.
    """
    model: Any = None if rule is None else rule.model
    n_items, seed = as_integer(n_items, "n_items", 1), as_integer(seed, "seed", 0)
    step = as_integer(step, "step", 1) if rule is None else rule.step
    sizes, budgets = _numbers(n_labels, "n_labels", 2), _numbers(n_votes, "n_votes", 1, 128)
    expect(population in ("new", "finite"), "population", population, "'new' or 'finite'")
    said = (scale, label_scale) if model is None else (model.scale, model.label_scale)
    pilot = as_items(counts, labels, scale=said[0], label_scale=said[1])
    pilot = pilot if pilot.is_labelled.all() else pilot.labelled()
    if covariates is not None:
        is_table = not isinstance(counts, Items)
        pilot = pilot.with_covariates(covariates, model=model, is_table=is_table)
    if model is not None:
        offsets_of(model, columns_for(model, pilot), len(pilot))  # which names those that miss
    n_open = n_items if population == "new" else n_items - len(pilot)
    most = f"more than the {n_items - n_open} items of the pilot, which are part of the job"
    expect(n_open >= 1, "n_items", n_items, most)
    n_labelled, per_vote = sizes[len(sizes) // 2], as_number(price, "price", least=0)
    unit = 1.0
    of_known: tuple[tuple[int, float], ...] = ()
    if pilot.scale.mirrored and not pilot.covariates:
        # Errors are of labels -1, 0 and 1 until they are written.
        points = pilot.label_scale.points
        signs = as_checked_counts(pilot.pooled), pilot.label_scale.sides(pilot.label)
        unit = points[1] - points[0]
        votes = _distribution(*signs)
        if rule is not None and rule.votes is not None:
            expected = "a lossless rule, since the votes have strength"
            is_whole = isinstance(votes, VoteDistribution)
            expect(is_whole, "rule", f"{rule.kind} with a distribution of whole votes", expected)
            votes = rule.votes
        errors = _errors(*signs, pilot.group, votes, budgets, prior, seed)
        forecasts = {n: _of_rules(votes, n, step, rule, errors[n]) for n in budgets}
        of_labels = _by_labels(*signs, budgets[-1], sizes, seed, prior, pilot.group)
    else:
        how = budgets, sizes, step, rule, {"prior": prior}
        alone = pilot.known_by({})
        forecasts, of_labels = _of_own_votes(alone, *how, np.random.default_rng(seed))
        if pilot.covariates:
            known, of_known = _of_own_votes(pilot, *how, np.random.default_rng(seed))
            for n, rows in known.items():
                forecasts[n] += [(row[0] + WITH_COVARIATES, *row[1:]) for row in rows]
    budgeted: list[PlannedBudget] = []
    for n, rows in forecasts.items():
        for name, used, error, change in rows:
            calls = n_open * used + n_labelled * n
            mae, low, high = (unit * n_open / n_items * value for value in error)
            changed = n_open / n_items * change
            job = calls, calls * per_vote
            budgeted.append(PlannedBudget(n, name, used, mae, changed, *job, low, high))
    return Plan(tuple(budgeted), tuple((k, unit * excess) for k, excess in of_labels), of_known)


def _errors(
    counts: NDArray[Any],
    gold: NDArray[np.int8],
    groups: NDArray[Any] | None,
    votes: _Votes,
    budgets: list[int],
    prior: Prior | Literal["weak"] | None,
    seed: int,
) -> dict[int, Interval]:
    rng = np.random.default_rng(seed)
    alpha, kappa = (1.0, 1.0) if prior is None or prior == "weak" else (prior.alpha, prior.kappa)
    method = Calibrated(prior=prior, alpha=alpha, kappa=kappa)
    # Items with fewer votes than others keep what they have.
    most = max(int(np.median(counts.sum(axis=1))), 1)
    numbers = sorted({min(n, most) for n in budgets})
    errors = {
        n: _cross_fitted(as_items(_some(counts, n, votes, rng), gold, groups), method, seed)
        for n in numbers
    }
    for n in budgets:
        if n > most:
            more, as_many = (_error(_fitted(votes, k), *_joint(votes, k)) for k in (n, most))
            errors[n] = _moved(errors[most], more - as_many)
    return errors


def _cross_fitted(items: Items, method: Aggregator, seed: int) -> Interval:
    protocol = Protocol(replace(_CROSS_FIT, seed=seed), test=None)
    ((cell,),) = cross_scores([items], [method], protocol)
    return cell.methods[0].interval()


def _moved(interval: Interval, by: float) -> Interval:
    return Interval(*(max(end + by, 0.0) for end in interval))


def _some(
    counts: NDArray[Any], n: int, votes: _Votes, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Counts of `n` votes of each item, drawn among its own, or of all where there are fewer."""
    totals = np.rint(counts.sum(axis=1)).astype(np.int64)
    if (totals <= n).all():
        return counts
    if isinstance(votes, StrengthDistribution):
        is_own = np.arange(n) < totals[:, None]
        shares = shares_of(votes.in_order(counts, n, rng)) * is_own[..., None]
        return np.asarray(shares.sum(axis=1))
    rows = zip(counts.astype(np.int64), np.minimum(totals, n), strict=True)
    return np.stack([rng.multivariate_hypergeometric(row, number) for row, number in rows])


def _of_rules(
    votes: _Votes, n: int, step: int, rule: StoppingRule | None, error: Interval
) -> list[_Row]:
    worth = 0.01 if rule is None or rule.price is None else rule.price / rule.model._unit
    epsilon = 0.05 if rule is None or rule.epsilon is None else rule.epsilon
    model = _fitted(votes, n)
    if rule is not None and rule.n == n:
        # Differences in provenance were warned of when the rule was made.
        rule_model = cast("DavidsonModel", rule.model)
        model = replace(rule_model, provenance=None, scale=PAIRS, label_scale=PAIRS)
    all_votes = (_ALL, float(n), error, 0.0)
    if isinstance(votes, StrengthDistribution):
        lossless = StoppingRule.lossless(model, n, step=step, strengths=True)
        return [all_votes, ("lossless", votes.votes_until(n, step, lossless.stops), error, 0.0)]
    full = StoppingRule.lossless(model, n, votes, step=step)
    rules = (
        full,
        StoppingRule.risk_bounded(model, n, votes, epsilon=epsilon, step=step),
        StoppingRule.cost_optimal(model, n, votes, price=worth, step=step),
    )
    # The rules' own error is the model's; what a rule adds to it is taken over.
    return [all_votes] + [
        (r.kind, r.expected_votes, _moved(error, r.expected_mae - full.expected_mae), r.change_rate)
        for r in rules
    ]


def _of_own_votes(
    pilot: Items,
    budgets: list[int],
    sizes: list[int],
    step: int,
    rule: StoppingRule | None,
    how: dict[str, Any],
    rng: np.random.Generator,
    n_sets: int = 10,
) -> tuple[dict[int, list[_Row]], tuple[tuple[int, float], ...]]:
    scales: Any = {"scale": pilot.scale, "label_scale": pilot.label_scale}
    array, most = pilot.pooled, budgets[-1]
    require_rows(array % 1 == 0, array, "counts", "whole numbers of votes")
    rows = np.flatnonzero(array.sum(axis=1) >= most)
    expected = "at most as many votes as at least two items of the pilot have"
    expect(len(rows) >= 2, "n_votes", most, expected)
    pilot, places = pilot[rows], np.arange(len(pilot.scale.points))
    orders = [rng.permutation(np.repeat(places, row.astype(int)))[:most] for row in array[rows]]
    shares, gold = np.eye(len(places))[np.stack(orders)], pilot.label

    def at(n: int) -> Items:
        counts = shares[:, :n].sum(axis=1).astype(np.int64)
        items = Items(counts=counts, labels=gold, group=pilot.group, **scales)
        return items.known_by(pilot.covariates, pilot.origin.standings)

    forecasts: dict[int, list[_Row]] = {}
    for n in budgets:
        items, is_own = at(n), rule is not None and rule.n == n
        model: Any = cast("StoppingRule", rule).model if is_own else None
        if model is None or bool(model.covariates) != bool(pilot.covariates):
            model = quiet(calibrate)(items, **how).model
        model = replace(model, provenance=None)
        lossless = StoppingRule.lossless(model, n, step=step)
        votes = lossless._followed(shares[:, :n], columns_for(model, items)).n_votes
        error = _cross_fitted(items, Calibrated(**scales, **how), int(rng.integers(2**31)))
        forecasts[n] = [
            (_ALL, float(n), error, 0.0),
            ("lossless", float(votes.mean()), error, 0.0),
        ]
    every, excess = at(most), []
    for size in (size for size in sizes if 2 * size <= len(gold)):
        errors = []
        for order in (rng.permutation(len(gold)) for _ in range(n_sets)):
            few = quiet(calibrate)(every[order[:size]], **how).model
            rest = every[order[size:]]
            decided = few.decide(rest.pooled, covariates=columns_for(few, rest))
            errors.append(np.abs(decided - rest.label).mean())
        excess.append((size, float(np.mean(errors)) - error.mean))
    return forecasts, tuple(excess)


def _numbers(values: Sequence[int], name: str, least: int, most: int = 2**31) -> list[int]:
    expect(len(values), name, values, "at least one number")
    return sorted({as_integer(value, name, least, most) for value in values})


def _distribution(counts: NDArray[Any], gold: NDArray[np.int8]) -> _Votes:
    if counts.dtype.kind == "f":
        return fit_strengths(counts, gold)
    return fit_votes(counts, gold)


def _joint(votes: _Votes, n: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """All counts of n votes, (k, 3), and their joint chances with the gold labels, (k, 3)."""
    if isinstance(votes, StrengthDistribution):
        return votes.joint(n)
    counts = np.array([(m, n - m - p, p) for m in range(n + 1) for p in range(n + 1 - m)])
    (tied, tie_alpha), (won, win_alpha) = votes.components
    kinds = [(won / 2, win_alpha[::-1]), (tied, tie_alpha), (won / 2, win_alpha)]
    # Of one side alone: a distribution that is not mirrored is one whose mirror image is added.
    chances = [w * np.exp(_log_chances(counts.astype(float), np.array(a))) for w, a in kinds]
    return counts, np.stack(chances, axis=1)


def _fitted(votes: _Votes, n: int) -> Any:
    counts, joint = _joint(votes, n)
    return quiet(calibrate)(counts, None, weights=joint, prior=None).model


def _error(model: DavidsonModel, counts: NDArray[Any], joint: NDArray[np.float64]) -> float:
    away = np.abs(model.decide(counts)[:, None] - np.array([-1, 0, 1]))
    return float((joint * away).sum() / joint.sum())


def _by_labels(
    counts: NDArray[Any],
    gold: NDArray[np.int8],
    n: int,
    sizes: Sequence[int],
    seed: int,
    prior: Prior | Literal["weak"] | None,
    groups: NDArray[Any] | None,
) -> tuple[tuple[int, float], ...]:
    """The cost of few labels, on average over sets drawn from fits to resamples of the pilot.

    Up to half of the pilot it is measured: models calibrated on parts of the pilot decide the rest.
    """
    alpha, kappa = (1.0, 1.0) if prior is None or prior == "weak" else (prior.alpha, prior.kappa)
    rng, fit = np.random.default_rng([seed, n]), quiet(calibrate)
    simulated = [*sizes, len(gold)]
    excess = np.empty((_N_WORLDS, len(simulated), _N_SETS))
    for world in excess:
        rows = rng.integers(0, len(gold), size=len(gold))
        votes = _distribution(counts[rows], gold[rows])
        states, joint = _joint(votes, n)
        least, flat = _error(_fitted(votes, n), states, joint), joint.ravel() / joint.sum()
        for place, size in enumerate(simulated):
            for number, drawn in enumerate(rng.choice(len(flat), (_N_SETS, size), p=flat)):
                sample = states[drawn // 3], drawn % 3 - 1
                model = fit(*sample, prior=prior, alpha=alpha, kappa=kappa).model
                world[place, number] = _error(model, states, joint) - least
    *of_sizes, of_pilot = excess.mean(axis=(0, 2)).tolist()
    items = as_items(_some(counts, n, _distribution(counts, gold), rng), gold, groups)
    method, costs = (
        Calibrated(prior=prior, alpha=alpha, kappa=kappa),
        dict(zip(sizes, of_sizes, strict=True)),
    )
    least = _cross_fitted(items, method, seed).mean - of_pilot
    for size in sizes:
        splits = RandomSplits(size=size, n_splits=_N_WORLDS * _N_SETS, seed=seed)
        if 2 * size <= items.group_numbers.max() + 1:
            ((cell,),) = cross_scores([items], [method], Protocol(splits, test=None))
            costs[size] = float(cell.methods[0].mae.mean()) - least
    return tuple((size, max(cost, 0.0)) for size, cost in costs.items())


# Items of a neighbour that are looked at: more would change nothing that can be seen.
_MOST_ITEMS = 1000

_SIZES = (0, 10, 50, 200)


@dataclass(frozen=True)
class ForecastRow(Readable):
    """Forecast for one number of votes and of labels.

    Attributes
    ----------
    n, n_labels : int
        Votes per item at most, and labels calibrated on.
    mae, low, high : float
        Mean absolute error on items without a label: the mean, least and most of a neighbour.
    votes, calls, price : float
        Votes of an item and of the job under the lossless rule, with `n` for each labelled item;
        and their price.
    """

    n: int
    n_labels: int
    mae: float
    low: float
    high: float
    votes: float
    calls: float
    price: float


@dataclass(frozen=True)
class Forecast(Readable):
    """Forecast of a job on a new task: `rows` by number of votes, then of labels.

    `neighbours` are the tasks that it was seen on; those with too few votes or items for a row are
    left out of that row.
    """

    rows: tuple[ForecastRow, ...]
    neighbours: tuple[str, ...]

    def __str__(self) -> str:
        priced = any(row.price for row in self.rows)
        lines = [
            "  n  labels     MAE  of a task          votes       calls" + "       price" * priced
        ]
        for row in self.rows:
            lines.append(
                f"{row.n:3}  {row.n_labels:6}  {row.mae:.4f}  {row.low:.3f} to {row.high:.3f}"
                f"  {row.votes:8.2f}  {row.calls:10,.0f}" + f"  {row.price:10,.2f}" * priced
            )
        return in_lines(lines)


def forecast(
    prior: Prior,
    *,
    n_items: int,
    n_votes: Sequence[int] | None = None,
    n_labels: Sequence[int] | None = None,
    price: float = 1.0,
    step: int = 1,
    n_draws: int = 4,
    seed: int = 0,
) -> Forecast:
    """Forecast a job before its first label, from tasks that are labelled already.

    Each neighbour in turn plays the new task: a model calibrated to a few of its labels, with the
    other neighbours (or the weak prior) as prior, decides its other items. The mean is right if the
    new task is to its neighbours as they are to one another; the range says how far tasks lie
    apart.

    Parameters
    ----------
    prior : Prior
        Prior of the neighbours; see `btdagg.fit_prior`.
    n_votes, n_labels : sequence of int, optional
        Numbers to compare; by default half of the neighbours' votes and all, and those of 0, 10, 50
        and 200 labels that are at most half of a neighbour's.
    n_items, price, step
        As in `plan`.
    n_draws, seed : int
        How often labels are drawn from each neighbour.

    Examples
    --------
    >>> from btdagg.datasets import simulate
    >>> names = ("rb2-math", "rb2-focus", "rb2-factuality")
    >>> tasks = {name: simulate(name, 200, 8, seed=1) for name in names}
    >>> from btdagg import fit_prior
    >>> prior = fit_prior({k: (v.counts, v.labels) for k, v in tasks.items()})
    >>> job = forecast(prior, n_items=1000, n_votes=[4, 8], n_labels=[10])
    >>> [row.n for row in job.rows]
    [4, 8]
    """
    n_items, seed = as_integer(n_items, "n_items", 1), as_integer(seed, "seed", 0)
    n_draws, step = as_integer(n_draws, "n_draws", 1), as_integer(step, "step", 1)
    per_vote = as_number(price, "price", least=0)
    most = prior.n_votes
    if n_votes is None:
        n_votes = sorted({max(1, most // part // step) * step for part in (2, 1)})
    if n_labels is None:
        most_labels = max(task.n_labels for task in prior.neighbours.values())
        n_labels = [size for size in _SIZES if size <= most_labels / 2]
    budgets = _numbers(n_votes, "n_votes", 1, most)
    sizes = _numbers(n_labels, "n_labels", 0)
    neighbours = sorted(prior.neighbours.items())
    strengths = {name: _strengths_of(task) for name, task in neighbours}
    rows = []
    for n in budgets:
        for size in sizes:
            seen = []
            for place, (name, task) in enumerate(neighbours):
                rest: Prior | Literal["weak"] = "weak"
                if len(prior.neighbours) > 1:
                    rest = prior.without(name)
                rng = np.random.default_rng([seed, n, size, place])
                draws = (_drawn(task, n, rng, strengths[name]) for _ in range(n_draws))
                drawn = [
                    _seen_on(*draw, strengths[name], rest, step, size, prior) for draw in draws
                ]
                outcomes = [pair for pair in drawn if pair is not None]
                if outcomes:
                    seen.append(np.mean(outcomes, axis=0))
            forbid(
                not seen,
                f"no neighbour has more than {size} items with {n} votes; lower n_votes or "
                "n_labels",
            )
            mae, votes = np.mean(seen, axis=0)
            errors = [float(error) for error, _ in seen]
            calls = n_items * votes + size * n
            row = (float(mae), min(errors), max(errors), float(votes), float(calls))
            rows.append(ForecastRow(n, size, *row, float(calls * per_vote)))
    return Forecast(tuple(rows), prior.names)


def _seen_on(
    votes: NDArray[Any],
    labels: NDArray[np.int8],
    strengths: StrengthDistribution | None,
    rest: Prior | Literal["weak"],
    step: int,
    size: int,
    prior: Prior,
) -> tuple[float, float] | None:
    if len(labels) <= size:
        return None
    counts = shares_of(votes).sum(axis=1)
    sample = (counts[:size], labels[:size]) if size else (counts, None)
    fit = quiet(calibrate)
    model = fit(*sample, prior=rest, alpha=prior.alpha, kappa=prior.kappa).model
    has_strength = strengths is not None
    rule = StoppingRule.lossless(model, votes.shape[1], step=step, strengths=has_strength)
    stopped = rule.follow(votes[size:])
    error = np.abs(stopped.labels - labels[size:]).mean()
    return float(error), float(stopped.n_votes.mean())


def _strengths_of(task: Neighbour) -> StrengthDistribution | None:
    if task.counts.dtype.kind != "f":
        return None
    rows, columns = np.nonzero(task.labels)
    items = np.repeat(np.arange(len(rows)), task.labels[rows, columns])
    return fit_strengths(task.counts[rows[items]], (columns[items] - 1).astype(np.int8))


def _drawn(
    task: Neighbour, n: int, rng: np.random.Generator, strengths: StrengthDistribution | None = None
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    rows, columns = np.nonzero((task.counts.sum(axis=1) >= n)[:, None] & (task.labels > 0))
    items = np.repeat(np.arange(len(rows)), task.labels[rows, columns])
    items = rng.permutation(items)[:_MOST_ITEMS]
    counts, labels = task.counts[rows[items]], (columns[items] - 1).astype(np.int8)
    if strengths is not None:
        return strengths.in_order(counts, n, rng), labels
    # Votes of an item in a row and then in random order, of which the first are taken.
    ends = counts.cumsum(axis=1)
    places = np.arange(int(ends[:, 2].max(initial=0)))
    votes = np.stack([(places >= ends[:, [side]]) for side in (0, 1)]).sum(axis=0) - 1
    keys = np.where(places < ends[:, [2]], rng.random(votes.shape), np.inf)
    order = keys.argsort(axis=1)[:, :n]
    return np.take_along_axis(votes, order, axis=1).astype(np.int8), labels
