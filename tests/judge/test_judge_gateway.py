"""Headers for gateways and a key by argument: sent, and neither stored nor shown."""

import asyncio

import pytest

from btdagg import InputError
from btdagg.judge import FunctionClient, judge
from judge_endpoints import completion, error
from judging import config, pairs_of

TOKEN = "token-of-the-gateway-0123456789"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "key-of-the-environment")
    monkeypatch.setenv("GATEWAY_TOKEN", TOKEN)
    pairs_of(3).frame.write_ndjson("pairs.jsonl")
    return tmp_path


def holds(folder, secret):
    files = [file for file in folder.rglob("*") if file.is_file()]
    return any(secret.encode() in file.read_bytes() for file in files)


def options(url, *more):
    return ["judge", "pairs.jsonl", "--model", "m", "--base-url", url, "-n", "2", *more]


def test_headers_are_sent_and_kept_nowhere(cli, folder, endpoint):
    server = endpoint(lambda _: (200, completion()))
    status, out, err = cli(
        *options(server.url, *config(headers={"X-Gateway": "$GATEWAY_TOKEN", "X-Team": "a=b"}))
    )
    assert status == 0, err
    assert {sent["x-gateway"] for sent in server.headers} == {TOKEN}
    assert {sent["x-team"] for sent in server.headers} == {"a=b"}
    assert TOKEN not in out + err
    assert not holds(folder, TOKEN)


@pytest.mark.parametrize("protocol", ["openai", "anthropic", "google"])
@pytest.mark.parametrize("echo", [TOKEN, "token-of...6789"])
def test_a_value_that_is_echoed_is_not_shown(cli, folder, endpoint, protocol, echo):
    server = endpoint(lambda _: (400, error(f"who is {echo}?")))
    url = server.url if protocol == "openai" else server.url.removesuffix("/v1")
    more = ("--model", f"{protocol}:m", *config(headers={"X-Gateway": "$GATEWAY_TOKEN"}))
    status, _, err = cli(*options(url, *more))
    assert status == 2
    assert server.headers[0]["x-gateway"] == TOKEN
    assert "who is [key]?" in err
    assert TOKEN not in err
    assert not holds(folder, TOKEN)


def test_headers_do_not_go_to_where_a_request_is_sent_on(cli, folder, endpoint):
    other = endpoint(lambda _: (200, completion()))
    to = other.url.replace("127.0.0.1", "localhost") + "/chat/completions"
    server = endpoint(lambda _: (307, b"", {"location": to}))
    assert cli(*options(server.url, *config(headers={"X-Gateway": "$GATEWAY_TOKEN"})))[0] == 0
    assert server.headers[0]["x-gateway"] == TOKEN
    assert not any("x-gateway" in sent for sent in other.headers)


@pytest.mark.parametrize("headers", [{"": TOKEN}, {"a b": TOKEN}, {"X": "$NO_TOKEN"}])
def test_what_is_no_header_is_refused_without_a_word_of_it(cli, folder, headers):
    status, out, err = cli(*options("http://127.0.0.1:9/v1", *config(headers=headers)))
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
    with pytest.raises(InputError, match="client is given"):
        asyncio.run(
            judge(pairs_of(3), client=FunctionClient(lambda _: ""), api_key=TOKEN, **asking)
        )
