"""Commands on tables of grades."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Protocol, Scale, read_labels, read_votes
from btdagg.evaluation import CrossFit, GroupTest

FIVE = Scale(range(1, 6))
SAID = ("--set", "votes.scale=1-5", "--set", "labels.scale=1-5")


@pytest.fixture
def criteria(tmp_path, monkeypatch, quick_commands):
    """Scores of three criteria by two judges, and grades of one to three raters."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    scores, people = [], []
    for criterion, shift, noise in (("clear", 0, 0.5), ("facts", 0, 2.0), ("tone", 0.8, 0.5)):
        for item, quality in enumerate(rng.normal(3.2, 1, 40)):
            of = {"item": f"r{item}", "criterion": criterion}
            for judge, more in (("a", 0.0), ("b", 1.0)):
                drawn = quality + shift + rng.normal(0, noise + more, 3)
                whole = drawn.round().clip(1, 5).astype(int).tolist()
                scores += [{**of, "judge": judge, "score": score} for score in whole]
            raters = (quality + rng.normal(0, 0.5, 1 + item % 3)).round().clip(1, 5).astype(int)
            people += [
                {**of, "rater": f"p{k}", "grade": grade} for k, grade in enumerate(raters.tolist())
            ]
    pl.DataFrame(scores).write_csv("scores.csv")
    pl.DataFrame(people).write_csv("people.csv")
    return people


def test_every_criterion_is_evaluated_the_worst_first(cli, criteria, tmp_path, quick_commands):
    arguments = "evaluate", "scores.csv", "people.csv", *SAID, "-f", "judge=a"
    status, out, err = cli(*arguments, "--report", "out")
    assert status == 0
    use = out[out.index("What to use") :]
    assert use.index("facts") < use.index("clear")
    assert "calibrated, weak prior" in out
    assert "Krippendorff's alpha of the raters" in err
    assert "win rate" not in out + err
    page = (tmp_path / "out" / "index.html").read_text()
    assert "Decision map" not in page
    assert "grades by the mean vote" in page
    read = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [part["name"] for part in read["sections"]][:3] == [
        "scores",
        "agreement",
        "votes",
    ]
    assert read["models"] == {}
    status, out, _ = cli(
        *arguments, "-f", "criterion=tone", "--methods", "majority,isotonic", "--json"
    )
    result = json.loads(out)
    votes, labels = read_votes("scores.csv", scale=FIVE), read_labels("people.csv", scale=FIVE)
    same = btdagg.evaluate(
        votes.filter({"judge": "a", "task": "tone"}),
        labels,
        aggregators=btdagg.methods.by_name(["majority", "isotonic"], FIVE),
    )
    assert [line["mae"] for line in result["lines"]] == [line["mae"].mean for line in same.lines]
    raters = same.cells[0].new_items.raters
    by_item = {}
    for row in criteria:
        if row["criterion"] == "tone":
            by_item.setdefault(row["item"], []).append(row["grade"])
    among = [
        np.mean([abs(one - other) for one, other in permutations(grades, 2)])
        for grades in by_item.values()
        if len(grades) > 1
    ]
    assert raters.losses["mae"].of_items[-1].tolist() == pytest.approx(among)


def test_two_judges_are_compared_on_every_criterion(cli, criteria, monkeypatch):
    few = Protocol(CrossFit(n_folds=3, n_repeats=1, n_refits=3), GroupTest())
    monkeypatch.setitem(btdagg.compare.__kwdefaults__, "protocol", few)
    arguments = "compare", "scores.csv", "people.csv", *SAID, "--json"
    status, out, _ = cli(*arguments)
    tasks = json.loads(out)["tasks"]
    assert (status, next(iter(tasks)), len(tasks)) == (0, "facts", 3)
    assert (tasks["clear"]["first"], tasks["clear"]["better"]) == ("judge=a", "judge=a")
    status, out, _ = cli(*arguments, "-f", "criterion=clear")
    alone = json.loads(out)
    assert {name: alone[name] for name in tasks["clear"]} == tasks["clear"]
    ways = "--first", "method=majority", "--second", "method=weak"
    status, out, _ = cli(*arguments[:-1], "-f", "criterion=tone", "-f", "judge=a", *ways)
    assert out.startswith("better: method=weak")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ["--methods", "threshold"],
            "with two sides, for threshold, which uses the same cut on both sides",
        ),
        (["--set", "strength=margin"], "strength"),
        (["--prior", "prior.json"], "weak, neighbours or none for grades"),
        (["--set", "votes.scale=1-4"], "expected 1, 2, 3 or 4"),
        (["--set", "confidence=judge"], "confidence"),
        (["-f", "criterion=style"], "no row has criterion 'style'"),
    ],
)
def test_what_grades_do_not_have_is_an_error(cli, criteria, options, text):
    status, out, err = cli("evaluate", "scores.csv", "people.csv", *SAID, *options)
    assert (status, out) == (2, "")
    assert text in err


def test_votes_are_summarized_by_grade(cli, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("item,judge,score\na,x,4\na,x,5\nb,x,1\nb,y,\nc,y,2\n")
    status, out, _ = cli("votes", path, "--set", "votes.scale=1-5")
    assert status == 0
    assert ["judge", "items", "votes", "missing", "mean", *"12345"] in map(
        str.split, out.splitlines()
    )
    status, out, _ = cli("votes", path, "--set", "votes.scale=1-5", "--json")
    first, second = json.loads(out)["votes"]
    assert first["mean"] == pytest.approx(10 / 3)
    assert [first[grade] for grade in "12345"] == [1, 0, 0, 1, 1]
    assert (second["n_missing"], second["2"]) == (1, 1)


def test_a_report_of_grades_has_no_decision_map_of_pairs(cli, criteria, tmp_path):
    assert cli("certify", "scores.csv", "people.csv", *SAID, "--report", "out")[0] == 0
    assert "majority vote" not in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.parametrize("command", ["calibrate", "compare"])
def test_a_scale_that_is_not_said_stops_with_the_option_to_copy(cli, criteria, command):
    written = ("-o", "m.json") if command == "calibrate" else ()
    arguments = command, "scores.csv", "people.csv", "-f", "criterion=clear", *written
    status, out, err = cli(*arguments)
    text = "scores are 1, 2, ... 5, and their scale is not given; state it: --set votes.scale=1-5"
    assert (status, out, err) == (2, "", f"btdagg: scores.csv: {text}\n")
    status, out, err = cli(*arguments, "--set", "votes.scale=1-5")
    text = "grades are 1, 2, ... 5, and their scale is not given; state it: --set labels.scale=1-5"
    assert (status, out, err) == (2, "", f"btdagg: people.csv: {text}\n")


def test_criteria_with_scales_of_their_own_are_said_one_at_a_time(cli, criteria):
    scores = pl.read_csv("scores.csv")
    scale = pl.when(pl.col("criterion") == "facts").then(pl.col("score") * 2).otherwise("score")
    scores.with_columns(score=scale).write_csv("mixed.csv")
    status, _, err = cli("votes", "mixed.csv")
    assert status == 2
    assert "criteria differ (clear 1-5, facts 1-10, tone 1-5), so choose one" in err
    assert err.endswith(": --filter criterion=clear --set votes.scale=1-5\n")
    assert cli("votes", "mixed.csv", "-f", "criterion=facts", "--set", "votes.scale=1-10")[0] == 0
