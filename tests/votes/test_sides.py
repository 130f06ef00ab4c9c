"""What A and B are called: told, or read from columns."""

import json

import polars as pl
import pytest

import btdagg
from refusals import refused

ROWS = {
    "item": ["x", "x", "y", "z"],
    "vote": ["A", "tie", "B", "A"],
    "system_a": ["new"] * 4,
    "system_b": ["old", "old", "other", "old"],
}
PLAIN = {name: ROWS[name] for name in ("item", "vote")}


def test_columns_name_the_sides_where_they_have_one_value():
    votes = btdagg.read_votes(ROWS)
    assert votes.sides == ("A", "B")
    assert votes.filter({"system_b": "old"}).sides == ("new", "old")
    assert [part.sides.b for _, part in votes.partition(["system_b"])] == ["old", "other"]
    assert btdagg.read_votes(ROWS | {"system_b": ["new"] * 4}).sides == ("A", "B")
    assert btdagg.read_votes(ROWS | {"system_b": ["old", None] * 2}).sides == ("A", "B")


def test_names_travel_with_votes_to_estimates(tmp_path):
    votes = btdagg.read_votes(PLAIN, a=" new ", b="old")
    counts = {"item": ["x", "y", "z"], "minus": [0, 1, 0], "tie": [1, 0, 0], "plus": [1, 0, 1]}
    for same in (votes.signs(), btdagg.read_votes(votes), votes.filter({"item": "x"})):
        assert same.sides == ("new", "old")
    assert btdagg.read_votes(counts, a="new").sides == ("new", "B")
    pl.DataFrame(ROWS).filter(pl.col("system_b") == "old").write_parquet(tmp_path / "v.parquet")
    labels = btdagg.read_labels({"item": ["x", "z"], "label": [0, 1]})
    for named in (votes, btdagg.read_votes(tmp_path / "v.parquet")):
        assert btdagg.estimate(named, labels).sides == ("new", "old")
    assert btdagg.estimate([[0, 0, 1], [1, 0, 0]], [1, 0]).sides == ("A", "B")


@pytest.mark.parametrize(
    ("names", "row", "column", "got"),
    [
        ({"a": "new", "b": "old"}, 3, "system_b", "other"),
        ({"a": "old"}, 1, "system_a", "new"),
        ({"a": "new", "b": "new"}, 1, "system_b", "old"),
        ({"a": "B"}, 1, "system_a", "new"),
    ],
)
def test_names_that_contradict_the_columns_are_refused(names, row, column, got):
    name = names[column.removeprefix("system_")]
    with refused(source="data frame", row=row, column=column, got=got, expected=repr(name)):
        btdagg.read_votes(ROWS, **names)
    with refused("a", got=" "):
        btdagg.read_votes(ROWS, a=" ")


@pytest.mark.parametrize("names", [{"a": "x", "b": " x"}, {"a": "B"}, {"b": "A"}])
def test_both_sides_have_different_names(names):
    with refused("b"):
        btdagg.read_votes(PLAIN, **names)


def test_single_responses_have_no_sides():
    scores = {"item": ["x", "y"], "score": [1, 2], "system_a": ["p"] * 2, "system_b": ["q"] * 2}
    scale = btdagg.Scale("1-2")
    assert btdagg.read_votes(scores, scale=scale).sides == ("A", "B")
    with refused("a", got="p"):
        btdagg.read_votes(scores, scale=scale, a="p")


def test_options_name_the_sides_of_what_passes_the_filters(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(ROWS).write_csv("votes.csv")
    pl.DataFrame({"item": ["x", "z"], "label": [0, 1]}).write_csv("labels.csv")
    command = ("estimate", "votes.csv", "labels.csv", "--json", "--set", "a=new", "--set", "b=old")
    assert "row 3, column system_b: got 'other'" in cli(*command)[2]
    status, out, _ = cli(*command, "--filter", "system_b=old")
    assert (status, json.loads(out)["a"], json.loads(out)["b"]) == (0, "new", "old")


def test_the_first_row_that_names_another_system_is_blamed():
    n = 50
    rows = {
        "item": [f"q{i}" for i in range(n)] * 2,
        "vote": [1] * 2 * n,
        "system_a": ["ours"] * n + ["ours", *["other"] * (n - 1)],
        "system_b": ["theirs"] * n + ["other", *["theirs"] * (n - 1)],
    }
    expected = "'theirs' as in another row of item 'q0', which is one pair with the same A"
    with refused("columns", row=n + 1, column="system_b", expected=expected):
        btdagg.read_votes(rows)
