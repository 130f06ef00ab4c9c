"""Rows are filtered before their values are checked, and a key may be several columns."""

import polars as pl
import pytest

import btdagg
from btdagg import InputError, Scale, read_labels, read_votes
from refusals import refused

TWO_SCALES = {
    "item": ["x", "y", "x", "y"],
    "score": [2, 3, 70, 90],
    "criterion": ["kind", "kind", "true", "true"],
}
TWO_WORDS = {
    "item": ["x", "y", "z"],
    "vote": ["A", "B", "unheard of"],
    "judge": ["g", "g", "h"],
}


def in_file(path, rows):
    pl.DataFrame(rows).write_parquet(path)
    return path


@pytest.mark.parametrize("is_file", [False, True])
def test_rows_are_filtered_before_their_values_are_checked(tmp_path, is_file):
    def source(rows):
        return in_file(tmp_path / "votes.parquet", rows) if is_file else rows

    five = Scale(range(1, 6))
    votes = read_votes(source(TWO_SCALES), scale=five, where={"criterion": "kind"})
    assert votes.counts()[1].tolist() == [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    with refused(row=3, column="score", got=70):
        read_votes(source(TWO_SCALES), scale=five)
    of_pairs = read_votes(source(TWO_WORDS), where={"judge": "g"})
    assert of_pairs.counts()[1].tolist() == [[0, 0, 1], [1, 0, 0]]
    with refused("words", row=3, column="vote", got="unheard of"):
        read_votes(source(TWO_WORDS))
    with refused("words", row=3, column="vote", got="unheard of"):  # as the source numbers it
        read_votes(source(TWO_WORDS), where={"judge": "h"})


def test_labels_are_filtered_before_their_values_are_checked():
    rows = {name if name != "score" else "label": column for name, column in TWO_SCALES.items()}
    grades = read_labels(rows, scale=Scale(range(1, 6)), where={"criterion": "kind"})
    assert grades.labels.tolist() == [2, 3]
    sides = {"item": ["x", "y", "y"], "label": ["A", "A", "?"], "rater": ["r", "r", "s"]}
    assert read_labels(sides, where={"rater": "r"}).labels.tolist() == [1, 1]
    with refused("words", row=3, column="label", source="data frame", got="?"):
        read_labels(sides)


@pytest.mark.parametrize("value", [1, 1.0, "1", "1.0", "+1", True and "1.00"])
@pytest.mark.parametrize("column", [[1.0, 0.5, 1.0], ["1.0", "0.5", "1"], [1, 2, 1]])
def test_numbers_are_compared_as_numbers(value, column):
    table = {"item": ["x", "y", "z"], "vote": [1, 0, 1], "temperature": column}
    assert read_votes(table, where={"temperature": value}).ids.tolist() == ["x", "z"]


def test_ids_that_look_alike_stay_apart():
    table = {"item": ["01", "1", "1e0", "10", "100", "0.50"], "vote": [1] * 6}
    for item, found in {
        "1": ["1"],
        "01": ["01"],
        "10": ["10"],
        "1e0": ["1e0"],
        ".5": [],
        "0.5": ["0.50"],
    }.items():
        if found:
            assert read_votes(table, where={"item": item}).ids.tolist() == found
        else:
            with pytest.raises(InputError, match="no row has item"):
                read_votes(table, where={"item": item})


def test_a_criterion_is_a_task_where_no_column_has_its_name():
    rows = {"item": ["x", "x"], "score": [1, 0], "criterion": ["kind", "true"]}
    for name in ("criterion", "task", " Task "):
        assert read_votes(rows, where={name: "kind"}, scale=btdagg.PASS_FAIL).height == 1
    votes = read_votes(rows, scale=btdagg.PASS_FAIL)
    assert votes.filter({"criterion": "true"}).height == 1


# Keys of several columns

DIALOGUES = {
    "conversation": ["a", "a", "b", "b"],
    "bot": ["x", "y", "x", "y"],
    "vote": [1, 0, -1, None],
}


def test_several_columns_make_a_key():
    columns = {"item": ["conversation", "bot"], "group": "conversation"}
    votes = read_votes(DIALOGUES, columns=columns)
    assert votes.ids.tolist() == ["a|x", "a|y", "b|x", "b|y"]
    assert votes.frame["group"].to_list() == ["a", "a", "b", "b"]
    assert votes.filter({"bot": "x", "conversation": "b"}).ids.tolist() == ["b|x"]
    turned = read_votes(DIALOGUES, columns={"item": ["bot", "conversation"]}, where={"bot": "y"})
    assert turned.ids.tolist() == ["y|a", "y|b"]
    gold = {"bot": ["y", "x"], "conversation": ["a", "b"], "label": ["tie", "B"]}
    labels = read_labels(gold, columns=columns)
    assert votes.labelled(labels).label.tolist() == [0, -1]


def test_keys_of_different_parts_stay_different():
    parts = [("a|", "b"), ("a", "|b"), ("a\\", "|b"), ("a\\|", "b"), ("a|b", "c"), ("a", "b|c")]
    first, second = zip(*parts, strict=True)
    rows = {"p": first, "q": second, "vote": [1] * len(parts)}
    assert len({*read_votes(rows, columns={"item": ["p", "q"]}).ids}) == len(parts)


def test_a_part_is_an_id():
    """Whole numbers are one id however they are stored, and an empty part is none."""
    floats = {"p": [1.0, 2.0], "q": ["a", "b"], "vote": [1, 1]}
    assert read_votes(floats, columns={"item": ["p", "q"]}).ids.tolist() == ["1|a", "2|b"]
    empty = {"p": ["u", " "], "q": ["a", "b"], "vote": [1, 1]}
    with refused(row=2, column="p", source="data frame", got=" ", expected="an id"):
        read_votes(empty, columns={"item": ["p", "q"]})
    with pytest.raises(InputError, match="no column 'r'"):
        read_votes(empty, columns={"item": ["p", "r"]})
