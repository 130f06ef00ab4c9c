"""Whose fault it is: of a pair, whose votes are marked, or of the endpoint, which ends the run."""

import asyncio
from dataclasses import replace

import pytest

from btdagg.judge import ChatError, FunctionClient, Judging, Limits, Pair, VoteStore
from btdagg.judge.client import samples_of
from btdagg.judge.faults import EndpointError
from btdagg.judge.judging import JudgeJob, Work
from btdagg.judge.sampling import sample
from judge_dialects import Answer, Fault
from judging import plan_of, read, rows_of, statuses_of

TOO_LONG = "This model's maximum context length is 4096 tokens. Please reduce the length."


def run_on(place, client, plan, **settings):
    async def main():
        try:
            with VoteStore(place) as store:
                judging = Judging("m", **{"limits": Limits(8), **settings})
                return await sample(plan, judging, JudgeJob(store, client))
        finally:
            await client.close()

    return asyncio.run(main())


def plan_with_long_pairs(n_items, long):
    for number in range(n_items):
        words = "word " * (2000 if number in long else 1)
        messages = ({"role": "user", "content": f"q{number} {words}"},)
        pair = Pair(f"q{number}")
        yield Work(pair, samples_of(4), lambda _, sent=messages: sent, read=read)


def of_short_pairs(asked):
    return Fault(400, TOO_LONG) if len(asked.text) > 5000 else Answer()


def test_pairs_that_are_too_long_cost_no_other_vote(tmp_path, dialect):
    long = range(4)  # the first, when nothing has worked before
    client = dialect.client(of_short_pairs)
    place = tmp_path / "v.db"
    done = run_on(place, client, plan_with_long_pairs(14, long))
    assert done.stopped == ""
    assert done.statuses == {"ok": 40, "failed": 16}
    assert done.n_pair_faults == 16
    assert done.n_calls == len(client.asked) == 56 + done.n_canaries
    assert done.n_canaries <= 2
    failed = [row for row in rows_of(place) if row["status"] == "failed"]
    assert {row["item"] for row in failed} == {f"q{number}" for number in long}
    assert {row["reason"] for row in failed} == {f"HTTP 400: {TOO_LONG}"}
    # They are marked, so nobody asks for them again unless told to.
    again = run_on(place, dialect.client(of_short_pairs), plan_with_long_pairs(14, long))
    assert again.n_calls == 0


@pytest.mark.parametrize(
    ("fault", "limited"),
    [(Fault(429, "slow", retry_after=0.1), True), (Fault(500, "ache"), False)],
)
def test_what_passes_loses_no_vote(tmp_path, dialect, fault, limited):
    seen = set()

    def answer(asked):
        if len(seen) < 3 and asked.text not in seen:
            seen.add(asked.text)
            return fault
        return Answer()

    place = tmp_path / "v.db"
    client = dialect.client(answer)
    done = run_on(place, client, plan_of(10), max_attempts=5)
    assert done.statuses == statuses_of(place) == {"ok": 40}
    assert len(client.asked) == done.n_calls == 43
    assert (done.n_limited, done.n_retries) == (3 * limited, 3)


def test_a_last_fault_just_after_another_was_answered_may_be_the_endpoints(tmp_path):
    n_calls = n_away = 0

    async def answer(request):
        nonlocal n_calls, n_away
        is_second = (request.item, request.order) == ("q1", "AB")
        n_calls += is_second
        if is_second and n_calls == 2:
            n_away = 3  # calls, short ones too
        if n_away or (is_second and n_calls == 1):
            n_away -= n_away > 0
            raise ChatError("no connection: disconnected")
        return "[[A]]"

    place = tmp_path / "v.db"
    client = FunctionClient(answer)
    done = run_on(place, client, plan_of(4, 2), limits=Limits(2), max_attempts=2)
    assert done.statuses == {"ok": 8}
    assert done.n_canaries > 0


def test_refusals_and_cut_answers_have_their_status_and_usage_is_kept(tmp_path, dialect):
    finish = {"q0": "refused", "q1": "blocked", "q2": "length"}

    def answer(asked):
        item = asked.text.split()[0]
        return Answer("[[A]]", finish.get(item, "stop"), "hm", 100, 50, 40, 64)

    plan = [replace(work, read=Judging("m").read) for work in plan_of(5)]
    place = tmp_path / "v.db"
    done = run_on(place, dialect.client(answer), plan)
    assert done.statuses == {"ok": 8, "refused": 8, "truncated": 4}
    assert (done.prompt_tokens, done.cached_tokens) == (2000, 1280)
    assert (done.completion_tokens, done.reasoning_tokens) == (1000, 800)
    assert {row["completion_tokens"] for row in rows_of(place)} == {50}


def test_an_endpoint_that_takes_to_refusing_everything_ends_the_run(tmp_path):
    n = 0

    async def answer(request):
        nonlocal n
        n += 1
        if n > 40:
            raise ChatError("HTTP 400: no such parameter", "rejected")
        return "[[A]]"

    with pytest.raises(EndpointError, match="refuses even a short request: HTTP 400: no such"):
        run_on(tmp_path / "v.db", FunctionClient(answer), plan_of(100))
    assert n < 40 + 32 + 8 + 2


@pytest.mark.parametrize("status", [403, 400])
def test_a_refusal_without_a_reason_in_mid_run_marks_nothing(tmp_path, dialect, status):
    place = tmp_path / "v.db"
    client = dialect.client(lambda _: Answer() if len(client.asked) <= 20 else Fault(status))
    with pytest.raises(EndpointError, match=f"refuses even a short request: HTTP {status}$"):
        run_on(place, client, plan_of(10))
    assert statuses_of(place) == {"ok": 20}
    # Once the key is good again the same command does the rest.
    again = run_on(place, dialect.client(lambda _: Answer()), plan_of(10))
    assert (again.statuses, again.is_complete) == ({"ok": 20}, True)


def test_calls_in_flight_when_a_key_dies_mark_nothing(tmp_path):
    n = 0

    async def answer(request):
        nonlocal n
        n += 1
        is_dead = n > 40
        # Those that were asked in time are answered after the others were refused.
        await asyncio.sleep(0.05 if is_dead or n % 2 else 0.3)
        if is_dead:
            raise ChatError("HTTP 403", "forbidden")
        return "[[A]]"

    place = tmp_path / "v.db"
    with pytest.raises(EndpointError, match="refuses even a short request: HTTP 403"):
        run_on(place, FunctionClient(answer), plan_of(40), limits=Limits(16))
    assert statuses_of(place) == {"ok": 40}


@pytest.mark.parametrize("status", [403, 400])
def test_a_pair_that_is_refused_without_a_reason_fails_alone(tmp_path, dialect, status):
    def answer(asked):
        return Fault(status) if asked.text.startswith("q5 ") else Answer()

    place = tmp_path / "v.db"
    done = run_on(place, dialect.client(answer), plan_of(10))
    assert done.statuses == {"ok": 36, "failed": 4}
    assert 1 <= done.n_canaries <= 4
    assert {row["item"] for row in rows_of(place) if row["status"] == "failed"} == {"q5"}


def test_failures_are_marked_once_a_call_has_shown_that_it_is_not_the_endpoint(tmp_path):
    place = tmp_path / "v.db"

    def client(broken):
        async def answer(request):
            if broken in request.messages[0]["content"]:
                raise ChatError("HTTP 500: crashed")
            return "[[A]]"

        return FunctionClient(answer)

    # The last pair: nothing works after it, but something has before.
    assert run_on(place, client("q4 "), plan_of(5), max_attempts=1).statuses == {
        "ok": 16,
        "failed": 4,
    }
    other = tmp_path / "other.db"
    for plan in (plan_of(1, 2), plan_of(5)):
        with pytest.raises(EndpointError, match="HTTP 500: crashed; all 2 requests failed"):
            run_on(other, client(""), plan, max_attempts=1)
        assert rows_of(other) == []
    assert run_on(other, client("no"), plan_of(5)).statuses == {"ok": 20}
    assert statuses_of(other) == {"ok": 20}
