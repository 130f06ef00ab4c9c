"""Limits that processes share: rates, caps, and what is left of those that die."""

import asyncio
import json
import time
from bisect import bisect_right
from collections import Counter
from dataclasses import asdict

import pytest
import sqlalchemy as sa

from btdagg import InputError
from btdagg.judge.client import ChatReply, FunctionClient, Usage
from btdagg.judge.judging import Judging
from btdagg.judge.limits import Limits, Reserved, Spent
from btdagg.judge.prices import Prices
from btdagg.judge.retry import ChatError
from btdagg.judge.sampling import sample
from btdagg.judge.shared_budget import SharedBudget
from btdagg.judge.store import StoreError, VoteStore, schema
from btdagg.judge.store.shared_use import SharedUse
from btdagg.judge.storing import Storing
from judging import ASKED, plan_of, read, start, statuses_of


class Judge:
    """Answers, and keeps the moments of its calls."""

    def __init__(self, seconds=0.0, usage=None, refuses_first=0):
        self.moments = []
        self._seconds, self._usage, self._n_refused = seconds, usage, refuses_first

    async def __call__(self, request):
        self.moments.append(time.monotonic())
        if len(self.moments) <= self._n_refused:
            raise ChatError("HTTP 429", kind="limit", retry_after=0.5)
        await asyncio.sleep(self._seconds)
        return ChatReply("[[A]]", usage=self._usage)


def run_all(place, judge, limits, *, n=2, n_items=15, stop=None, **settings):
    """Several runs on one store at once, each with connections of its own."""

    async def one():
        with VoteStore(place) as store:
            return await sample(
                plan_of(n_items),
                ASKED,
                client=FunctionClient(judge),
                store=store,
                read=read,
                judging=Judging("m", limits=limits, **settings),
                stop=stop,
            )

    async def main():
        return await asyncio.gather(*(one() for _ in range(n)))

    return asyncio.run(main())


def used(place):
    """Sums over all runs of a store."""
    with VoteStore(place) as store, store.reading() as connection:
        rows = connection.execute(sa.select(schema.shared_use)).mappings().all()
    return Spent(**{name: sum(row[name] for row in rows) for name in asdict(Spent())})


def most_within(moments, seconds):
    moments = sorted(moments)
    return max(bisect_right(moments, first + seconds) - i for i, first in enumerate(moments))


def test_a_rate_is_kept_by_all_together(store_place):
    judge = Judge(0.05)
    limits = Limits(8, requests_per_minute=6000, shared=True)
    runs = run_all(store_place, judge, limits, n=2, n_items=70)
    assert all(run.is_complete for run in runs)
    assert statuses_of(store_place) == {"ok": 280}
    assert len(judge.moments) == 280
    # 100 a second, a call up to 0.2 seconds late, and the one that begins the second.
    assert most_within(judge.moments, 1.0) <= 100 * 1.2 + 1
    assert min(run.n_calls for run in runs) > 0


def test_tokens_that_were_not_expected_are_waited_for(store_place):
    judge = Judge(usage=Usage(100, 900))
    limits = Limits(1, tokens_per_minute=300_000, shared=True)  # 5 calls a second
    run_all(store_place, judge, limits, n=2, n_items=3)
    # Nothing is known of the first calls, which count as a few tokens until they are answered.
    seconds = max(judge.moments) - sorted(judge.moments)[2]
    assert seconds > 0.2 * (len(judge.moments) - 5)
    assert used(store_place) == Spent(12, 12_000)


def test_a_cap_is_on_what_all_have_asked(store_place):
    judge = Judge(0.01)
    runs = run_all(store_place, judge, Limits(8, max_calls=25, shared=True), n=3)
    assert len(judge.moments) == 25
    assert {run.stopped for run in runs} == {
        "the cap of 25 calls is reached; all processes share the cap"
    }
    # One that comes later has no calls of its own, but what a higher cap leaves.
    run_all(store_place, judge, Limits(8, max_calls=25, shared=True))
    assert len(judge.moments) == 25
    run_all(store_place, judge, Limits(8, max_calls=30, shared=True))
    assert len(judge.moments) == 30
    # Without limits that are shared it is nobody's but its own.
    assert run_all(store_place, judge, Limits(8), n=1)[0].is_complete


def test_a_shared_cost_is_never_passed(store_place):
    judge = Judge(0.01, Usage(20, 80))
    limits = Limits(8, max_cost=0.2, shared=True)
    settings = {"prices": Prices(100.0, 100.0), "max_answer_tokens": 100}  # $0.01 a call
    run_all(store_place, judge, limits, n=3, **settings)
    spent = used(store_place)
    assert spent.calls == len(judge.moments)
    assert spent.cost == pytest.approx(0.01 * spent.calls)
    assert 0.18 < spent.cost <= 0.2
    assert spent.reserved_tokens == 0
    assert spent.reserved_cost == pytest.approx(0.0, abs=1e-12)


def test_what_the_dead_had_in_flight_counts_as_used(store_place):
    limits = Limits(4, max_tokens=1000, shared=True)
    with VoteStore(store_place) as store:
        with store.owner() as owner:
            calls = [Reserved(400, 0.0), Reserved(400, 0.0), Reserved(400, 0.0)]
            places = owner.share("sim", limits).take(calls, Spent(), 0.0)
            owner.commit()
            assert len(places.seconds) == 2
            assert places.again > 0
            with store.owner() as other:
                # The other lives, and may use less than it could.
                places = other.share("sim", limits).take(calls, Spent(), 0.0)
                assert (places.seconds, places.reached) == ([], "")
                other.commit()
        with store.owner() as other:
            places = other.share("sim", limits).take(calls, Spent(), 0.0)
            other.commit()
    assert places.reached == (
        "the cap of 1000 tokens is reached: 800 are used, and another call may need up to 400; all "
        "processes share the cap"
    )


def test_rates_are_those_of_whoever_is_at_work(store_place):
    def take(owner, rate):
        limits = Limits(requests_per_minute=rate, shared=True)
        owner.share("sim", limits).take([Reserved(1, 0.0)], Spent(), 0.0)
        owner.commit()

    with VoteStore(store_place) as store:
        with store.owner() as owner:
            take(owner, 60)
            with store.owner() as other, pytest.raises(StoreError) as error:
                take(other, 600)
            assert str(error.value).endswith(
                "requests_per_minute is 600, want 60: other running processes share that limit of "
                "sim"
            )
        with store.owner() as other:
            take(other, 600)


def test_calls_that_were_not_made_are_given_back(store_place):
    async def main():
        stop = asyncio.Event()

        async def stopping(request):
            if len(judge.moments) == 2:
                stop.set()
            return await judge(request)

        with VoteStore(store_place) as store:
            return await sample(
                plan_of(50),
                ASKED,
                client=FunctionClient(stopping),
                store=store,
                read=read,
                judging=Judging("m", limits=Limits(8, requests_per_minute=600, shared=True)),
                stop=stop,
            )

    judge = Judge()
    run = asyncio.run(main())
    assert run.stopped == "interrupted"
    assert 0 < len(judge.moments) < 20
    assert used(store_place) == Spent(
        len(judge.moments), used(store_place).tokens
    )  # none are in flight


def test_a_refusal_closes_places_that_were_taken_before(store_place):
    judge = Judge(0.2, refuses_first=1)
    limits = Limits(8, requests_per_minute=1200, shared=True)
    (run,) = run_all(store_place, judge, limits, n=1, n_items=3)
    assert run.is_complete
    assert run.n_limited == 1
    first, second, *_ = judge.moments
    assert second - first >= 0.5
    assert used(store_place).calls == len(judge.moments) == 13


def test_a_broken_store_ends_all_who_wait(tmp_path, monkeypatch):
    def broken(*_):
        raise StoreError("no more")

    monkeypatch.setattr(SharedUse, "take", broken)
    with pytest.raises(StoreError, match="no more"):
        run_all(tmp_path / "v.db", Judge(), Limits(8, max_calls=5, shared=True))


def test_use_that_cannot_be_written_is_told_to_whoever_asks_next(tmp_path, monkeypatch):
    take = SharedUse.take

    def broken(self, calls, spent, tokens):
        if not calls:
            raise StoreError("no more")
        return take(self, calls, spent, tokens)

    async def main():
        with VoteStore(tmp_path / "v.db") as store, store.owner() as owner:
            storing = Storing(store)
            storing.owner = owner
            limits = Limits(max_calls=1000, shared=True)
            budget = SharedBudget("sim", storing, limits, None, None)
            budget.settle(await budget.take(10, 1), 10, 0.0)
            await asyncio.sleep(1.0)  # nobody waits when what was used is written
            with pytest.raises(StoreError, match="no more"):
                await asyncio.wait_for(budget.take(10, 1), 5)
            with pytest.raises(StoreError, match="no more"):
                await budget.settled()
            storing.close()

    monkeypatch.setattr(SharedUse, "take", broken)
    asyncio.run(main())


def test_there_has_to_be_something_to_share(cli, tmp_path):
    with pytest.raises(InputError, match="limits are shared and there are none: want requests"):
        Limits(8, shared=True)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"item": "q", "prompt": "?", "a": "1", "b": "2"}))
    status, _, said = cli("judge", pairs, "-m", "sim", "--shared-limits", "--dry-run")
    assert status == 2
    assert "limits are shared and there are none" in said


@pytest.mark.soak
def test_eight_workers_of_which_two_are_killed(tmp_path, judge_server, postgres, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests-0123456789")
    n_items, per_second, concurrency = 300, 80, 16
    server = judge_server("--latency-ms", "200")
    place = postgres.database("shared_by_eight")
    pairs = tmp_path / "pairs.jsonl"
    rows = [{"item": f"q{i}", "prompt": "?", "a": f"{i}.", "b": f"{i}!"} for i in range(n_items)]
    pairs.write_text("\n".join(map(json.dumps, rows)))
    options = ["-m", "sim", "--base-url", server.url, "-n", "4", "--store", place]
    options += ["--shared-limits", "--requests-per-minute", 60 * per_second, "-c", concurrency]
    workers = [start(tmp_path, "judge", pairs, *options) for _ in range(8)]
    try:
        for worker in workers[:2]:
            n_before = len(server.log())
            while len(server.log()) < n_before + 150:
                assert any(each.poll() is None for each in workers)
                time.sleep(0.05)
            worker.kill()
        ended = [worker.communicate() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [-9, -9] + [0] * 6, ended
    assert statuses_of(place) == {"ok": 4 * n_items}
    log = server.log()
    # Asked twice is what the two had in flight.
    assert len(log) - 4 * n_items <= 2 * concurrency
    asked = Counter(line["prompt"] for line in log)
    assert len(asked) == 2 * n_items
    assert most_within([line["time"] for line in log], 10) <= 1.05 * 10 * per_second
