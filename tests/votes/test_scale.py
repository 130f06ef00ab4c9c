"""The scale of one column of votes or labels."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import btdagg
from btdagg import PAIRS, PASS_FAIL, InputError, Scale
from refusals import refused

FIVE = Scale(range(1, 6))


def test_whole_points_are_integers_and_a_scale_is_a_value():
    scale = Scale(x / 2 for x in range(2, 6))
    assert scale.points == (1, 1.5, 2, 2.5)
    assert [type(point) for point in scale.points] == [int, float, int, float]
    assert Scale(np.array([0.0, 1.0])).values.dtype.kind == "i"
    assert (scale.middle, scale.middle_point) == (1.75, 1.5)
    assert Scale(**scale.as_dict()) == scale == copy.deepcopy(scale)
    assert hash(pickle.loads(pickle.dumps(scale))) == hash(scale)


@pytest.mark.parametrize("points", [[1], [], [1, 1], [2, 1], 3, None])
def test_a_scale_has_two_increasing_points_at_least(points):
    with refused("points"):
        Scale(points)


def test_decisions_fit_into_a_byte():
    assert len(Scale(range(256)).points) == 256
    with refused("points", got=300, expected="at most 256 of them"):
        Scale(range(300))


def test_names_are_shown_and_do_not_tell_scales_apart():
    plain, named = Scale(range(3)), Scale(range(3), ("bad", "fair", "good"))
    assert plain.names == ("0", "1", "2")
    assert plain == named
    assert hash(plain) == hash(named)
    assert plain != Scale(range(3), mirrored=True)
    assert (str(plain), str(named)) == ("0-2", "0-2 (bad, fair, good)")
    assert Scale(**named.as_dict()).names == named.names == pickle.loads(pickle.dumps(named)).names
    # Of no more than the points: each has a name of its own.
    for names in (
        ("a", "b"),
        ("a", "b", "c", "d"),
        ("a", "b", "a"),
        ("a", "b", " A"),
        "ab",
        (1, 2, 3),
    ):
        with refused("names", expected="a name for each of 0, 1 or 2"):
            Scale(range(3), names)


@pytest.mark.parametrize("points", [range(-2, 3), (-1, 1), (-1, 0, 2), (0, 1, 2, 3)])
def test_a_mirrored_scale_has_three_points_at_equal_distances(points):
    with refused("points", got=tuple(points), expected="for a mirrored scale"):
        Scale(points, mirrored=True)
    assert Scale(points).points == tuple(points)


def test_pairs_and_pass_or_fail_are_scales():
    assert Scale((-1, 0, 1), mirrored=True) == PAIRS
    assert Scale((-1, 0, 1)) != PAIRS
    assert (PAIRS.names, PASS_FAIL.names) == (("B", "tie", "A"), ("fail", "pass"))
    assert Scale((0, 1)) == PASS_FAIL
    assert (str(PAIRS), str(PASS_FAIL)) == ("-1..1 (B, tie, A, mirrored)", "0,1 (fail, pass)")
    assert (PAIRS.middle_point, PASS_FAIL.middle_point) == (0, 0)


def test_columns_count_the_points():
    assert PAIRS.columns == {"minus": -1, "tie": 0, "plus": 1}
    assert Scale((2, 4, 6), mirrored=True).columns == {"minus": 2, "tie": 4, "plus": 6}
    assert Scale((-1, 0, 1)).columns == {"-1": -1, "0": 0, "1": 1}
    assert Scale((1, 1.5, 4.0), ("a", "b", "c")).columns == {"1": 1, "1.5": 1.5, "4": 4}


@pytest.mark.parametrize(
    ("points", "kind"),
    [
        ((-1, 0, 1), np.int8),
        ((0, 1), np.int8),
        ((-1.0, 1.0), np.int8),
        ((0, 2), np.int64),
        (range(1, 6), np.int64),
        ((0, 0.5, 1), np.float64),
    ],
)
def test_labels_are_stored_as_they_are(points, kind):
    scale = Scale(points)
    assert scale.labels.dtype == kind
    assert scale.labels.tolist() == list(scale.points)
    assert scale.floats.dtype == np.float64


def test_shares_are_of_each_point():
    three = Scale((1, 2, 3))
    shares = three.shares([3, None, 1])
    assert shares[[0, 2]].tolist() == [[0, 0, 1], [1, 0, 0]]
    assert np.isnan(shares[1]).all()
    given = np.array([[0.25, 0, 0.75], [np.nan] * 3])
    np.testing.assert_array_equal(three.shares(given), given)
    assert PAIRS.shares([1, -1]).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert PAIRS.shares([[0.5, 0.5, 0]]).tolist() == [[0.5, 0.5, 0]]
    for bad in ([[0.5, 0.25, 0]], [[-0.5, 0.5, 1]], [[np.nan, 0.5, 0.5]]):
        with refused("labels", row=0, expected="shares of B, tie and A that add up to 1"):
            PAIRS.shares(bad)
    with refused("labels", row=0, got=2.5, expected="1, 2 or 3, or NaN"):
        three.shares([2.5])


@pytest.mark.parametrize("point", ["2", np.inf, np.nan, None, True, np.True_, 1j])
def test_a_point_is_a_finite_number(point):
    with refused("points", row=1, got=point):
        Scale((1, point))


@pytest.mark.parametrize("bad", [3.5, 0, 6, 11, -1, "four", "4", True, None, np.nan, np.inf, b"4"])
@pytest.mark.parametrize("kind", [list, lambda values: np.array(values, dtype=object)])
def test_what_is_off_the_scale_is_named(bad, kind):
    with refused("labels", row=2) as error:
        FIVE.places(kind([1, 5, bad, 2]))
    assert error.value.expected == "1, 2, 3, 4 or 5"
    with refused("votes", row=2) as error:
        Scale(range(1, 8)).places(kind([1, 5, 11 if bad == 6 else bad, 2]), "votes")
    assert error.value.expected == "a whole number from 1 to 7"


def test_missing_labels_are_unlabelled_where_that_is_allowed():
    expected = [0, -1, -1, 4]
    for labels in (
        [1, None, np.nan, 5],
        [1, pd.NA, float("nan"), 5.0],
        pl.Series([1, None, None, 5]),
    ):
        assert FIVE.places(labels, partial=True).tolist() == expected
    masked = np.ma.array([1, 9, 9, 5], mask=[0, 1, 1, 0])
    assert FIVE.places(masked, partial=True).tolist() == expected
    with refused("labels", row=1, got="four", expected="1, 2, 3, 4 or 5, or NaN"):
        FIVE.places([None, "four"], partial=True)
    with refused("labels", row=0, got=6.0, expected="1, 2, 3, 4 or 5, or NaN"):
        FIVE.places([6, None], partial=True)
    with pytest.raises(InputError, match="labels has dtype bool"):
        FIVE.places(np.array([True]))


VOTES = {"item": [*range(12)], "vote": [0, 1] * 6}
SCORES = {"item": [*range(12)], "score": [0, 1] * 6}


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize(
    ("votes", "labels", "advice"),
    [
        # Votes are looked at first, and each file has the advice for itself.
        (VOTES | {"vote": [2, 9] * 6}, [1, 5] * 6, {"scale": Scale("1-10")}),
        (VOTES, [1, 5, 2] * 4, {"label_scale": Scale("1-5")}),
        (SCORES, [1, 5, 2] * 4, {"label_scale": Scale("1-5")}),
        # Means of three raters are no scale of four points.
        (SCORES, [0, 0.3333, 0.6667, 1] * 3, {"label_scale": Scale("0,1")}),
        (VOTES, ["pass", "fail"] * 6, {"scale": Scale("0,1")}),
        ({"item": [*range(12)], "1": 2, "5": 0}, [1, 5] * 6, {"scale": Scale("1,5")}),
        # Criteria are each on a scale of their own, those of 0 and 1 on that of pass and fail.
        (
            SCORES | {"criterion": ["safe", "tone"] * 6, "score": [0, 7, 1, 9] * 3},
            [0, 1] * 6,
            {"where": {"criterion": "safe"}, "scale": Scale("0,1")},
        ),
    ],
)
def test_a_scale_that_is_not_certain_is_asked_for_of_the_table_that_has_it(votes, labels, advice):
    people = {"item": [*range(12)], "label": labels}
    with pytest.raises(InputError) as error:
        btdagg.decide(pd.DataFrame(votes), pd.DataFrame(people))
    assert error.value.advice == advice
    if "where" in advice:
        return
    try:  # as it is told
        decided = btdagg.decide(pd.DataFrame(votes), pd.DataFrame(people), **advice)
    except InputError as error:
        (other,) = error.advice
        assert {other, *advice} == {"scale", "label_scale"}
    else:
        assert len(decided) == 12


def test_a_slip_of_the_pen_is_shown_by_its_row():
    """A value off the scale of pairs in one row, or few of many; in more they are grades."""
    people = {"item": [*range(12)], "label": [0, 1] * 5 + [1, 4]}
    with refused(row=12, column="label", source="data frame", got=4):
        btdagg.decide(pd.DataFrame(VOTES), pd.DataFrame(people))
    for vote in (4, "4", "+4"):  # first of all
        votes = {"item": [*range(12)], "vote": [vote, *map(type(vote), [0, 1] * 5), type(vote)(1)]}
        with refused("scale", row=1, column="vote", source="data frame", got=vote):
            btdagg.read_votes(votes)
    for labels in ([0, 1, 2] * 4, [1, 2] * 6):
        with pytest.raises(InputError, match="their scale is not given") as error:
            btdagg.decide(pd.DataFrame(VOTES), pd.DataFrame(people | {"label": labels}))
        assert [*error.value.advice] == ["label_scale"]
    with refused("words", row=1, column="vote", source="data frame", got=float("inf")):
        btdagg.read_votes({"item": [1, 2], "vote": [float("inf")] * 2})
    words = {"1": "A", "2": "B"}
    votes = btdagg.read_votes({"item": [1, 2, 3], "vote": ["+2", "2.0", "1"]}, words=words)
    assert votes.frame["vote"].to_list() == [-1, -1, 1]
    failed = {"item": [*range(4)], "vote": ["A", "B", "tie", "failed"]}
    with refused("words", row=4, column="vote", expected="unknown: 'failed' in 1 row") as error:
        btdagg.read_votes(failed)
    assert error.value.advice == {"words": {"failed": "..."}}


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_zeros_and_ones_that_may_be_fail_and_pass_are_remarked():
    """Once for all tasks, and where none has a vote or label for B."""
    items, may_pass = [*range(12)], "if 0 and 1 mean fail and pass"
    people = {"item": items, "label": [0, 1] * 6}
    votes, labels = btdagg.read_votes(VOTES), btdagg.read_labels(people)
    for found in (votes.items(labels), votes.labelled(labels)):
        assert sum(may_pass in text for text in found.origin.remarks) == 1
    assert not btdagg.read_votes(VOTES | {"vote": [0, -1] * 6}).items(labels).origin.remarks
    tasks = {"item": items * 2, "task": ["x"] * 12 + ["y"] * 12}
    for second, number in (([0, 1] * 6, 1), ([0, -1] * 6, 0)):
        votes = btdagg.read_votes(tasks | {"vote": [0, 1] * 6 + second})
        labels = btdagg.read_labels(tasks | {"label": [0, 1] * 6 + second})
        assert sum(may_pass in text for text in votes.items(labels).origin.remarks) == number
    with pytest.raises(InputError, match="If labels are grades too, give their scale") as error:
        btdagg.calibrate(btdagg.read_votes(SCORES), btdagg.read_labels(people))
    assert error.value.advice == {"label_scale": Scale("0,1")}


def test_counts_have_a_column_for_each_point():
    scale = Scale((1, 1.5, 2))
    table = {"2": [3.0, 0.5], "1.0": [1, 0], "1.5": [2.0, 0.25]}
    for frame in (pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        assert scale.counts(frame).tolist() == [[1, 2, 3], [0, 0.25, 0.5]]
    assert scale.counts([[1, 2, 3.0]]).dtype == np.int64
    with pytest.raises(
        InputError, match=r"counts has columns 0, 1, 2, expected exactly the votes 1, 1.5, 2"
    ):
        scale.counts(pd.DataFrame([[1, 2, 3]]))
    with pytest.raises(InputError, match=r"shape \(1, 2\), expected \(n, 3\): votes of 1, 1.5, 2"):
        scale.counts([[0, 1]])
    other = Scale((2, 4, 6), ("B", "tie", "A"), mirrored=True)
    assert other.counts(pl.DataFrame({"plus": [3], "minus": [1], "tie": [2]})).tolist() == [
        [1, 2, 3]
    ]
