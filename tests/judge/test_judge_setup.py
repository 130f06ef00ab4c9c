"""Mistakes in setting a judge up, each one line with its remedy; and what endpoints are sent."""

import json
import re
import shutil
import ssl
import subprocess

import pytest

from commands import one_line
from judge_endpoints import completion, error
from judging import config, pairs_of, rows_of


@pytest.fixture
def folder(folder):
    """A folder to work in, with 20 pairs."""
    pairs_of(20).frame.write_ndjson("pairs.jsonl")
    return folder


def judge(cli, url, *options, model="m"):
    arguments = [
        "pairs.jsonl",
        "--model",
        model,
        "--set",
        f"judge.base_url={url}",
        "-n",
        "2",
        "-s",
        "v.db",
    ]
    return cli("judge", *arguments, *options)


def plainly(cli, url, model="m", **keys):
    """Judge without a temperature."""
    return judge(cli, url, *config(temperature="default", **keys), model=model)


def of_model_m(asked):
    if asked["model"] != "m":
        return 404, error(f"no model {asked['model']}", code="model_not_found")
    for name in ("temperature", "response_format"):
        if name in asked:
            return 400, error(f"Unsupported parameter: '{name}'", param=name)
    return 200, completion(usage={"prompt_tokens": 10, "completion_tokens": 2})


@pytest.mark.parametrize(
    ("wrong", "said", "most"),
    [
        ({"model": "n"}, "has no such path or no model 'n' (HTTP 404)", 1),
        ({"temperature": 1}, "HTTP 400: Unsupported parameter: 'temperature'", 2),
        ({"path": 405}, "HTTP 405", 1),
        ({"path": 404}, "(HTTP 404); a base URL is one such as https://api.openai.com/v1", 1),
        ({"scheme": "https"}, "no connection: [SSL", 0),
    ],
    ids=["model", "parameter", "path", "no such path", "tls"],
)
def test_a_mistake_is_one_line_and_the_corrected_command_completes(
    cli, folder, endpoint, wrong, said, most
):
    server = endpoint(of_model_m)
    url = server.url
    if "path" in wrong:
        url = endpoint(lambda _: (wrong["path"], b"")).url
    if "scheme" in wrong:
        url = url.replace("http:", "https:")
    asking = judge if "temperature" in wrong else plainly
    line = one_line(*asking(cli, url, model=wrong.get("model", "m")))
    assert said in line
    assert len(server.requests) <= most
    assert rows_of("v.db") == []
    status, out, err = plainly(cli, server.url)
    assert status == 0, err
    assert "40 new votes" in out


def test_a_proxy_that_is_not_there(cli, folder, endpoint, monkeypatch):
    server = endpoint(of_model_m)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert "no connection: " in one_line(*plainly(cli, "http://judge.invalid/v1"))
    monkeypatch.delenv("HTTP_PROXY")
    assert plainly(cli, server.url)[0] == 0


def test_a_certificate_that_nobody_trusts(cli, folder, endpoint, monkeypatch):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", "key.pem", "-out", "certificate.pem"]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run([*command, *files, *subject], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("certificate.pem", "key.pem")
    server = endpoint(of_model_m, tls=context)
    assert "CERTIFICATE_VERIFY_FAILED" in one_line(*plainly(cli, server.url))
    assert server.requests == rows_of("v.db") == []
    monkeypatch.setenv("SSL_CERT_FILE", "certificate.pem")
    assert plainly(cli, server.url)[0] == 0


# What is sent


def test_options_are_sent_as_endpoints_want_them(cli, folder, endpoint):
    server = endpoint(lambda _: (200, completion()))
    options = config(
        request_seed=100, reasoning_effort="low", extra={"top_p": 0.9},
        system_role="user", n=2,
    )  # fmt: skip
    assert judge(cli, server.url, *options, "-n", "4")[0] == 0
    assert {asked["seed"] for asked in server.requests} == {100, 101}
    for asked in server.requests:
        assert (asked["top_p"], asked["reasoning_effort"]) == (0.9, "low")
        assert [message["role"] for message in asked["messages"]] == ["user"]
    developer = endpoint(lambda _: (200, completion()))
    assert judge(cli, developer.url, *config(system_role="developer", judge="d"))[0] == 0
    roles = {
        tuple(message["role"] for message in asked["messages"]) for asked in developer.requests
    }
    assert roles == {("developer", "user")}


def test_the_name_of_the_limit_and_structured_answers_fall_back(cli, folder, endpoint):
    def answer(asked):
        if "max_tokens" in asked:
            return 400, error("Use 'max_completion_tokens' instead of 'max_tokens'.")
        if asked.get("response_format", {}).get("type") == "json_schema":
            return 400, error("response_format json_schema is not supported")
        if "response_format" in asked:
            return 400, error("This model has no json_object mode")
        return 200, completion('{"verdict": "A"}')

    server = endpoint(answer)
    status, out, err = judge(cli, server.url, *config(structured=True, max_answer_tokens=50))
    assert status == 0, err
    assert "40 new votes" in out
    assert len(server.requests) == 43
    assert all(asked["max_completion_tokens"] == 50 for asked in server.requests[3:])


def test_what_is_used_is_counted_or_unknown(cli, folder, endpoint):
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.25}
    usage["prompt_tokens_details"] = {"cached_tokens": 8}
    server = endpoint(lambda _: (200, completion(usage=usage)))
    out = judge(cli, server.url)[1]
    assert "400 tokens sent (320 from its cache), 80 received, cost 10" in out
    silent = endpoint(lambda _: (200, completion()))
    _, out, err = judge(cli, silent.url, *config(judge="silent", confidence="logprobs"))
    assert "40 calls (0 repeated), tokens unknown" in out
    assert "returns no log-probabilities, so no vote of this run has a confidence" in err
    found = json.loads(judge(cli, silent.url, *config(judge="other"), "--json")[1])
    assert (found["prompt_tokens"], found["n_unknown_usage"]) == (None, 40)


def test_what_counts_towards_the_cap_is_said_where_replies_do_not_say_their_tokens(
    cli, folder, endpoint
):
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    replies = iter(range(100))
    paid = {"prices": {"prompt": 1.0, "completion": 1.0}, "max_answer_tokens": 100}
    silent = endpoint(lambda _: (200, completion()))
    out = judge(cli, silent.url, *config(judge="silent", max_cost=1.0, **paid))[1]
    counted = float(re.search(r"tokens unknown, cost about (\S+) \(0 by replies\)", out)[1])
    assert counted > 40 * 100e-6  # the longest answer that each may have had
    found = json.loads(judge(cli, silent.url, *config(judge="again", **paid), "--json")[1])
    assert found["cost"] is None
    assert found["charged_cost"] == pytest.approx(counted, rel=1e-3)
    some = endpoint(lambda _: (200, completion(usage=usage if next(replies) % 2 else None)))
    found = json.loads(judge(cli, some.url, *config(judge="some", **paid), "--json")[1])
    assert found["cost"] == pytest.approx(20 * 12e-6)
    assert found["charged_cost"] == pytest.approx(20 * 12e-6 + counted / 2, rel=1e-3)
    told = endpoint(lambda _: (200, completion(usage=usage)))
    assert ", cost 0.00048;" in judge(cli, told.url, *config(judge="told", **paid))[1]


def test_calls_with_the_same_prompt_come_after_the_first_of_each(cli, folder, endpoint):
    pairs_of(6).frame.write_ndjson("pairs.jsonl")
    server = endpoint(lambda _: (200, completion()))
    assert judge(cli, server.url, "-n", "6", *config(concurrency=1))[0] == 0
    prompts = [asked["messages"][-1]["content"] for asked in server.requests]
    assert len(set(prompts[:12])) == 12
    assert all(len(set(prompts[at : at + 2])) == 1 for at in range(12, 36, 2))
