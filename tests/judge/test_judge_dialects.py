"""What clients do with requests and replies, each behind a mock transport of its library."""

import asyncio
import gzip
import tracemalloc
import warnings
from dataclasses import replace

import httpx2
import pytest

from btdagg import InputError
from btdagg.judge import ChatError, ChatRequest, parse_verdict
from commands import one_line
from judge_dialects import DIALECTS, KEY, Answer, Fault
from judging import pairs_of, rows_of
from refusals import refused

MESSAGES = (
    {"role": "system", "content": "You compare."},
    {"role": "user", "content": "Which? [[A]] [[B]] [[TIE]]"},
)
REQUEST = ChatRequest(MESSAGES, "m")

pytestmark = pytest.mark.usefixtures("keys")

NATIVE = [dialect for dialect in DIALECTS if dialect.name != "openai"]
anthropic, gemini = NATIVE


def complete(client, request=REQUEST):
    async def main():
        try:
            return await client.complete(request)
        finally:
            await client.close()

    return asyncio.run(main())


def fault(client, request=REQUEST):
    with pytest.raises(ChatError) as caught:
        complete(client, request)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert KEY not in str(caught.value)
    assert len(client.asked) <= 1  # whose repeats are not the library's
    return caught.value


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_kept_apart_and_usage_is_that_of_all(dialect, stream):
    said = Answer("So: [[B]]", thought="B is stiff.", completion=50, reasoning=40, cached=8)
    client = dialect.client(lambda _: said, stream=stream)
    reply = complete(client)
    read = reply.text, reply.reasoning, reply.finish_reason
    assert read == ("So: [[B]]", "B is stiff.", "stop")
    usage = reply.usage
    assert (usage.prompt, usage.completion, usage.reasoning, usage.cached) == (10, 50, 40, 8)
    assert reply.model == "m"
    assert reply.latency > 0
    (asked,) = client.asked
    assert asked.text == MESSAGES[-1]["content"]
    assert KEY in " ".join(asked.headers.values())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("finish", "status"), [("length", "truncated"), ("refused", "refused"), ("blocked", "refused")]
)
def test_what_ends_early_is_no_vote(dialect, finish, status, stream):
    reply = complete(dialect.client(lambda _: Answer("[[A]]", finish), stream=stream))
    assert parse_verdict(reply.text, finish_reason=reply.finish_reason).status == status
    if finish == "refused" and dialect in NATIVE:
        words = {anthropic: "cyber: It could harm.", gemini: "refused by the model (SAFETY)"}
        assert reply.text == words[dialect]
    assert reply.usage.prompt == 10


@pytest.mark.parametrize(
    ("said", "words", "kind", "retry_after"),
    [
        (Fault(401, "wrong", "wrong_key"), "refuses the key in {} (HTTP 401)", "fatal", None),
        (Fault(403, "no"), "HTTP 403: no", "forbidden", None),
        (Fault(404, "no m"), "has no such path or no model 'm' (HTTP 404): no m", "fatal", None),
        (Fault(400, "too long"), "HTTP 400: too long", "rejected", None),
        (Fault(429, "slow", retry_after=1.5), "HTTP 429: slow", "limited", 1.5),
        (Fault(429, "slow"), "HTTP 429: slow", "limited", None),
        (Fault(500, "ache"), "HTTP 500: ache", "transient", None),
        (Fault(529, "overloaded"), "HTTP 529: overloaded", "limited", None),
    ],
)  # fmt: skip
def test_what_a_fault_means(dialect, said, words, kind, retry_after):
    found = fault(dialect.client(lambda _: said, stream=kind == "limited"))
    expected = (words.format(dialect.variable), kind, retry_after)
    assert (str(found), found.kind, found.retry_after) == expected
    assert not found.may_cost


@pytest.mark.parametrize("dialect", DIALECTS[:2], ids=repr)
def test_a_filter_that_answers_with_an_error_refuses(dialect):
    reply = complete(dialect.client(lambda _: Fault(400, "The filter.", "filter")))
    assert reply.finish_reason == "refusal"
    assert reply.text.startswith("HTTP 400: ")


@pytest.mark.parametrize(
    ("said", "words", "kind"),
    [
        (httpx2.ReadTimeout("slow"), "time-out", "transient"),
        (httpx2.ReadError("broke off"), "no connection: broke off", "transient"),
        (httpx2.Response(200, text="{"), "the reply is not a chat completion", "protocol"),
        (httpx2.Response(200, html="<p>"), "the reply is not a chat completion", "protocol"),
        (httpx2.Response(200, json={"x": 1}), "the reply ", "protocol"),
        (httpx2.Response(200, json=[]), "the reply ", "protocol"),
        (httpx2.Response(502, html="<p>Bad gateway"), "HTTP 502", "transient"),
        (
            httpx2.Response(308, headers={"location": "https://judge.test/v1/more?key=x"}),
            "redirects to https://judge.test/v1/more; redirects are not followed",
            "fatal",
        ),
    ],
)
def test_what_is_no_reply(dialect, said, words, kind):
    found = fault(dialect.client(lambda _: said))
    assert str(found).startswith(words)
    assert found.kind == kind
    assert found.may_cost == (kind == "protocol" or words[:4] in ("time", "no c"))


def test_a_stream_that_breaks_off_is_no_answer(dialect):
    def answer(_):
        last = {gemini: -1, anthropic: -2}.get(dialect, 1)
        return dialect.streamed(list(dialect.events(Answer("[[A]]")))[:last])

    found = fault(dialect.client(answer, stream=True))
    assert str(found) == "the stream broke off"
    assert found.may_cost


def test_of_a_compressed_reply_what_it_unpacks_to_is_limited(dialect):
    body = gzip.compress(b" " * 200_000_000)
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    reply = httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(body))
    client = dialect.client(lambda _: reply)
    tracemalloc.start()
    read = complete(client)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (read.text, read.finish_reason) == ("", "too_long")
    assert peak < 60_000_000


def test_a_compressed_reply_is_read(dialect):
    def answer(question):
        plain = httpx2.Response(200, json=dialect.reply(Answer("[[B]]")))
        headers = {"content-encoding": "gzip", "content-type": "application/json"}
        return httpx2.Response(
            200, headers=headers, stream=httpx2.ByteStream(gzip.compress(plain.content))
        )

    assert complete(dialect.client(answer)).text == "[[B]]"


def test_of_a_reply_without_an_end_a_part_is_read(dialect):
    async def body():
        for _ in range(200):
            yield b" " * 65536

    reply = complete(dialect.client(lambda _: httpx2.Response(200, content=body())))
    assert (reply.text, reply.finish_reason) == ("", "too_long")


def test_keys_and_addresses(dialect, monkeypatch):
    whole = "http://h/v1/chat/completions"
    for bad in ("judge.test", "ftp://h", "http://", "http://h:port", whole):
        with refused("base_url", expected="one such as http"):
            dialect.client_of(bad)
    assert dialect.client_of("http://user:pw@judge.test").name.startswith("http://judge.test")
    monkeypatch.setenv("HTTP_PROXY", "http://:bad:port")
    with pytest.raises(InputError, match="HTTP_PROXY"):
        dialect.client_of("http://judge.test")
    monkeypatch.delenv("HTTP_PROXY")
    monkeypatch.setenv(dialect.variable, "a\nb")
    with pytest.raises(InputError, match="characters that an API key cannot have"):
        dialect.client_of()
    monkeypatch.delenv(dialect.variable)
    with pytest.raises(
        InputError, match=f"variable {dialect.variable} is not set, expected an API"
    ):
        dialect.client_of()


@pytest.mark.parametrize(
    ("dialect", "setting", "words"),
    [
        (anthropic, {"seed": 7}, "anthropic does not pass request_seed on to m; leave it out"),
        (anthropic, {"logprobs": True}, 'anthropic does not pass confidence="logprobs" on to m'),
        (gemini, {"extra": {"extra": 1}}, "google does not pass extra on to m"),
        (
            anthropic,
            {"model": "claude-opus-4-8", "temperature": 0.5},  # which takes none
            "anthropic does not pass temperature on to claude-opus-4-8",
        ),
    ],
    ids=repr,
)
def test_a_setting_that_does_not_reach_the_model_is_said_before_anything_is_sent(
    dialect, setting, words
):
    client = dialect.client(lambda _: Answer())
    found = fault(client, replace(REQUEST, **setting))
    assert str(found).startswith(words)
    assert (found.kind, client.asked) == ("fatal", [])


SCHEMA = {"type": "object", "properties": {"verdict": {"type": "string"}}}
EVERYTHING = ChatRequest(
    (MESSAGES[0], {"role": "user", "content": "1?"}, {"role": "assistant", "content": "[[A]]"},
     MESSAGES[1]),
    "m",
    temperature=0.5,
    max_tokens=4000,
    reasoning_effort="low",
    response_format={"type": "json_schema", "json_schema": {"name": "v", "schema": SCHEMA}},
    extra={"extra": 1},
)  # fmt: skip


def test_requests_that_overlap_leave_warnings_as_they_were():
    """The first to begin is the first to end."""

    async def main():
        both, first = asyncio.Event(), asyncio.Event()
        n_asked = 0

        async def handle(_):
            nonlocal n_asked
            n_asked += 1
            if n_asked == 1:
                await both.wait()
            else:
                both.set()
                await first.wait()
            message = {"role": "assistant", "content": "[[A]]"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return httpx2.Response(200, json={"id": "1", "model": "m", "choices": [choice]})

        client = DIALECTS[0].client_of("http://x/v1", transport=httpx2.MockTransport(handle))
        calls = [asyncio.create_task(client.complete(REQUEST)) for _ in range(2)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        first.set()
        await asyncio.gather(*calls)
        await client.close()

    module = r"(pydantic_ai|google\.genai)\."
    warnings.filterwarnings("ignore", category=UserWarning, module=module)
    before = list(warnings.filters)
    asyncio.run(main())
    assert warnings.filters == before


def test_what_anthropic_is_sent():
    client = anthropic.client(lambda _: Answer())
    complete(client, replace(EVERYTHING, temperature=1.0))
    (asked,) = client.asked
    cached = {"cache_control": {"type": "ephemeral", "ttl": "5m"}}
    assert {name: value for name, value in asked.body.items() if value not in (False, None)} == {
        "model": "m",
        "system": [{"type": "text", "text": "You compare.", **cached}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "1?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "[[A]]"}]},
            {"role": "user", "content": [{"type": "text", "text": MESSAGES[1]["content"]}]},
        ],
        "max_tokens": 4000,
        "temperature": 1.0,
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        "extra": 1,
    }
    # The version of the API after it takes no temperature.
    assert asked.headers["anthropic-version"] == "2023-06-01"
    client = anthropic.client(lambda _: Answer())
    complete(client, REQUEST)
    assert client.asked[0].body["max_tokens"] == 16384


@pytest.mark.parametrize(
    ("said", "words", "kind"),
    [
        ('{"error": {"type": "overloaded_error", "message": "Busy"}}', "Busy", "limited"),
        ('{"error": {"type": "api_error", "message": "Ache"}}', "Ache", "transient"),
        ("upstream is overloaded", "upstream is overloaded", "transient"),
        ("", "Error code: 200", "transient"),
    ],
)
def test_an_error_within_a_stream_need_not_be_in_anthropic_s_form(said, words, kind):
    def answer(_):
        begun = anthropic.streamed(list(anthropic.events(Answer("[[A]]")))[:3])
        text = f"{begun.text}event: error\ndata: {said}\n\n"
        return httpx2.Response(200, text=text, headers=begun.headers)

    found = fault(anthropic.client(answer, stream=True))
    assert (str(found), found.kind) == (f"error within the stream: {words}", kind)
    assert found.may_cost


@pytest.mark.parametrize(
    "added",
    ["retry: 3000\n\n", "id: 1\n\n\n\n", "id: 1\n\n: keep-alive\n\n", "data: [DONE]\n\n"],
    ids=repr,
)
def test_events_without_words_may_be_anywhere_in_a_stream_of_anthropic(added):
    def answer(_):
        whole = anthropic.streamed(list(anthropic.events(Answer("Not so bad: [[A]]"))))
        text = added + whole.text.replace("\n\n", f"\n\n{added}")
        return httpx2.Response(200, text=text, headers=whole.headers)

    reply = complete(anthropic.client(answer, stream=True))
    assert (reply.text, reply.finish_reason) == ("Not so bad: [[A]]", "stop")


def test_where_anthropic_refuses_a_schema_the_words_have_to_do():
    def answer(asked):
        if "output_config" in asked.body:
            return Fault(400, "output_config.format: this model has no structured outputs")
        return Answer()

    client = anthropic.client(answer)
    asked = ChatRequest(MESSAGES, "m", response_format=EVERYTHING.response_format)
    assert complete(client, asked).text == "[[A]]"
    assert len(client.asked) == 2


def test_what_gemini_is_sent():
    client = gemini.client(lambda _: Answer())
    complete(client, replace(EVERYTHING, extra={}, seed=7))
    (asked,) = client.asked
    # The library writes these as the API's protocol buffers have them, which it reads as well.
    thinking = asked.body["generationConfig"].pop("thinkingConfig")
    assert {name.replace("_", "").lower(): value for name, value in thinking.items()} == {
        "includethoughts": True,
        "thinkinglevel": "LOW",
    }
    assert asked.body == {
        "systemInstruction": {"parts": [{"text": "You compare."}], "role": "user"},
        "contents": [
            {"role": "user", "parts": [{"text": "1?"}]},
            {"role": "model", "parts": [{"text": "[[A]]"}]},
            {"role": "user", "parts": [{"text": MESSAGES[1]["content"]}]},
        ],
        "generationConfig": {
            "temperature": 0.5,
            "maxOutputTokens": 4000,
            "seed": 7,
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
            "responseModalities": ["TEXT"],
        },
    }


def test_gemini_gives_log_probabilities():
    def answer(asked):
        assert asked.body["generationConfig"]["responseLogprobs"] is True
        assert asked.body["generationConfig"]["logprobs"] == 5
        (one,) = gemini.reply(Answer("[[A]]"))["candidates"]
        chosen = [{"token": "A", "tokenId": 1, "logProbability": -0.5}]
        top = [{"candidates": [*chosen, {"token": "B", "tokenId": 2, "logProbability": -1.5}]}]
        one["logprobsResult"] = {"chosenCandidates": chosen, "topCandidates": top}
        return httpx2.Response(200, json={"candidates": [one]})

    reply = complete(gemini.client(answer), ChatRequest(MESSAGES, "m", logprobs=True))
    assert reply.token_logprobs == (-0.5,)
    assert reply.tokens == (("A", -0.5, {"A": -0.5, "B": -1.5}),)


def test_the_command_asks_by_each_protocol(cli, dialect, endpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server = endpoint(lambda _: (200, dialect.reply(Answer("[[B]]"))))
    url = server.url if dialect.name == "openai" else server.url.removesuffix("/v1")
    pairs_of(3).frame.write_ndjson("pairs.jsonl")
    command = ["judge", "pairs.jsonl", "-m", f"{dialect.name}:m", "-n", "2", "-s", "v.db"]
    status, out, err = cli(*command, "--set", f"judge.base_url={url}")
    assert status == 0, err
    assert "6 new votes" in out
    assert sorted(row["vote"] for row in rows_of("v.db")) == [-1] * 3 + [1] * 3
    assert len(server.requests) == 6
    # Another provider is another address, or the same that has to be said to be.
    monkeypatch.delenv(dialect.variable)
    line = one_line(*cli(*command))
    assert line == f"environment variable {dialect.variable} is not set, expected an API key"
