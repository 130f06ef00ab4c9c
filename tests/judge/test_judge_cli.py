"""`btdagg judge`, `votes` and `run` against the simulated judge."""

import json
import signal
import time
from pathlib import Path

import polars as pl
import pytest

import btdagg
from commands import Fork, one_line
from judge_endpoints import completion
from judging import asked_of, config, pairs_of, statuses_of

pytestmark = pytest.mark.usefixtures("quick_commands")

SECRET = "sk-of-the-tests-0123456789"


@pytest.fixture
def folder(folder):
    """A folder to work in, with 40 pairs and the labels of most."""
    frame = pairs_of(40).frame
    frame.write_ndjson("pairs.jsonl")
    labels = [0 if number % 3 == 0 else (-1 if number % 3 == 1 else 1) for number in range(40)]
    gold = pl.DataFrame({"item": frame["item"], "label": labels})
    gold.head(30).write_csv("labels.csv")
    return folder


def test_pairs_to_votes_and_on(cli, folder, judge_server):
    pairs_of(10).frame.write_ndjson("pairs.jsonl")
    server = judge_server("--api-key", SECRET)
    options = asked_of(server.url, "-s", "v.db")
    status, out, err = cli(*options, "-n", "4", *config(prices={"prompt": 1, "completion": 2}))
    assert (status, err) == (0, "")
    assert "40 new votes, 0 stored before:" in out
    assert "40 calls (0 repeated)" in out
    assert len(server.log()) == 40
    status, out, err = cli(*options, "-n", "6", "--json")
    found = json.loads(out)
    assert found["statuses"] == {"ok": 20}
    assert found["stored"] == {"ok": 40}
    assert found["is_complete"]

    status, out, err = cli("votes", "v.db", "--json")
    (summary,) = json.loads(out)
    assert (summary["judge"], summary["template"], summary["n_votes"]) == ("m", "response", 60)
    assert summary["n_ab"] == summary["n_ba"] == 30
    tokens = server.stats()["tokens"]
    assert summary["prompt_tokens"] == tokens["prompt"]
    status, out, err = cli("votes", "v.db")
    assert "response" in out.splitlines()[1]
    status, out, err = cli("votes", "v.db", "--export", "votes.parquet")
    assert out == "wrote votes.parquet: 60 votes, 0 samples without one\n"
    _, counts = btdagg.read_votes("votes.parquet").counts()
    assert (counts.sum(axis=1) == 6).all()
    assert SECRET.encode() not in b"".join(
        path.read_bytes() for path in folder.rglob("*") if path.is_file()
    )


def test_a_dry_run_asks_nobody_and_prices_what_is_missing(cli, folder, judge_server):
    server = judge_server()
    options = asked_of(server.url, "-s", "v.db")
    status, out, _ = cli(*options, "--dry-run", "--json")
    found = json.loads(out)
    assert (status, found["n_calls"], found["cost"]) == (0, 480, None)
    assert not (folder / "v.db").exists()
    assert server.log() == []
    cli(*options, "-n", "4")
    prices = config(prices={"prompt": 1000, "completion": 10000})
    found = json.loads(cli(*options, *prices, "--dry-run", "--json")[1])
    assert (found["n_wanted"], found["n_stored"], found["n_calls"]) == (480, 160, 320)
    tokens = server.stats()["tokens"]
    assert found["prompt_tokens"] == pytest.approx(2 * tokens["prompt"], rel=0.2)
    assert found["completion_tokens"] == pytest.approx(2 * tokens["completion"], abs=1)
    cost = (found["prompt_tokens"] * 1000 + found["completion_tokens"] * 10_000) / 1e6
    assert found["cost"] == pytest.approx(cost)
    assert len(server.log()) == 160


def test_a_process_is_interrupted_and_goes_on(cli, folder, endpoint):
    server = endpoint(lambda _: time.sleep(0.1) or (200, completion()))
    options = asked_of(server.url, "-s", "v.db")
    options += ["-n", "2"]
    process = Fork(folder, *options, *config(concurrency=4))
    while len(server.requests) < 10:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopping: running calls have a few seconds to finish" in err
    assert "Traceback" not in err
    assert statuses_of("v.db") == {"ok": len(server.requests)}
    assert len(server.requests) < 80
    assert cli(*options)[0] == 0
    assert len(server.requests) == 80


def test_one_command_to_labels(cli, folder):
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "simulated"]
    options += ["-n", "4", "-o", "out", "--set", "a=chat-new", "--set", "b=chat-old"]
    status, out, _ = cli(*options)
    assert status == 0
    assert "calibrated" in out
    assert "\nchat-new wins " in out
    labels = btdagg.read_labels("out/decided.csv")
    assert labels.ids.tolist() == [f"q{number}" for number in range(40)]
    model = btdagg.DavidsonModel.load("out/model.json")
    ids, counts = btdagg.read_votes("out/judged_votes.parquet").counts()
    assert dict(zip(ids, model.decide(counts), strict=True)) == dict(
        zip(labels.ids, labels.labels, strict=True)
    )
    assert json.loads((folder / "out/evaluation.json").read_text())["lines"]
    page = (folder / "out/report/index.html").read_text()
    assert "simulated on pairs.jsonl" in page
    assert "Shares of items on which chat-new or chat-old is better" in page
    assert "How many votes are enough" in page


@pytest.mark.parametrize("form", ["://btdagg:a/hush@", "query"])
def test_no_page_shows_the_password_of_a_store(cli, folder, judge_server, postgres, form):
    place = postgres.database(f"shown_{len(form)}")
    place = f"{place}?password=hush" if form == "query" else place.replace("://btdagg@", form, 1)
    options = ["--labels", "labels.csv", "--model", "m", "-o", "out", *config(store=place)]
    status, _, err = cli(
        "run", "pairs.jsonl", *options, "--set", f"judge.base_url={judge_server().url}", "-n", "2"
    )
    assert status == 0, err
    assert "hush" not in err
    assert cli("votes", place, "--report", "votes")[0] == 0
    written = [file for file in folder.rglob("*") if file.is_file()]
    assert any(b"postgresql://" in file.read_bytes() for file in written)
    assert not any(b"hush" in file.read_bytes() for file in written)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-n", "5"], "-n is 5, expected an even number"),
        ({"max_cost": 1}, "max_cost needs prices"),
        ({"confidence": "high"}, "confidence is 'high', expected one of none, logprobs, verbal"),
        (["--store", "no/v.db"], "no/v.db: unable to open database file"),
        ({"concurrency": 0}, "concurrency is 0, expected an integer of at least 1"),
    ],
)
def test_what_cannot_be(cli, folder, options, said):
    options = config(**options) if isinstance(options, dict) else options
    line = one_line(*cli("judge", "pairs.jsonl", "--model", "m", *options))
    assert line.startswith(said)


def test_run_says_that_labelled_pairs_share_prompts(cli, folder):
    rows = [json.loads(line) for line in Path("pairs.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        row["prompt"] = f"question {number // 2}"
    Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--labels", "labels.csv", "--model", "simulated", "-n", "4"]
    status, out, err = cli("run", "pairs.jsonl", *options, "-o", "out")
    assert status == 0
    n_labels = pl.read_csv("labels.csv").height
    assert (
        f"{n_labels} items share a prompt with another item, but neither votes nor labels have a"
        in err
    )
    assert "each item decided by models calibrated on" in out


def test_a_store_keeps_the_names_of_the_pairs(cli, folder):
    pairs = pl.read_ndjson("pairs.jsonl").with_columns(
        system_a=pl.lit("chat-new"), system_b=pl.lit("chat-old")
    )
    pairs.write_ndjson("named.jsonl")
    assert cli("judge", "named.jsonl", "--model", "simulated", "-n", "2", "-s", "v.db")[0] == 0
    status, out, _ = cli("estimate", "v.db", "labels.csv")
    assert status == 0
    assert out.startswith("chat-new wins ")
