"""`btdagg gate`: status, table, JUnit and Markdown, and the names that say the direction."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.estimates import not_worse
from draws import drawn

PAIR = ("--candidate", "new", "--baseline", "old")


def write(counts, labels, **columns):
    item = np.array([f"q{row}" for row in range(len(counts))])
    rows = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    vote = np.concatenate([np.repeat([-1, 0, 1], row) for row in counts])
    own = {name: np.broadcast_to(values, len(counts))[rows] for name, values in columns.items()}
    pl.DataFrame({"item": item[rows], "vote": vote} | own).write_csv("votes.csv")
    is_labelled = ~np.isnan(labels)
    gold = {"item": item[is_labelled], "label": labels[is_labelled].astype(int)}
    pl.DataFrame(gold | {"probability": 0.3}).write_csv("labels.csv")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A is the new system, which is better; in half of the items a task."""
    monkeypatch.chdir(tmp_path)
    write(*drawn(400, 120, 0.2), system_a="new", system_b="old", task=["x", "y"] * 200)
    return tmp_path


def gate(cli, *options, names=("--filter", "task=x", *PAIR)):
    return cli("gate", "votes.csv", "labels.csv", *options, *names)


@pytest.mark.parametrize(
    ("names", "options", "status", "outcome"),
    [
        (PAIR, (), 0, "not worse"),
        (("--candidate", "old", "--baseline", "new"), (), 1, "worse"),
        (PAIR, ("--level", "0.999999999999"), 1, "inconclusive"),
    ],
)
def test_the_status_table_and_files_say_what_the_library_says(cli, names, options, status, outcome):
    files = ("--junit", "gate.xml", "--summary", "gate.md")
    done = gate(cli, "--margin", 0.05, *options, *files, names=names)
    assert done[0] == status
    tables = btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv")
    level = float(options[1]) if options else 0.95
    told = {"candidate": names[1], "baseline": names[3], "margin": 0.05, "level": level}
    expected = not_worse(*tables, **told)
    assert expected.outcome == outcome
    sentence, _, of_these = str(expected).partition("\nremark: ")
    assert of_these.startswith("net win rate on these 400 items: ")
    pooled = "pooling 2 values of task (x, y); --filter task=... takes one"
    assert done[1].startswith(f"{sentence}\n\n")
    assert done[2] == f"wrote gate.xml\nwrote gate.md\n{pooled}\n{of_these}\n"
    table = done[1].splitlines()
    assert re.match(rf"{names[1]} against {names[3]} +{outcome} ", table[4])
    assert max(map(len, table[2:5])) <= 80
    (suite,) = ElementTree.parse("gate.xml").getroot()
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    case, failure = suite.find("testcase"), suite.find("testcase/failure")
    message = f"{sentence}; remark: {pooled}; remark: {of_these}"
    assert (properties["outcome"], float(properties["lower"])) == (outcome, expected.lower)
    assert (suite.get("tests"), suite.get("failures")) == ("1", str(status))
    assert case.get("name") == f"{names[1]} against {names[3]}"
    assert (failure is None) == (status == 0)
    assert failure is None or (failure.get("type"), failure.get("message")) == (outcome, message)
    markdown = Path("gate.md").read_text(encoding="utf-8")
    assert f"| {names[1]} against {names[3]} | **{outcome}** |" in markdown
    assert "pooling 2 values of task" in markdown


def test_the_numbers_are_those_of_the_estimate(cli):
    """One data set has one net win rate, and at 95% the interval of the gate at 97.5%."""
    (found,) = json.loads(gate(cli, "--margin", 0.05, "--level", 0.975, "--json", names=PAIR)[1])
    net = json.loads(cli("estimate", "votes.csv", "labels.csv", "--json")[1])["estimates"]
    net = net["net win rate"]
    assert [found[name] for name in ("estimate", "lower", "upper")] == pytest.approx(
        [net["value"], net["low"], net["high"]], abs=1e-12
    )
    pooled = "pooling 2 values of task (x, y); --filter task=... takes one"
    assert found["remarks"][0] == pooled


def test_a_gate_for_each_value_of_a_column_and_all_have_to_pass(cli):
    status, out, _ = gate(cli, "--margin", 0.2, "--by", "task", "--junit", "g.xml", names=PAIR)
    assert status == 0
    for task in "xy":
        (alone,) = json.loads(
            cli(
                *("gate", "votes.csv", "labels.csv", *PAIR, "--margin", 0.2, "--json"),
                *("--filter", f"task={task}"),
            )[1]
        )
        sentence = alone["message"].partition("; remark")[0]
        assert f"{task}: {sentence}\n" in out
    assert [suite.get("name") for suite in ElementTree.parse("g.xml").getroot()] == ["x", "y"]
    assert gate(cli, "--margin", 0, "--level", 0.999999999999, "--by", "task", names=PAIR)[0] == 1
    few = pl.read_csv("labels.csv").filter(pl.col("item").str.slice(1).cast(int) % 2 == 0)
    few.write_csv("labels.csv")
    status, _, err = gate(cli, "--margin", 0.2, "--by", "task", names=PAIR)
    assert (status, err[:15]) == (2, "btdagg: task y:")


def test_grades_of_two_systems_by_criterion(cli):
    rng = np.random.default_rng(0)
    system, prompt = np.indices((2, 200)).reshape(2, -1)
    quality = rng.normal(3.2, 0.8, 200)[prompt] + 0.5 * system
    grade = np.clip(np.round(quality), 1, 5).astype(int)
    table = pl.DataFrame({"item": np.arange(400), "system": system, "group": prompt}).with_columns(
        pl.col("system").replace_strict({0: "old", 1: "new"})
    )
    own = [table.with_columns(criterion=pl.lit(name), score=grade) for name in ("form", "truth")]
    pl.concat(own).write_csv("scores.csv")
    gold = [one.filter(pl.col("group") < 80).rename({"score": "label"}) for one in own]
    pl.concat(gold).drop("system").write_csv("grades.csv")
    options = (*PAIR, "--margin", 0.1, "--set", "votes.scale=1-5", "--set", "labels.scale=1-5")
    status, out, _ = cli("gate", "scores.csv", "grades.csv", *options, "--quantity", "share >= 4")
    assert status == 0
    assert "truth: new is not worse than old by more than 0.1: share >= 4 of new minus" in out
    status, out, _ = cli(
        "gate",
        "scores.csv",
        "grades.csv",
        *options,
        "--filter",
        "criterion=form",
        "--by",
        "criterion",
    )
    assert status == 0
    assert "form: new is not worse than old by more than 0.1: mean grade of new minus" in out
    status, _, err = cli("gate", "scores.csv", "grades.csv", *options, "--candidate", "newest")
    assert (status, err) == (
        2,
        "btdagg: task form: --candidate is 'newest', expected one of new, old\n",
    )


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("--candidate", "A", "--baseline", "B"), "--candidate is 'A', expected one of new, old"),
        (("--candidate", "new", "--baseline", "x"), "--baseline is 'x', expected one of new, old"),
        (("--candidate", "new", "--baseline", "new"), "--baseline is 'new', expected a name"),
        (("--candidate", "new"), "Missing option '--baseline'"),
        ((*PAIR, "--set", "b=x"), "system_b: got 'old', expected 'x', the name of B"),
        ((*PAIR, "--by", "language"), "votes.csv: no column 'language'"),
        (
            (*PAIR, "--quantity", "pass rate"),
            "--quantity is 'pass rate', expected one of net win rate",
        ),
        ((*PAIR, "--margin", "3"), "--margin is 3.0, expected a number from 0 to below 1"),
        ((*PAIR, "--junit", "votes.csv"), "--junit is votes.csv, an input file"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(cli, folder, names, text):
    before = sorted(folder.iterdir())
    status, out, err = gate(cli, "--margin", 0.05, "--summary", "gate.md", names=names)
    assert (status, out) == (2, "")
    assert text in err
    assert sorted(folder.iterdir()) == before
