"""The simulated judge server: it must be a fair opponent before anything is tested against it."""

import http.client
import json
import urllib.error
import urllib.request
from collections import Counter

import pytest

PROMPT = """Answer [[A]], [[B]] or [[TIE]].
<response_a>
{}
</response_a>
<response_b>
{}
</response_b>"""
RIGHT, WRONG = "12 + 3 = 15\n4 + 4 = 8", "12 + 3 = 16\n4 + 4 = 9"


def ask(server, first=RIGHT, second=WRONG, *, key=None, prompt=PROMPT, path="", **fields):
    """Status, headers and body of one request."""
    messages = [{"role": "user", "content": prompt.format(first, second)}]
    body = json.dumps({"model": "m", "temperature": 0.5, "messages": messages, **fields})
    headers = {"Content-Type": "application/json"} | ({"Authorization": key} if key else {})
    url = server.url + (path or "/chat/completions")
    request = urllib.request.Request(url, body.encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def choices(answer):
    status, _, body = answer
    assert status == 200
    return json.loads(body)["choices"]


def verdict(choice):
    return choice["message"]["content"].rpartition("[[")[2].removesuffix("]]")


def test_it_speaks_the_protocol(judge_server):
    server = judge_server()
    status, headers, body = ask(server, logprobs=True)
    completion = json.loads(body)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert completion["object"] == "chat.completion"
    (choice,) = completion["choices"]
    assert choice["finish_reason"] == "stop"
    text = choice["message"]["content"]
    assert verdict(choice) in ("A", "B", "TIE")
    assert choice["message"]["reasoning_content"]
    assert "".join(token["token"] for token in choice["logprobs"]["content"]) == text
    assert all(token["logprob"] < 0 for token in choice["logprobs"]["content"])
    usage = completion["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 0 < usage["completion_tokens_details"]["reasoning_tokens"] < usage["completion_tokens"]


def test_it_reads_the_responses_and_prefers_the_first(judge_server):
    server = judge_server("--positional-bias", 0.8)
    seen = {order: Counter() for order in ("AB", "BA")}
    for order, texts in (("AB", (RIGHT, WRONG)), ("BA", (WRONG, RIGHT))):
        for _ in range(60):
            seen[order][verdict(choices(ask(server, *texts))[0])] += 1
    assert seen["AB"]["A"] > 50  # right and first
    assert seen["BA"]["B"] > seen["BA"]["A"]  # right, though second
    assert seen["BA"]["B"] < seen["AB"]["A"]
    shown = Counter((line["first"], line["second"]) for line in server.log())
    assert shown == {(RIGHT, WRONG): 60, (WRONG, RIGHT): 60}


def test_a_stream_says_the_same(judge_server):
    whole = choices(ask(judge_server()))[0]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    status, headers, body = ask(judge_server(), **options)
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    lines = [line.removeprefix("data: ") for line in body.decode().split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    events = [json.loads(line) for line in lines]
    assert events.pop()["usage"]["total_tokens"] > 0
    deltas = [event["choices"][0]["delta"] for event in events]
    for name in ("content", "reasoning_content"):
        said = "".join(delta.get(name) or "" for delta in deltas)
        assert said == whole["message"][name]
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


def test_keys_are_checked_and_not_logged(judge_server):
    server = judge_server("--api-key", "sk-right")
    assert ask(server, key="Bearer sk-right")[0] == 200
    status, _, body = ask(server, key="Bearer sk-wrong")
    assert status == 401
    assert "sk-wrong" in json.loads(body)["error"]["message"]
    assert "sk-" not in server.path.read_text()
    assert len({line["key"] for line in server.log()}) == 2


def fault(judge_server, name, *options):
    return judge_server("--faults", f"{name}=1", *options)


def test_too_many_requests(judge_server):
    server = fault(judge_server, "429", "--retry-after", 1.5)
    status, headers, body = ask(server)
    assert (status, headers["retry-after"]) == (429, "1.5")
    assert json.loads(body)["error"]["code"] == "rate_limit_exceeded"
    _, headers, _ = ask(fault(judge_server, "429", "--retry-after-date"))
    assert headers["retry-after"].endswith(" GMT")


def test_a_reset_in_the_middle_of_the_body(judge_server):
    server = fault(judge_server, "reset")
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        ask(server)


@pytest.mark.parametrize(
    ("name", "finish"),
    [("empty", "stop"), ("truncated", "length"), ("refusal", "stop"), ("unparsed", "stop")],
)
def test_answers_without_a_verdict(judge_server, name, finish):
    server = fault(judge_server, name)
    (choice,) = choices(ask(server))
    assert choice["finish_reason"] == finish
    assert "]]" not in choice["message"]["content"]
    (line,) = server.log()
    assert (line["outcome"], line["decisions"]) == (name, [])
