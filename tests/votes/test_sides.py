"""What A and B are called: told, or read from columns."""

import json

import polars as pl
import pytest

import btdagg
from btdagg.votes.sides import Sides

ROWS = {
    "item": ["x", "x", "y", "z"],
    "vote": ["A", "tie", "B", "A"],
    "system_a": ["new"] * 4,
    "system_b": ["old", "old", "other", "old"],
}
PLAIN = {name: ROWS[name] for name in ("item", "vote")}


def test_columns_name_the_sides_where_they_have_one_value():
    votes = btdagg.read_votes(ROWS)
    assert votes.sides == Sides() == ("A", "B")
    assert votes.filter({"system_b": "old"}).sides == Sides("new", "old")
    assert [part.sides.b for _, part in votes.partition(["system_b"])] == ["old", "other"]
    assert btdagg.read_votes(ROWS | {"system_b": ["new"] * 4}).sides == Sides()
    assert btdagg.read_votes(ROWS | {"system_b": ["old", None] * 2}).sides == Sides()


def test_names_travel_with_votes_to_estimates(tmp_path):
    votes = btdagg.read_votes(PLAIN, a=" new ", b="old")
    counts = {"item": ["x", "y", "z"], "minus": [0, 1, 0], "tie": [1, 0, 0], "plus": [1, 0, 1]}
    for same in (votes.signs(), btdagg.read_votes(votes), votes.filter({"item": "x"})):
        assert same.sides == Sides("new", "old")
    assert btdagg.read_votes(counts, a="new").sides == Sides("new", "B")
    pl.DataFrame(ROWS).filter(pl.col("system_b") == "old").write_parquet(tmp_path / "v.parquet")
    labels = btdagg.read_labels({"item": ["x", "z"], "label": [0, 1]})
    for named in (votes, btdagg.read_votes(tmp_path / "v.parquet")):
        assert btdagg.estimate(named, labels).sides == Sides("new", "old")
    assert btdagg.estimate([[0, 0, 1], [1, 0, 0]], [1, 0]).sides == Sides()


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ({"a": "new", "b": "old"}, "row 3, column system_b: got 'other', expected 'old'"),
        ({"a": "old"}, "row 1, column system_a: got 'new', expected 'old', the name of A"),
        ({"a": "new", "b": "new"}, "row 1, column system_b"),
        ({"a": " "}, "a is ' ', expected a name"),
        ({"a": "B"}, "column system_a"),
    ],
)
def test_names_that_contradict_the_columns_are_refused(names, text):
    with pytest.raises(btdagg.InputError, match=text):
        btdagg.read_votes(ROWS, **names)


@pytest.mark.parametrize("names", [{"a": "x", "b": " x"}, {"a": "B"}, {"b": "A"}])
def test_both_sides_have_different_names(names):
    with pytest.raises(btdagg.InputError, match="expected a name other than that of A") as error:
        btdagg.read_votes(PLAIN, **names)
    assert error.value.argument == "b"


def test_single_responses_have_no_sides():
    scores = {"item": ["x", "y"], "score": [1, 2], "system_a": ["p"] * 2, "system_b": ["q"] * 2}
    scale = btdagg.Scale("1-2")
    assert btdagg.read_votes(scores, scale=scale).sides == Sides()
    with pytest.raises(btdagg.InputError, match="no names, since votes are grades"):
        btdagg.read_votes(scores, scale=scale, a="p")


def test_options_name_the_sides_of_what_passes_the_filters(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(ROWS).write_csv("votes.csv")
    pl.DataFrame({"item": ["x", "z"], "label": [0, 1]}).write_csv("labels.csv")
    command = ("estimate", "votes.csv", "labels.csv", "--json", "--set", "a=new", "--set", "b=old")
    assert "row 3, column system_b: got 'other'" in cli(*command)[2]
    status, out, _ = cli(*command, "--filter", "system_b=old")
    assert (status, json.loads(out)["a"], json.loads(out)["b"]) == (0, "new", "old")
