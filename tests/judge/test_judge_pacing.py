"""How fast an endpoint is asked, against endpoints with limits, on a clock that jumps."""

import asyncio
import math
import random

import pytest

import virtual_time
from btdagg.judge import ChatError, ChatReply, FunctionClient, Judging, Limits, VoteStore
from btdagg.judge.client import Allowance, RateLimits, rate_limits_of, seconds_of
from btdagg.judge.faults import EndpointError
from btdagg.judge.judging import JudgeJob
from btdagg.judge.pacing import Pacing
from btdagg.judge.sampling import sample
from judging import plan_of
from refusals import refused


class Bucket:
    """So many units a minute, steadily; as many at once as `capacity`."""

    def __init__(self, per_minute, capacity=None, *, says_when=True):
        self.rate = per_minute / 60
        self.capacity = self.left = per_minute if capacity is None else capacity
        self.time, self.says_when = 0.0, says_when

    def change(self, per_minute):
        self.rate = per_minute / 60

    def refuses(self, now, units=1):
        """None, or how long is to be waited (None again where that is not said)."""
        self.left = min(self.capacity, self.left + (now - self.time) * self.rate)
        self.time = now
        if self.left >= units:
            self.left -= units
            return None
        return (math.ceil((units - self.left) / self.rate) if self.says_when else None,)


def ask_all(server, n_calls, workers, *, latency=0.05, units=lambda draw: 1, at=None, **limits):
    """Make so many calls; the requests made for it, as (time, let through, units)."""
    log = []

    async def main():
        loop = asyncio.get_running_loop()
        pacing = Pacing(Limits(workers, **limits), clock=loop.time, seed=1)
        stopping, draw, left = asyncio.Event(), random.Random(2), iter(range(n_calls))

        async def work():
            for _ in left:
                size = units(draw)
                while True:
                    call = await pacing.admit(size, stopping)
                    assert call
                    if at is not None:
                        at(server, loop.time())
                    refused = server.refuses(loop.time(), size)
                    log.append((loop.time(), refused is None, size))
                    if refused is None:
                        break
                    await asyncio.sleep(0.02)
                    pacing.refused(call, retry_after=refused[0], of_tokens=size > 1)
                await asyncio.sleep(latency if latency < 1 else draw.uniform(0.5, 1.5) * latency)
                pacing.answered(call)

        await asyncio.gather(*(work() for _ in range(workers)))

    virtual_time.run(main())
    return log


def used(log, after=0.0):
    """Units let through per second."""
    last = max(time for time, _, _ in log)
    return sum(size for time, is_through, size in log if is_through and time >= after) / (
        last - after
    )


class AtRandom:
    """Refuses a share of the calls, however slowly it is asked."""

    def __init__(self, share, retry_after):
        self.share, self.retry_after, self.draw = share, retry_after, random.Random(3)

    def refuses(self, now, units=1):
        return (self.retry_after,) if self.draw.random() < self.share else None


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_refusals_at_random_are_told_from_those_of_a_limit(share):
    log = ask_all(AtRandom(share, None), 4000, 8, latency=1.0)
    assert max(time for time, _, _ in log) < 700  # 500 without refusals


class WithoutBurst:
    """Calls at least so far apart, as nginx's `limit_req` has them."""

    def __init__(self, per_minute):
        self.rate, self.excess, self.last = per_minute / 60, 0.0, None

    def refuses(self, now, units=1):
        waited = math.inf if self.last is None else now - self.last
        excess = max(self.excess - waited * self.rate + 1, 0.0) if waited < math.inf else 0.0
        if excess > 0:
            return (None,)
        self.excess, self.last = excess, now
        return None


@pytest.mark.parametrize(("per_minute", "n_calls"), [(60, 160), (300, 600)])
def test_of_a_limit_that_allows_no_burst_most_is_used(per_minute, n_calls):
    log = ask_all(WithoutBurst(per_minute), n_calls, 16)
    assert used(log) >= 0.85 * per_minute / 60


@pytest.mark.parametrize(("workers", "says_when"), [(4, True), (64, False)])
def test_a_bucket_of_sixty_a_minute(workers, says_when):
    log = ask_all(Bucket(60, says_when=says_when), 160, workers)
    assert sum(is_through for _, is_through, _ in log) == 160
    assert 160 / (60 + max(time for time, _, _ in log)) >= 0.9  # allowed: 60, and one a second


def test_a_limit_that_is_raised_after_minutes_is_used_within_minutes():
    def change(server, now):
        server.change(6 if 300 <= now < 900 else 60)

    log = ask_all(Bucket(60, 5, says_when=False), 700, 16, latency=0.3, at=change)
    assert max(time for time, _, _ in log) < 900 + 2 * (700 - 360)


@pytest.mark.parametrize("says_when", [True, False])
def test_limits_on_tokens(says_when):
    def units(draw):
        return draw.choice((500, 1000, 4000))

    log = ask_all(Bucket(60_000, says_when=says_when), 400, 16, units=units)
    assert used(log) >= 0.8 * 1000


def test_limits_of_the_user_are_kept():
    log = ask_all(Bucket(10**9), 100, 16, requests_per_minute=60)
    times = [time for time, _, _ in log]
    assert times == pytest.approx(range(100))
    log = ask_all(Bucket(10**9), 100, 16, units=lambda _: 500, tokens_per_minute=60_000)
    assert [time for time, _, _ in log] == pytest.approx([number / 2 for number in range(100)])


def test_without_limits_nothing_is_waited_for():
    log = ask_all(Bucket(10**9), 1600, 16)
    assert max(time for time, _, _ in log) == pytest.approx(99 * 0.05)


def test_headers_are_kept_to_before_anything_is_refused():
    log = []

    async def main():
        loop = asyncio.get_running_loop()
        pacing = Pacing(Limits(4), clock=loop.time)
        bucket = Bucket(60)

        async def work():
            while log.count(None) < 160:
                call = await pacing.admit(1, asyncio.Event())
                refused = bucket.refuses(loop.time())
                log.append(refused)
                left = math.floor(bucket.left)
                said = {
                    "x-ratelimit-limit-requests": "60",
                    "x-ratelimit-remaining-requests": str(left),
                    "x-ratelimit-reset-requests": f"{(60 - bucket.left) / bucket.rate:.3f}s",
                }
                await asyncio.sleep(0.05)
                if refused is None:
                    pacing.answered(call, limits=rate_limits_of(said))
                else:
                    pacing.refused(call, limits=rate_limits_of(said))

        await asyncio.gather(*(work() for _ in range(4)))
        return loop.time()

    end = virtual_time.run(main())
    assert 160 / (60 + end) >= 0.9
    assert len(log) - log.count(None) <= 0.05 * 160


def test_what_headers_say():
    assert [seconds_of(text) for text in ("1s", "6m0s", "120ms", "2.5", "1h2m", "")] == [
        *(1, 360, 0.12, 2.5, 3720, None)
    ]
    assert seconds_of("soon") is seconds_of("-1s") is seconds_of(None) is None
    said = {f"x-ratelimit-{name}-tokens": "10" for name in ("limit", "remaining", "reset")}
    assert rate_limits_of(said) == RateLimits(tokens=Allowance(10, 10, 10))
    assert rate_limits_of(said | {"x-ratelimit-remaining-tokens": "many"}) is None
    assert rate_limits_of({}) is None
    assert Allowance(60, 15, 45).per_second == 1
    said = {
        "date": "Sun, 06 Nov 1994 08:49:00 GMT",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "1994-11-06T08:49:30Z",
        "anthropic-ratelimit-tokens-limit": "80000",
        "anthropic-ratelimit-tokens-remaining": "60000",
        "anthropic-ratelimit-tokens-reset": "soon",
    }
    assert rate_limits_of(said) == RateLimits(Allowance(50, 49, 30), None)


# The engine


def judge_in_virtual_time(tmp_path, answer, plan=None, **settings):
    async def main():
        with VoteStore(tmp_path / "v.db") as store:
            job = JudgeJob(store, FunctionClient(answer))
            run = await sample(plan or plan_of(40), Judging("m", judge="sim", **settings), job)
            return run, asyncio.get_running_loop().time()

    return virtual_time.run(main())


def test_no_vote_is_lost_to_a_limit_that_passes(tmp_path):
    bucket = Bucket(60, 4)

    async def answer(request):
        refused = bucket.refuses(asyncio.get_running_loop().time())
        if refused is not None:
            raise ChatError("HTTP 429: slow down", "limited", retry_after=refused[0])
        await asyncio.sleep(0.05)
        return "[[A]]"

    run, seconds = judge_in_virtual_time(tmp_path, answer, max_attempts=1)
    assert run.statuses == {"ok": 160}
    assert run.n_calls == 160 + run.n_limited
    assert seconds < 160 / 0.8


@pytest.mark.parametrize(
    ("of", "n_refused", "retry_after", "after", "concurrency"),
    [("requests", 1, 1.0, 0, 16), ("requests", 5, 2.0, 10, 4), ("tokens", 12, 5.0, 0, 16),
     ("requests", 20, 2.0, 40, 16), ("requests", 20, None, 0, 16), ("tokens", 20, None, 40, 16)],
)  # fmt: skip
def test_a_limit_that_has_passed_costs_ten_seconds(
    tmp_path, of, n_refused, retry_after, after, concurrency
):
    n = 0
    waits, last = [], 0.0  # what the server asked to wait, beginning and end; the last refusal

    async def answer(request):
        nonlocal n, last
        n += 1
        if after < n <= after + n_refused:
            last = asyncio.get_running_loop().time()
            waits.append((last, last + (retry_after or 0.0)))
            raise ChatError(f"HTTP 429: {of}", "limited", retry_after=retry_after)
        await asyncio.sleep(0.3)
        return "[[A]]"

    run, seconds = judge_in_virtual_time(tmp_path, answer, plan_of(20), limits=Limits(concurrency))
    assert run.statuses == {"ok": 80}
    asked, until = 0.0, 0.0
    for begin, end in waits:  # some at the same time
        asked, until = asked + max(end - max(begin, until), 0.0), max(end, until)
    clean = 80 * 0.3 / concurrency + 1.0
    assert seconds <= clean + (10 if retry_after else last + 10 if n_refused else 0) + 2 * asked


def test_after_refusals_that_headers_contradict_nothing_is_waited_for(tmp_path):
    n = 0

    async def answer(request):
        nonlocal n
        n += 1
        if n <= 5:
            raise ChatError("HTTP 429: slow down", "limited", retry_after=2.0)
        await asyncio.sleep(0.3)
        return ChatReply("[[A]]", limits=RateLimits(Allowance(1000, 990, 60)))

    run, seconds = judge_in_virtual_time(tmp_path, answer, plan_of(20))
    assert run.statuses == {"ok": 80}
    assert seconds <= 5 * 2 * 1.1 + 6 * 0.3 + 0.5


def test_a_limit_without_an_end_is_waited_for_as_long_as_is_said(tmp_path):
    async def answer(request):
        raise ChatError("HTTP 429: slow down", "limited", retry_after=50.0)

    with pytest.raises(EndpointError) as error:
        judge_in_virtual_time(tmp_path, answer, limits=Limits(4, max_wait=600.0))
    assert str(error.value).startswith("judge sim: asks for a wait of ")
    assert "max_wait (10 minutes)" in str(error.value)
    with refused("max_wait", got=0, expected="a number above 0"):
        Limits(max_wait=0)


@pytest.mark.parametrize(("retry_after", "max_wait"), [(0.1, 300.0), (None, 6000.0)])
def test_thousands_of_refusals_in_a_row_end_as_a_limit(tmp_path, retry_after, max_wait):
    n = 0

    async def answer(request):
        nonlocal n
        n += 1
        raise ChatError("HTTP 429: slow down", "limited", retry_after=retry_after)

    with pytest.raises(EndpointError, match=rf"max_wait \({max_wait / 60:g} minutes"):
        judge_in_virtual_time(tmp_path, answer, limits=Limits(4, max_wait=max_wait))
    assert n > 2000
