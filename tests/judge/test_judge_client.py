"""Clients, faults and limits."""

import asyncio
import json
import threading

import pytest

from btdagg.judge import (
    BatchClient,
    ChatReply,
    ChatRequest,
    FunctionClient,
    ModelClient,
    Prices,
    Usage,
)
from btdagg.judge.client import split_thinking
from btdagg.judge.dialects import usage_of
from btdagg.judge.prices import cost_of
from judge_endpoints import completion

MESSAGES = ({"role": "user", "content": "Which? [[A]] [[B]] [[TIE]]"},)
REQUEST = ChatRequest(MESSAGES, "m", temperature=0.5)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests-0123456789")


def complete(url, request=REQUEST, **options):
    async def main():
        client = ModelClient("openai", url, **options)
        try:
            return await client.complete(request)
        finally:
            await client.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("field", "stream"),
    [("reasoning_content", True), ("reasoning", False), ("think", True), ("none", False)],
)
def test_thinking_is_kept_apart(judge_server, field, stream):
    server = judge_server("--reasoning", field)
    reply = complete(server.url, stream=stream)
    assert reply.text.endswith("]]")
    assert "think" not in reply.text
    assert ("Then B" in reply.reasoning) == (field != "none")
    assert reply.finish_reason == "stop"
    tokens = server.stats()["tokens"]
    assert (reply.usage.prompt, reply.usage.completion) == (tokens["prompt"], tokens["completion"])
    assert reply.usage.reasoning == tokens["reasoning"]
    assert reply.latency > 0
    assert reply.model == "m"
    assert server.log()[0]["stream"] == stream


def test_content_in_parts_keeps_its_reasoning(endpoint):
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "B is stiff."}]}
    parts = [thought, {"type": "text", "text": "So: "}, {"type": "text", "text": "[[A]]"}]
    reply = complete(endpoint(lambda _: (200, completion(parts))).url)
    assert (reply.text, reply.reasoning) == ("So: [[A]]", "B is stiff.")

    def events(_):
        for part in parts:
            chunk = {"id": "1", "choices": [{"index": 0, "delta": {"content": [part]}}]}
            yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
        end = {"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        yield b"data: " + json.dumps(end).encode() + b"\n\ndata: [DONE]\n\n"

    stream = endpoint(lambda asked: (200, events(asked), {"content-type": "text/event-stream"}))
    reply = complete(stream.url, stream=True)
    assert (reply.text, reply.reasoning) == ("So: [[A]]", "B is stiff.")


def test_thinking_within_an_answer():
    assert split_thinking("<think>\nhm\n</think>\n\nA") == ("A", "hm")
    assert split_thinking("hm</think>A") == ("A", "hm")
    assert split_thinking("<think>cut off") == ("", "cut off")
    assert split_thinking("I think </i>A") == ("I think </i>A", "")
    assert split_thinking("A, not <think>B</think>") == ("A, not <think>B</think>", "")


def test_functions_as_clients():
    async def slow(request):
        return "<think>hm</think>[[A]]"

    replies = [
        asyncio.run(FunctionClient(function).complete(REQUEST))
        for function in (slow, lambda _: "[[A]]", lambda _: ChatReply("[[A]]"), lambda r: slow(r))
    ]
    assert [reply.text for reply in replies] == ["[[A]]"] * 4
    assert replies[0].reasoning == "hm"


def test_a_function_has_a_thread_for_each_call():
    together = threading.Barrier(64)

    async def main():
        client = FunctionClient(lambda _: str(together.wait(timeout=10)))
        await asyncio.gather(*(client.complete(REQUEST) for _ in range(64)))
        await client.close()

    asyncio.run(main())


def test_a_call_that_timed_out_is_waited_for_and_not_made_again():
    may_end, asked = threading.Event(), []

    def answer(request):
        asked.append(request)
        may_end.wait(timeout=30)
        return "[[A]]"

    async def main():
        client = FunctionClient(answer)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.complete(REQUEST)
        may_end.set()
        replies = [await client.complete(request) for request in (REQUEST, REQUEST)]
        await client.close()
        return [reply.text for reply in replies]

    assert asyncio.run(main()) == ["[[A]]", "[[A]]"]
    assert len(asked) == 2  # the one that was late, and one after it


@pytest.mark.parametrize("client", [FunctionClient, BatchClient])
def test_a_function_that_raises_stop_iteration_does_not_hang(client):
    async def main():
        async with asyncio.timeout(10):
            await client(lambda _: next(iter(()))).complete(REQUEST)

    with pytest.raises(RuntimeError, match="the function raised StopIteration"):
        asyncio.run(main())


def test_tokens_by_whatever_name():
    assert usage_of({"prompt_tokens": None, "completion_tokens": 3}) == Usage(0, 3)
    more = {"reasoning_tokens": 2, "prompt_cache_hit_tokens": 1, "cost": 0}
    assert usage_of({"prompt_tokens": 5, **more}) == Usage(5, 0, 2, 1, 0.0)


def test_a_cost_that_the_endpoint_states_goes_first():
    prices = Prices(2.0, 10.0, cached=0.5)
    assert cost_of(Usage(1_000_000, 100_000, cached=400_000), prices) == pytest.approx(2.4)
    assert cost_of(Usage(10, 10, cost=0.25), prices) == 0.25
    known = Prices.of_model("anthropic:claude-sonnet-4-6")
    assert known.completion > known.prompt > known.cached > 0
    assert Prices.of_model("anthropic:no-such-model-there-is") is None
    assert Prices.of_model("ollama:qwen3") is None
