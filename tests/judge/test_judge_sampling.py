"""The engine against a real server with faults, in both stores: nothing lost, nothing twice."""

import asyncio
import os
import random
import time
from collections import Counter

import pytest
import sqlalchemy as sa

from btdagg.judge import (
    ChatError,
    ChatReply,
    FunctionClient,
    Judging,
    Limits,
    ModelClient,
    Prices,
    StoreError,
    Usage,
    VoteStore,
    retries,
)
from btdagg.judge.client import samples_of
from btdagg.judge.judging import JudgeJob
from btdagg.judge.sampling import sample
from btdagg.judge.store.owner import Owner
from commands import forked
from judging import plan_of, rows_of, statuses_of


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setattr(retries, "_FIRST_DELAY", 0.1)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests-0123456789")


def run(place, client, plan, *, watch=None, stop=None, before=None, **settings):
    """Sample once, in an event loop of its own; `before` gets the store and the task."""
    settings.setdefault("limits", Limits(8))

    async def main():
        with VoteStore(place) as store:
            if before is not None:
                before(store, asyncio.current_task())
            try:
                job = JudgeJob(store, client, stop or asyncio.Event(), watch or (lambda _: None))
                return await sample(plan, Judging("m", judge="sim", **settings), job)
            finally:
                await client.close()

    return asyncio.run(main())


def run_on(url, place, plan, **settings):
    """Sample once from an endpoint."""
    settings = {"limits": Limits(), **settings}
    return run(place, ModelClient("openai", url), plan, **settings)


def answering(text="[[A]]", **fields):
    async def answer(request):
        return ChatReply(text, **fields)

    return FunctionClient(answer)


def assert_whole(place, n_items, n):
    """Every item has exactly its samples, each with a status, and nobody owns any."""
    rows = rows_of(place)
    per_item = {}
    for row in rows:
        per_item.setdefault(row["item"], []).append((row["order"], row["sample"]))
        assert row["status"] is not None
        assert row["owner"] is None
        assert row["status"] == "ok" or row["reason"]
    assert len(per_item) == n_items
    for samples in per_item.values():
        assert sorted(samples) == sorted(samples_of(n))
    return rows


# Faults


@pytest.mark.soak
def test_ten_thousand_votes_under_faults(store_place, judge_server):
    """Three thousand in PostgreSQL: there each kind of fault is still met about 30 times."""
    n_items = 300 if "://" in store_place else 1000
    # A time-out that is long enough for a slow machine, and so fewer that have to wait for it.
    kinds = ("429", "500", "reset", "malformed", "content-type", "empty", "truncated", "unparsed")
    faults = ",".join(f"{kind}=0.011" for kind in kinds) + ",refusal=0.008,hang=0.004"
    server = judge_server("--faults", faults, "--retry-after", "0.05")
    finished = run_on(
        server.url,
        store_place,
        plan_of(n_items, 10),
        limits=Limits(64),
        timeout=12.0,
        max_attempts=12,
    )
    assert finished.is_done
    assert not finished.is_complete  # votes are missing
    rows = assert_whole(store_place, n_items, 10)
    assert Counter(row["status"] for row in rows) == finished.statuses
    log = server.log()
    # Where a machine is slow: a call that times out before the server reads it, which counts, since
    # it might have been paid; and a request with three faults in a row, which asks a probe.
    n_unread = finished.n_calls - len(log)
    assert 0 <= n_unread <= 0.001 * finished.n_calls
    judged = [line for line in log if (line["first"], line["second"]) != ("Yes.", "No.")]
    assert 0 <= finished.n_canaries - (len(log) - len(judged)) <= n_unread
    log = judged
    assert 0 <= sum(row["attempts"] for row in rows) - sum(line["n"] for line in log) <= n_unread
    outcomes = Counter()
    for line in log:
        outcomes[line["outcome"]] += line["n"]
    # What can be read is a vote or a reason, and is not asked for again.
    assert finished.statuses["ok"] == outcomes["ok"]
    assert finished.statuses["truncated"] == outcomes["truncated"] > 0
    assert finished.statuses["empty"] == outcomes["empty"] > 0
    assert finished.statuses["unparsed"] == outcomes["unparsed"] + outcomes["refusal"] > 0
    assert finished.statuses["failed"] == 0
    repeated = ("429", "500", "reset", "hang", "malformed", "content-type")
    assert min(outcomes[name] for name in repeated) > 0
    assert 0 <= finished.n_retries - sum(line["outcome"] in repeated for line in log) <= n_unread


# Processes that die, and that share


def ask_in_a_child(url, place, n_items, n, concurrency, file, backwards=False):
    """Sample, writing down how many votes were counted whenever some are."""
    plan = list(plan_of(n_items, n))
    counted = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def watch(finished):
        os.write(counted, b"%d\n" % finished.statuses.total())

    plan = plan[::-1] if backwards else plan
    run_on(url, place, plan, limits=Limits(concurrency), watch=watch)


def n_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_and_restart(server, place, tmp_path, *, n_kills, n_items, n, concurrency):
    draw = random.Random(4)
    kept = {}
    n_counted = 0
    for kill in range(n_kills):
        file = tmp_path / f"counted-{kill}"
        until = n_lines(server.path) + draw.randint(0, 30)
        arguments = (server.url, place, n_items, n, concurrency, file)
        child = forked(ask_in_a_child, *arguments)
        while child.is_alive() and n_lines(server.path) <= until:
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.15))
        child.kill()
        child.join()
        lines = file.read_text().splitlines() if file.exists() else []
        n_counted += int(lines[-1]) if lines else 0
        rows = rows_of(place)
        done = {(r["item"], r["order"], r["sample"]): r for r in rows if r["status"]}
        # What was counted is there; what was there has not been touched.
        assert len(done) >= n_counted
        assert {key: done[key] for key in kept} == kept
        kept = done
        n_counted = len(done)
        # Asked without a vote are those that were in flight when it was killed.
        assert n_lines(server.path) - len(done) <= (kill + 1) * concurrency
        assert sum(row["owner"] is not None for row in rows) > 0 or len(done) == n_items * n
    last = run_on(server.url, place, plan_of(n_items, n), limits=Limits(concurrency))
    assert last.is_complete
    rows = assert_whole(place, n_items, n)
    assert {row["status"] for row in rows} == {"ok"}
    asked = Counter(line["prompt"] for line in server.log())
    assert len(asked) == 2 * n_items
    assert sum(asked.values()) - n_items * n <= n_kills * concurrency
    return len(kept)


@pytest.mark.soak
def test_killed_at_random_instants(tmp_path, judge_server, store_place):
    server = judge_server("--latency-ms", "20")
    kill_and_restart(server, store_place, tmp_path, n_kills=12, n_items=200, n=6, concurrency=8)
    assert not list(tmp_path.glob("votes.db-owner-*"))


@pytest.mark.soak
def test_two_processes_share_a_job(tmp_path, judge_server, store_place):
    server = judge_server("--latency-ms", "10")
    files = [tmp_path / "one", tmp_path / "other"]
    children = [
        forked(ask_in_a_child, server.url, store_place, 150, 6, 8, file, backwards)
        for file, backwards in zip(files, (False, True), strict=True)
    ]
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert_whole(store_place, 150, 6)
    asked = Counter(line["prompt"] for line in server.log())
    assert set(asked.values()) == {3}  # each order of each pair, three samples
    assert len(asked) == 300
    shares = [int(file.read_text().splitlines()[-1]) for file in files]
    assert sum(shares) == 900
    assert min(shares) > 0


# Stopping


def test_interrupted_it_finishes_what_is_under_way_and_goes_on_later(store_place):
    asked, stop = [], asyncio.Event()

    async def answer(request):
        asked.append(request.messages[0]["content"])
        if len(asked) == 20:
            stop.set()
        await asyncio.sleep(0.05)
        return "[[A]]"

    first = run(store_place, FunctionClient(answer), plan_of(50), stop=stop)
    assert first.stopped == "interrupted"
    assert not first.is_complete
    assert first.statuses == {"ok": len(asked)}
    assert statuses_of(store_place) == {"ok": len(asked)}  # nothing is left claimed
    second = run(store_place, answering(), plan_of(50))
    assert second.stored == first.statuses
    assert second.n_calls == 200 - len(asked)
    assert_whole(store_place, 50, 4)


def test_calls_that_do_not_end_are_cut_off_after_a_while(store_place):
    stop = asyncio.Event()

    async def answer(request):
        if "q0 AB" in request.messages[0]["content"]:
            return "[[A]]"
        stop.set()
        await asyncio.sleep(3600)

    first = run(store_place, FunctionClient(answer), plan_of(500), stop=stop, grace=0.1)
    assert first.stopped == "interrupted"
    assert set(statuses_of(store_place)) == {"ok"}


def test_cancelled_it_keeps_what_is_there(store_place):
    n, tasks = 0, []

    async def answer(request):
        nonlocal n
        n += 1
        if n == 30:
            tasks[0].cancel()
            await asyncio.sleep(3600)
        return "[[A]]"

    with pytest.raises(asyncio.CancelledError):
        run(
            store_place,
            FunctionClient(answer),
            plan_of(50),
            before=lambda _, task: tasks.append(task),
        )
    assert set(statuses_of(store_place)) == {"ok"}
    assert run(store_place, answering(), plan_of(50)).is_complete
    assert_whole(store_place, 50, 4)


# Caps


def test_the_cap_on_calls_is_never_passed(tmp_path, judge_server):
    server = judge_server("--faults", "500=0.2", "--latency-ms", "5")
    place = tmp_path / "v.db"
    finished = run_on(server.url, place, plan_of(30), limits=Limits(16, max_calls=77))
    assert finished.stopped == "77 calls were made, which is max_calls"
    assert finished.n_calls == len(server.log()) == 77
    assert set(statuses_of(place)) == {"ok"}
    assert run_on(server.url, place, plan_of(30)).is_complete


def test_the_cap_on_cost_is_never_passed(tmp_path):
    prices = Prices(2.0, 10.0)
    asked = []

    async def answer(request):
        asked.append(request)
        await asyncio.sleep(0.001)
        return ChatReply("[[A]]", usage=Usage(20, 100))

    one = prices.of(20, 100)
    finished = run(
        tmp_path / "v.db",
        FunctionClient(answer),
        plan_of(100),
        limits=Limits(16, max_cost=50 * one),
        prices=prices,
        max_answer_tokens=100,
    )
    assert finished.cost == pytest.approx(len(asked) * one)
    assert 48 * one <= finished.cost <= 50 * one
    assert "could exceed max_cost (0.052)" in finished.stopped


def test_calls_that_may_have_cost_something_count_as_much_as_they_can(tmp_path):
    async def answer(request):
        raise ChatError("time-out", may_cost=True)

    finished = run(
        tmp_path / "v.db",
        FunctionClient(answer),
        plan_of(5),
        limits=Limits(1, max_cost=1e-3),
        prices=Prices(1.0, 1.0),
        max_answer_tokens=300,
        max_attempts=3,
    )
    assert finished.n_calls == 2
    assert "could exceed max_cost (0.001)" in finished.stopped


# Endpoints that cannot work


# What is asked


def test_a_fault_of_a_function_is_recorded(tmp_path):
    def answer(request):
        if "q1 " in request.messages[0]["content"]:
            raise RuntimeError("out of\nsorts \0 \ud800")
        return "<think>Hm.\0</think>[[B]]"

    place = tmp_path / "v.db"
    finished = run(place, FunctionClient(answer), plan_of(3), max_attempts=1)
    assert finished.statuses == {"ok": 8, "failed": 4}
    reasons = {row["reason"] for row in rows_of(place) if row["status"] == "failed"}
    assert reasons == {"RuntimeError: out of sorts � ?"}


# The store in trouble


@pytest.mark.soak
def test_a_full_disk_loses_nothing_that_was_counted(tmp_path):
    place = tmp_path / "v.db"
    counted = []

    def before(store, _):
        @sa.event.listens_for(store._engine, "checkout")
        def limit(connection, *_):
            connection.execute("PRAGMA max_page_count = 60")

    with pytest.raises(StoreError) as error:
        run(
            place,
            answering("x" * 500 + "[[A]]"),
            plan_of(500),
            watch=lambda finished: counted.append(finished.statuses.total()),
            before=before,
        )
    message = str(error.value)
    assert message.startswith(f"{place}: database or disk is full")
    assert "\n" not in message
    assert statuses_of(place)["ok"] == counted[-1] > 0
    # There is room again.
    assert run(place, answering(), plan_of(500)).is_complete
    assert_whole(place, 500, 4)


def test_whatever_goes_wrong_with_writing_ends_the_run(store_place, monkeypatch):
    def broken(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(Owner, "save", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        run(store_place, answering(), plan_of(50))
    monkeypatch.undo()
    assert run(store_place, answering(), plan_of(50)).is_complete
    assert_whole(store_place, 50, 4)


def test_a_database_that_drops_us_ends_the_run(postgres):
    place = postgres.database("dropped")
    engine = sa.create_engine(place.replace("postgresql:", "postgresql+psycopg:"))
    counted = []

    def watch(finished):
        counted.append(finished.statuses.total())
        if len(counted) == 20:
            with engine.begin() as connection:
                others = "datname = current_database() AND pid <> pg_backend_pid()"
                query = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"
                connection.execute(sa.text(query))

    with pytest.raises(StoreError) as error:
        run(place, answering(), plan_of(100), watch=watch)
    assert "\n" not in str(error.value)
    assert "terminat" in str(error.value)
    engine.dispose()
    assert statuses_of(place)["ok"] >= counted[-1]
    assert run(place, answering(), plan_of(100)).is_complete
    assert_whole(place, 100, 4)


@pytest.mark.parametrize("cancelled_at", [4, 6])
def test_cancelled_while_it_commits_nobody_else_uses_the_connection(tmp_path, cancelled_at):
    place = tmp_path / "v.db"
    n_commits, committing, overlaps = 0, False, []

    def before(store, task):
        loop = asyncio.get_running_loop()

        def commit(_):
            nonlocal n_commits, committing
            n_commits += 1
            if n_commits == cancelled_at:
                committing = True
                loop.call_soon_threadsafe(task.cancel)
                time.sleep(0.2)
                committing = False

        def execute(*arguments):
            if committing:
                overlaps.append(arguments[2])

        sa.event.listen(store._engine, "commit", commit)
        sa.event.listen(store._engine, "before_cursor_execute", execute)

    with pytest.raises(asyncio.CancelledError):
        run(place, answering(), plan_of(50), before=before)
    assert n_commits >= cancelled_at
    assert overlaps == []
    assert run(place, answering(), plan_of(50)).is_complete
    assert_whole(place, 50, 4)


def test_plans_are_gone_through_lazily(tmp_path):
    seen = 0

    def plan():
        nonlocal seen
        for work in plan_of(10**9):
            seen += 1
            yield work

    finished = run(tmp_path / "v.db", answering(), plan(), limits=Limits(8, max_calls=100))
    assert finished.n_calls == 100
    assert seen < 200
