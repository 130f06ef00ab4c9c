"""Votes as far as a stopping rule wants them, in rounds."""
# A round asks for the votes that may settle an item, given those stored: no more than one at a time
# would take. A job resumes from the store.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from btdagg._util.errors import expect, forbid
from btdagg.judge.client import ORDERS, Order, Setup, Status, batched
from btdagg.judge.jobs import is_missing, judge_pairs
from btdagg.judge.judging import JudgeJob, Judging, Sampling, Work
from btdagg.judge.pacing import Pacing
from btdagg.judge.pairs import Pair, Pairs
from btdagg.judge.runs import JudgeRun, Limits, Savings, total_of
from btdagg.judge.store.store import VoteStore
from btdagg.online import StoppingRule
from btdagg.questions.decisions import covariates_in
from btdagg.votes.grades import with_criteria
from btdagg.votes.provenance import Provenance, warn_of
from btdagg.votes.strength import StrengthKind, given_margins, rounded, rounded_probability

_ITEMS_AT_A_TIME = 500
_STRENGTH = ("grade", "margin", "confidence", "p_minus", "p_plus")

RuleOf = Callable[[Pair], StoppingRule]
# Of a vote, how much of it is for each point: for B, a tie and A, or each grade.
_Samples = dict[tuple[Order, int], tuple[Status | None, Sequence[float] | None]]


async def judge_by_rule(
    pairs: Pairs,
    judging: Judging,
    rule: StoppingRule | RuleOf,
    job: JudgeJob,
) -> JudgeRun:
    """Ask for votes on pairs until a rule has settled each, as far as the store has fewer.

    Settled items get their label from `StoppingRule.decide`. A sample without a vote is replaced
    while some of the item's `n` are left. With both orders the rule's step is even. Covariates of
    its model are columns of the pairs, response lengths, and the model's standings of systems.
    `watch` is told of each round. `ProvenanceWarning` if the model was fitted to another judge,
    template or task.
    """
    by_rule = ByRule(judging, rule, job.store, pairs)
    job = replace(job, pacing=job.pacing or Pacing(judging.limits))
    if isinstance(rule, StoppingRule):
        warn_of(differences(pairs, judging, rule))
    _, before = by_rule.summary(pairs)
    runs: list[JudgeRun] = []
    limits: Limits | None = judging.limits
    while limits is not None:
        asking = replace(judging, limits=limits, method=by_rule)
        runs.append(await judge_pairs(pairs, asking, job))
        if runs[-1].stopped or not runs[-1].n_wanted:
            break
        if runs[-1].n_elsewhere and not runs[-1].statuses:  # all that is wanted
            break
        limits = runs[-1].left_of(limits)
    else:
        if any(True for _ in by_rule.plan(judging, pairs)):
            runs.append(JudgeRun(stopped="max_calls or max_cost is used up"))
    total = total_of(runs)
    # A sample may have been asked for in several rounds, so that their statuses cannot be added.
    n_settled, after = by_rule.summary(pairs)
    total.statuses, total.stored = after - before, after & before
    total.n_items, total.n_wanted = len(pairs), after.total() + total.n_elsewhere
    total.settled = Savings(len(pairs), n_settled, after.total(), judging.n * len(pairs))
    return total


def refuse_other_n(rule: StoppingRule, judging: Judging) -> None:
    """Refuse a rule that is not for the votes that are judged."""
    expect(rule.n == judging.n, "n", judging.n, f"the {rule.n} of the stopping rule")
    scale = rule.model.scale
    expected = f"a template for {scale.in_words}"
    expect(scale == judging.scale, "template", judging.setup.template, expected)
    forbid(
        rule.step % judging.step,
        f"the rule has step {rule.step}, expected an even number, since votes come in pairs, "
        "one in each order",
    )


def differences(pairs: Pairs, judging: Judging, rule: StoppingRule) -> tuple[str, ...]:
    """Say where pairs, judge and prompt are not what the model of a rule was fitted to."""
    fitted, setup = rule.model.provenance, judging.setup
    if fitted is None:
        return ()
    # A template that shares its name with another goes by name and digest where votes are read.
    by_digest = f"{setup.template}#{setup.prompt[:8]}"
    columns = {
        "judge": setup.judge,
        "template": by_digest if by_digest in fitted.template else setup.template,
        "temperature": () if setup.temperature is None else setup.temperature,
        "task": Provenance.of(with_criteria(pairs)).task,
    }
    # A column `strength` is none that judges give.
    is_theirs = fitted.strength != "strength"
    return (
        *fitted.other_values(columns),
        *fitted.other_strength(fitted.strength if is_theirs else "none"),
    )


def strength_for(rule: StoppingRule, setup: Setup) -> tuple[StrengthKind, float | None]:
    """Return by which columns the model of a rule counts a judge's votes, and the full margin."""
    fitted = rule.model.provenance or Provenance()
    if fitted.strength == "margin":
        full_margin = given_margins(fitted.full_margins)(setup.judge, setup.template)
        return ("none", None) if full_margin is None else ("margin", full_margin)
    is_theirs = fitted.strength in ("probabilities", "confidence")
    return (cast("StrengthKind", fitted.strength) if is_theirs else "none"), None


def open_pairs(
    pairs: Pairs, judging: Judging, rule: StoppingRule | RuleOf, store: VoteStore
) -> Pairs:
    """Return the pairs that a rule has not settled, given the votes of a store."""
    by_rule = ByRule(judging, rule, store, pairs)
    is_open = [not by_rule.is_settled(pair, stored) for pair, stored in by_rule.states(pairs)]
    return pairs.with_data(pairs.frame.filter(is_open))


class ByRule(Sampling):
    """The samples that may settle an item, given those that the store has."""

    def __init__(
        self, judging: Judging, rule: StoppingRule | RuleOf, store: VoteStore, pairs: Pairs
    ) -> None:
        self.judging, self.store = judging, store
        self.rule_of = (lambda _: rule) if isinstance(rule, StoppingRule) else rule
        is_plain = isinstance(rule, StoppingRule) and not rule.model.covariates
        self.covariates = {} if is_plain else _covariates(pairs, self.rule_of)
        # Samples that were asked for again: what fails once more is not asked for in every round.
        self.repeated: set[tuple[str, Order, int]] = set()

    def plan(self, judging: Judging, pairs: Iterable[Pair]) -> Iterator[Work]:
        """Pairs that are not settled, with the samples to ask for in this round."""
        for batch in batched(pairs, _ITEMS_AT_A_TIME):
            wanted = {pair.key: self._wanted(pair, stored) for pair, stored in self.states(batch)}
            for work in super().plan(judging, batch):
                if wanted[work.item]:
                    yield replace(work, wanted=wanted[work.item])

    def states(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, _Samples]]:
        """Pairs, each with those of its `n` samples that the store has."""
        counted = set(self.judging.samples)
        for batch in batched(pairs, _ITEMS_AT_A_TIME):
            items = [pair.key for pair in batch]
            stored = self.store.samples_of(self.judging.setup, items, *_STRENGTH)
            for pair in batch:
                parts = self._parts_for(self._rule(pair))
                samples = stored.get(pair.key, {})
                yield (
                    pair,
                    {
                        key: (status, parts(*vote) if status == "ok" else None)
                        for key, (status, *vote) in samples.items()
                        if key in counted
                    },
                )

    def is_settled(self, pair: Pair, stored: _Samples) -> bool:
        """Whether the rule asks for no more votes of a pair."""
        rule = self._rule(pair)
        return rule.stops_one(*_counts(stored, rule), covariates=self.covariates.get(pair.key))

    def summary(self, pairs: Iterable[Pair]) -> tuple[int, Counter[str]]:
        """How many pairs are settled, and the samples of all by status."""
        n_settled, statuses = 0, Counter[str]()
        for pair, stored in self.states(pairs):
            n_settled += self.is_settled(pair, stored)
            statuses.update(status for status, _ in stored.values() if status is not None)
        return n_settled, statuses

    def _parts_for(self, rule: StoppingRule) -> Callable[..., Sequence[float]]:
        points = rule.model.scale.points
        strength, full_margin = strength_for(rule, self.judging.setup)

        def parts(vote: int | None, *stored: float | None) -> Sequence[float]:
            grade, margin, confidence, minus, plus = stored  # in the order of _STRENGTH
            if vote is None:
                return [float(point == grade) for point in points]
            if strength == "probabilities" and minus is not None and plus is not None:
                minus, plus = rounded_probability(minus), rounded_probability(plus)
                return minus, 1 - minus - plus, plus
            size = 1.0
            if full_margin is not None and margin is not None:
                size = min(margin / full_margin, 1.0)
            elif strength == "confidence" and confidence is not None:
                size = confidence
            size = rounded(size)
            return size * (vote < 0), 1 - size * (vote != 0), size * (vote > 0)

        return parts

    def _rule(self, pair: Pair) -> StoppingRule:
        rule = self.rule_of(pair)
        refuse_other_n(rule, self.judging)
        return rule

    def _wanted(self, pair: Pair, stored: _Samples) -> tuple[tuple[Order, int], ...]:
        n_votes = Counter(order for (order, _), (_, vote) in stored.items() if vote is not None)
        free: dict[Order, list[int]] = {order: [] for order in ORDERS}
        for order, number in self.judging.samples:
            is_repeated = (pair.key, order, number) in self.repeated
            again = () if is_repeated else self.judging.again
            if is_missing(stored.get((order, number)), again):
                free[order].append(number)
        wanted: list[tuple[Order, int]] = []
        rule, known = self._rule(pair), self.covariates.get(pair.key)
        for _ in range(rule.votes_to_ask_one(*_counts(stored, rule), covariates=known)):
            orders = [order for order in ORDERS if free[order]]
            if not orders:
                break
            order = min(orders, key=n_votes.__getitem__)
            n_votes[order] += 1
            wanted.append((order, free[order].pop(0)))
        self.repeated |= {
            (pair.key, *key) for key in wanted if stored.get(key, (None, None))[0] is not None
        }
        return tuple(wanted)


def _covariates(pairs: Pairs, rule_of: RuleOf) -> dict[str, dict[str, float]]:
    rows: dict[int, list[int]] = {}
    models, keys = {}, []
    for row, pair in enumerate(pairs):
        model = rule_of(pair).model
        models[id(model)] = model
        rows.setdefault(id(model), []).append(row)
        keys.append(pair.key)
    known: dict[str, dict[str, float]] = {}
    for of_model, model_rows in rows.items():
        model = models[of_model]
        counts = np.zeros((len(model_rows), len(model.scale.points)))
        facts = pairs.facts[model_rows].to_dict() if model.covariates else {}
        columns = covariates_in(facts, model, counts, pairs.source) or {}
        for name, values in columns.items():
            for row, value in zip(model_rows, values.tolist(), strict=True):
                known.setdefault(keys[row], {})[name] = value
    return known


def _counts(stored: _Samples, rule: StoppingRule) -> list[float]:
    nothing = [0.0] * len(rule.model.scale.points)
    votes = [parts for _, parts in stored.values() if parts is not None]
    return [sum(parts) for parts in zip(nothing, *votes, strict=True)]
