"""Votes by batches: written, sent and collected, by processes that may die at any instant."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from batch_server import AnthropicServer, BatchServer, answer_b, message
from btdagg.judge import VoteStore
from btdagg.judge.batches import files, steps
from btdagg.judge.client import PROVIDERS
from commands import Fork, one_line
from judge_endpoints import completion, error
from judging import config, pairs_of, rows_of, statuses_of

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100}


@pytest.fixture
def server(folder, monkeypatch):
    """A server of batches, and a folder with ten pairs to work in."""
    monkeypatch.setattr(steps, "LOOK_AGAIN", (0.01, 0.02))
    monkeypatch.setattr(steps, "_ARRIVED_AFTER", 0.05)
    pairs_of(10).frame.write_ndjson("pairs.jsonl")
    made = BatchServer()
    monkeypatch.setenv("OPENAI_BASE_URL", made.url)
    yield made
    made.stop()


@pytest.fixture
def other(server, monkeypatch):
    """A server of Anthropic's batches, besides the other one."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-anthropic-0123456789")
    made = AnthropicServer()
    yield made
    made.stop()


def asking(server, *options, n=4):
    return [
        "pairs.jsonl",
        "-m",
        "m",
        "-n",
        str(n),
        "--set",
        f"judge.base_url={server.url}",
        *options,
    ]


def json_of(result, status=0):
    assert result[0] == status, result
    return json.loads(result[1])


def test_step_by_step(cli, server):
    written = json_of(cli("batch", "write", *asking(server), "--json"))
    (batch,) = written["batches"]
    assert (batch["n_requests"], batch["state"], written["n_wanted"]) == (40, "written", 40)
    lines = [json.loads(line) for line in Path(batch["file"]).read_text().splitlines()]
    assert len({line["custom_id"] for line in lines}) == len(lines) == 40
    assert lines[0]["body"]["model"] == "m"
    assert lines[0]["body"]["temperature"] == 0.5
    # They are claimed: nobody else writes or asks for them, not even a process of its own.
    again = json_of(cli("batch", "write", *asking(server), "--json"))
    assert (again["batches"], again["n_elsewhere"]) == ([], 40)
    run = json_of(cli("judge", *asking(server), "--json"), 3)
    assert (run["n_calls"], run["n_elsewhere"], run["is_done"]) == (0, 40, False)
    assert server.calls == []
    status, _, err = cli("batch", "collect")
    assert status == 3
    assert "batch 1 is not sent yet: btdagg batch send 1" in err
    assert cli("batch", "send") == (0, "batch 1: sent as batch_0\n", "")
    assert cli("batch", "send") == (0, "batch 1: sent before as batch_0\n", "")
    assert server.calls == ["upload", "create"]
    status, out, _ = cli("batch", "collect")
    assert (status, out) == (3, "batch 1: in_progress, 0 of 40 requests done\n")
    status, out, err = cli("batch", "collect")
    assert (status, err) == (0, "")
    assert out == "batch 1: completed, 40 ok; 40000 tokens sent, 4000 received\n"
    # Of the answer [[B]] half are for the one shown second with A first.
    assert sorted(row["vote"] for row in rows_of("votes.db")) == [-1] * 20 + [1] * 20
    assert {row["owner"] for row in rows_of("votes.db")} == {None}
    assert cli("batch", "collect") == (0, "no batch is running\n", "")
    assert cli("batch", "list") == (0, "no batch is running\n", "")
    # A larger n goes on, by calls or by batches.
    more = json_of(cli("batch", "write", *asking(server, n=6), "--json"))
    assert (more["n_requests"], more["stored"]) == (20, {"ok": 40})


def test_grades_by_batches(cli, server):
    items = pairs_of(10).frame.rename({"a": "response"}).drop("b")
    items.with_columns(criterion=pl.lit("x")).write_ndjson("items.jsonl")
    command = ["items.jsonl", *asking(server, "--set", "judge.template=pass-fail", n=3)[1:]]
    assert json_of(cli("batch", "write", *command, "--json"))["n_wanted"] == 30
    server.answer = lambda _: (200, completion("So it is.\n\n[[PASS]]"))
    assert cli("batch", "send")[0] == 0
    while cli("batch", "collect")[0] == 3:
        pass
    assert Counter((row["status"], row["grade"]) for row in rows_of("votes.db")) == {("ok", 1): 30}
    assert json_of(cli("judge", *command, "--json"))["n_calls"] == 0


def test_a_judge_that_waits_pays_half(cli, server):
    prices = {"prices": {"prompt": 2, "completion": 8}}
    dry = json_of(cli("judge", *asking(server, "--batch", "--dry-run", "--json"),
                      *config(**prices, max_answer_tokens=100)))  # fmt: skip
    run = json_of(cli("judge", *asking(server, "--batch", "--json"), *config(**prices)))
    assert (run["is_complete"], run["statuses"], run["n_calls"]) == (True, {"ok": 40}, 40)
    paid = 40 * (1000 * 2 + 100 * 8) / 1e6 / 2
    assert run["cost"] == pytest.approx(paid)
    assert sum(row["cost"] for row in rows_of("votes.db")) == pytest.approx(paid)
    assert dry["cost"] == pytest.approx((dry["prompt_tokens"] * 2 + 40 * 100 * 8) / 1e6 / 2)
    assert run["prompt_tokens"] == 40_000
    # It is as if it had been asked call by call: the same votes, and no more calls.
    assert json_of(cli("judge", *asking(server, "--json")))["n_calls"] == 0
    assert server.asked.total() == 40


@pytest.mark.soak
def test_a_pipeline_by_batches(cli, server, quick_commands):
    items = pl.read_ndjson("pairs.jsonl")["item"]
    labels = [(0, -1, 1)[k % 3] for k in range(10)]
    pl.DataFrame({"item": items, "label": labels}).head(6).write_csv("labels.csv")

    def answer(body):
        shown = body["messages"][-1]["content"].split("<response_")[1:]
        odd = [int(part.split("= ")[1].split(".")[0]) % 2 for part in shown]
        return 200, completion(("[[TIE]]", "[[A]]", "[[B]]")[odd[1] - odd[0]], usage=USAGE)

    server.answer = answer
    options = ["--labels", "labels.csv", "--batch", "--stop", "epsilon=0.2", "-o", "out", "--json"]
    found = json_of(cli("run", *asking(server, *options)))
    assert found["n_items"] == 10
    assert server.asked.total() == len(rows_of("out/votes.db"))
    assert len(server.batches) >= 2  # those with labels, then the others in rounds


def test_there_are_as_many_files_as_it_takes(cli, server, monkeypatch):
    def at_most(requests, size):
        monkeypatch.setattr(files, "MOST_REQUESTS", requests)
        monkeypatch.setattr(files, "MOST_BYTES", size)

    at_most(15, 10**8)
    written = json_of(cli("batch", "write", *asking(server), "--json"))
    assert [each["n_requests"] for each in written["batches"]] == [15, 15, 10]
    size = max(map(len, Path(written["batches"][0]["file"]).read_bytes().splitlines()))
    assert cli("batch", "cancel", 2)[:2] == (0, "batch 2: 15 votes can be requested again\n")
    at_most(50_000, 10 * size)
    written = json_of(cli("batch", "write", *asking(server), "--json"))
    assert sum(each["n_requests"] for each in written["batches"]) == 15
    for each in written["batches"]:
        assert Path(each["file"]).stat().st_size <= 10 * size
    assert cli("batch", "send")[0] == 0
    assert cli("batch", "collect", "--wait")[0] == 0
    assert statuses_of("votes.db") == {"ok": 40}
    assert server.asked.total() == 40


def test_a_cap_ends_a_file(cli, server):
    status, out, err = cli("batch", "write", *asking(server, *config(max_calls=7)))
    assert (status, out.split(",")[0]) == (3, "batch 1: 7 requests")
    assert "stopped early: 7 calls were made, which is max_calls" in err
    assert len(rows_of("votes.db")) == 7  # the others are anyone's


def test_what_came_without_an_answer_is_free_and_what_is_refused_is_marked(cli, server):
    def answer(body):
        text = body["messages"][-1]["content"]
        said = {
            "0 + 0": (400, error("too long", code="context_length_exceeded")),
            "1 + 1": "batch_expired",
            "2 + 2": (500, error("ache")),
            "3 + 3": (400, error("The filter.", code="content_filter")),
            "4 + 4": (200, {"nothing": 1}),
            "5 + 5": (200, completion("[[A]]", "length", USAGE)),
            "6 + 6": (429, error("slow")),
        }
        return next((told for sum_, told in said.items() if sum_ in text), answer_b(body))

    server.answer, server.status = answer, "expired"
    cli("batch", "write", *asking(server))
    cli("batch", "send")
    status, out, err = cli("batch", "collect", "--wait")
    assert (status, "expired, 12 ok, 4" in out) == (0, True)
    answered = {"ok": 12, "failed": 4, "refused": 4, "truncated": 4}
    assert {name: n for name, n in statuses_of("votes.db").items() if name} == answered
    freed = "16 samples got no answer and can be asked for again: "
    reasons = set(err.partition(freed)[2].strip().split("; "))
    assert len(reasons) == 3
    assert reasons < {
        "4 batch_expired",
        "4 HTTP 500: ache",
        "4 the reply is not a chat completion",
        "4 HTTP 429: slow",
    }
    failed = {row["reason"] for row in rows_of("votes.db") if row["status"] == "failed"}
    assert failed == {"HTTP 400: too long"}
    # The same command asks for what is free, and for that alone.
    server.answer = answer_b
    assert json_of(cli("batch", "write", *asking(server), "--json"))["n_requests"] == 16
    # Those that are marked come by judge.again.
    retried = json_of(cli("batch", "write", *asking(server, "--set", "judge.again=all"), "--json"))
    assert (retried["n_requests"], retried["n_elsewhere"]) == (12, 16)
    cli("batch", "send")
    cli("batch", "collect", "--wait")
    assert statuses_of("votes.db") == {"ok": 40}
    assert {row["attempts"] for row in rows_of("votes.db")} == {1, 2}


def test_a_judge_that_waits_asks_again_for_what_was_lost(cli, server):
    left = [5, 3]

    def answer(body):
        if left and left[0]:
            left[0] -= 1
            return "batch_expired"
        return answer_b(body)

    server.answer = answer
    run = json_of(cli("judge", *asking(server, "--batch", "--json")))
    assert (run["is_complete"], run["statuses"]) == (True, {"ok": 40})
    assert len(server.batches) == 2
    assert server.asked.total() == 45  # five were not answered


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (lambda _: (401, error("no")), "completed", "refuses the key"),
        (lambda _: (400, error("no temperature")), "completed", "HTTP 400: no temperature"),
        (answer_b, "failed", "batch 1 failed: token_limit: Enqueued too much."),
    ],
)
def test_where_nothing_works_nothing_is_marked(cli, server, answer, status, said):
    server.answer, server.status = answer, status
    exit_status, out, err = cli("judge", *asking(server, "--batch"))
    assert (exit_status, out) == (2, "")
    assert said in err.splitlines()[-1]  # progress may come before it on a slow machine
    assert rows_of("votes.db") == []
    server.answer, server.status = answer_b, "completed"
    assert json_of(cli("judge", *asking(server, "--batch", "--json")))["is_complete"]


def test_what_is_left_and_refused_is_marked_where_others_were_answered(cli, server):
    def answer(body):
        if "0 + 0" not in body["messages"][-1]["content"]:
            return answer_b(body)
        # The second batch, and those of further runs, have nothing else.
        return "batch_expired" if len(server.batches) == 1 else (400, error("too long"))

    server.answer = answer
    run = json_of(cli("judge", *asking(server, "--batch", "--json")), 3)
    assert run["statuses"] == {"ok": 36, "failed": 4}
    assert {row["reason"] for row in rows_of("votes.db") if row["status"] == "failed"} == {
        "HTTP 400: too long"
    }
    again = json_of(cli("judge", *asking(server, "--batch", "--json")), 3)
    assert (again["n_calls"], again["is_done"]) == (0, True)
    # A key that died has no reason: nothing is marked.
    server.answer = lambda _: (403, error(""))
    assert cli("judge", *asking(server, "--batch", n=6))[0] == 2
    assert statuses_of("votes.db") == {"ok": 36, "failed": 4}


def test_refusals_with_a_reason_are_marked_whatever_the_others_are(cli, server, endpoint):
    refusals = {"0 + 0": (400, error("long")), "1 + 1": (403, error("no")), "2 + 2": (400, "")}

    def answer(body):
        text = body["messages"][-1]["content"]
        return next((said for sum_, said in refusals.items() if sum_ in text), answer_b(body))

    server.answer = lambda body: said if (said := answer(body))[0] == 200 else "batch_expired"
    cli("batch", "write", *asking(server))
    cli("batch", "send")
    cli("batch", "collect", "--wait")
    assert statuses_of("votes.db")["ok"] == 28
    server.answer = answer
    for n_asked in (12 + 8, 8):  # the others are marked by the first batch
        server.asked.clear()
        status, _, err = cli("judge", *asking(server, "--batch"))
        assert (status, server.asked.total()) == (2, n_asked)
        assert "every request of a batch failed: HTTP 40" in err
        assert statuses_of("votes.db")["failed"] == 4
    # By calls a short request tells that the key works.
    run = json_of(cli("judge", *asking(endpoint(answer), "--json")), 3)
    assert (run["is_done"], statuses_of("votes.db")) == (True, {"ok": 28, "failed": 12})


def test_faults_of_the_endpoint_pass_and_who_waits_outlasts_many(cli, server):
    server.faults = {
        "upload": [500, 429],
        "create": ["lost", 503],
        "look": [500, b'{"error": {"message": "busy"}}', *[503, 500] * 8],
        "content": [500],
        "list": [500],
    }
    run = json_of(cli("judge", *asking(server, "--batch", "--json")))
    assert run["is_complete"]
    # One creation was lost on its way back: it was found, not made again.
    assert len(server.batches) == 1
    assert server.asked.total() == 40
    assert server.calls.count("look") > 18


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content[:-40], "file file-1: line 40 is not a result"),
        (lambda content: content[: content.rindex(b"\n", 0, -1) + 1], "39 results for 40"),
    ],
)
def test_what_was_answered_and_did_not_arrive_is_not_bought_again(cli, server, change, said):
    cli("batch", "write", *asking(server))
    cli("batch", "send")
    whole = server.content
    server.content = lambda *step: change(whole(*step))
    status, _, err = cli("batch", "collect", "--wait")
    assert status == 2
    assert said in err
    assert statuses_of("votes.db") == {None: 40}  # claimed
    server.content = whole
    assert cli("batch", "collect")[0] == 0
    assert statuses_of("votes.db") == {"ok": 40}
    assert server.asked.total() == 40


def test_a_batch_that_is_lost_keeps_no_other_back(cli, server):
    for n in (2, 4):
        cli("batch", "write", *asking(server, n=n))
        cli("batch", "send")
    look = server.look

    def lost(request, parts, query, body):
        if parts[1] == "batch_0":
            request.send_response(404)
            request.send_header("content-length", "0")
            request.end_headers()
            return b""
        return look(request, parts, query, body)

    server.look = lost
    status, out, err = cli("batch", "collect", "--wait")
    assert (status, out.split(",")[0]) == (2, "batch 2: completed")
    assert err.startswith("batch 1: http://127.0.0.1:")
    assert "if the batch is lost, btdagg batch cancel --forget 1 frees its samples" in err
    assert statuses_of("votes.db") == {"ok": 20, None: 20}
    assert cli("batch", "cancel", "--forget", 1)[1] == "batch 1: 20 votes can be requested again\n"


def test_cancelling(cli, server):
    server.looks = 100
    cli("batch", "write", *asking(server))
    cli("batch", "send")
    assert cli("batch", "list")[1].startswith("batch 1: sent, 40 requests, batch_0 at http://127")
    said = "batch 1: ends at the endpoint; btdagg batch collect 1\n"
    assert cli("batch", "cancel", 1)[:2] == (0, said)
    server.answer = lambda _: "batch_cancelled"
    assert cli("batch", "collect")[0] == 0
    assert statuses_of("votes.db") == {"ok": 40}  # which were answered by then
    line = one_line(*cli("batch", "cancel", 1))
    assert line == "votes.db: no batch 1 is running; btdagg batch list shows those that are"
    cli("batch", "write", *asking(server, n=6))
    assert cli("batch", "cancel", 2)[1] == "batch 2: 20 votes can be requested again\n"
    cli("batch", "write", *asking(server, n=6))
    cli("batch", "send")
    assert cli("batch", "cancel", 3, "--forget")[1] == "batch 3: 20 votes can be requested again\n"
    assert len(rows_of("votes.db")) == 40


KILLS = ("create:after", "content:before")


@pytest.mark.parametrize(
    "place", ["", *(pytest.param(place, marks=pytest.mark.soak) for place in KILLS)]
)
def test_in_the_format_of_anthropic(cli, other, tmp_path, place):
    def answer(params):
        if "0 + 0" in params["messages"][-1]["content"]:
            return 400, {"type": "invalid_request_error", "message": "too long"}
        assert params["system"]
        assert params["temperature"] == 0.5
        return 200, message("[[B]]")

    other.answer = answer
    command = [
        "judge",
        "pairs.jsonl",
        "-m",
        "anthropic:m",
        "-n",
        "4",
        "--set",
        f"judge.base_url={other.url}",
    ]
    command += ["--batch", "--json", *config(prices={"prompt": 2, "completion": 8})]
    if place:
        other.die_at = place
        other.victim = Fork(tmp_path, *command)
        assert other.victim.wait(timeout=60) < 0
        other.victim.communicate()
    status, _, err = cli(*command)
    assert status == 3, err
    assert statuses_of("votes.db") == {"ok": 36, "failed": 4}
    assert {row["cost"] for row in rows_of("votes.db")} == {None, 0.5 * (2e-3 + 8e-4)}
    assert set(other.asked.values()) == {1}
    assert len(other.batches) == 1


def written(cli, server, store, model="anthropic:m", *options):
    asked = [
        "pairs.jsonl",
        "-m",
        model,
        "-n",
        "4",
        "--set",
        f"judge.base_url={server.url}",
        "--store",
        store,
    ]
    assert cli("batch", "write", *asked, *options)[0] == 0


def died_while_sending(store):
    with VoteStore(store) as opened, opened.owner() as owner:
        owner.note_batch(1, state="sending", input_file="requests.jsonl")
        owner.commit()


def test_another_s_batch_is_not_taken_for_one_s_own(cli, other):
    there = ("--set", f"judge.base_url={other.url}")
    for store in ("a.db", "b.db", "c.db"):
        written(cli, other, store, f"anthropic:{store[0]}")
    died_while_sending("a.db")  # before the request arrived
    assert cli("batch", "send", *there, "--store", "b.db")[0] == 0
    assert cli("batch", "send", *there, "--store", "a.db")[0] == 0
    status, _, err = cli("batch", "collect", *there, "--wait", "--store", "a.db")
    assert status == 2
    assert "batch msgbatch_0 has other requests" in err
    assert statuses_of("a.db") == {None: 40}
    assert cli("batch", "collect", *there, "--wait", "--store", "b.db")[0] == 0
    assert statuses_of("b.db") == {"ok": 40}
    # Of several it is none.
    written(cli, other, "d.db")
    assert cli("batch", "send", *there, "--store", "d.db")[0] == 0
    died_while_sending("c.db")
    status, _, err = cli("batch", "send", *there, "--store", "c.db")
    assert status == 2
    assert "may be any of msgbatch_1, msgbatch_0, expected one batch of 40 requests" in err
    assert len(other.batches) == 2


@pytest.mark.parametrize("is_by_model", [False, True])
def test_a_file_s_key_goes_to_its_own_endpoint_alone(cli, server, other, monkeypatch, is_by_model):
    monkeypatch.setenv("GATEWAY_KEY", "sk-of-a-gateway-0123456789")
    written(cli, server, "votes.db", "gpt")
    written(cli, other, "votes.db")
    seen = {}
    for each in (server, other):

        def create(request, *step, each=each, made=each.create):
            seen[each] = request.headers
            return made(request, *step)

        each.create = create
    own = PROVIDERS["anthropic"]._replace(address=other.url)
    monkeypatch.setitem(PROVIDERS, "anthropic", own)
    place = {"model": "anthropic:m"} if is_by_model else {"base_url": other.url + "/"}
    options = config(**place, key_variable="GATEWAY_KEY", headers={"X-Team": "blue"})
    assert cli("batch", "send", *options)[0] == 0
    assert seen[server]["authorization"] == "Bearer sk-of-the-tests-0123456789"
    assert "x-team" not in seen[server]
    assert seen[other]["authorization"] == "Bearer sk-of-a-gateway-0123456789"
    assert seen[other]["anthropic-version"] == "2023-06-01"  # the last that takes a temperature
    assert seen[other]["x-team"] == "blue"


def test_instructions_of_a_developer_are_anthropic_s_system(cli, other):
    written(cli, other, "votes.db", "anthropic:m", *config(system_role="developer"))
    with VoteStore("votes.db") as store:
        (batch,) = store.batches()
    params = json.loads(Path(batch.file).read_text().splitlines()[0])["params"]
    assert params["system"]
    assert {said["role"] for said in params["messages"]} == {"user"}


def test_usc_does_not_go_with_batches(cli, server):
    line = one_line(*cli("judge", *asking(server, "--batch", "--method", "usc")))
    assert line == "--method usc cannot be combined with --batch"


PLACES = [f"{step}:{when}" for step in ("upload", "create", "look", "content")
          for when in ("before", "after")]  # fmt: skip
SOAK = [pytest.param(place, marks=pytest.mark.soak) for place in PLACES if place != "create:after"]


@pytest.mark.parametrize("place", ["create:after", *SOAK])
def test_killed_at_any_step_it_goes_on_and_buys_nothing_twice(cli, server, tmp_path, place):
    server.die_at = place
    command = ["judge", *asking(server, "--batch")]
    server.victim = Fork(tmp_path, *command)
    assert server.victim.wait(timeout=60) < 0
    server.victim.communicate()
    assert server.die_at == ""
    assert len(server.batches) <= 1
    with VoteStore("votes.db", create=False) as store:
        (batch,) = store.batches()
    state = {"upload": "written", "create": "sending"}.get(place.partition(":")[0], "sent")
    assert batch.state == state
    # What is under way is nobody else's, although no process lives that claimed it.
    run = json_of(cli("judge", *asking(server), "--json"), 3)
    assert (run["n_calls"], run["n_elsewhere"]) == (0, 40)
    assert cli(*command)[0] == 0
    assert statuses_of("votes.db") == {"ok": 40}
    assert server.asked.total() == 40
    assert len(server.batches) == 1
