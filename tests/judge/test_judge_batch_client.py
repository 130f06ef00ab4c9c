"""Engines that answer many requests in one call."""

import asyncio
import time

from btdagg.judge import BatchClient, ChatError, ChatReply, ChatRequest, Judging, Limits, judge
from judging import pairs_of, rows_of


def run_on(place, client, n_items=50, **options):
    judging = Judging("m", n=4, limits=Limits(64), **options)
    return asyncio.run(judge(pairs_of(n_items), judging, store=place, client=client))


def test_calls_that_come_together_are_one(tmp_path):
    sizes = []

    def answer(requests):
        sizes.append(len(requests))
        return ["<think>hm</think>[[A]]"] * len(requests)

    # As patient as a slow machine needs.
    run = run_on(tmp_path / "v.db", BatchClient(answer, wait=0.5))
    assert run.statuses == {"ok": 200}
    assert sum(sizes) == 200
    assert sizes[0] == 1  # until the first has worked
    assert max(sizes) == 64
    assert len(sizes) < 15


def test_who_waits_for_a_client_that_is_closed_waits_no_longer():
    async def run():
        client = BatchClient(lambda requests: time.sleep(0.5) or [""] * len(requests), wait=0)
        calls = [asyncio.ensure_future(client.complete(ChatRequest((), "m"))) for _ in range(3)]
        await asyncio.sleep(0.1)
        calls.append(asyncio.ensure_future(client.complete(ChatRequest((), "m"))))
        await asyncio.sleep(0.1)
        await client.close()
        ended = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 20)
        # It may be asked anew.
        return ended, (await client.complete(ChatRequest((), "m"))).text

    ended, text = asyncio.run(run())
    assert all(isinstance(each, asyncio.CancelledError) for each in ended)
    assert text == ""


def test_whose_fault_it_is_is_found(tmp_path):
    def answer(requests):
        if any("7 + 7" in request.messages[-1]["content"] for request in requests):
            raise ValueError("The prompt is longer\nthan the context.")
        return [ChatReply("[[A]]") for _ in requests]

    place = tmp_path / "v.db"
    run = run_on(place, BatchClient(answer), 20)
    assert run.statuses == {"ok": 76, "failed": 4}
    failed = {row["item"]: row["reason"] for row in rows_of(place) if row["status"] == "failed"}
    assert failed == {"q7": "The prompt is longer than the context."}


def test_what_a_function_may_return(tmp_path):
    async def answer(requests):
        return [ChatError("busy") if len(requests) > 5 else "[[B]]" for _ in requests]

    async def too_few(requests):
        return []

    async def ask(function, n):
        client = BatchClient(function)
        asked = [client.complete(ChatRequest((), "m")) for _ in range(n)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        await client.close()
        return [str(each) if isinstance(each, Exception) else each.text for each in found]

    assert asyncio.run(ask(answer, 8)) == ["busy"] * 8
    assert asyncio.run(ask(answer, 5)) == ["[[B]]"] * 5
    assert asyncio.run(ask(too_few, 2)) == ["0 answers to 2 requests"] * 2
