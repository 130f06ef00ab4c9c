"""What `judge` says: no part of a key, a line of progress within the terminal, hints that help."""

import asyncio
import json
import time

import pytest

from btdagg import InputError
from btdagg.judge import FunctionClient, judge
from commands import on_terminal, plain
from judge_endpoints import completion, error
from judging import asked_of, config, pairs_of

KEY = "AIzaSECRETofTHEtests-0123456789-3456"
TOKEN = "token-of-the-gateway-0123456789"


@pytest.fixture
def folder(folder, monkeypatch):
    """A folder to work in, with 10 pairs, and a key."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("GATEWAY_TOKEN", TOKEN)
    pairs_of(10).frame.write_ndjson("pairs.jsonl")
    return folder


@pytest.mark.parametrize(
    ("protocol", "echo"),
    [
        ("openai", "AIzaSECR...3456 AIza****3456"),
        ("anthropic", "****************3456 ...3456 AIzaSECRETof"),
        ("google", f"{KEY} AIza…3456 'AIzaSEC***'"),
    ],
)
def test_no_part_of_a_key_that_is_echoed_is_shown(cli, folder, endpoint, protocol, echo):
    server = endpoint(lambda _: (400, error(f"the key {echo} is not for this. See x...y")))
    url = server.url if protocol == "openai" else server.url.removesuffix("/v1")
    status, out, err = cli(*asked_of(url, "-n", "2", "--model", f"{protocol}:m"))
    assert status == 2
    assert "AIza" not in out + err
    assert "3456" not in out + err
    assert "[key]" in err
    assert "is not for this. See x...y" in err


@pytest.mark.soak
def test_the_line_of_progress_has_room_on_the_terminal(folder, endpoint):
    n_asked, columns, limited = 0, 40, "Rate limit reached for m on tokens per min. " * 5

    def answer(asked):
        nonlocal n_asked
        n_asked += 1
        if n_asked == 5:
            return 429, error(limited), {"retry-after": "3"}
        return 200, completion()

    server = endpoint(answer)
    printed = on_terminal(
        *asked_of(server.url, "-n", "2", *config(concurrency=1)),
        columns=columns,
        streams=["stderr"],
    )
    lines = [plain(line) for line in printed.replace("\n", "\r").split("\r")]
    assert any("waiting" in line for line in lines)
    assert max(len(line) for line in lines if " votes " in line) < columns


def test_a_stream_that_still_sends_is_cut_at_the_time_out_of_a_call(cli, folder, endpoint):
    def parts():
        for _ in range(100):
            chunk = {"choices": [{"index": 0, "delta": {"content": "well "}}]}
            yield f"data: {json.dumps({'id': '1', 'model': 'm', **chunk})}\n\n".encode()
            time.sleep(0.1)

    server = endpoint(lambda _: (200, parts(), {"content-type": "text/event-stream"}))
    began = time.monotonic()
    status, _, err = cli(*asked_of(server.url, "-n", "2", *config(stream=True, timeout=0.5)))
    assert time.monotonic() - began < 40
    assert status == 2
    assert "no complete answer within 0.5 s" in err


# Headers for gateways, and a key by argument: sent, and neither stored nor shown


def holds(folder, secret):
    files = [file for file in folder.rglob("*") if file.is_file()]
    return any(secret.encode() in file.read_bytes() for file in files)


def test_headers_are_sent_and_kept_nowhere(cli, folder, endpoint):
    server = endpoint(lambda _: (200, completion()))
    status, out, err = cli(
        *asked_of(
            server.url, "-n", "2", *config(headers={"X-Gateway": "$GATEWAY_TOKEN", "X-Team": "a=b"})
        )
    )
    assert status == 0, err
    assert {sent["x-gateway"] for sent in server.headers} == {TOKEN}
    assert {sent["x-team"] for sent in server.headers} == {"a=b"}
    assert TOKEN not in out + err
    assert not holds(folder, TOKEN)


def test_what_is_no_header_is_refused_without_a_word_of_it(cli, folder):
    headers = config(headers={"X": "$" + TOKEN})
    status, out, err = cli(*asked_of("http://127.0.0.1:9/v1", "-n", "2", *headers))
    assert status == 2
    assert "header" in err
    assert TOKEN not in out + err


def test_a_key_by_argument_goes_before_that_of_the_environment(folder, endpoint):
    server = endpoint(lambda _: (200, completion()))
    asking = {"store": "v.db", "model": "m", "n": 2}
    run = asyncio.run(
        judge(pairs_of(3), base_url=server.url, api_key=TOKEN, headers={"X-Team": "blue"}, **asking)
    )
    assert run.statuses == {"ok": 6}
    assert {sent["authorization"] for sent in server.headers} == {f"Bearer {TOKEN}"}
    assert {sent["x-team"] for sent in server.headers} == {"blue"}
    assert not holds(folder, TOKEN)
    with pytest.raises(InputError, match="client was given"):
        asyncio.run(
            judge(pairs_of(3), client=FunctionClient(lambda _: ""), api_key=TOKEN, **asking)
        )
