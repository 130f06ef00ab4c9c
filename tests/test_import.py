"""Votes of other tools: formats, sides and orders, words, and what could not be read."""

import json

import polars as pl
import pytest

from btdagg import InputError
from btdagg.importing import FORMATS, read


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(rows, name="rows.jsonl"):
    with open(name, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return name


def document(value, name="document.json"):
    with open(name, "w", encoding="utf-8") as file:
        json.dump(value, file)
    return name


def table(name="votes.csv", **columns):
    pl.DataFrame(columns).write_csv(name)
    return name


def rows(found, *columns):
    return found.frame.select(columns).rows()


# Any table


WINNERS = {"id": ["q1", "q1", "q2", "q2"], "winner": ["model_a", "model_a", "Tie ", "draw"],
           "order": ["AB", "BA", "AB", "BA"], "who": ["j", "j", "k", "k"]}  # fmt: skip
WORDS = {"model_a": "A", "model_b": "B", "draw": "tie"}


def test_a_table_by_a_map():
    found = read(table(**WINNERS), columns={"item": "id", "vote": "winner", "judge": "who"},
                 words=WORDS, flip_where=("order", ["BA"]))  # fmt: skip
    assert rows(found, "item", "vote", "judge", "order", "sample") == [
        ("q1", 1, "j", "AB", 0),
        ("q1", -1, "j", "BA", 0),
        ("q2", 0, "k", "AB", 0),
        ("q2", 0, "k", "BA", 0),
    ]
    assert (found.kind, found.formats, dict(found.unread)) == ("votes", ("table",), {})
    assert found.votes.counts()[1].tolist() == [[1, 0, 1], [0, 2, 0]]


def test_flipped_rows_have_the_order_that_says_so():
    found = read(table(id=["x", "y"], vote=["A", "A"], swapped=["no", "yes"]),
                 columns={"item": "id"}, flip_where=("swapped", ["yes"]))  # fmt: skip
    assert rows(found, "item", "vote", "order") == [("x", 1, "AB"), ("y", -1, "BA")]


def test_texts_are_read_by_the_parser_of_answers():
    said = ["Both fine. [[A]]", "I prefer [[C]]", "Verdict: B", "no idea", "", "I'm sorry, I can't"]
    file = table(item=["a", "b", "c", "d", "e", "f"], judgment=said,
                 order=["AB", "AB", "BA", "AB", "AB", "AB"])  # fmt: skip
    found = read(file, columns={"answer": "judgment"}, flip_where=("order", ["BA"]))
    assert rows(found, "item", "vote", "status") == [
        ("a", 1, "ok"), ("b", None, "unparsed"), ("c", 1, "ok"), ("d", None, "unparsed"),
        ("e", None, "empty"), ("f", None, "refused"),
    ]  # fmt: skip
    assert dict(found.unread) == {"unparsed": 2, "empty": 1, "refused": 1}
    assert found.remarks == ("answers that say [[C]]: 1; --words c=tie says what they may mean",)
    found = read(file, columns={"answer": "judgment"}, words={"c": "tie"})
    assert found.frame["vote"].to_list() == [1, 0, -1, None, None, None]


def test_scores_of_responses_become_votes_of_pairs_with_a_margin():
    file = table(prompt=["p", "p", "p", "p", "p", "r", "r"],
                 model=["m2", "m1", "m3", "m1", "m2", "m1", "m2"],
                 rating=["7", "5.5", "7", "9", "8", "3", ""])  # fmt: skip
    found = read(file, columns={"group": "prompt", "system": "model", "score": "rating"})
    assert sorted(rows(found, "item", "system_a", "system_b", "sample", "vote", "margin")) == [
        ("p|m1|m2", "m1", "m2", 0, -1, 1.5),
        ("p|m1|m2", "m1", "m2", 1, 1, 1.0),
        ("p|m1|m3", "m1", "m3", 0, -1, 1.5),
        ("p|m2|m3", "m2", "m3", 0, 0, 0.0),
        ("r|m1|m2", "m1", "m2", 0, None, None),
    ]
    assert dict(found.unread) == {"unparsed": 1}


def test_two_scores_in_a_row_are_a_vote():
    file = table(item=["x", "y"], ours=[7.5, 3], theirs=[5, 3])
    found = read(file, columns={"score_a": "ours", "score_b": "theirs"})
    assert rows(found, "item", "vote", "margin") == [("x", 1, 2.5), ("y", 0, 0.0)]


def test_a_pair_is_one_item_whoever_is_shown_first():
    file = table(q=["1", "1"], first=["x", "y"], second=["y", "x"], better=["A", "A"],
                 order=["AB", "AB"])  # fmt: skip
    names = {"group": "q", "system_a": "first", "system_b": "second", "vote": "better"}
    found = read(file, columns=names)
    assert rows(found, "item", "system_a", "system_b", "vote", "order") == [
        ("1|x|y", "x", "y", 1, "AB"),
        ("1|x|y", "x", "y", -1, "BA"),
    ]


def test_json_is_one_object_lines_or_a_list():
    votes = [{"id": "x", "vote": "A"}, {"id": "y", "vote": "B"}]
    for file in (lines(votes), document(votes), document({"data": votes}, "data.json"),
                 lines(votes, "lines.json")):  # fmt: skip
        assert rows(read(file), "item", "vote") == [("x", 1), ("y", -1)], file


# All of them


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_that_is_named_is_checked(name):
    file = table(other=["x"])
    with pytest.raises(InputError, match=r"not in the format|no column of votes"):
        read(file, name)
