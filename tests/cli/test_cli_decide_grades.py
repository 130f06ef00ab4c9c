"""Grades by the commands: a model of some labels, and decisions."""

import json

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import GradeModel, Scale
from btdagg.online import StoppingRule

FIVE = Scale(range(1, 6))
MODEL = GradeModel(2, (1.5, 2.5, 3.5, 4.5), FIVE)
SCORES = "item,score\na,3\na,4\nb,5\nb,5\nc,1\nd,\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    MODEL.save("model.json")
    btdagg.DavidsonModel(1, 0, 1).save("pairs.json")
    for name, text in {
        "scores.csv": SCORES,
        "labels.csv": "item,label\na,4\nb,5\nc,2\nd,3\n",
        "passed.csv": "item,label\na,pass\nb,pass\nc,fail\n",
        "votes.csv": "item,vote\na,A\na,tie\n",
        "high.csv": "item,score\na,3\na,8\n",
    }.items():
        (tmp_path / name).write_text(text)


def criteria(n=60):
    """Two criteria of which the judge is a grade too kind."""
    rng, rows, labels = np.random.default_rng(4), [], []
    for criterion in ("clear", "true"):
        for number in range(n):
            grade, item = int(rng.integers(1, 6)), f"{criterion}-{number}"
            seen = np.clip(grade + 1 + rng.integers(-1, 2, 4), 1, 5).tolist()
            rows += [{"item": item, "criterion": criterion, "score": vote} for vote in seen]
            if criterion == "clear" or number < 8:
                labels.append({"item": item, "criterion": criterion, "label": grade})
    pl.DataFrame(rows).write_csv("criteria.csv")
    pl.DataFrame(labels).write_csv("gold.csv")


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_a_model_of_a_criterion_has_the_others_as_neighbours_and_decides(cli):
    criteria()
    chosen = ["--filter", "criterion=true"]
    said = ["--set", "votes.scale=1-5", "--set", "labels.scale=1-5"]
    fitting = ["calibrate", "criteria.csv", "gold.csv", *said]
    status, out, err = cli(*fitting, *chosen, "-o", "true.json")
    assert status == 0, err
    model = GradeModel.load("true.json")
    assert str(model)[1:-1] in " ".join(out.split())  # as part of a sentence
    assert "prior: 1 neighbour, with" in " ".join(out.split())
    assert model.provenance.task == ("true",)
    votes = btdagg.read_votes("criteria.csv", scale=FIVE)
    gold = btdagg.read_labels("gold.csv", scale=votes.scale)
    fits = {}
    for task, prior in (("clear", "weak"), ("true", None)):
        own = votes.filter({"task": task}), gold.filter({"task": task})
        fits[task] = btdagg.calibrate(*own, prior=prior or fits["clear"].model)
    assert model == fits["true"].model
    for option, prior in (("weak", "weak"), ("none", None)):
        answer = json.loads(cli(*fitting, *chosen, "--prior", option, "--json")[1])
        own = votes.filter({"task": "true"}), gold.filter({"task": "true"})
        fit = btdagg.calibrate(*own, prior=prior)
        assert answer["model"]["beta"] == fit.model.beta
        assert answer.get("shares", {}) == fit.shares
    assert cli("decide", "true.json", "criteria.csv", *chosen, "-o", "out.csv")[0] == 0
    ids, counts = votes.filter({"task": "true"}).counts()
    decided = pl.read_csv("out.csv")
    assert decided["item"].to_list() == ids.tolist()
    assert decided["label"].to_list() == model.decide(counts).tolist()
    assert decided["mean"].to_list() == model.means(counts).tolist()
    names = [f"p_{grade}" for grade in range(1, 6)]
    assert decided.columns == ["item", "label", *"12345", "mean", *names]
    np.testing.assert_allclose(decided.select(names), model.predict_proba(counts), atol=1e-12)
    others = cli("decide", "true.json", "criteria.csv", "--filter", "criterion=clear")[2]
    assert "task is clear, but the model was fitted for true" in " ".join(others.split())
    status, _, err = cli(*fitting, "--filter", "task=kind")
    assert status == 2
    assert "kind" in err


def test_items_without_votes_get_no_label_and_first_votes_are_counted(cli):
    status, _, err = cli("decide", "model.json", "scores.csv", "-n", "1", "-o", "out.parquet")
    assert status == 0
    assert "items without a vote get no label: 1" in err
    decided = pl.read_parquet("out.parquet")
    assert decided["label"].to_list() == [3, 5, 1, None]
    assert decided["mean"].to_list() == [3, 5, 1, None]
    out = cli("decide", "model.json", "scores.csv", "--json", "-o", "out.csv")[1]
    assert json.loads(out)["labels"] == {"1": 1, "2": 0, "3": 1, "4": 0, "5": 1}
    StoppingRule.lossless(MODEL, n=2).save("rule.json")
    rows = cli("decide", "rule.json", "scores.csv")[1].splitlines()
    assert rows[0] == "item,label,1,2,3,4,5,settled"
    assert [row.rpartition(",")[2] for row in rows[1:]] == ["true", "true", "false", ""]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "decide pairs.json scores.csv",
            "scores.csv: column score has grades, expected votes on pairs",
        ),
        ("decide model.json votes.csv", "row 1, column vote: got 'A', expected 1, 2, 3, 4 or 5"),
        ("decide model.json high.csv", "row 2, column score: got '8', expected 1, 2, 3, 4 or 5"),
        (
            "decide model.json scores.csv --set votes.scale=1-4",
            "--set votes.scale is 1-4, but the model",
        ),
        (
            "calibrate scores.csv labels.csv --set votes.scale=1-5 --set labels.scale=1-4",
            "got '5', expected",
        ),
        (
            "calibrate scores.csv labels.csv --set scale=1-5 --prior pairs.json",
            "expected weak, neighbours or none",
        ),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(cli, line, expected):
    status, _, err = cli(*line.split())
    assert status == 2
    assert expected in " ".join(err.split())


def test_sql_of_grades_has_no_column_of_ties(cli):
    status, _, err = cli("sql", "model.json", "--set", "tie=points")
    assert (status, "tie=points" in err) == (2, True)
