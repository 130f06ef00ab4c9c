"""What `judge` says: no part of a key, a line of progress within the terminal, hints that help."""

import json
import time

import pytest

from batch_server import BatchServer
from commands import on_terminal, plain
from judge_endpoints import completion, error
from judging import config, pairs_of, statuses_of

KEY = "AIzaSECRETofTHEtests-0123456789-3456"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with 10 pairs, and a key."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    pairs_of(10).frame.write_ndjson("pairs.jsonl")
    return tmp_path


def options(url, *more):
    return ["judge", "pairs.jsonl", "--model", "m", "--base-url", url, "-n", "2", *more]


@pytest.mark.parametrize("protocol", ["openai", "anthropic", "google"])
@pytest.mark.parametrize(
    "echo",
    ["AIzaSECR...3456", "AIza****3456", "****************3456", "...3456", "AIzaSECRETof", KEY,
     "AIza…3456", "'AIzaSEC***'"],
)  # fmt: skip
def test_no_part_of_a_key_that_is_echoed_is_shown(cli, folder, endpoint, protocol, echo):
    server = endpoint(lambda _: (400, error(f"the key {echo} is not for this. See x...y")))
    url = server.url if protocol == "openai" else server.url.removesuffix("/v1")
    status, out, err = cli(*options(url, "--model", f"{protocol}:m"))
    assert status == 2
    assert "AIza" not in out + err
    assert "3456" not in out + err
    assert "[key]" in err
    assert "is not for this. See x...y" in err


@pytest.mark.parametrize("columns", [40, 80])
def test_the_line_of_progress_has_room_on_the_terminal(folder, endpoint, columns):
    n_asked, limited = 0, "Rate limit reached for m on tokens per min. " * 5

    def answer(asked):
        nonlocal n_asked
        n_asked += 1
        if n_asked == 5:
            return 429, error(limited), {"retry-after": "3"}
        return 200, completion()

    server = endpoint(answer)
    printed = on_terminal(*options(server.url, "-c", "1"), columns=columns, streams=["stderr"])
    lines = [plain(line) for line in printed.replace("\n", "\r").split("\r")]
    assert any("waiting" in line for line in lines)
    assert max(len(line) for line in lines if " votes, " in line) < columns


def test_a_format_of_answers_that_is_refused_with_a_500_falls_back(cli, folder, endpoint):
    def answer(asked):
        kind = asked.get("response_format", {}).get("type")
        if kind == "json_schema":
            said = "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type')}]"
            return 500, error(said, type="internal_server_error")
        return 200, completion('{"verdict": "A"}')

    server = endpoint(answer)
    status, _, err = cli(*options(server.url, *config(structured=True)))
    assert status == 0, err
    kinds = [asked["response_format"]["type"] for asked in server.requests]
    assert (kinds.count("json_schema"), kinds.count("json_object")) == (1, 20)


def test_a_stream_that_still_sends_is_cut_at_the_time_out_of_a_call(cli, folder, endpoint):
    def parts():
        for _ in range(100):
            chunk = {"choices": [{"index": 0, "delta": {"content": "well "}}]}
            yield f"data: {json.dumps({'id': '1', 'model': 'm', **chunk})}\n\n".encode()
            time.sleep(0.1)

    server = endpoint(lambda _: (200, parts(), {"content-type": "text/event-stream"}))
    began = time.monotonic()
    status, _, err = cli(*options(server.url, *config(stream=True, timeout=1)))
    assert time.monotonic() - began < 40
    assert status == 2
    assert "no complete answer within 1 s" in err


def test_prices_that_are_given_are_not_asked_for(cli, folder, endpoint):
    server = endpoint(lambda _: (200, completion()))
    _, _, without = cli(*options(server.url, "--dry-run"))
    _, _, err = cli(
        *options(server.url, "--dry-run", *config(prices={"prompt": 1, "completion": 2}))
    )
    assert "prices" in without
    assert "prices" not in err
    assert "max_answer_tokens" in err  # which is what is missing


@pytest.mark.parametrize("structured", [False, True])
def test_structured_answers_are_advised_where_they_are_not_asked_for(
    cli, folder, endpoint, structured
):
    server = endpoint(lambda _: (200, completion("I would rather not say.")))
    status, _, err = cli(*options(server.url, "-n", "10", *config(structured=structured)))
    assert status == 3
    assert ("structured answers" in err) == (not structured)
    assert "no verdict" in err or "no answer" in err or "reason" in err


def test_why_answers_of_a_batch_hold_no_vote_is_said(cli, folder):
    server = BatchServer(answer=lambda _: (200, completion("I would rather not say.")))
    try:
        status, _, err = cli(*options(server.url, "--batch", "-s", "v.db"))
    finally:
        server.stop()
    assert status == 3
    assert statuses_of(folder / "v.db") == {"unparsed": 20}
    assert "20 samples are without a vote, most often for this reason: " in err
