"""`btdagg label` without a browser: what is kept, who gets in, and what texts become."""

import csv
import itertools
import json
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from collections import Counter

import numpy as np
import polars as pl
import pytest

from btdagg import InputError, estimate, read_labels
from btdagg.judge.pairs import read_pairs
from btdagg.labelling import LabelServer, LabelStore
from btdagg.votes import read_table
from labelling import TOKEN, LabelProcess, pairs_file, session_of


@pytest.fixture
def start(tmp_path):
    """Start `btdagg label` on the pairs of the folder; what is left is killed."""
    started = []

    def start(*options, **more):
        started.append(LabelProcess(tmp_path, *options, **more))
        return started[-1]

    yield start
    for each in started:
        each.kill()


# What is kept


def test_labels_are_of_the_response_that_was_chosen_and_go_to_the_file(tmp_path, start):
    pairs_file(tmp_path, 12)
    server = start()
    shown, chosen = server.item("Ada"), {}
    for choice in itertools.cycle(("first", "second", "tie", "skip")):
        if shown["done"]:
            break
        first = "A" if "says <strong>A" in shown["first"]["markdown"] else "B"
        number = re.search(r"What is (\d+)", shown["prompt"]["markdown"])[1]
        other = {"A": "B", "B": "A"}[first]
        label = {"first": first, "second": other, "tie": "tie", "skip": None}[choice]
        chosen[f"gpt-9-{int(number):03}"] = label
        shown = server.label("Ada", shown, choice, note="=note, of\ntwo lines" if label else "")
    assert len(chosen) == 12
    status, out, err = server.stop()
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "9 labels and 3 skips by 1 rater on 12 items"
    assert lines[-1] == f"wrote {server.output}; the labels are kept in {tmp_path / 'human.db'}"
    words = {"A": 1, "tie": 0, "B": -1, None: None}
    assert {row["item"]: row["label"] for row in server.rows()} == {
        item: words[label] for item, label in chosen.items()
    }
    assert pl.read_csv(server.output).columns == ["item", "rater", "label", "seconds", "note"]
    assert Counter(row["note"] for row in server.rows()) == {"'=note, of\ntwo lines": 9, "": 3}
    labels = read_labels(server.output)
    assert (len(labels.labels), labels.n_missing) == (9, 3)


def test_what_the_server_has_said_is_kept_survives_its_death(tmp_path, start):
    pairs_file(tmp_path, 10)
    server = start()
    shown = server.item("Ada")
    for _ in range(4):
        shown = server.label("Ada", shown, "tie")
    server.kill()
    again = start("--port", server.port)
    assert again.item("Ada")["n_answered"] == 4
    assert again.item("Ada")["key"] == shown["key"]
    again.until_written(4)
    assert again.stop(signal.SIGTERM)[0] == 0


def test_two_raters_at_once_lose_and_double_nothing(tmp_path, start):
    pairs_file(tmp_path, 40)
    server = start()

    def work(rater):
        shown = server.item(rater)
        while not shown["done"]:
            server.label(rater, shown, "first")
            shown = server.label(rater, shown, "first")  # as after an answer that was lost

    threads = [threading.Thread(target=work, args=(rater,)) for rater in ("Ada", "Ben")]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    status, out, _ = server.stop()
    assert status == 0
    assert "80 labels and 0 skips by 2 raters on 40 items" in out
    rows = server.rows()
    assert Counter(Counter(row["rater"] for row in rows).values()) == {40: 2}
    assert len({(row["item"], row["rater"]) for row in rows}) == 80
    assert {row["seconds"] for row in rows} == {2.5}


# Order, sides and secrets


def test_nothing_that_is_served_tells_an_id_or_a_column(tmp_path, start):
    pairs_file(tmp_path, 4)
    server = start()
    shown = server.item("Ada")
    parts = [server.ask("GET", "/")[2], json.dumps(shown).encode()]
    parts.append(server.ask("GET", f"/differences?rater=Ada&key={shown['key']}")[2])
    while not shown["done"]:
        shown = server.label("Ada", shown, "first")
        server.label("Ben", server.item("Ben"), "tie")
        parts.append(json.dumps(shown).encode())
    shown = server.item("Ada")
    parts.append(json.dumps(shown).encode())
    assert shown["n_disputed"] == 4
    assert shown["disputed"][0]["labels"] == {"Ada": "response 1", "Ben": "tie"}
    for part in parts:
        assert b"gpt-9" not in part
        assert b"model_a" not in part


def test_items_of_a_file_come_in_its_order_with_their_probabilities(tmp_path, start):
    pairs_file(tmp_path, 6, group="g")
    pl.DataFrame({"id": ["gpt-9-004", "gpt-9-001"], "probability": [0.5, 0.25]}).write_csv(
        tmp_path / "to_label.csv"
    )
    server = start("--items", tmp_path / "to_label.csv")
    for rater in ("Ada", "Ben"):
        shown = server.item(rater)
        assert "4 + 4" in shown["prompt"]["markdown"]
        assert server.label(rater, shown, "tie")["n_items"] == 2
    server.stop()
    assert [(row["item"], row["rater"]) for row in server.rows()] == [
        ("gpt-9-004", "Ada"),
        ("gpt-9-004", "Ben"),
    ]
    assert {row["probability"] for row in server.rows()} == {0.5}
    labels = read_labels(server.output)
    assert labels.frame.select("item", "probability", "group").rows() == [("gpt-9-004", "0.5", "g")]


# The estimate


def test_the_estimate_comes_with_the_last_planned_label(tmp_path, start):
    pairs_file(tmp_path, 60)
    ids = [f"gpt-9-{k:03}" for k in range(60)]
    rng = np.random.default_rng(0)
    votes = pl.DataFrame({"item": ids * 4, "vote": rng.integers(-1, 2, 240),
                          "sample": np.repeat(range(4), 60)})  # fmt: skip
    votes.write_csv(tmp_path / "votes.csv")
    server = start("-n", 20, "--votes", tmp_path / "votes.csv")
    shown = server.item("Ada")
    for choice in itertools.cycle(("first", "second", "tie", "second", "first", "first", "skip")):
        if shown["done"]:
            break
        assert "win rate" not in json.dumps(shown)
        shown = server.label("Ada", shown, choice)
    assert shown["n_items"] == 20
    _, out, _ = server.stop()
    labels = {row["item"]: row["label"] for row in server.rows()}
    known = np.array([labels.get(item) for item in ids], dtype=float)
    counts = np.stack([
        votes.group_by("item").agg((pl.col("vote") == v).sum()).sort("item")["vote"].to_numpy()
        for v in (-1, 0, 1)
    ], axis=1)  # fmt: skip
    rate = estimate(counts, known).estimates["win rate"]
    line = (
        "win rate of A, ties as half, over 60 items by the labels and the votes: "
        f"{rate.value:.3f} ({rate.low:.3f} to {rate.high:.3f})"
    )
    assert line in shown["lines"]
    assert line in out.splitlines()


def test_the_estimate_without_votes_is_by_groups(tmp_path, start):
    pairs_file(tmp_path, 60)
    pairs = pl.read_ndjson(tmp_path / "pairs.jsonl").with_columns(
        group=pl.Series([f"g{k % 6}" for k in range(60)])
    )
    pairs.write_ndjson(tmp_path / "pairs.jsonl")
    server = start("-n", 40)
    shown = server.item("Ada")
    while not shown["done"]:
        number = int(re.search(r"What is (\d+)", shown["prompt"]["markdown"])[1])
        choice = ("first", "tie", "second")[number % 6 % 3]
        shown = server.label("Ada", shown, choice)
    server.stop()
    labels = {row["item"]: row["label"] for row in server.rows()}
    ids = pairs["item"].to_list()
    groups = pairs["group"].to_list()
    known = np.array([labels.get(item) for item in ids], dtype=float)
    none = np.zeros((60, 3), dtype=np.int64)
    rate = estimate(none, known, groups=groups).estimates["win rate"]
    assert f": {rate.value:.3f} ({rate.low:.3f} to {rate.high:.3f})" in "".join(shown["lines"])
    alone = estimate(none, known).estimates["win rate"]
    assert round(alone.low, 3) != round(rate.low, 3)


def test_a_server_that_ends_before_the_first_label_can_be_started_again(tmp_path, start):
    pairs_file(tmp_path, 3)
    for _ in range(2):
        status, out, err = start().stop()
        assert (status, err) == (0, "")
        assert out.splitlines()[-1].startswith(f"nothing to write to {tmp_path / 'human.csv'} yet")
    assert not (tmp_path / "human.csv").exists()


def test_before_that_there_is_none(tmp_path, start):
    pairs_file(tmp_path, 6)
    server = start("-n", 5)
    server.label("Ada", server.item("Ada"), "first")
    _, out, _ = server.stop()
    assert "1 label and 0 skips by 1 rater on 1 item" in out
    assert "win rate" not in out


# Files


def test_export_writes_what_is_there_or_one_raters(cli, tmp_path):
    pairs = read_pairs(pairs_file(tmp_path, 4))
    store, session = session_of(tmp_path, pairs)
    with store:
        for rater in ("Ada", "Ben"):
            session.keep(rater, session.view(rater)["key"], "tie", 1, "")
    arguments = ["label", tmp_path / "pairs.jsonl", "--export", "-s", tmp_path / "human.db"]
    for name, more, n in (("a.csv", [], 2), ("b.parquet", ["--rater", "Ben"], 1)):
        status, out, err = cli(*arguments, "-o", tmp_path / name, *more)
        assert (status, err) == (0, "")
        assert "wrote" in out
        assert len(read_table(tmp_path / name, []).frame) == n
    renamed = pl.read_ndjson(tmp_path / "pairs.jsonl").rename({"item": "qid", "a": "one"})
    renamed.write_ndjson(tmp_path / "pairs.jsonl")
    mapped = ["--column", "item=qid", "--column", "a=one"]
    assert cli(*arguments, *mapped, "-o", tmp_path / "c.csv")[0] == 0
    assert (tmp_path / "c.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    status, out, err = cli(*arguments, *mapped, "-o", tmp_path / "d.csv", "--rater", "Eve")
    assert (status, out) == (2, "")
    assert err == "btdagg: --rater is 'Eve', and labels are by Ada, Ben\n"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_no_text_of_a_rater_runs_in_a_spreadsheet_and_all_are_read_as_written(
    cli, tmp_path, suffix
):
    pairs = read_pairs(pairs_file(tmp_path, 9))
    store, session = session_of(tmp_path, pairs)
    raters = ["=1+1", "+cot", "-x", "@sum", "'=x", "-1", "O'Neil", "Ada"]
    notes = ['=HYPERLINK("http://example.org")', "- dull", "'", "''+a", "\t=a", "", "a=b", "@me"]
    with store:
        for rater, note in zip(raters, notes, strict=True):
            session.keep(rater, session.view(rater)["key"], "tie", 1, note)
        written = [(each.rater, each.note) for each in store.answers()]
    output = tmp_path / f"human{suffix}"
    arguments = ["label", tmp_path / "pairs.jsonl", "--export", "-s", tmp_path / "human.db"]
    for _ in range(2):  # the second time over the file of the first
        assert cli(*arguments, "-o", output)[::2] == (0, "")
    read = read_table(output, []).frame
    assert sorted(read.select("rater", pl.col("note").fill_null("")).rows()) == sorted(written)
    if suffix in (".csv", ".tsv"):
        with output.open(newline="") as file:
            texts = [text for row in csv.reader(file, delimiter="\t" if suffix == ".tsv" else ",")
                     for text in row]  # fmt: skip
        runs = [text for text in texts if text[:1] in set("=+-@\t\r") and text != "-1"]
        assert runs == []


def test_labels_that_the_store_does_not_have_are_not_overwritten(cli, tmp_path):
    pairs_file(tmp_path, 4)
    output = tmp_path / "human.csv"
    text = "item,rater,label,seconds,note\ngpt-9-000,Ada,1,2.0,\n"
    output.write_text(text)
    (tmp_path / "mine.csv").write_text("item,label\nx,1\n")
    store, session = session_of(tmp_path, read_pairs(tmp_path / "pairs.jsonl"))
    with store:
        session.keep("Ben", session.view("Ben")["key"], "tie", 1, "")
    arguments = ["label", tmp_path / "pairs.jsonl", "--export", "-s", tmp_path / "human.db"]
    status, _, err = cli(*arguments, "-o", output)
    assert status == 2
    assert "with a label of item 'gpt-9-000' by Ada that" in err
    assert output.read_text() == text
    with LabelStore(tmp_path / "human.db") as store:
        (kept,) = store.answers()
    changed = f"item,rater,label,seconds,note\n{kept.item},Ben,-1,1.0,\n"
    output.write_text(changed)
    status, _, err = cli(*arguments, "-o", output)
    assert (status, err) == (
        0,
        f"{output}: 1 label becomes what {tmp_path / 'human.db'} has: item {kept.item!r} by Ben "
        "from -1 to 0\n",
    )
    assert pl.read_csv(output)["label"].to_list() == [0]
    assert cli(*arguments, "-o", output)[2] == ""
    output.write_text(text)
    assert "with a label of item 'x'" in cli(*arguments, "-o", tmp_path / "mine.csv")[2]
    assert "a file that is read" in cli(*arguments, "-o", tmp_path / "pairs.jsonl", "--force")[2]
    assert cli(*arguments, "-o", output, "--force")[0] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "human.txt"], "--output is human.txt, expected a name in .csv"),
        (["-n", "9"], "-n is 9, and there are 4 items to label"),
        (["-n", "0"], "-n is 0, expected at least 1"),
        (["--host", "0.0.0.0"], "--host is 0.0.0.0, which others reach: want --certificate"),
        (["--certificate", "x.pem"], "--certificate and --key want each other"),
        (["--certificate", "no.pem", "--key", "k.pem"], "no.pem and --key is k.pem: No such file"),
        (["--items", "other.csv"], "item 'other' is to be labelled, and is no pair"),
        (["--items", "twice.csv"], "twice.csv"),
        (["--items", "chance.csv"], "probability"),
        (["--column", "group=nothing"], "column group: got nothing, expected a group name"),
        (["--export"], "human.db: no such file"),
        (["--export", "-s", "new.db"], "new.db: has no label to write"),
    ],
)
def test_bad_options_are_refused_in_one_line(cli, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    pairs_file(tmp_path, 4, nothing=None)
    LabelStore("new.db").close()
    (tmp_path / "other.csv").write_text("item\nother\n")
    (tmp_path / "twice.csv").write_text("item\ngpt-9-000\ngpt-9-000\n")
    (tmp_path / "chance.csv").write_text("item,probability\ngpt-9-000,2\n")
    status, out, err = cli("label", "pairs.jsonl", "-o", "human.csv", "--port", 0, *options)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_token_is_long_enough():
    with pytest.raises(InputError, match="want 16 or more ASCII letters, digits, - and _"):
        LabelServer(token="short")
    assert TOKEN not in repr(LabelServer(token=TOKEN))


# Who gets in


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("label")
    pairs_file(folder, 5)
    found = LabelProcess(folder)
    yield found
    found.kill()


def test_the_token_becomes_a_cookie_and_leaves_the_address(server):
    status, headers, page = server.ask("GET", f"/?token={TOKEN}", Cookie=None)
    assert status == 200
    assert headers["set-cookie"] == (
        f"btdagg_label_{server.port}={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    )
    assert b'http-equiv="refresh" content="0; url=/"' in page
    assert TOKEN.encode() not in page
    assert headers["referrer-policy"] == "no-referrer"
    assert server.ask("GET", "/?token=another", Cookie=None)[0] == 403


@pytest.mark.parametrize("others", ['prefs={"dark":true}; ', "name=José; ", "a b=1; ", "; =;"])
def test_cookies_of_other_programs_keep_nobody_out(server, others):
    cookie = f"{others}btdagg_label_{server.port}={TOKEN}; more=1"
    assert server.ask("GET", "/item?rater=Eve", Cookie=cookie)[0] == 200


def test_any_address_of_this_machine_alone_is_served(tmp_path, start):
    pairs_file(tmp_path, 2)
    server = start("--host", "127.0.0.2")
    with urllib.request.urlopen(server.address) as answer:
        assert answer.status == 200


GOOD = {"rater": "Eve", "key": "0", "choice": "tie", "seconds": 1, "note": ""}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Cookie": None}, 403),
        ({"Cookie": "btdagg_label_1=x"}, 403),
        ({"Cookie": "\x01=;;"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": None}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
    ],
)
def test_requests_from_elsewhere_are_refused(server, headers, status):
    assert server.ask("POST", "/label", GOOD, **headers)[0] == status
    if "Origin" not in headers:
        for path in ("/", "/item?rater=Eve", "/differences?rater=Eve&key=0", "/nothing"):
            assert server.ask("GET", path, **headers)[0] == status
    assert server.item("Eve")["n_answered"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": "0"}, "this pair is not among those to be labelled"),
        ({"key": ["0"]}, "this pair is not among"),
        ({"choice": "A"}, "choice is 'A', expected first, tie, second, skip"),
        ({"choice": ["tie"]}, "choice is"),
        ({"seconds": -1}, "seconds is no number"),
        ({"seconds": "1"}, "seconds is no number"),
        ({"seconds": float("nan")}, "seconds is no number"),
        ({"note": "x" * 10_001}, "note is no text of at most 10,000 characters"),
        ({"note": None}, "note is no text"),
        ({"rater": " "}, "rater is empty, expected a name"),
        ({"rater": 3}, "rater is empty, expected a name"),
        ({"rater": "x" * 81}, "rater is no name of at most 80 printable characters"),
        ({"rater": "a\u202eb"}, "rater is no name"),
        ({"more": 1}, "body is no object with choice, key, note, rater, seconds"),
    ],
)
def test_what_the_page_does_not_send_is_refused(server, change, message):
    good = {**GOOD, "key": server.item("Eve")["key"]}
    status, _, content = server.ask("POST", "/label", {**good, **change})
    assert status == 422
    assert message in json.loads(content)["detail"]
    assert server.item("Eve")["n_answered"] == 0


def test_bodies_that_are_none_are_refused(server):
    assert server.ask("POST", "/label", "[" * 60_000)[0] == 422
    assert server.ask("POST", "/label", "x" * 70_000)[0] == 413
    assert server.ask("PUT", "/label", "x", Origin=f"http://127.0.0.1:{server.port}")[0] == 405
    assert server.ask("GET", "/label")[0] == 405
    assert server.ask("GET", "/item?rater=")[0] == 422


def test_who_leaves_within_a_request_leaves_no_traceback(tmp_path, start):
    pairs_file(tmp_path, 4)
    server = start()
    place = f"127.0.0.1:{server.port}"
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(
                f"POST /label HTTP/1.1\r\nHost: {place}\r\nOrigin: http://{place}\r\n"
                f"Cookie: btdagg_label_{server.port}={TOKEN}\r\n"
                "Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{".encode()
            )
            time.sleep(0.2)
    time.sleep(0.5)
    assert "Traceback" not in server.stop()[2]


def test_however_long_it_took_it_is_a_day_at_most(server):
    said = {**GOOD, "rater": "Long", "key": server.item("Long")["key"], "seconds": 10**400}
    assert server.ask("POST", "/label", said)[0] == 200


def test_every_answer_forbids_what_the_page_does_not_need(server):
    for path, status in (("/", 200), ("/item?rater=Ada", 200), ("/item", 422), ("/no", 404)):
        found, headers, _ = server.ask("GET", path)
        assert found == status
        assert headers["content-security-policy"].startswith("default-src 'none'; ")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
    _, headers, page = server.ask("GET", "/")
    assert len(headers.get_all("content-security-policy")) == 1
    assert not re.search(rb"<[^>]* (on\w+|style)\s*=", page)
    assert not re.search(rb"(src|href)=\"(?!data:,)", page)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


def test_https_with_a_certificate_and_secure_cookies(tmp_path, start, certificate):
    pairs_file(tmp_path, 3)
    options = ["--certificate", certificate / "cert.pem", "--key", certificate / "key.pem"]
    server = start(*options, "--host", "0.0.0.0")
    assert server.address.startswith("https://0.0.0.0:")
    context = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    address = server.address.replace("0.0.0.0", "127.0.0.1")
    with urllib.request.urlopen(address, context=context, timeout=20) as answer:
        assert answer.headers["set-cookie"].endswith("; SameSite=Strict; Secure")
    assert server.stop()[0] == 0


def test_behind_a_proxy_its_name_is_served_and_no_other(tmp_path, start):
    pairs_file(tmp_path, 3)
    server = start("--host", "0.0.0.0", "--behind-proxy", "labels.example.org:8443")
    assert server.address.startswith("https://labels.example.org:8443/?token=")
