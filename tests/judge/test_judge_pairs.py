"""Reading pairs: names of columns, what a pair holds, and every message."""

import pytest

from btdagg import InputError
from btdagg.judge import Pair, read_pairs
from refusals import refused

COLUMNS = {"item": ["q1", "q2"], "a": ["yes", "no"], "b": ["no", "no "], "prompt": ["?", None]}


def test_a_pair_has_its_texts():
    pairs = read_pairs({**COLUMNS, "lang": ["de", None], "year": [1999, 2000]})
    assert len(pairs) == 2
    first = Pair("q1", "yes", "no", "?", "", {"lang": "de", "year": "1999"})
    assert pairs[0] == first
    assert list(pairs) == [first, pairs[1]] == [pairs[-2], pairs[-1]]
    assert pairs[1].prompt == ""
    assert pairs[1].fields == {"lang": "", "year": "2000"}
    assert pairs.fields == ("lang", "year")
    with pytest.raises(IndexError):
        pairs[2]


@pytest.mark.parametrize(
    ("item", "response", "prompt"),
    [("item", "response_{}", "source"), ("id", "translation_{}", "question")],
)
def test_columns_have_other_names(item, response, prompt):
    names = {"item": item, "a": response.format("a"), "b": response.format("b"), "prompt": prompt}
    pairs = read_pairs({names[name].upper(): values for name, values in COLUMNS.items()})
    assert list(pairs) == list(read_pairs(COLUMNS))


def test_no_judge_is_shown_a_label():
    pairs = read_pairs({**COLUMNS, "label": [1, 0], "vote": [0, 1], "group": ["g", "g"]})
    assert pairs[0].fields == {"group": "g"}
    assert pairs.fields == ("group",)
    assert pairs.frame["label"].to_list() == [1, 0]


def test_identical_texts_are_counted():
    pairs = read_pairs(COLUMNS)
    assert pairs.n_identical == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"a": ["yes", None]}, "row 2, column a: got nothing, expected the text of a response"),
        ({"b": [" \n", "x"]}, r"row 1, column b: got ' \\n', expected the text of a response"),
        ({"item": ["q1", "q1"]}, "rows 1 and 2: both have item 'q1'"),
        ({"item": ["q1", ""]}, "row 2, column item: got '', expected an id"),
    ],
)
def test_a_bad_pair_is_named(changed, message):
    with pytest.raises(InputError, match=f"^data frame, {message}$"):
        read_pairs(COLUMNS | changed)


def test_a_blank_response_is_named_by_its_own_column():
    columns = {"id": ["q1"], "response_a": [""], "response_b": ["x"]}
    with refused(row=1, column="response_a", source="data frame", got=""):
        read_pairs(columns)


@pytest.mark.parametrize(
    ("column", "wanted"),
    [("item", "item or id or item_id"), ("b", "b or response_b or translation_b")],
)
def test_a_missing_column_is_named(column, wanted):
    columns = {name: values for name, values in COLUMNS.items() if name != column}
    with pytest.raises(InputError, match=f"^data frame: no column {wanted}; found "):
        read_pairs(columns)
