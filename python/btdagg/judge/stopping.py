"""Votes as far as a stopping rule wants them.

The rule is asked in rounds: how many more votes of an item may settle it, given those that the
store has. Asked for at once they are as many as one after the other would be, so that rounds save
as much; and since each begins with what is in the store, a job goes on where it left off.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.judge.client import ORDERS, Asked, ChatClient, Order, Status, batched, samples_of
from btdagg.judge.jobs import is_missing, judge
from btdagg.judge.judging import SAMPLING, Judging
from btdagg.judge.limits import Limits
from btdagg.judge.pacing import Pacing
from btdagg.judge.pairs import Pair, Pairs
from btdagg.judge.runs import JudgeRun, total_of
from btdagg.judge.store import VoteStore
from btdagg.judge.work import Work
from btdagg.online import StoppingRule
from btdagg.votes.provenance import Provenance, warn_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_ITEMS_AT_A_TIME = 500

RuleOf = Callable[[Pair], StoppingRule]
_Samples = dict[tuple[Order, int], tuple[Status | None, int | None]]


@dataclass(frozen=True)
class StoppedRun:
    """What came of a job under a stopping rule.

    Attributes
    ----------
    run : JudgeRun
        All rounds together.
    n_items, n_settled : int
        Pairs, and those among them that the rule has settled. The others have had all their
        samples, some without a vote, or the run ended early.
    n_samples, n_full : int
        Samples of these pairs in the store, with a vote or a reason why there is none, and as many
        as there would be without the rule.
    """

    run: JudgeRun
    n_items: int
    n_settled: int
    n_samples: int
    n_full: int


async def judge_by_rule(
    pairs: Pairs,
    judging: Judging,
    rule: StoppingRule | RuleOf,
    *,
    store: VoteStore,
    client: ChatClient,
    stop: asyncio.Event | None = None,
    watch: Callable[[JudgeRun], object] | None = None,
    endpoint: Pacing | None = None,
) -> StoppedRun:
    """Ask for votes on pairs until a rule has settled each, as far as the store has fewer.

    An item that is settled gets its label from the rule (`StoppingRule.decide`), not from the
    model, which is calibrated for all votes. A sample that came without a vote is made up for by
    another, as long as there are some of the item's `n` left.

    Parameters
    ----------
    pairs : Pairs
    judging : Judging
        Who judges, and how. Its `n` is that of the rule.
    rule : StoppingRule, or callable from a Pair to one
        Such as of its task. With both orders its step is even, so that items stop after as many
        votes of one order as of the other.
    store, client
        Not closed.
    stop, watch, endpoint
        See :func:`btdagg.judge.judge`; `watch` is told of each round by itself.

    Returns
    -------
    StoppedRun

    Raises
    ------
    InputError
        If a rule has another `n` or an odd step; and as :func:`btdagg.judge.judge` does.

    Warns
    -----
    ProvenanceWarning
        If one rule is given and its model was fitted to another judge, template, temperature or
        task.
    """
    by_rule = ByRule.of(rule, store)
    endpoint = endpoint or Pacing(judging.limits)
    if isinstance(rule, StoppingRule):
        warn_of(differences(pairs, judging, rule))
    _, before = by_rule.state_of(judging, pairs)
    runs: list[JudgeRun] = []
    limits: Limits | None = judging.limits
    while True:
        if limits is None:
            if by_rule.wants_more(judging, pairs):
                runs.append(JudgeRun(stopped="the caps are used up"))
            break
        asking = replace(judging, limits=limits, method=by_rule)
        ask = partial(judge, store=store, client=client, endpoint=endpoint)
        runs.append(await ask(pairs, asking, stop=stop, watch=watch))
        if runs[-1].stopped or not runs[-1].n_wanted:
            break
        if runs[-1].n_batched and not runs[-1].statuses:  # all that is wanted is in batches
            break
        limits = runs[-1].left_of(limits)
    total = total_of(runs)
    if len(runs) > 1 and total.stopped.startswith("the cap of"):
        total.stopped += f"; that is what was left of it after {len(runs) - 1} rounds"
    # A sample may have been asked for in several rounds, so that their statuses cannot be added.
    n_settled, after = by_rule.state_of(judging, pairs)
    total.there = before - Counter(by_rule.repeated.values())
    total.statuses = after - total.there
    total.n_items, total.n_wanted = len(pairs), after.total() + total.n_batched
    return StoppedRun(total, len(pairs), n_settled, after.total(), judging.n * len(pairs))


def differences(pairs: Pairs, judging: Judging, rule: StoppingRule) -> tuple[str, ...]:
    """Say where pairs, judge and prompt are not what the model of a rule was fitted to."""
    known, asked = rule.model.provenance, judging.asked
    if known is None:
        return ()
    # A template that shares its name with another goes by name and digest where votes are read.
    by_digest = f"{asked.template}#{asked.prompt[:8]}"
    columns = {
        "judge": asked.judge,
        "template": by_digest if by_digest in known.template else asked.template,
        "temperature": () if asked.temperature is None else asked.temperature,
        "task": Provenance.of(pairs).task,
    }
    return known.other_values(columns)


def open_pairs(
    pairs: Pairs, judging: Judging, rule: StoppingRule | RuleOf, store: VoteStore
) -> Pairs:
    """Return the pairs that a rule has not settled, given the votes of a store."""
    by_rule = ByRule.of(rule, store)
    is_open = [
        not by_rule.is_settled(judging, pair, there)
        for pair, there in by_rule.look_at(judging, pairs)
    ]
    return pairs.renumbered(pairs.frame.filter(is_open))


@dataclass(frozen=True)
class ByRule:
    """The samples that may settle an item, given those that the store has."""

    rule_of: RuleOf
    store: VoteStore
    # Samples that were asked for again, and what they were before: what fails once more is not
    # asked for in every round.
    repeated: dict[tuple[str, Order, int], str] = field(default_factory=dict)

    @classmethod
    def of(cls, rule: StoppingRule | RuleOf, store: VoteStore) -> ByRule:
        """By one rule, or by that of each pair."""
        return cls((lambda _: rule) if isinstance(rule, StoppingRule) else rule, store)

    def asked(self, judging: Judging) -> Asked:
        """What all calls have in common."""
        return SAMPLING.asked(judging)

    def plan(self, judging: Judging, pairs: Iterable[Pair]) -> Iterator[Work]:
        """Pairs that are not settled, with the samples to ask for in this round."""
        for batch in batched(pairs, _ITEMS_AT_A_TIME):
            wanted = {
                pair.item: self._wanted(judging, pair, there)
                for pair, there in self._look(judging, batch)
            }
            for work in SAMPLING.plan(judging, batch):
                if wanted[work.item]:
                    yield replace(work, wanted=wanted[work.item])

    def _look(self, judging: Judging, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, _Samples]]:
        """Pairs, each with those of its `n` samples that the store has."""
        counted = set(samples_of(judging.n, judging.order))
        found = self.store.samples_of(judging.asked, [pair.item for pair in pairs])
        for pair in pairs:
            there = found.get(pair.item, {})
            yield pair, {key: one for key, one in there.items() if key in counted}

    def _rule(self, judging: Judging, pair: Pair) -> StoppingRule:
        rule = self.rule_of(pair)
        if rule.n != judging.n:
            raise InputError(
                f"the rule is for n = {rule.n} votes, expected {judging.n} as are judged"
            )
        if judging.order == "both" and rule.step % 2:
            raise InputError(
                f"the rule has step {rule.step}, expected an even one: votes come in pairs of both "
                "orders"
            )
        return rule

    def _wanted(
        self, judging: Judging, pair: Pair, there: _Samples
    ) -> tuple[tuple[Order, int], ...]:
        """Return the samples to ask for: of the order that has fewer votes first."""
        n_votes = Counter(order for (order, _), (_, vote) in there.items() if vote is not None)
        free: dict[Order, list[int]] = {order: [] for order in ORDERS}
        for order, number in samples_of(judging.n, judging.order):
            again = () if (pair.item, order, number) in self.repeated else judging.again
            if is_missing(there.get((order, number)), again):
                free[order].append(number)
        wanted: list[tuple[Order, int]] = []
        for _ in range(self._rule(judging, pair).votes_to_ask_one(*_counts(there))):
            orders = [order for order in ORDERS if free[order]]
            if not orders:
                break
            order = min(orders, key=n_votes.__getitem__)
            n_votes[order] += 1
            number = free[order].pop(0)
            wanted.append((order, number))
            status, _ = there.get((order, number), (None, None))
            if status is not None:
                self.repeated[pair.item, order, number] = status
        return tuple(wanted)

    def wants_more(self, judging: Judging, pairs: Iterable[Pair]) -> bool:
        """Whether another round would ask for anything."""
        unnoted = replace(self, repeated=dict(self.repeated))
        return any(True for _ in unnoted.plan(judging, pairs))

    def is_settled(self, judging: Judging, pair: Pair, there: _Samples) -> bool:
        """Whether the rule asks for no more votes of a pair."""
        return self._rule(judging, pair).stops_one(*_counts(there))

    def state_of(self, judging: Judging, pairs: Iterable[Pair]) -> tuple[int, Counter[str]]:
        """How many pairs are settled, and the samples of all by status."""
        n_settled, statuses = 0, Counter[str]()
        for pair, there in self.look_at(judging, pairs):
            n_settled += self.is_settled(judging, pair, there)
            statuses.update(status for status, _ in there.values() if status is not None)
        return n_settled, statuses

    def look_at(self, judging: Judging, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, _Samples]]:
        """Pairs, each with those of its `n` samples that the store has."""
        for batch in batched(pairs, _ITEMS_AT_A_TIME):
            yield from self._look(judging, batch)


def _counts(there: _Samples) -> tuple[int, int, int]:
    votes = Counter(vote for _, vote in there.values())
    return votes[-1], votes[0], votes[1]
