"""`btdagg gate --sequential`: killed, continued, repeated, and given another file by mistake."""

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from commands import Fork, one_line
from draws import drawn

GATE = ("gate", "votes.csv", "labels.csv", "--candidate", "new", "--baseline", "old")
STATE = "gate.json"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts, labels = drawn(400, 400, 0.2)
    rows = np.repeat(np.arange(400), counts.sum(axis=1))
    vote = np.concatenate([np.repeat([-1, 0, 1], row) for row in counts])
    table = {"item": rows, "vote": vote, "system_a": "new", "system_b": "old"}
    pl.DataFrame(table).with_columns(task=pl.col("item") % 2).write_csv("votes.csv")
    gold = pl.DataFrame({"item": np.arange(400), "label": labels.astype(int)})
    gold.sample(fraction=1, shuffle=True, seed=0).write_csv("all.csv")
    label(30)
    return tmp_path


def label(n):
    pl.read_csv("all.csv").head(n).write_csv("labels.csv")


def looked(cli, *options):
    status, out, err = cli(*GATE, "--margin", 0.05, "--sequential", STATE, "--json", *options)
    assert status in (0, 1), err
    (found,) = json.loads(out)
    assert status == int(found["outcome"] != "not worse")
    return found


def test_labels_are_added_until_there_is_an_answer(cli):
    lower = -1.0
    for look, n in enumerate((30, 31, 60, 120, 400), 1):
        label(n)
        found = looked(cli)
        assert (found["n_labels"], found["n_looks"]) == (n, look)
        assert found["lower"] >= lower
        lower = found["lower"]
    assert found["outcome"] == "not worse"
    again = looked(cli)
    assert again["n_looks"] == 6
    for name in ("estimate", "lower", "upper", "n_labels"):
        assert again[name] == found[name]


def test_one_look_at_all_is_the_last_of_many_but_for_their_order(cli):
    label(400)
    whole = looked(cli)
    Path(STATE).unlink()
    for n in (10, 200, 400):
        label(n)
        found = looked(cli)
    assert found["estimate"] == pytest.approx(whole["estimate"])
    assert found["n_labels"] == whole["n_labels"]
    # One after the other or at once, units come in an order that is none of the labels'.
    units = [unit["unit"] for unit in json.loads(Path(STATE).read_text())["counted"]]
    assert len(units) == len(set(units)) == 400


KILLED = """
import os, signal
replace = os.replace
def killed(*arguments):
    if {after}:
        replace(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = killed
"""


@pytest.mark.parametrize("after", [False, True])
def test_a_killed_look_is_not_lost_and_counts_nothing_twice(cli, folder, after):
    first = looked(cli)
    kept = Path(STATE).read_bytes()
    label(60)
    killed = Fork(
        folder, *GATE, "--margin", 0.05, "--sequential", STATE, before=KILLED.format(after=after)
    )
    assert killed.wait(120) == -signal.SIGKILL
    if not after:
        assert Path(STATE).read_bytes() == kept
    state = json.loads(Path(STATE).read_text())
    assert len(state["counted"]) == (60 if after else 30)
    found = looked(cli)
    assert (found["n_labels"], found["n_looks"]) == (60, 3 if after else 2)
    Path(STATE).write_bytes(kept)
    without = looked(cli)
    for name in ("estimate", "lower", "upper"):
        assert found[name] == without[name]
    assert found["lower"] >= first["lower"]


def test_of_two_looks_at_once_none_loses_what_the_other_counted(cli, folder):
    looked(cli)
    label(200)
    runs = [Fork(folder, *GATE, "--margin", 0.05, "--sequential", STATE) for _ in range(3)]
    threads = [threading.Thread(target=run.wait, args=(120,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {run.returncode for run in runs} <= {0, 1, 2}
    found = looked(cli)
    assert found["n_labels"] == 200
    units = [unit["unit"] for unit in json.loads(Path(STATE).read_text())["counted"]]
    assert len(units) == len(set(units)) == 200


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("votes.csv", None, "--sequential is votes.csv, an input file"),
        ("other.csv", "item,label\n1,1\n", "not a table such as votes"),
        (
            "model.json",
            '{"format": "davidson", "version": 1}',
            "not a btdagg state of a sequential gate",
        ),
        ("old.json", '{"format": "sequential gate", "version": 9}', "version 9"),
        ("broken.json", '{"format": "sequential gate", "version": 1}', "cannot be made again"),
        ("empty.json", "", "not JSON"),
        ("folder", None, "folder"),
    ],
)
def test_another_file_by_mistake_is_refused_and_left_alone(cli, folder, name, content, said):
    if name == "folder":
        Path(name).mkdir()
    elif content is not None:
        Path(name).write_text(content)
    before = Path(name).read_bytes() if Path(name).is_file() else None
    message = one_line(*cli(*GATE, "--margin", 0.05, "--sequential", name))
    assert said in message
    assert before is None or Path(name).read_bytes() == before


def test_the_file_of_another_gate_is_refused(cli):
    looked(cli)
    kept = Path(STATE).read_bytes()
    for options, said in (
        (("--margin", 0.1), "is of a gate with margin 0.05, not 0.1"),
        (("--margin", 0.05, "--level", 0.9), "is of a gate with level 0.95, not 0.9"),
        (("--margin", 0.05, "--set", "population=finite"), "is of a gate with population"),
    ):
        assert said in one_line(*cli(*GATE, *options, "--sequential", STATE))
    other = pl.read_csv("all.csv").tail(40)
    other.write_csv("labels.csv")
    assert "was counted as" in one_line(*cli(*GATE, "--margin", 0.05, "--sequential", STATE))
    assert Path(STATE).read_bytes() == kept
    os.chmod(STATE, 0o444)  # a file that is replaced need not be writable
    label(31)
    assert looked(cli)["n_labels"] == 31


def test_each_value_of_a_column_has_a_file(cli):
    label(200)
    how = ("--margin", 0.3, "--sequential", STATE, "--by", "task", "--json")
    status, out, _ = cli(*GATE, *how)
    assert status in (0, 1)
    assert [gate["gate"] for gate in json.loads(out)] == ["0", "1"]
    names = sorted(path.name for path in Path().glob("gate-*.json"))
    assert names == ["gate-0.json", "gate-1.json"]
    assert not Path(STATE).exists()
    _, again, _ = cli(*GATE, *how)
    assert [gate["n_looks"] for gate in json.loads(again)] == [2, 2]
