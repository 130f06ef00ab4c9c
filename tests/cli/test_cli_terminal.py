"""What is printed on terminals: narrow ones, ASCII, and with names that would control them."""

import json
import os
import re
import subprocess
import sys
import unicodedata

import numpy as np
import polars as pl
import pytest

from btdagg import DavidsonModel
from btdagg.datasets import simulate
from commands import on_terminal, plain
from judging import config, pairs_of

pytestmark = pytest.mark.usefixtures("quick_commands")

MODEL = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)
SAMPLE = simulate("rb2-focus", 120, 8, seed=2)
JUDGES = ["gemini-2.5-flash-thinking-preview-05-20", "openai/gpt-5.4-mini-2026-03-01"]
TASK = "translation from English to German"
EVIL = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J\u202egnp.exe\r\n\ttab"
SHOWN = r"\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J\u202egnp.exe\r"


def write_votes(path, judges, task):
    votes = pl.DataFrame(SAMPLE.vote_columns())
    several = [
        votes.with_columns(judge=pl.lit(judge), task=pl.lit(task), vote=pl.col("vote") * sign)
        for judge, sign in zip(judges, (1, -1), strict=False)
    ]
    pl.concat(several).write_csv(path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: votes of two judges with long names, labels, ratings, a model."""
    monkeypatch.chdir(tmp_path)
    write_votes("votes.csv", JUDGES, TASK)
    pl.DataFrame(SAMPLE.label_columns()).write_csv("labels.csv")
    rng = np.random.default_rng(0)
    raters = [f"a rater from the second group, number {k}" for k in range(3)]
    ratings = {
        "item": np.tile(SAMPLE.items, 3),
        "rater": np.repeat(raters, 120),
        "vote": np.where(rng.random(360) < 0.7, np.tile(SAMPLE.labels, 3), 0),
    }
    pl.DataFrame(ratings).write_csv("ratings.csv")
    MODEL.save("model.json")
    return tmp_path


def width_of(line):
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


def table_in(printed):
    """Lines of the printed tables, without notes, which are one line however long."""
    return [
        line for line in plain(printed).splitlines() if not line.startswith(("rank: ", "A wins "))
    ]


EVALUATE = [
    *("paper", "evaluate", "votes.csv", "labels.csv"),
    *("--prior", "none", "--splits", 2, "-n", "4,8"),
]


def test_every_number_of_an_evaluation_is_on_a_narrow_terminal(cli, folder):
    command = [*EVALUATE, "--methods", "davidson,majority,isotonic"]
    found = json.loads(cli(*command, "--json")[1])
    printed = on_terminal(*command, columns=60, streams=["stdout"])
    shown = table_in(printed)
    assert max(map(width_of, shown)) <= 60
    text = "\n".join(shown)
    names = [*JUDGES, TASK, *(line["method"] for line in found["lines"])]
    assert all(name in text for name in names)
    counted = {}
    for line in found["lines"] + found["averages"]:
        for score in ("mae", "accuracy"):
            half = f"{line[f'{score}_high'] - line[score]:.3f}".removeprefix("0")
            value = f"{line[score]:.3f} ±{half}"
            counted[value] = counted.get(value, 0) + 1
    assert {value: text.count(value) for value in counted} == counted


def test_a_store_is_shown_whole(cli, folder, judge_server):
    pairs_of(6).frame.write_ndjson("pairs.jsonl")
    served = [
        "--model",
        "m",
        "--set",
        f"judge.base_url={judge_server().url}",
        *config(judge=JUDGES[0]),
    ]
    assert cli("judge", "pairs.jsonl", *served, "-n", 2, "-s", "v.db")[0] == 0
    printed = plain(on_terminal("votes", "v.db", streams=["stdout"]))
    assert f"judge {JUDGES[0]}, template response\n  sample " in printed
    (summary,) = json.loads(cli("votes", "v.db", "--json")[1])
    assert re.search(rf" 6 +12 +0 +{summary['tie_rate']:.1%}", printed)
    assert f" {summary['prompt_tokens'] + summary['completion_tokens']} " in printed
    assert max(map(len, printed.splitlines())) <= 80


# ASCII


def test_no_encoding_loses_a_result(folder):
    done = subprocess.run(
        [sys.executable, "-m", "btdagg", *map(str, EVALUATE)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    out = done.stdout.decode("ascii")
    assert "\\u" not in out
    assert "\\x" not in out
    assert len(re.findall(r" (?:\+/-|±)\.\d{3}", out)) == 2 * 2 * (2 * 2 + 2)


def test_names_that_ascii_lacks_are_escapes_and_data_are_not(folder):
    pl.DataFrame({"item": ["größe", "日本"], "minus": 1, "tie": 2, "plus": 3}).write_csv("n.csv")
    command = [sys.executable, "-m", "btdagg", "decide", "model.json"]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    run = {"capture_output": True, "env": ascii_only, "check": True}
    done = subprocess.run([*command, "n.csv"], **run)
    assert [line.split(",")[0] for line in done.stdout.decode().splitlines()[1:]] == [
        "größe",
        "日本",
    ]
    done = subprocess.run([*command, "n.csv", "-o", "größe.csv"], **run)
    assert done.stdout.decode("ascii").endswith("; wrote gr\\xf6\\xdfe.csv\n")
    shown = on_terminal("decide", "model.json", "n.csv", PYTHONIOENCODING="ascii")
    assert "\ngr\\xf6\\xdfe," in shown


# Names that would control the terminal


CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_names_do_not_reach_the_terminal_as_control_sequences(cli, folder):
    write_votes("evil.csv", [EVIL, "h"], EVIL + "task")
    for command in (
        ["paper", "evaluate", "--prior", "none", "evil.csv", "labels.csv", "--splits", 2],
        ["votes", "evil.csv"],
        ["calibrate", "--prior", "none", "evil.csv", "labels.csv", "-o", "new.json"],
        ["evaluate", "--prior", "none", "evil.csv", "labels.csv", "-f", "judge=k"],
        ["evaluate", "--prior", "none", f"evil{EVIL}.csv", "labels.csv"],
        ["evaluate", "--prior", "none", "evil.csv", "labels.csv", f"--{EVIL}"],
        [EVIL],
    ):
        _, out, err = cli(*command)
        assert not CONTROL.search(out + err)
        assert r"\x1b[31mred" in out + err
    terminal = on_terminal("votes", "evil.csv", streams=["stdout"])
    assert not CONTROL.search(plain(terminal))
    assert SHOWN + r"\n\ttab" in plain(terminal)


def test_data_are_exact_in_a_pipe_and_shown_on_a_terminal(cli, folder):
    name = EVIL.replace("\r\n\t", "")
    pl.DataFrame({"item": [name], "minus": 1, "tie": 2, "plus": 3}).write_csv("evil.csv")
    status, out, _ = cli("decide", "model.json", "evil.csv")
    assert status == 0
    assert pl.read_csv(out.encode())["item"].to_list() == [name]
    printed = on_terminal("decide", "model.json", "evil.csv", streams=["stdout"])
    assert not CONTROL.search(printed)
    assert SHOWN.removesuffix(r"\r") in printed
