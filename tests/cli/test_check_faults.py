"""Faults of rows and keys that `btdagg check` finds, each with the words that mend it."""

import json
import random
import re
import shlex
import tomllib

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(name, head, rows):
    lines = [",".join(map(str, row)) for row in rows]
    with open(name, "w", encoding="utf-8", newline="") as file:
        file.write("\n".join([head, *lines]) + "\n")
    return name


def voted(items=range(40), n=2, name="votes.csv"):
    rows = [(f"q{item}", k, "AB"[(item + k) % 3 == 0]) for item in items for k in range(n)]
    return written(name, "item,sample,vote", rows)


def labelled(items=range(20), name="labels.csv"):
    return written(name, "item,label", [(f"q{item}", "AB"[item % 3 == 0]) for item in items])


def checked(cli, *arguments):
    status, out, err = cli("check", *arguments)
    return status, " ".join((out + err).split())


# The project file and typed keys


def strangers(folder):
    rng = random.Random(1)
    rows = [(f"c{n}", rng.choice(("good", "bad")), "g") for n in range(30) for _ in range(2)]
    written("mine.csv", "case no,opinion,who", rows)
    written("people.csv", "case no,truth", [(f"c{n}", "AB"[n % 2]) for n in range(15)])


def test_typed_keys_answer_what_is_open(folder, cli, quick_commands):
    """The line that is printed is filled in, typed, and the answer goes on from there."""
    strangers(folder)
    status, out, _ = cli("check", "mine.csv", "people.csv")
    assert status == 2
    assert "name it: --set item=COLUMN" in out
    assert "--set votes.vote=COLUMN" in out
    keys = ("--set", "item=case no", "--set", "labels.label=truth", "--set", "votes.vote=opinion")
    status, out, _ = cli("check", "mine.csv", "people.csv", *keys)
    assert (status, "unknown words" in out) == (2, True)
    (line,) = (line for line in out.splitlines() if line.startswith("Next, fill in"))
    line = line.partition(": btdagg ")[2].replace("good=...", "good=A").replace("bad=...", "bad=B")
    status, out, err = cli(*shlex.split(line))
    assert status == 0, out + err
    assert "15 items of 30 have votes and a label." in out
    command = out.splitlines()[-1].removeprefix("Next: btdagg ")
    assert command.startswith("estimate mine.csv people.csv --set ")
    assert cli(*shlex.split(command))[0] == 0


def test_the_project_file_is_read_and_without_names_its_files_are_checked(folder, cli):
    strangers(folder)
    with open("btdagg.toml", "w") as file:
        file.write('raters = "majority"\n[votes]\nfile = "mine.csv"\nitem = "case no"\n')
        file.write('vote = "opinion"\nwords = {good = "A", bad = "B"}\n')
        file.write('[labels]\nfile = "people.csv"\nitem = "case no"\nlabel = "truth"\n')
    status, out, err = cli("check")
    assert (status, err) == (0, "project: btdagg.toml\n")
    assert out.startswith("mine.csv: votes in the format table; 30 items; 60 votes")
    assert out.splitlines()[-1] == "Next: btdagg estimate"
    # Files are matched to their tables by path, others by their content.
    (folder / "mine.csv").rename("other.csv")
    assert cli("check", "./people.csv", "other.csv")[0] == 0
    status, out, _ = cli("check", "other.csv", "people.csv", "--set", "labels.scale=1-5")
    assert status == 2
    assert "label" in out
    # What the file says is kept where it is written again.
    (folder / "other.csv").rename("mine.csv")
    cli("check", "--save")
    (folder / "btdagg.toml").unlink()
    keys = "item=case no,votes.vote=opinion,labels.label=truth,votes.words.good=A,votes.words.bad=B"
    saved = ("--set", keys, "--set", "raters=majority", "--save")
    assert cli("check", "mine.csv", "people.csv", *saved)[0] == 0
    said = tomllib.loads((folder / "btdagg.toml").read_text())
    assert said["raters"] == "majority"
    assert said["votes"]["words"] == {"good": "A", "bad": "B"}
    before = (folder / "btdagg.toml").read_text()
    assert cli("check", "--save")[0] == 0
    assert (folder / "btdagg.toml").read_text() == before
    assert cli("estimate")[0] == 0


def test_a_project_of_another_folder_has_paths_of_its_own(folder, cli):
    (folder / "sub").mkdir()
    voted(name="sub/votes.csv"), labelled(name="labels.csv")
    assert cli("check", "sub/votes.csv", "labels.csv", "--save", "--project", "sub/p.toml")[0] == 0
    keys = tomllib.loads((folder / "sub/p.toml").read_text())
    assert (keys["votes"]["file"], keys["labels"]["file"]) == ("votes.csv", "../labels.csv")
    status, out, _ = cli("check", "--project", "sub/p.toml")
    assert status == 0
    assert out.splitlines()[-1] == "Next: btdagg evaluate --project sub/p.toml"
    assert cli("estimate", "--project", "sub/p.toml")[0] == 0


def test_a_column_that_no_file_has_is_refused_by_its_option(folder, cli):
    voted()
    status, text = checked(cli, "votes.csv", "--set", "judge=nobody")
    assert status == 2
    assert "--set judge=nobody: no column 'nobody' in votes.csv" in text
    status, text = checked(cli, "votes.csv", "--set", "votes.judge=nobody")
    assert (status, "--set votes.judge" in text) == (2, True)


def test_without_files_and_a_project_the_files_are_asked_for(folder, cli):
    status, text = checked(cli)
    assert (status, "name files" in text) == (2, True)


# Data of items


def of_items(items=range(40), name="items.csv", extra=()):
    rows = [(f"q{item}", 10 + item, f"p{item // 2}") for item in items]
    return written(name, "item,chars,group", [*rows, *extra])


def test_data_of_items_are_found_and_go_into_the_project(folder, cli):
    voted(), labelled(), of_items(range(30))
    status, out, _ = cli("check", "votes.csv", "labels.csv", "items.csv", "--save")
    assert status == 0
    assert "items.csv: items; 30 items; columns item, chars, group." in out
    assert "covers 30 of 40 items of the votes" in out
    assert "labels; 20 labels" in out
    keys = tomllib.loads((folder / "btdagg.toml").read_text())
    assert keys["items"] == {"file": "items.csv"}
    status, out, _ = cli("estimate", "--json")
    assert status == 0
    assert json.loads(out)["n_groups"] == 10  # the groups of 20 labels
    status, out, _ = cli("check", "--json")
    assert [file["kind"] for file in json.loads(out)["files"]] == ["votes", "labels", "items"]


def test_an_item_twice_or_of_no_vote_is_refused(folder, cli):
    voted(), of_items(extra=[("q3", 1, "p")])
    status, text = checked(cli, "votes.csv", "items.csv")
    assert status == 2
    assert "wrong: item 'q3' is there twice, in rows 4 and 41; keep one row of each item" in text
    of_items(range(100, 120))
    status, text = checked(cli, "votes.csv", "items.csv")
    assert status == 2
    assert "no item has both: the 20 rows are of 'q100', where votes have 'q0'" in text


# What is wrong with rows


def in_orders(turned, n=160):
    rng = np.random.default_rng(0)
    gold = rng.integers(-1, 2, n)
    rows = []
    for item in range(n):
        for order, sign in (("AB", 1), ("BA", -1)):
            lead = 1.5 * gold[item] + rng.normal()
            vote = int(np.sign(lead)) if abs(lead) > 0.4 else 0
            word = {1: "A", 0: "tie", -1: "B"}[vote if turned else sign * vote]
            rows.append((f"q{item}", order, word))
    written("votes.csv", "item,order,vote", rows)
    labels = [(f"q{item}", label) for item, label in enumerate(gold)]
    written("labels.csv", "item,label", labels[:80])


def test_orders_that_are_not_turned_round_are_wrong_and_mended_by_the_words(folder, cli):
    in_orders(turned=True)
    assert checked(cli, "votes.csv", "labels.csv")[0] == 0
    in_orders(turned=False)
    status, text = checked(cli, "votes.csv", "labels.csv")
    assert status == 2
    assert "Votes in order BA look as if 'A' named the response shown first" in text
    cure = "votes.words.a=first,votes.words.b=second"
    assert f"read them with --set {cure}" in text
    status, text = checked(cli, "votes.csv", "labels.csv", "--set", cure)
    assert (status, "turned round" in text) == (0, False)
    assert "--set votes.words.a=first,votes.words.b=second" in text  # for the next command
    frame = pl.read_csv("votes.csv")
    frame.with_columns(pl.col("vote").replace({"A": "1", "B": "-1", "tie": "0"})).write_csv("n.csv")
    status, text = checked(cli, "n.csv", "labels.csv")
    numbers = "votes.words.1=first,votes.words.-1=second"
    assert (status, f"--set {numbers}" in text) == (2, True)
    assert checked(cli, "n.csv", "labels.csv", "--set", numbers)[0] == 0


def test_labels_of_no_item_are_counted_with_an_example_of_each_side(folder, cli):
    voted(), labelled(range(30, 60))
    status, text = checked(cli, "votes.csv", "labels.csv")
    assert status == 0
    assert (
        "20 of 30 ids of labels match no item of the votes, such as 'q40', where votes have" in text
    )
    labelled(range(50, 60))
    status, text = checked(cli, "votes.csv", "labels.csv")
    assert status == 2
    assert "wrong: no item has both: the 10 labels are of 'q50', where votes have 'q0'" in text
    assert "--set labels.item=..." in text


def test_labels_that_are_lost_by_how_their_ids_are_written_are_wrong(folder, cli):
    voted()
    rows = [(f"{'Q' if item % 4 == 0 else 'q'}{item}", "AB"[item % 3 == 0]) for item in range(20)]
    written("labels.csv", "item,label", rows)
    status, text = checked(cli, "votes.csv", "labels.csv")
    assert status == 2
    assert "wrong: 5 of 20 ids of labels match no item of the votes" in text
    assert "ids of 5 items differ only in case" in text


def test_labels_of_nearly_every_item_are_counted_by_criterion(folder, cli):
    # Each item has a label of one criterion, and none of the other.
    cells = [(f"q{item}", name) for item in range(60) for name in ("x", "y")]
    written(
        "votes.csv", "item,criterion,score", [(*cell, n % 5 + 1) for n, cell in enumerate(cells)]
    )
    gold = [(item, "xy"[n % 2], n % 5 + 1) for n, (item, _) in enumerate(cells[::2])]
    written("labels.csv", "item,criterion,label", gold)
    scales = "votes.scale=1-5,labels.scale=1-5"
    status, text = checked(cli, "votes.csv", "labels.csv", "--set", scales)
    assert (status, "nearly the same" in text) == (0, False), text


def test_numbers_on_both_sides_of_0_are_read_as_margins_as_check_says(folder, cli):
    written("votes.csv", "id,preference", [(f"q{n}", n % 5 - 2) for n in range(20)])
    status, text = checked(cli, "votes.csv")
    assert status == 2
    cure = re.search(r"--set votes.margin=preference", text)[0]
    status, text = checked(cli, "votes.csv", *cure.split())
    assert (status, "20 votes" in text, "ties 20%" in text) == (0, True, True), text


def test_a_second_file_is_asked_for_labels_and_an_open_answer_is_asked_once(folder, cli):
    voted()
    said = [(f"q{item}", who, "A") for item in range(20) for who in ("x", "y")]
    written("people.csv", "item,who,said", said)
    status, text = checked(cli, "votes.csv", "people.csv")
    assert status == 2
    assert "--set labels.label=..." in text
    status, text = checked(cli, "votes.csv", "people.csv", "--set", "labels.label=...")
    assert text.count("labels.label=...") == 1


@pytest.mark.parametrize(
    ("form", "other", "difference"),
    [
        ("00{}", "{}", "leading zeros"),
        ("q{}", "Q{}", "case"),
        ("a b{}", "ab{}", "blanks"),
        ("cafe\u0301{}", "caf\u00e9{}", "NFC"),
        ("q\u200b{}", "q{}", "invisible"),
    ],
)
def test_ids_that_look_alike_are_said_between_tables_and_within_one(
    folder, cli, form, other, difference
):
    votes = [(form.format(n), "AB"[n % 2]) for n in range(10, 30)]
    written("votes.csv", "item,vote", votes)
    written("labels.csv", "item,label", [(other.format(n), "A") for n in range(10, 20)])
    status, text = checked(cli, "votes.csv", "labels.csv")
    assert (status, difference in text) == (2, True)
    written("votes.csv", "item,vote", [*votes, (other.format(10), "A")])
    status, text = checked(cli, "votes.csv")
    assert status == 0
    assert re.search(f"ids of 1 items differ only in .*{difference}", text)
    assert "if they are one item, write its id in one way" in text


@pytest.mark.parametrize(
    ("head", "fate"),
    [
        ("item,judge,vote", "without a column sample each counts as a vote"),
        ("item,sample,vote", "they count once"),
    ],
)
def test_whole_rows_that_are_repeated_are_counted(folder, cli, head, fate):
    rows = [(f"q{n}", k, "AB"[n % 2]) for n in range(20) for k in range(2)]
    written("votes.csv", head, [*rows, *rows[:3]])
    status, text = checked(cli, "votes.csv")
    assert status == 0
    assert f"3 rows repeat an earlier row in all columns, the first is row 41; {fate}" in text
    assert ("43 votes" in text) == ("sample" not in head)
    written("votes.csv", head, rows)
    assert "repeat" not in checked(cli, "votes.csv")[1]


def test_judges_without_a_vote_or_a_name_are_said(folder, cli):
    rows = [(f"q{n}", judge, "AB"[n % 2]) for n in range(20) for judge in ("x", "y")]
    silent = [(f"q{n}", "mute", "") for n in range(20)]
    written("votes.csv", "item,judge,vote", [*rows, *silent, ("q1", "", "A"), ("q2", "", "B")])
    status, text = checked(cli, "votes.csv")
    assert status == 0
    assert "every vote of mute is missing: ask again" in text
    assert "2 rows without a judge: fill in the column judge" in text
    written("votes.csv", "item,judge,vote", rows)
    text = checked(cli, "votes.csv")[1]
    assert "every vote" not in text
    assert "without a judge" not in text


def test_unequal_numbers_of_votes_are_said_with_the_numbers(folder, cli):
    rows = [(f"q{n}", k, "AB"[n % 2]) for n in range(30) for k in range(8 if n < 25 else n - 22)]
    written("votes.csv", "item,sample,vote", rows)
    status, text = checked(cli, "votes.csv")
    assert (status, "25 items have 8 votes, 5 have 3 to 7, such as 'q25'" in text) == (0, True)
    voted()
    assert "models take any number" not in checked(cli, "votes.csv")[1]


def test_half_of_an_order_is_said(folder, cli):
    rows = [(f"q{n}", order, "A") for n in range(30) for order in ("AB", "BA")]
    lost = [row for row in rows if row[:2] not in {("q1", "BA"), ("q2", "BA"), ("q3", "AB")}]
    written("votes.csv", "item,order,vote", lost)
    status, text = checked(cli, "votes.csv")
    assert status == 0
    assert "27 items have votes in both orders, 2 in order AB only and 1 in order BA only" in text
    for kept in (rows, [row for row in rows if row[1] == "AB"]):
        written("votes.csv", "item,order,vote", kept)
        assert "both orders" not in checked(cli, "votes.csv")[1]


def test_a_label_for_nearly_every_item_is_said(folder, cli):
    said = "an estimate from labels alone is nearly the same; when new votes come, label a random"
    voted(range(60)), labelled(range(55))
    status, text = checked(cli, "votes.csv", "labels.csv")
    assert (status, f"55 of 60 items have a label, so {said}" in text) == (0, True)
    labelled(range(53))
    assert said not in checked(cli, "votes.csv", "labels.csv")[1]
    voted(range(40)), labelled(range(40))
    assert said not in checked(cli, "votes.csv", "labels.csv")[1]


def test_votes_of_0_and_1_are_asked_about_until_they_are_said(folder, cli):
    written("votes.csv", "item,vote", [(n, n % 2) for n in range(24)])
    assert checked(cli, "votes.csv")[0] == 2
    for keys, part in (
        ("votes.words.0=B,votes.words.1=A", "ties 0%"),
        ("votes.scale=pass/fail", "mean grade 0.50"),
    ):
        status, text = checked(cli, "votes.csv", "--set", keys)
        assert (status, part in text) == (0, True), text


def test_the_status_is_2_exactly_where_a_line_says_wrong(folder, cli):
    voted(), labelled()
    good = checked(cli, "votes.csv", "labels.csv")
    labelled(range(100, 120))
    bad = checked(cli, "votes.csv", "labels.csv")
    assert [(status, "wrong:" in text) for status, text in (good, bad)] == [(0, False), (2, True)]
