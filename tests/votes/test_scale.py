"""The scales of votes that are grades, and of labels."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from btdagg import InputError, Scale

FIVE = Scale(range(1, 6), range(1, 6))


def test_whole_points_are_integers_and_a_scale_is_a_value():
    scale = Scale(votes=(x / 2 for x in range(2, 6)), grades=np.array([0.0, 1.0]))
    assert scale.votes == (1, 1.5, 2, 2.5)
    assert [type(point) for point in scale.votes] == [int, float, int, float]
    assert scale.grade_values.dtype.kind == "i"
    assert scale.middle == 1.75
    assert Scale(**scale.as_dict()) == scale == copy.deepcopy(scale)
    assert hash(pickle.loads(pickle.dumps(scale))) == hash(scale)


@pytest.mark.parametrize("points", [[1], [], [1, 1], [2, 1], "12", 3, None])
def test_a_scale_has_two_increasing_points_at_least(points):
    for scales in ((points, (0, 1)), ((0, 1), points)):
        with pytest.raises(InputError, match="two or more numbers, each above the one before"):
            Scale(*scales)


def test_grades_fit_into_a_byte():
    assert len(Scale(range(300), range(256)).grades) == 256
    with pytest.raises(InputError, match=r"^grades has 300 values, expected at most 256") as info:
        Scale((0, 1), range(300))
    assert info.value.argument == "grades"


@pytest.mark.parametrize("point", ["2", np.inf, np.nan, None, True, np.True_, 1j])
def test_a_point_is_a_finite_number(point):
    with pytest.raises(InputError, match=r"^grades\[1\] is .*, expected a finite number$"):
        Scale((0, 1), (1, point))


@pytest.mark.parametrize("bad", [3.5, 0, 6, 11, -1, "four", "4", True, None, np.nan, np.inf, b"4"])
@pytest.mark.parametrize("kind", [list, lambda values: np.array(values, dtype=object)])
def test_what_is_off_the_scale_is_named(bad, kind):
    with pytest.raises(InputError, match=r"^labels\[2\] is .*, expected 1, 2, 3, 4 or 5$"):
        FIVE.label_numbers(kind([1, 5, bad, 2]))
    with pytest.raises(
        InputError, match=r"^votes\[2\] is .*, expected a whole number from 1 to 7$"
    ):
        Scale(range(1, 8), (0, 1)).vote_numbers(kind([1, 5, 11 if bad == 6 else bad, 2]))


def test_missing_labels_are_unlabelled_where_that_is_allowed():
    expected = [0, -1, -1, 4]
    for labels in (
        [1, None, np.nan, 5],
        [1, pd.NA, float("nan"), 5.0],
        pl.Series([1, None, None, 5]),
    ):
        assert FIVE.label_numbers(labels, partial=True).tolist() == expected
    masked = np.ma.array([1, 9, 9, 5], mask=[0, 1, 1, 0])
    assert FIVE.label_numbers(masked, partial=True).tolist() == expected
    with pytest.raises(InputError, match=r"labels\[1\] is 'four', expected .* or NaN"):
        FIVE.label_numbers([None, "four"], partial=True)
    with pytest.raises(InputError, match=r"labels\[0\] is 6\.0, expected .* or NaN"):
        FIVE.label_numbers([6, None], partial=True)
    with pytest.raises(InputError, match="labels has dtype bool"):
        FIVE.label_numbers(np.array([True]))


def test_counts_have_a_column_for_each_point():
    scale = Scale((1, 1.5, 2), (0, 1))
    table = {"2": [3.0, 0.5], "1.0": [1, 0], "1.5": [2.0, 0.25]}
    for frame in (pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        assert scale.counts(frame).tolist() == [[1, 2, 3], [0, 0.25, 0.5]]
    assert scale.counts([[1, 2, 3.0]]).dtype == np.int64
    with pytest.raises(
        InputError, match=r"counts has columns 0, 1, 2, expected the votes 1, 1.5, 2"
    ):
        scale.counts(pd.DataFrame([[1, 2, 3]]))
    with pytest.raises(InputError, match=r"counts\[1, 2\] is -1, expected a finite number"):
        scale.counts([[0, 1, 2], [0, 1, -1]])
    with pytest.raises(InputError, match=r"shape \(1, 2\), expected \(n, 3\): votes of 1, 1.5, 2"):
        scale.counts([[0, 1]])
