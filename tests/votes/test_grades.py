"""Tables whose votes and labels are grades."""

from __future__ import annotations

import numpy as np
import pytest

import btdagg
from btdagg import PAIRS, PASS_FAIL, InputError, Scale
from btdagg.votes.grades import scale_of
from btdagg.votes.join import join
from btdagg.votes.scale import points_of, written
from btdagg.votes.source import read_table

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
def test_points_of_a_text(text, points):
    assert points_of(text) == points
    assert points_of(written(points)) == points


@pytest.mark.parametrize("text", ["5-1", "x", "1-1000", "1,1", "", "4"])
def test_points_that_are_none(text):
    with pytest.raises(InputError) as error:
        points_of(text, "label_grades")
    assert (error.value.argument, error.value.came) == ("label_grades", text)


def test_scores_are_counted_by_point():
    votes = btdagg.read_votes(SCORES, scale=FIVE)
    ids, counts = votes.counts()
    assert ids.tolist() == ["a", "b", "c"]
    assert counts.tolist() == [[0, 0, 0, 1, 1], [1, 0, 0, 0, 0], [0] * 5]
    assert votes.tally().columns == ["item", "1", "2", "3", "4", "5"]
    assert votes.n_missing == 1
    assert votes.values("task").to_list() == ["x"]
    assert votes.evidence()[1].scale == FIVE
    assert votes.counts(1)[1].sum(axis=1).tolist() == [1, 1, 0]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_are_counted_as_frames(tmp_path, suffix):
    rng = np.random.default_rng(4)
    rows = {
        "item": np.repeat(np.arange(50), 6),
        "vote": rng.integers(1, 11, 300),
        "sample": np.tile(np.arange(6), 50),
        "score": rng.integers(1, 11, 300),
    }
    frame = read_table(rows, []).frame
    path = tmp_path / f"scores.{suffix}"
    getattr(frame, f"write_{suffix}")(path)
    scale = Scale(range(1, 11))
    _, counts = btdagg.read_votes(path, scale=scale).counts()
    expected = np.zeros((50, 10), dtype=int)
    np.add.at(expected, (rows["item"], rows["score"] - 1), 1)
    np.testing.assert_array_equal(counts, expected)
    of_rows = btdagg.read_votes(frame.drop("score"), scale=scale).counts()[1]
    np.add.at(expected, (rows["item"], rows["score"] - 1), -1)
    np.add.at(expected, (rows["item"], rows["vote"] - 1), 1)
    np.testing.assert_array_equal(of_rows, expected)


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
    ("scores", "points"),
    [
        ([4, 2, None], (2, 3, 4)),
        (["1.0", "3", ""], (1, 2, 3)),
        (["Pass", "fail", "PASSED"], (0, 1)),
        ([True, False, None], (0, 1)),
    ],
)
def test_a_scale_is_inferred_from_scores(scores, points):
    votes = btdagg.read_votes({"item": ["a", "b", "c"], "score": scores})
    assert votes.scale == Scale(points)
    assert votes.counts()[1].sum() == sum(score not in (None, "") for score in scores)


@pytest.mark.parametrize(
    ("scores", "match"),
    [
        (
            [1, 2.5],
            "row 2, column score: got 2.5, expected a whole number of at least 0, or a scale",
        ),
        (["1", "four"], "row 2, column score: got 'four'"),
        ([3, 3], "all grades in column score are from 3 to 3, which tells no scale"),
        ([1, 1000], "from 1 to 1000"),
        ([None, None], "are missing"),
    ],
)
def test_scores_that_tell_no_scale(scores, match):
    with pytest.raises(InputError, match=match):
        btdagg.read_votes({"item": ["a", "b"], "score": scores})


def test_words_are_numbers():
    rows = {"item": ["a", "b", "c"], "vote": ["Good", "n/a", "2"]}
    words = {"good": 3, "N/A": "missing"}
    votes = btdagg.read_votes(rows, scale=FIVE, words=words)
    assert votes.frame["vote"].to_list() == [3, None, 2]
    labels = btdagg.read_labels({"item": ["a"], "label": ["GOOD"]}, scale=FIVE, words=words)
    assert labels.labels.tolist() == [3]


def test_grades_have_no_strength():
    for argument in ({"strength": "margin"}, {"full_margin": 3}):
        with pytest.raises(InputError, match="expected no strength of grades"):
            btdagg.read_votes(SCORES, **argument)


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
    items = join(votes, labels, votes.counts())
    assert (items.scale, items.label_scale) == (FIVE, PASS_FAIL)
    assert items.shares.tolist() == [[0, 1], [1, 0]]
    own = items.labelled()
    assert (own.labels.tolist(), own.scale, own.label_scale) == ([1, 0], FIVE, PASS_FAIL)
    assert own.remarks == ("items without a vote that could be read are left out: 1",)
    evidence = join(votes, labels, votes.evidence()).labelled().counts
    assert evidence.scale == FIVE


def test_grades_are_not_joined_with_pairs():
    pairs = btdagg.read_labels({"item": ["a"], "label": [1]})
    votes = btdagg.read_votes(SCORES, scale=FIVE)
    with pytest.raises(InputError, match="votes are grades and labels are of pairs"):
        votes.labelled(pairs)
    labels = btdagg.read_labels({"item": ["a"], "grade": [4]}, scale=FIVE)
    with pytest.raises(InputError, match="labels are grades and votes are of pairs"):
        btdagg.read_votes({"item": ["a"], "vote": [1]}).labelled(labels)


@pytest.mark.parametrize(
    ("scores", "labels", "points", "expected"),
    [
        ([2, 9], [1, 5], None, (range(1, 10), range(1, 10))),
        ([2, 9], [0, 1], None, (range(2, 10), (0, 1))),
        ([2, 9], ["pass", "fail"], None, (range(2, 10), (0, 1))),
        ([2, 9], [1, 1], range(1, 11), (range(1, 11), (0, 1))),
        ([2, 9], [0, 1], range(11), (range(11), range(11))),
        ([2, 9], [3, 3], range(1, 11), (range(1, 11), range(1, 11))),
        ([1, 1], [1, 2], None, ((1, 2), (1, 2))),
    ],
)
def test_the_scale_of_two_tables(scores, labels, points, expected):
    votes = read_table({"item": ["a", "b"], "score": scores}, [])
    gold = read_table({"item": ["a", "b"], "label": labels}, [])
    assert scale_of(votes, gold, points) == tuple(map(Scale, expected))


def test_tables_of_pairs_have_their_scale():
    votes = read_table({"item": ["a"], "vote": [1], "score": [7]}, [])
    assert scale_of(votes) == (PAIRS, PAIRS)
    assert btdagg.read_votes(votes).scale == PAIRS
