"""Tables whose votes and labels are grades."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import PAIRS, PASS_FAIL, InputError, Scale
from refusals import refused

FIVE = Scale(range(1, 6))
SCORES = {"item": ["a", "a", "b", "c"], "score": [4, 5, 1, None], "criterion": ["x"] * 4}


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("1-5", (1, 2, 3, 4, 5)),
        ("-1..1", (-1, 0, 1)),
        ("0, 0.5, 1", (0, 0.5, 1)),
        ("Pass/Fail", (0, 1)),
        ("3 to 4", (3, 4)),
    ],
)
def test_a_scale_may_be_a_text(text, points):
    assert Scale(text).points == points


@pytest.mark.parametrize("text", ["5-1", "x", "1-1000", "1,1", "", "4"])
def test_texts_that_are_no_scale(text):
    with refused("points", got=text):
        Scale(text)


def test_scores_are_counted_by_point():
    votes = btdagg.read_votes(SCORES, scale=FIVE)
    ids, counts = votes.counts()
    assert ids.tolist() == ["a", "b", "c"]
    assert counts.tolist() == [[0, 0, 0, 1, 1], [1, 0, 0, 0, 0], [0] * 5]
    assert votes.tally().columns == ["item", "1", "2", "3", "4", "5"]
    assert votes.n_missing == 1
    assert votes.values("task").to_list() == ["x"]
    assert votes.items().scale == FIVE
    assert votes.counts(1)[1].sum(axis=1).tolist() == [1, 1, 0]


def test_counts_of_grades():
    rows = {"item": ["a", "b"], "3": [0, 0.5], "1": [3, 2], "2.0": [0, 1]}
    votes = btdagg.read_votes(rows, scale=Scale((1, 2, 3)))
    assert votes.counts()[1].tolist() == [[3, 0, 0], [2, 1, 0.5]]
    with pytest.raises(InputError, match="a column score or vote, or counts in 1, 2, 3, 4, 5"):
        btdagg.read_votes(rows, scale=FIVE)


@pytest.mark.parametrize("bad", [11, 3.5, "four", -1, "3.5", True, 0, float("inf")])
def test_votes_off_the_scale_name_their_row(bad):
    with pytest.raises(InputError) as error:
        btdagg.read_votes(
            {"item": ["a", "b"], "score": [2 if bad != "four" else "2", bad]}, scale=FIVE
        )
    assert error.value.row == 2
    assert "expected 1, 2, 3, 4 or 5, or nothing" in str(error.value)


@pytest.mark.parametrize(
    "scores", [["Pass", "fail", "PASSED"], [True, False, None], [0, 1, None], ["1.0", "0", ""]]
)
@pytest.mark.parametrize("read", [btdagg.read_votes, btdagg.read_labels])
def test_pass_and_fail_are_certain(read, scores):
    assert read({"item": ["a", "b", "c"], "score": scores}).scale == PASS_FAIL
    words = [str(score) for score in scores if score is not None]
    if words[0].lower() == "pass":
        name = "vote" if read is btdagg.read_votes else "label"
        rows = {"item": ["a", "b", "c"], name: scores, "margin": [1, 2, 3]}
        assert read(rows).scale == PASS_FAIL
    meant = read({"item": ["a", "b"], "score": ["good", "fail"]}, words={"good": "pass"})
    assert meant.scale == PASS_FAIL


@pytest.mark.parametrize(
    ("scores", "got", "likely"),
    [
        ([2, 3, 5, 6, 9], "2, 3, ... 9", "1-10"),
        ([1, 3], "1, 3", "1-3"),
        ([0, 4, None], "0, 4", "0-4"),
        (["1.0", "6", ""], "1, 6", "1-7"),
        ([3, 3], "3", "1-3"),
        ([40, 87], "40, 87", "1-100"),
        ([-2, 2], "-2, 2", "-2..2"),
        ([0, 0.5, 1], "0, 0.5, 1", "0,0.5,1"),
        ([1, 2, 2.5, 4], "1, 2, 2.5, 4", "1,1.5,2,2.5,3,3.5,4"),
        ([None, None], "missing", "1-5"),
    ],
)
@pytest.mark.parametrize("read", [btdagg.read_votes, btdagg.read_labels])
def test_no_scale_is_guessed_from_the_grades_that_are_there(read, scores, got, likely):
    rows = {"item": range(len(scores)), "score": scores}
    with pytest.raises(InputError) as error:
        read(rows)
    say = f"state it: scale={Scale(likely)!r}"
    assert str(error.value) == f"data frame: scores are {got}, and their scale is not given; {say}"
    if len({*scores} - {None}) > 1:
        assert read(rows, scale=Scale(likely)).scale == Scale(likely)


def test_criteria_say_their_scales_one_by_one():
    rows = {"item": "abab", "score": [1, 4, 0, 10], "criterion": ["x", "x", "y", "y"]}
    rows["item"] = [*rows["item"]]
    with pytest.raises(InputError) as error:
        btdagg.read_votes(rows)
    assert str(error.value).endswith(
        "scores are 0, 1, 4, 10, and their scale is not given; criteria differ (x 1-4, y 0-10), so "
        "choose one: where={'criterion': 'x'}, scale=Scale('1-4')"
    )


def test_a_column_says_the_scale():
    rows = {"item": ["a", "b"], "score": [2, 3], "grades": ["1-5", "1-5"]}
    assert btdagg.read_votes(rows).scale == FIVE
    assert btdagg.read_labels(rows).scale == FIVE
    with pytest.raises(InputError, match="on several scales, 1-3, 1-5"):
        btdagg.read_votes(rows | {"grades": ["1-5", "1-3"]})


def test_words_are_numbers():
    rows = {"item": ["a", "b", "c"], "vote": ["Good", "n/a", "2"]}
    words = {"good": 3, "N/A": "missing"}
    votes = btdagg.read_votes(rows, scale=FIVE, words=words)
    assert votes.frame["vote"].to_list() == [3, None, 2]
    labels = btdagg.read_labels({"item": ["a"], "label": ["GOOD"]}, scale=FIVE, words=words)
    assert labels.labels.tolist() == [3]


def test_grades_have_no_strength():
    for name, value in (("strength", "margin"), ("full_margin", 3)):
        with refused(name, got=value):
            btdagg.read_votes(SCORES, scale=FIVE, **{name: value})


@pytest.mark.parametrize(
    ("raters", "label"),
    [
        ((2, 4), 3),  # the middle is a median too
        ((5, 4), 4),
        ((1, 2), 2),
        ((1, 1, 5), 1),
        ((None, 5), 5),
        ((2, 2, 4, 5), 3),
    ],
)
def test_raters_are_merged_to_a_median(raters, label):
    rows = {"item": ["a"] * len(raters), "rater": range(len(raters)), "label": raters}
    labels = btdagg.read_labels(rows, scale=FIVE)
    assert labels.labels.tolist() == [label]
    gave = [grade for grade in raters if grade is not None]
    distances = [sum(abs(grade - own) for own in gave) for grade in FIVE.points]
    assert distances[label - 1] == min(distances)
    np.testing.assert_allclose(labels.shares[0], [gave.count(g) / len(gave) for g in FIVE.points])
    assert len(labels.remarks) == (len(set(gave)) > 1)


def test_votes_and_labels_are_joined_on_their_scales():
    votes = btdagg.read_votes(SCORES, scale=FIVE)
    passed = {"item": ["a", "b", "c", "d"], "label": ["pass", "fail", "pass", ""]}
    labels = btdagg.read_labels(passed, scale=PASS_FAIL)
    items = votes.items(labels)
    assert (items.scale, items.label_scale) == (FIVE, PASS_FAIL)
    assert items.labels.tolist() == [[0, 1], [1, 0]]
    own = items.labelled()
    assert (own.label.tolist(), own.scale, own.label_scale) == ([1, 0], FIVE, PASS_FAIL)
    assert own.origin.remarks[0] == "1 items without a readable vote are left out"


def test_grades_are_not_joined_with_pairs():
    pairs = btdagg.read_labels({"item": ["a"], "label": [1]})
    votes = btdagg.read_votes(SCORES, scale=FIVE)
    with pytest.raises(InputError, match="votes are grades, but labels compare pairs"):
        votes.labelled(pairs)
    labels = btdagg.read_labels({"item": ["a"], "grade": [4]}, scale=FIVE)
    with pytest.raises(InputError, match="labels are grades, but votes compare pairs"):
        btdagg.read_votes({"item": ["a"], "vote": [1]}).labelled(labels)


def test_labels_do_not_inherit_the_scale_of_the_judge():
    votes, gold = {"item": ["a", "b"], "score": [2, 9]}, {"item": ["a", "b"], "label": [1, 5]}
    with pytest.raises(InputError, match=r"labels are 1, 5, .*; state it: label_scale"):
        btdagg.decide(pl.DataFrame(votes), pl.DataFrame(gold), scale=Scale("1-10"))


def test_labels_of_grades_in_a_column_of_pairs_name_the_column(cli, folder):
    (folder / "s.csv").write_text("item,score\nx,3\ny,4\n")
    (folder / "l.csv").write_text("item,vote\nx,3\ny,4\n")
    status, _, err = cli(*["estimate", "s.csv", "l.csv", "--set", "votes.scale=1-5"])
    assert status == 2
    assert "no column 'label'; found item, vote; --set label=NAME reads it" in err


def test_of_arrays_both_have_the_scale():
    counts = np.eye(5, dtype=int)[[0, 2, 4, 1, 3] * 4]
    labels = [1, 3, 5, 2, 4] * 4
    fitted = btdagg.calibrate(counts, labels, scale=FIVE)
    assert fitted.model.label_scale == FIVE
    with refused("labels", row=0, got=6, expected="1, 2, 3, 4 or 5"):
        btdagg.calibrate(counts, [6, *labels[1:]], scale=FIVE)


def test_tables_of_pairs_have_their_scale():
    assert btdagg.read_votes({"item": ["a"], "vote": [1], "score": [7]}).scale == PAIRS
    with refused("scale", row=2, column="vote", advice={"scale": btdagg.Scale("1-7")}):
        btdagg.read_votes({"item": ["a", "b"], "vote": [1, 6]})


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_criteria_are_parts_of_items_and_fitted_as_if_they_were_alone():
    rows = [
        {"item": k, "criterion": name, "score": 1 + (k + shift + n) % 3}
        for name, shift in (("tone", 0), ("facts", 1))
        for k in range(12)
        for n in range(4)
    ]
    scale = Scale((1, 2, 3))
    votes = btdagg.read_votes(pl.DataFrame(rows), scale=scale)
    gold = [
        {"item": row["item"], "criterion": row["criterion"], "label": row["score"]}
        for row in rows[::4]
        if row["item"] % 4
    ]
    labels = btdagg.read_labels(pl.DataFrame(gold), scale=scale)
    items = votes.items(labels)
    parts = items.parts("criterion")
    assert [*parts] == ["tone", "facts"]
    assert sum(map(len, parts.values())) == len(items) == 24
    alone = votes.filter({"task": "facts"}), labels.filter({"task": "facts"})
    models = btdagg.calibrate(parts["facts"]).model, btdagg.calibrate(*alone).model
    assert models[0].beta == pytest.approx(models[1].beta)
    assert models[0].cuts == pytest.approx(models[1].cuts)
    with refused("column", got="judge", expected="task or criterion"):
        items.parts("judge")
