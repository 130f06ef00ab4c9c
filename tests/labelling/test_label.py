"""`btdagg label` without a browser: what is kept, who gets in, and what goes to the file."""

import csv
import itertools
import json
import re
import signal
import threading
from collections import Counter

import numpy as np
import polars as pl
import pytest

from btdagg import Scale, estimate, read_labels
from btdagg.evaluation import krippendorff_alpha
from btdagg.judge import read_pairs
from btdagg.labelling import LabelStore
from btdagg.votes import read_table
from labelling import (
    CRITERIA,
    TOKEN,
    LabelClient,
    LabelProcess,
    pairs_file,
    responses_file,
    session_of,
)


@pytest.fixture
def start(tmp_path):
    """Start `btdagg label` on the pairs of the folder; what is left is killed."""
    servers = []

    def start(*options):
        servers.append(LabelProcess(tmp_path, *options))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def client(tmp_path):
    pairs_file(tmp_path, 12)
    client = LabelClient(tmp_path)
    with client.store:
        yield client


def exported(cli, folder, *options, name="human.csv"):
    """Lines that an export prints; its file is in the folder."""
    arguments = ["label", folder / "pairs.jsonl", "--export", "-s", folder / "human.db"]
    status, out, err = cli(*arguments, "-o", folder / name, *options)
    assert (status, err) == (0, "")
    return out.splitlines()


def answered(folder, choose, n_items=None):
    """Store Ada's choices of the first items, by the number in the prompt."""
    store, session = session_of(folder, read_pairs(folder / "pairs.jsonl"))
    with store:
        shown = session.view("Ada")
        while not shown["done"] and shown["n_answered"] != n_items:
            number = int(re.search(r"What is (\d+)", shown["prompt"]["markdown"])[1])
            shown = session.keep("Ada", shown["key"], [choose(number)], 2.5, "")


# What is kept


def test_labels_are_of_the_response_that_was_chosen_and_go_to_the_file(tmp_path, cli, client):
    shown, chosen = client.item("Ada"), {}
    for choice in itertools.cycle(("first", "second", "tie", "skip")):
        if shown["done"]:
            break
        first = "A" if "says <strong>A" in shown["first"]["markdown"] else "B"
        number = re.search(r"What is (\d+)", shown["prompt"]["markdown"])[1]
        other = {"A": "B", "B": "A"}[first]
        label = {"first": first, "second": other, "tie": "tie", "skip": None}[choice]
        chosen[f"gpt-9-{int(number):03}"] = label
        shown = client.label("Ada", shown, choice, note="=note, of\ntwo lines" if label else "")
    assert len(chosen) == 12
    lines = exported(cli, tmp_path)
    output = tmp_path / "human.csv"
    assert lines[0] == "9 labels and 3 skips by 1 rater on 12 items"
    assert lines[-1] == f"wrote {output}; the labels are kept in {tmp_path / 'human.db'}"
    words = {"A": 1, "tie": 0, "B": -1, None: None}
    frame = pl.read_csv(output)
    assert frame.columns == ["item", "rater", "label", "seconds", "note"]
    assert dict(frame.select("item", "label").iter_rows()) == {
        item: words[label] for item, label in chosen.items()
    }
    assert Counter(frame["note"]) == {"'=note, of\ntwo lines": 9, "": 3}
    labels = read_labels(output)
    assert (len(labels.labels), labels.n_missing) == (9, 3)


def test_two_raters_at_once_and_a_killed_server_lose_and_double_nothing(tmp_path, start):
    pairs_file(tmp_path, 16)

    def work(rater, n_items):
        shown = server.item(rater)
        while not shown["done"] and shown["n_answered"] < n_items:
            server.label(rater, shown, "first")
            shown = server.label(rater, shown, "first")  # as after an answer that was lost

    for n_items in (6, 16):
        server = start()
        threads = [threading.Thread(target=work, args=(rater, n_items)) for rater in ("Ada", "Ben")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        server.until_written(2 * n_items)
        if n_items == 6:
            server.kill()
    status, out, _ = server.stop(signal.SIGTERM)
    assert status == 0
    assert "32 labels and 0 skips by 2 raters on 16 items" in out
    rows = server.rows()
    assert len({(row["item"], row["rater"]) for row in rows}) == len(rows) == 32
    assert {row["seconds"] for row in rows} == {2.5}


def test_nothing_that_is_served_tells_an_id_or_a_column(client):
    shown = client.item("Ada")
    parts = [client.ask("GET", "/")[2], json.dumps(shown).encode()]
    parts.append(client.ask("GET", f"/differences?rater=Ada&key={shown['key']}")[2])
    while not shown["done"]:
        shown = client.label("Ada", shown, "first")
        client.label("Ben", client.item("Ben"), "tie")
        parts.append(json.dumps(shown).encode())
    shown = client.item("Ada")
    parts.append(json.dumps(shown).encode())
    assert shown["n_disputed"] == 12
    assert shown["disputed"][0]["labels"] == {"Ada": "first", "Ben": "tie"}
    for part in parts:
        assert b"gpt-9" not in part
        assert b"model_a" not in part


# Files and the estimate


def test_items_of_a_file_come_in_its_order_with_their_probabilities(tmp_path, cli):
    pairs_file(tmp_path, 6, group="g")
    pl.DataFrame({"id": ["gpt-9-004", "gpt-9-001"], "probability": [0.5, 0.25]}).write_csv(
        tmp_path / "to_label.csv"
    )
    answered(tmp_path, lambda number: "tie")
    exported(cli, tmp_path, "--drawn", tmp_path / "to_label.csv")
    labels = read_labels(tmp_path / "human.csv").frame
    assert labels.select("item", "probability", "group").rows()[:2] == [
        ("gpt-9-004", "0.5", "g"),
        ("gpt-9-001", "0.25", "g"),
    ]


def by_votes(estimate, with_votes):
    """What the answer says of votes."""
    if estimate.weight > 0:
        return " and the votes of 60 items"
    return " alone, since the votes do not make it narrower" * with_votes


@pytest.mark.parametrize("with_votes", [True, False])
def test_the_estimate_comes_with_the_last_planned_label(tmp_path, cli, with_votes):
    pairs_file(tmp_path, 60)
    groups = [f"g{k % 6}" for k in range(60)]
    pairs = pl.read_ndjson(tmp_path / "pairs.jsonl").with_columns(group=pl.Series(groups))
    if not with_votes:
        pairs = pairs.with_columns(system_a=pl.lit("new"), system_b=pl.lit("old"))
    pairs.write_ndjson(tmp_path / "pairs.jsonl")
    ids = pairs["item"].to_list()
    rng = np.random.default_rng(0)
    votes = pl.DataFrame({"item": ids * 4, "vote": rng.integers(-1, 2, 240),
                          "sample": np.repeat(range(4), 60)})  # fmt: skip
    votes.write_csv(tmp_path / "votes.csv")
    options = []
    if with_votes:
        options = ["--votes", tmp_path / "votes.csv", "--set", "a=new", "--set", "b=old"]
    answered(tmp_path, lambda number: ("first", "tie", "second")[number % 6 % 3], 40)
    assert "new wins" not in "".join(exported(cli, tmp_path, "--items", 41, *options))
    lines = exported(cli, tmp_path, "--items", 40, *options)
    frame = pl.read_csv(tmp_path / "human.csv")
    labels = dict(frame.select("item", "label").iter_rows())
    known = np.array([labels.get(item) for item in ids], dtype=float)
    counts = np.zeros((60, 3), dtype=np.int64)
    if with_votes:
        counts = np.stack([
            votes.group_by("item").agg((pl.col("vote") == v).sum()).sort("item")["vote"].to_numpy()
            for v in (-1, 0, 1)
        ], axis=1)  # fmt: skip
    rate = estimate(counts, known, groups=groups).estimates["win rate"]
    low, high = (f"{100 * bound:.1f}%" for bound in (rate.low, rate.high))
    by = by_votes(rate, with_votes)
    sentence = (
        f"new wins {100 * rate.value:.1f}% (95% interval {low} to {high}), ties counted as half, "
        f"of new items like these, by {len(known) - np.isnan(known).sum()} labels{by}; ties"
    )
    assert any(line.startswith(sentence) for line in lines), lines


def graded(folder, n_items, n_raters, random, place="human.db", **options):
    """Grades by raters, {(item, criterion): [grade, ...]}; every seventh is a skip."""
    scale, kept = Scale(range(1, 6)), {}
    pairs = read_pairs(folder / "pairs.jsonl")
    store, session = session_of(folder, pairs, place, scale=scale, **options)
    with store:
        for rater in ("Ada", "Ben")[:n_raters]:
            for _ in range(n_items):
                shown = session.view(rater)
                names = [criterion["name"] for criterion in shown["criteria"]]
                grades = [int(np.clip(random.normal(3 + k, 1), 1, 5)) for k in range(len(names))]
                choices = [str(grade) if random.random() > 1 / 7 else "skip" for grade in grades]
                session.keep(rater, shown["key"], choices, 6, "")
                number = re.search(r"What is (\d+)", shown["prompt"]["markdown"])[1]
                for name, choice in zip(names, choices, strict=True):
                    grade = np.nan if choice == "skip" else int(choice)
                    kept.setdefault((f"gpt-9-{int(number):03}", name), []).append(grade)
    return kept


def test_grades_have_their_criterion_and_a_mean_for_each(tmp_path, cli):
    random, scale = np.random.default_rng(1), Scale(range(1, 6))
    responses_file(tmp_path, 60)
    kept = graded(tmp_path, 40, 2, random)
    ids = [f"gpt-9-{k:03}" for k in range(60)]
    counts = {name: random.multinomial(4, [0.1, 0.2, 0.3, 0.2, 0.2], 60) for name in CRITERIA}
    pl.DataFrame([
        {"item": item, "criterion": name, "score": grade, "sample": sample}
        for name, of in counts.items() for item, row in zip(ids, of, strict=True)
        for sample, grade in enumerate(np.repeat(range(1, 6), row))
    ]).write_csv(tmp_path / "votes.csv")  # fmt: skip
    options = ["--set", "labels.scale=1-5", "--items", 40, "--votes", tmp_path / "votes.csv"]
    lines = exported(cli, tmp_path, *options)
    frame = pl.read_csv(tmp_path / "human.csv")
    assert frame.columns == ["item", "rater", "label", "seconds", "note", "criterion"]
    assert set(frame["seconds"]) == {2.0}
    rows = frame.select("item", "criterion", "rater", "label").rows()
    assert {row[:3]: row[3] for row in rows} == {
        (*key, rater): None if np.isnan(grade) else grade
        for key, grades in kept.items() for rater, grade in zip(("Ada", "Ben"), grades, strict=True)
    }  # fmt: skip
    labels = read_labels(tmp_path / "human.csv", scale=scale)
    assert len(labels.labels) == sum(not np.isnan(grades).all() for grades in kept.values())
    alphas, means, n_labels = {}, {}, {}
    for name in CRITERIA:
        of = {item: grades for (item, other), grades in kept.items() if other == name}
        ratings = [grade for grades in of.values() for grade in grades]
        alphas[name] = krippendorff_alpha(np.repeat([*of], 2), ratings)
        shares = np.array([
            np.mean([np.equal(grade, range(1, 6)) for grade in of.get(item, ()) if grade == grade]
                    or [[np.nan] * 5], axis=0)
            for item in ids
        ])  # fmt: skip
        means[name] = estimate(counts[name], shares, scale=scale).estimates["mean grade"]
        n_labels[name] = (~np.isnan(shares[:, 0])).sum()
    n_skips = frame["label"].null_count()
    assert lines[0] == f"{240 - n_skips} labels and {n_skips} skips by 2 raters on 40 items"
    in_order = sorted(alphas, key=alphas.get)
    assert [line.partition(":")[0] for line in lines[1:4]] == in_order
    for name, line in zip(in_order, lines[1:4], strict=True):
        assert f"alpha {alphas[name]:.2f} (Krippendorff, interval)" in line
    with_them = {name: by_votes(of, True) for name, of in means.items()}
    said = [
        line.partition(". ")[0] for line in lines if " mean grade of new items like these" in line
    ]
    assert said == [
        f"{name}: mean grade of new items like these, by {n_labels[name]} labels"
        f"{with_them[name]}: {mean}"
        for name, mean in sorted(means.items(), key=lambda by: by[1].value)
    ]


def test_drawn_criteria_of_an_item_are_those_that_are_asked_for(tmp_path, cli):
    responses_file(tmp_path, 6)
    drawn = {"id": ["gpt-9-004", "gpt-9-004", "gpt-9-001"], "probability": [0.5, 0.25, 1.0],
             "task": ["clear", "kind", "correct"]}  # fmt: skip
    pl.DataFrame(drawn).write_csv(tmp_path / "to_label.csv")
    asked = {"gpt-9-004": ["clear", "kind"], "gpt-9-001": ["correct"]}
    graded(tmp_path, 2, 1, np.random.default_rng(0), items=[*asked], criteria=asked)
    exported(cli, tmp_path, "--drawn", tmp_path / "to_label.csv", "--set", "labels.scale=1-5")
    frame = pl.read_csv(tmp_path / "human.csv")
    assert frame.select("item", "criterion", "probability").rows() == [
        (*row, probability)
        for row, probability in zip(
            [(item, name) for item, names in asked.items() for name in names],
            drawn["probability"], strict=True,
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("write", "options", "message"),
    [
        (
            responses_file,
            [],
            "--set labels.scale is missing, expected a scale for single responses",
        ),
        (
            pairs_file,
            ["--set", "labels.scale=1-5"],
            "--set labels.scale is (1, 2, 3, 4, 5), expected none, since these are pairs",
        ),
        (
            responses_file,
            ["--set", "labels.scale=good"],
            "--set labels.scale is 'good', expected 1-5",
        ),
        (
            responses_file,
            ["--set", "labels.scale=pass/fail"],
            "expected one of 0 or 1; use another store",
        ),
    ],
)
def test_scales_that_do_not_fit_are_refused(tmp_path, cli, write, options, message):
    responses_file(tmp_path, 3)
    graded(tmp_path, 3, 1, np.random.default_rng(0))
    write(tmp_path, 3)
    arguments = ["label", tmp_path / "pairs.jsonl", "--export", "-s", tmp_path / "human.db"]
    status, _, err = cli(*arguments, "-o", tmp_path / "new.csv", *options)
    assert status == 2
    assert message in err


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_no_text_of_a_rater_runs_in_a_spreadsheet_and_all_are_read_as_written(
    cli, tmp_path, suffix
):
    pairs = read_pairs(pairs_file(tmp_path, 9))
    store, session = session_of(tmp_path, pairs)
    raters = ["=1+1", "+cot", "-x", "@sum", "'=x", "-1", "O'Neil", "Ada"]
    notes = ['=HYPERLINK("http://example.org")', "- dull", "'", "''+a", "\t=a", "", "a=b", "@me"]
    with store:
        for rater, note in zip(raters, notes, strict=True):
            session.keep(rater, session.view(rater)["key"], ["tie"], 1, note)
        written = [(answer.rater, answer.note) for answer in store.answers()]
    output = tmp_path / f"human{suffix}"
    for _ in range(2):  # the second time over the file of the first
        exported(cli, tmp_path, name=output.name)
    read = read_table(output, []).frame
    assert sorted(read.select("rater", pl.col("note").fill_null("")).rows()) == sorted(written)
    if suffix != ".parquet":
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
    store, session = session_of(tmp_path, read_pairs(tmp_path / "pairs.jsonl"))
    with store:
        session.keep("Ben", session.view("Ben")["key"], ["tie"], 1, "")
        (answer,) = store.answers()
    arguments = ["label", tmp_path / "pairs.jsonl", "--export", "-s", tmp_path / "human.db"]
    status, _, err = cli(*arguments, "-o", output)
    assert status == 2
    assert "which has a label of item 'gpt-9-000' by Ada that" in err
    assert output.read_text() == text
    output.write_text(f"item,rater,label,seconds,note\n{answer.item},Ben,-1,1.0,\n")
    assert cli(*arguments, "-o", output)[0] == 0
    assert pl.read_csv(output)["label"].to_list() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "human.txt"], "--output is 'human.txt', expected a name in .csv"),
        (["--items", "9"], "is 9, but there are only 4 items to label"),
        (["--items", "0"], "--items is 0, expected at least 1"),
        (["--host", "0.0.0.0"], "which other machines can reach, expected"),
        (["--drawn", "other.csv"], "item 'other' is to be labelled, but is not among"),
        (["--drawn", "twice.csv"], "twice.csv"),
        (["--drawn", "chance.csv"], "probability"),
        (["--set", "group=nothing"], "column group: got nothing, expected a group name"),
        (["--export"], "human.db: no such file"),
        (["--export", "-s", "new.db"], "new.db has no labels to write"),
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


# Who gets in


def test_the_token_becomes_a_cookie_and_leaves_the_address(client):
    status, headers, page = client.ask("GET", f"/?token={TOKEN}", cookie=None)
    assert status == 200
    assert headers["set-cookie"] == (
        f"btdagg_label_8000={TOKEN}; HttpOnly; Path=/; SameSite=strict"
    )
    assert b'http-equiv="refresh" content="0; url=/"' in page
    assert TOKEN.encode() not in page
    assert headers["referrer-policy"] == "no-referrer"
    assert client.ask("GET", "/?token=another", cookie=None)[0] == 403


GOOD = {"rater": "Eve", "key": "0", "choices": ["tie"], "seconds": 1, "note": ""}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"cookie": None}, 403),
        ({"cookie": "btdagg_label_1=x"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:1"}, 421),
        ({"origin": None}, 403),
        ({"origin": "http://evil.example"}, 403),
    ],
)
def test_requests_from_elsewhere_are_refused(client, headers, status):
    assert client.ask("POST", "/label", GOOD, **headers)[0] == status
    if "origin" not in headers:
        for path in ("/", "/item?rater=Eve", "/differences?rater=Eve&key=0", "/nothing"):
            assert client.ask("GET", path, **headers)[0] == status
    assert client.item("Eve")["n_answered"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": "0"}, "this pair is no longer to be labelled"),
        ({"choices": ["A"]}, "choices is ['A'], expected 1 of "),
        ({"seconds": -1}, "seconds: "),
        ({"seconds": float("nan")}, "seconds: "),
        ({"note": "x" * 10_001}, "note: "),
        ({"rater": " "}, "rater is empty, expected a name"),
        ({"rater": "x" * 81}, "rater is not a name of at most 80 printable characters"),
        ({"rater": "a\u202eb"}, "rater is not a name"),
        ({"more": 1}, "more: "),
    ],
)
def test_what_the_page_does_not_send_is_refused(client, change, message):
    good = {**GOOD, "key": client.item("Eve")["key"]}
    status, _, content = client.ask("POST", "/label", {**good, **change})
    assert status == 422
    assert message in json.loads(content)["detail"]
    assert client.item("Eve")["n_answered"] == 0


def test_a_body_is_limited_with_the_cookie_too(client):
    good = {**GOOD, "key": client.item("Eve")["key"]}
    too_long = json.dumps({**good, "note": "x" * 300_000}).encode()
    for body in (too_long, iter([too_long]), iter([b" " * 100_000] * 10)):
        assert client.ask("POST", "/label", body)[0] == 413
    both = {"content-length": "5", "transfer-encoding": "chunked"}
    assert client.ask("POST", "/label", too_long, **both)[0] == 413
    assert client.item("Eve")["n_answered"] == 0
    assert client.ask("POST", "/label", {**good, "note": "\N{GRINNING FACE}" * 10_000})[0] == 200


def test_every_answer_forbids_what_the_page_does_not_need(client):
    for path, status in (("/", 200), ("/item?rater=Ada", 200), ("/item", 422), ("/no", 404)):
        shown, headers, _ = client.ask("GET", path)
        assert shown == status
        assert headers["content-security-policy"].startswith("default-src 'none'; ")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    page = client.ask("GET", "/")[2]
    assert not re.search(rb"<[^>]* (on\w+|style)\s*=", page)
    assert not re.search(rb"(src|href)=\"(?!data:,)", page)


def test_behind_a_proxy_its_name_is_served_and_no_other(tmp_path, start):
    pairs_file(tmp_path, 3)
    server = start("--host", "0.0.0.0", "--behind-proxy", "labels.example.org:8443")
    assert server.address.startswith("https://labels.example.org:8443/?token=")
