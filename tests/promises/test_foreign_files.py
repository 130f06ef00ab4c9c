"""Files of other tools are read as what they are, and what they leave open is said."""

import json
import warnings
from pathlib import Path

import polars as pl
import pytest

import btdagg
from btdagg.votes.formats import read
from refusals import refused

pytestmark = pytest.mark.usefixtures("folder")


def document(value, name="document.json"):
    Path(name).write_text(json.dumps(value), encoding="utf-8")
    return name


def lines(rows, name="rows.jsonl"):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return name


# Items


def test_labels_of_an_item_that_two_tasks_have_are_both_read(cli):
    ratings = {"id": ["0", "0"], "subset": ["facts", "focus"], "num_correct": [1, 2],
               "scores": [[7, 3], [2, 9]]}  # fmt: skip
    found = read(document(ratings), kind="labels").frame
    assert found.select("item", "task", "label").rows() == [
        ("0-0", "facts", 1), ("0-1", "facts", 0), ("0-0", "focus", 1), ("0-1", "focus", 1),
    ]  # fmt: skip
    gold = pl.DataFrame({"item": ["x", "x"], "task": ["a", "b"], "gold": ["A", "B"]})
    gold.write_csv("gold.csv")
    assert cli("import", "gold.csv", "--set", "label=gold", "-o", "labels.csv")[0] == 0
    assert btdagg.read_labels("labels.csv").labels.tolist() == [1, -1]
    people = gold.with_columns(rater=pl.lit("ann"))
    assert read(people, columns={"label": "gold"}).frame["vote"].to_list() == [1, -1]


def test_raters_of_two_tasks_are_not_compared_as_if_they_were_of_one():
    ratings = {"item": ["x", "x"], "rater": ["ann", "ann"], "vote": [1, 1]}
    assert btdagg.paper.read_ratings(ratings).counts().tolist() == [[0, 0, 1]]
    for name in ("task", "criterion"):
        with refused(None, row=1, column=name, source="data frame", expected=name):
            btdagg.paper.read_ratings({**ratings, name: ["a", "b"]})


# Raters


def test_a_label_that_a_rater_repeats_counts_once_and_is_said(cli):
    rows = {"item": ["x", "x", "x", "y", "z"], "rater": ["ann", "ann", "bob", "ann", "bob"],
            "label": ["A", "A", "B", "tie", "A"]}  # fmt: skip
    labels = btdagg.read_labels(rows)
    assert labels.n_repeats == 1
    assert labels.shares.tolist() == [[0.5, 0, 0.5], [0, 1, 0], [0, 0, 1]]
    pl.DataFrame(rows).write_csv("labels.csv")
    pl.DataFrame({"item": list("xyz") * 2, "vote": list("ABtABA")}).with_columns(
        vote=pl.col("vote").replace("t", "tie")
    ).write_csv("votes.csv")
    assert "1 rows of labels.csv repeat a rater's label" in cli(
        "estimate", "votes.csv", "labels.csv"
    )[2].replace("\n", " ")
    found = read("labels.csv", columns={"label": "label", "rater": "rater"})
    assert (found.n_votes, found.remarks) == (
        4, ("1 rows repeat a rater's vote and are left out",),
    )  # fmt: skip
    with pytest.raises(btdagg.InputError, match="rater 'ann', with labels 1 and -1"):
        btdagg.read_labels({**rows, "label": ["A", "B", "B", "tie", "A"]})
    means = {"item": ["x", "x"], "rater": ["ann", "ann"], "label": [1.6, 1.8]}
    with pytest.raises(btdagg.InputError, match=r"mean labels 1\.6 and 1\.8"):
        btdagg.read_labels(means, scale=btdagg.Scale((1, 2, 3)))


def test_raters_of_few_items_are_compared_without_a_warning():
    ratings = {"item": list("xxyy"), "rater": list("abab"), "vote": [1, -1, 1, 1]}
    votes = {"item": ["x", "y"], "vote": [1, 1]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        btdagg.paper.leave_one_rater_out(
            btdagg.paper.read_ratings(ratings), btdagg.read_votes(votes)
        )


# Scores


def test_scores_that_are_equal_but_for_rounding_tie():
    near = [0.1 + 0.2, 0.8 - 1e-16, 1e9 * (1 + 1e-15), 0.3]
    exact = [0.3, 0.8, 1e9, 0.2]
    pairs = {"item": list("abcd"), "left": near, "right": exact}
    found = read(pairs, columns={"score_a": "left", "score_b": "right"}).frame
    assert found["vote"].to_list() == [0, 0, 0, 1]
    assert found["margin"].to_list() == [0, 0, 0, pytest.approx(0.1)]
    scores = {"group": ["p", "p"], "system": ["x", "y"], "score": [0.1 + 0.2, 0.3]}
    assert read(scores).frame["vote"].to_list() == [0]
    margins = {"item": list("ab"), "margin": [0.1 + 0.2 - 0.3, -0.1]}
    assert read(margins).frame["vote"].to_list() == [0, -1]
    assert btdagg.read_votes(margins).frame["vote"].to_list() == [0, -1]
    chances = {"item": ["a"], "p_minus": [0.3], "p_tie": [0.1], "p_plus": [0.1 + 0.2]}
    assert read(chances).frame["vote"].to_list() == [0]
    signed = {"item": list("ab"), "vote": [1, -1], "margin": [0.3 - (0.1 + 0.2), -0.5]}
    assert read(signed).n_votes == 2  # rounding has no sign
