"""Votes as far as a stopping rule wants them."""

import asyncio
import random
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from btdagg import DavidsonModel, InputError
from btdagg.judge import FunctionClient, Judging, Limits, VoteStore, judge
from btdagg.judge.client import samples_of
from btdagg.judge.judging import JudgeJob
from btdagg.judge.stopping import judge_by_rule
from btdagg.online import StoppingRule, VoteDistribution
from btdagg.votes import Provenance, ProvenanceWarning
from judging import pairs_of

N = 8
MODEL = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)
VOTES = VoteDistribution([(0.4, (1.0, 3.0, 1.0)), (0.6, (0.5, 1.0, 3.0))])
RULES = {
    "lossless": StoppingRule.lossless(MODEL, N, step=2),
    "risk-bounded": StoppingRule.risk_bounded(MODEL, N, VOTES, epsilon=0.1, step=2),
    "cost-optimal": StoppingRule.cost_optimal(MODEL, N, VOTES, price=0.01, step=2),
}


class Judge:
    """Says what is written down for a pair, order and sample; or nothing of use."""

    def __init__(self, n_items, *, silent=0.0, seed=0):
        rng = random.Random(seed)
        self.votes, self.asked = {}, Counter()
        for number in range(n_items):
            chances = rng.choice([(0.05, 0.05, 0.9), (0.9, 0.05, 0.05), (0.3, 0.4, 0.3)])
            for key in samples_of(N):
                vote = rng.choices((-1, 0, 1), chances)[0]
                self.votes[f"q{number}", *key] = None if rng.random() < silent else vote

    def __call__(self, request):
        text = "\n".join(message["content"] for message in request.messages)
        number = int(text.split("What is ")[1].split(" ")[0])
        # Of the two responses, that of A ends otherwise.
        order = "AB" if text.index("That is all.") < text.index("I am sure.") else "BA"
        sample = self.asked[number, order]
        self.asked[number, order] += 1
        vote = self.votes[f"q{number}", order, sample]
        if vote is None:
            return "Hmm."
        shown = vote if order == "AB" else -vote
        return "Verdict: " + {1: "[[A]]", 0: "[[TIE]]", -1: "[[B]]"}[shown]

    @property
    def n_calls(self):
        return self.asked.total()


def judging_of(**options):
    return Judging("m", n=N, **{"max_attempts": 1, **options})


def go(pairs, rule, judge_, place, **options):
    """Run a job; what run of it, and the votes by item in the order of `samples_of`."""

    async def main():
        with VoteStore(place) as store:
            job = JudgeJob(store, FunctionClient(judge_))
            run = await judge_by_rule(pairs, judging_of(**options), rule, job)
            return run, store.samples_of(judging_of().setup, [pair.item for pair in pairs])

    return asyncio.run(main())


def counts_of(samples):
    votes = [vote for _, vote in samples.values()]
    return [votes.count(label) for label in (-1, 0, 1)]


@pytest.mark.parametrize("kind", RULES)
def test_items_stop_where_the_rule_would_stop_votes_one_after_the_other(kind, tmp_path):
    rule, pairs, asked = RULES[kind], pairs_of(24), Judge(24)
    run, samples = go(pairs, rule, asked, tmp_path / "v.db", limits=Limits(concurrency=8))
    in_turn = np.array([[asked.votes[pair.item, *key] for key in samples_of(N)] for pair in pairs])
    followed = rule.follow(in_turn)
    assert [len(samples[pair.item]) for pair in pairs] == followed.n_votes.tolist()
    counts = [counts_of(samples[pair.item]) for pair in pairs]
    assert rule.decide(counts).tolist() == followed.labels.tolist()
    assert (run.settled.n_items, run.settled.n_settled) == (24, 24)
    assert (
        run.settled.n_samples
        == followed.n_votes.sum()
        == asked.n_calls
        < run.settled.n_full
        == 24 * N
    )
    assert run.statuses == {"ok": asked.n_calls}
    assert run.is_complete
    for there in samples.values():
        orders = Counter(order for order, _ in there)
        assert orders["AB"] == orders["BA"]


def test_samples_without_a_vote_are_made_up_for_as_long_as_there_are_some(tmp_path):
    rule, pairs, asked = RULES["lossless"], pairs_of(60), Judge(60, silent=0.3)
    run, samples = go(pairs, rule, asked, tmp_path / "v.db")
    assert run.statuses["unparsed"] > 20
    settled = rule.stops([counts_of(samples[pair.item]) for pair in pairs])
    assert settled.sum() == run.settled.n_settled < 60
    for pair, stops in zip(pairs, settled, strict=True):
        there = samples[pair.item]
        assert stops or len(there) == N
        with_vote = Counter(order for (order, _), (_, vote) in there.items() if vote is not None)
        assert abs(with_vote["AB"] - with_vote["BA"]) <= 1 or len(there) == N
    again = Judge(60, silent=0.3)
    later, _ = go(pairs, rule, again, tmp_path / "v.db")
    assert again.n_calls == later.n_calls == 0
    assert later.stored == run.statuses


def test_a_job_goes_on_where_it_left_off(tmp_path):
    rule, pairs, place = RULES["risk-bounded"], pairs_of(20), tmp_path / "v.db"
    whole = Judge(20)
    expected, samples = go(pairs, rule, whole, tmp_path / "w.db", limits=Limits(concurrency=1))
    asked = Judge(20)
    first, _ = go(pairs, rule, asked, place, limits=Limits(concurrency=1, max_calls=50))
    assert asked.n_calls == first.n_calls == 50
    assert re.match(r"\d+ calls were made, which is max_calls", first.stopped)
    second, same = go(pairs, rule, asked, place, limits=Limits(concurrency=1))
    assert asked.n_calls == whole.n_calls
    assert same == samples
    assert second.settled.n_samples == expected.settled.n_samples
    assert second.stored == {"ok": 50}


def test_caps_hold_over_all_rounds(tmp_path):
    for most in (1, 80):
        asked = Judge(40)
        run, _ = go(
            pairs_of(40),
            RULES["lossless"],
            asked,
            tmp_path / f"{most}.db",
            limits=Limits(max_calls=most),
        )
        assert asked.n_calls == run.n_calls == most
        assert run.stopped
        assert not run.is_complete


def test_a_rule_can_depend_on_the_pair(tmp_path):
    pairs, asked = pairs_of(20), Judge(20)
    never = StoppingRule.cost_optimal(MODEL, N, VOTES, price=1.0, step=2)
    assert never.votes_to_ask_one(0, 0, 0) == 0
    run, samples = go(
        pairs,
        lambda pair: never if pair.item == "q3" else RULES["lossless"],
        asked,
        tmp_path / "v.db",
    )
    assert "q3" not in samples
    assert len(samples) == 19
    assert run.settled.n_settled == 20


def test_samples_that_are_asked_for_again_are_counted_once(tmp_path):
    rule, pairs, place = RULES["lossless"], pairs_of(30), tmp_path / "v.db"
    asked = Judge(30, silent=0.5)
    first, _ = go(pairs, rule, asked, place)
    again = Judge(30, silent=0.5, seed=9)
    second, samples = go(pairs, rule, again, place, again=("unparsed",))
    statuses = Counter(status for there in samples.values() for status, _ in there.values())
    assert second.statuses + second.stored == statuses
    assert second.settled.n_samples == second.n_wanted == statuses.total()
    assert second.is_done
    assert second.n_calls >= second.statuses.total() > 0
    assert second.stored["ok"] == first.statuses["ok"]


def test_an_argument_changes_the_judging_or_is_refused(tmp_path):
    job = {"store": tmp_path / "votes.db", "client": FunctionClient(Judge(2))}
    with pytest.raises(InputError, match="base_url, api_key and headers describe"):
        asyncio.run(judge(pairs_of(2), Judging("m", n=4), **job, base_url="http://127.0.0.1:9"))
    assert not job["store"].exists()
    assert asyncio.run(judge(pairs_of(2), Judging("m", n=4), **job, n=6)).n_wanted == 12


def test_another_judge_than_the_model_of_the_rule_was_fitted_to_is_warned_of(tmp_path):
    known = Provenance(n_votes=N, judge="m", template="response", temperature=0.5)
    rule = StoppingRule.lossless(replace(MODEL, provenance=known), N, step=2)

    def ask(place, judging):
        with VoteStore(tmp_path / place) as store:
            job = JudgeJob(store, FunctionClient(Judge(2)))
            return asyncio.run(judge_by_rule(pairs_of(2), judging, rule, job))

    assert ask("same.db", Judging("m", n=N, limits=Limits(2))).settled.n_settled == 2
    with pytest.warns(ProvenanceWarning) as caught:
        ask("other.db", Judging("m", judge="x", temperature=None, n=N, limits=Limits(2)))
    assert [str(warning.message) for warning in caught] == [
        "judge is x, but the model was fitted for m"
    ]
