"""Votes of other tools: formats, sides and orders, words, and what could not be read."""

import json
import re
import shlex
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import btdagg
from btdagg import InputError
from btdagg.formats import read, read_grades
from commands import one_line
from refusals import refused

pytestmark = pytest.mark.usefixtures("folder")


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
                 words={"model_a": "first", "model_b": "second", "draw": "tie"})  # fmt: skip
    assert rows(found, "item", "vote", "judge", "order", "sample") == [
        ("q1", 1, "j", "AB", 0),
        ("q1", -1, "j", "BA", 0),
        ("q2", 0, "k", "AB", 0),
        ("q2", 0, "k", "BA", 0),
    ]
    assert (found.kind, found.formats, dict(found.unread)) == ("votes", ("table",), {})
    assert found.votes.counts()[1].tolist() == [[1, 0, 1], [0, 2, 0]]


@pytest.mark.parametrize("lazily", [False, True])
def test_votes_are_read_with_names_words_and_orders_of_ones_own(lazily):
    shown = pl.DataFrame(WINNERS).with_columns(order=pl.col("order").replace({"BA": "swapped"}))
    shown.write_parquet("votes.parquet")
    source = "votes.parquet" if lazily else shown
    columns = {"item": "id", "vote": "winner", "judge": "who"}
    found = btdagg.read_votes(source, columns=columns, words=WORDS, order={"Swapped": "BA"})
    assert found.frame["vote"].to_list() == [1, 1, 0, 0]
    assert found.frame["order"].to_list() == ["AB", "BA", "AB", "BA"]
    of_sides = WORDS | {"model_a": "first"}
    found = btdagg.read_votes(source, columns=columns, words=of_sides, order={"swapped": "BA"})
    assert found.frame["vote"].to_list() == [1, -1, 0, 0]
    with refused("order", row=2, column="order", got="swapped"):
        btdagg.read_votes(source, columns=columns, words=WORDS)
    with refused("words", row=4, column="winner", expected="unknown: 'draw' in 1 row"):
        order = {"swapped": "BA"}
        btdagg.read_votes(source, columns=columns, words={"model_a": "A"}, order=order)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([1.0, 0.0, None], {"1": "B", "0": "A"}),
        ([1.0, 0.0, None], {1.0: "B", "0.0": "A"}),
        (["+1", "0.0", ""], {"1": "B", "0": "A"}),
        ([1, 0, None], {1: "second", 0: "first"}),
        ([True, False, None], {True: "B", False: "A"}),
    ],
)
def test_words_that_are_numbers_mean_what_is_said_however_they_are_stored(numbers, words):
    frame = pd.DataFrame({"item": ["a", "b", "c"], "vote": numbers, "order": [0.0, 0.0, 0.0]})
    found = btdagg.read_votes(frame, words=words, order={0: "AB", "1": "BA"})
    assert found.frame["vote"].to_list() == [-1, 1, None]
    assert found.frame["order"].to_list() == ["AB"] * 3


@pytest.mark.parametrize("word", ["A=B", "tie (bothbad)"])
def test_a_hint_leaves_the_meaning_to_the_user(cli, word):
    """It shows where to type, does nothing as it stands, and works once it is filled in."""
    table(item=["x", "x", "y"], vote=[word, word, "A"])
    line = ["import", "votes.csv", "-o", "out.csv"]
    said = one_line(*cli(*line))
    assert f"{word.lower()!r} in 2 rows" in said
    option = shlex.split(re.search(r"--set .?words\..*=\.\.\.'?(?=:)", said)[0])
    assert "fill in the ..." in one_line(*cli(*line, *option))
    assert not Path("out.csv").exists()
    status, _, err = cli(*line, *(part.replace("...", "B") for part in option))
    assert (status, pl.read_csv("out.csv")["vote"].to_list()) == (0, [-1, -1, 1]), err


def test_votes_that_are_all_ties_and_texts_of_which_few_are_read_are_remarked(cli):
    table(item=range(30), vote=["one", "two"] * 15)
    line = ["import", "votes.csv", "-o", "out.csv"]
    assert "all 30 votes are ties" in cli(*line, "--set", "words.one=tie,words.two=tie")[2]
    assert "ties" not in cli(*line, "--set", "words.one=tie,words.two=A")[2]
    table(item=range(30), text=["Verdict: A", *["no idea"] * 29])
    assert "only 1 of 30 votes could be read" in cli(*line, "--set", "answer=text")[2]


def test_a_file_of_which_nothing_is_read_is_an_error(cli):
    table(item=["x", "y"], text=["Both.\nMy pick >> first", "My pick >> second"])
    line = ["import", "votes.csv", "-o", "out.csv", "--set", "answer=text"]
    said = one_line(*cli(*line))
    assert said.startswith(
        "no vote could be read; reasons: 2 unparsed; an unparsed answer ends in 'My pick "
    )
    assert not Path("out.csv").exists()
    pattern = ["--answer-pattern", r"^My pick >> (\w+)$", "--set", "words.first=A,words.second=B"]
    assert cli(*line, *pattern)[0] == 0
    assert pl.read_csv("out.csv")["vote"].to_list() == [1, -1]
    assert "one group" in one_line(*cli(*line, "--answer-pattern", "pick"))


def test_texts_are_read_by_the_parser_of_answers():
    said = ["Both fine. [[A]]", "I prefer [[C]]", "Verdict: B", "no idea", "", "I'm sorry, I can't"]
    file = table(item=["a", "b", "c", "d", "e", "f"], judgment=said,
                 order=["AB", "AB", "BA", "AB", "AB", "AB"])  # fmt: skip
    found = read(file, columns={"answer": "judgment"})
    assert rows(found, "item", "vote", "status") == [
        ("a", 1, "ok"), ("b", None, "unparsed"), ("c", 1, "ok"), ("d", None, "unparsed"),
        ("e", None, "empty"), ("f", None, "refused"),
    ]  # fmt: skip
    assert dict(found.unread) == {"unparsed": 2, "empty": 1, "refused": 1}
    (remark,) = found.remarks
    assert remark.startswith(
        "an unparsed answer ends in 'I prefer [[C]]'; set words to the meaning"
    )
    found = read(file, columns={"answer": "judgment"}, words={"c": "tie"})
    assert found.frame["vote"].to_list() == [1, 0, 1, None, None, None]
    found = read(file, columns={"answer": "judgment"}, constants={"order": "ba"})
    assert rows(found, "vote", "order")[:3] == [(-1, "BA"), (None, "BA"), (1, "BA")]


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
    file = table(item=["x", "y"], ours=[7.5, 3], theirs=[5, 3], margin=[9, 9])
    found = read(file, columns={"score_a": "ours", "score_b": "theirs"})
    assert rows(found, "item", "vote", "margin") == [("x", 1, 2.5), ("y", 0, 0.0)]


def test_a_margin_alone_is_a_vote_and_beside_one_it_is_kept():
    found = read(table(item=["x", "y", "z", "u"], margin=[-3.0, 0.0, 0.5, None]))
    assert found.formats == ("table",)
    assert rows(found, "item", "vote", "margin", "status") == [
        ("x", -1, 3.0, "ok"), ("y", 0, 0.0, "ok"), ("z", 1, 0.5, "ok"),
        ("u", None, None, "unparsed"),
    ]  # fmt: skip
    found = read(table(item=["x", "y"], winner=["B", "tie"], margin=[3, None], strength=[0.5, 1.0]),
                 columns={"vote": "winner"})  # fmt: skip
    assert rows(found, "vote", "margin", "strength") == [(-1, 3.0, 0.5), (0, None, 1.0)]
    signed = table(id=[*"xyzuv"], winner=["B", "A", "tie", "", "B"], margin=[-2, 3, -1, -1, -5])
    found = read(signed, "table", columns={"item": "id", "vote": "winner"})
    assert found.frame["margin"].to_list() == [2, 3, 1, 1, 5]
    sign = "a margin with the same sign as its vote, or sizes of at least 0 in all rows"
    with refused(row=2, column="margin", source="votes.csv", got=2.0, expected=sign):
        read(table(item=["x", "y"], vote=["B", "B"], margin=[-2, 2]))
    for name, values, expected in (
        ("margin", [-1], sign),
        ("margin", ["inf"], "a number of at most 1e"),
        ("strength", [1.5], "a number from 0 to 1, or nothing"),
    ):
        with refused(row=1, column=name, source="votes.csv", expected=expected):
            read(table(item=["x"], vote=["A"], **{name: values}))
    with refused(row=2, column="margin", source="votes.csv", got="nan"):
        read(table(item=["x", "y"], margin=["-1", "nan"]))


def test_probabilities_of_a_vote_follow_the_side_that_they_are_of():
    file = table(group=["p", "p", "q", "q"], system_a=["m", "n", "n", "n"],
                 system_b=["n", "m", "m", "m"], p_minus=[0.1, 0.125, 0.5, None],
                 p_tie=[0.2, 0.75, 0.0, None], p_plus=[0.7, 0.125, 0.5, None])  # fmt: skip
    found = read(file, "table")
    assert rows(found, "item", "vote", "p_minus", "p_tie", "p_plus") == [
        ("p|m|n", 1, 0.1, 0.2, 0.7), ("p|m|n", 0, 0.125, 0.75, 0.125),
        ("q|m|n", 0, 0.5, 0.0, 0.5), ("q|m|n", None, None, None, None),
    ]  # fmt: skip
    turned = read(table(group=["p"], system_a=["n"], system_b=["m"], p_minus=[0.75], p_tie=[0.25],
                        p_plus=[0]), "table")  # fmt: skip
    assert rows(turned, "vote", "p_minus", "p_plus") == [(1, 0.0, 0.75)]
    with pytest.raises(InputError, match="no column of votes among item, p_minus, p_plus"):
        read(table(item=["x"], p_minus=[0.5], p_plus=[0.5]), "table")


def test_labels_and_ratings_of_a_table(cli):
    table(item=["x", "x", "y"], who=["p", "q", "p"], gold=["A", "A", "tie"], p=[0.5, 0.5, 0.25])
    imported = read("votes.csv", columns={"label": "gold", "probability": "p"})
    labels = btdagg.read_labels(imported.frame)
    assert labels.frame.select("item", "label", "probability").rows() == [
        ("x", 1, "0.5"), ("y", 0, "0.25"),
    ]  # fmt: skip
    assert cli("import", "votes.csv", "--set", "label=gold,rater=who", "-o", "people.csv")[0] == 0
    assert btdagg.paper.read_ratings("people.csv").raters.tolist() == ["p", "q"]
    assert btdagg.read_labels("people.csv").labels.tolist() == [1, 0]
    table(item=["x", "x"], gold=["A", "B"])
    expected = r"rows 1 and 2: both have item 'x', with labels 1 and -1; if .*'rater'"
    with pytest.raises(InputError, match=expected):
        read("votes.csv", columns={"label": "gold"})


def test_votes_that_agree_can_be_written_as_labels(cli):
    Path("w.csv").write_text("id,winner\na,A\nb,tie\nc,B\nc,B\n")
    named = ("--set", "item=id", "--set", "vote=winner", "-o", "labels.csv")
    status, out, _ = cli("import", "w.csv", "--as", "labels", *named)
    assert (status, out) == (0, "table: 3 labels; wrote labels.csv\n")
    labels = btdagg.read_labels("labels.csv")
    assert dict(labels.frame.select("item", "label").rows()) == {
        "a": 1, "b": 0, "c": -1,
    }  # fmt: skip
    Path("w.csv").write_text("id,winner\nc,A\nc,B\n")
    assert "'c'" in cli("import", "w.csv", "--as", "labels", *named)[2]


def test_json_is_one_object_lines_or_a_list():
    votes = [{"id": "x", "vote": "A"}, {"id": "y", "vote": "B"}]
    for file in (lines(votes), document(votes), document({"data": votes}, "data.json"),
                 lines(votes, "lines.json")):  # fmt: skip
        assert rows(read(file), "item", "vote") == [("x", 1), ("y", -1)], file


# Formats


def test_lmsys_votes_of_people_are_ratings():
    arena = {"question_id": ["1", "2", "3"], "model_a": ["x", "y", "x"], "model_b": ["y", "x", "z"],
             "winner": ["model_a", "model_a", "tie (bothbad)"], "judge": ["arena_user_1"] * 3,
             "turn": [1, 1, 1]}  # fmt: skip
    found = read(table(**arena))
    assert (found.formats, found.kind) == (("lmsys",), "ratings")
    assert rows(found, "item", "rater", "vote", "order", "system_a", "group") == [
        ("1|1|x|y", "arena_user_1", 1, "AB", "x", "1"),
        ("2|1|x|y", "arena_user_1", -1, "BA", "x", "2"),
        ("3|1|x|z", "arena_user_1", 0, "AB", "x", "3"),
    ]
    judged = arena | {"judge": ["gpt4_pair"] * 3}
    found = read(table(**judged))
    assert (found.kind, found.frame["judge"].to_list()) == ("votes", ["gpt4_pair"] * 3)


def test_people_without_names_are_numbered():
    arena = {"id": [1, 1, 1, 2], "model_a": ["x", "x", "y", "x"], "model_b": ["y", "y", "x", "y"],
             "winner": ["model_a", "model_b", "tie", "tie"]}  # fmt: skip
    found = read(table(**arena))
    assert rows(found, "item", "rater", "vote") == [
        ("1|x|y", "human_1", 1), ("1|x|y", "human_2", -1), ("1|x|y", "human_3", 0),
        ("2|x|y", "human_1", 0),
    ]  # fmt: skip
    assert len(btdagg.paper.read_ratings(found.frame).raters) == 3
    found = read(table(**arena, judge=[None, "expert_1", None, "human"]))
    assert found.frame["rater"].to_list() == ["human_1", "expert_1", "human_2", "human_1"]
    alone = {name: values[2:] for name, values in arena.items()}
    assert read(table(**alone)).frame["rater"].to_list() == ["human", "human"]


def test_a_rater_with_two_votes_on_an_item_is_refused():
    arena = {"id": [1, 1], "model_a": ["x", "y"], "model_b": ["y", "x"], "winner": ["model_a"] * 2,
             "judge": ["expert_1"] * 2}  # fmt: skip
    with pytest.raises(InputError, match=r"both have item '1\|x\|y', rater 'expert_1'"):
        read(table(**arena))
    assert read("votes.csv", kind="votes").n_votes == 2


def test_turns_are_in_the_ids_whatever_else_is_imported():
    turns = [game("tie", "tie", turn=turn) for turn in (1, 2)]
    other = game("tie", "tie", question_id=7)
    del other["turn"]
    found = read([lines(turns), lines([other], "other.jsonl")])
    assert found.frame["item"].unique(maintain_order=True).to_list() == [
        "81|1|m1|m2", "81|2|m1|m2", "7|m1|m2",
    ]  # fmt: skip


def test_a_sample_has_one_vote():
    again = [request("q1-AB-0", completion(text)) for text in ("[[A]]", "[[B]]")]
    first, second = (lines([row], f"{k}.jsonl") for k, row in enumerate(again))
    with pytest.raises(InputError) as raised:
        read([first, second])
    assert str(raised.value) == (
        "0.jsonl, row 1 and 1.jsonl, row 1: both have item 'q1', judge 'gpt-5.4', order 'AB', "
        "sample 0, with votes 1 and -1"
    )
    # A vote takes the place of a sample without one, as in a table; a file is read once.
    failed = lines([request("q1-AB-0", status=500), request("q2-AB-0", status=500)], "c.jsonl")
    found = read([failed, second, f"./{second}", lines(again[1:], "d.jsonl")])
    assert rows(found, "item", "vote", "status") == [("q1", -1, "ok"), ("q2", None, "failed")]
    assert found.remarks == ("2 rows repeat a sample and are left out",)
    assert dict(found.unread) == {"failed": 1}


def test_human_preferences_have_a_column_for_each_winner():
    columns = {"id": [1, 2, 3], "model_a": ["x"] * 3, "model_b": ["y"] * 3,
               "winner_model_a": [1, 0, 0], "winner_model_b": [0, 0, 1],
               "winner_tie": [0, 1, 0]}  # fmt: skip
    found = read(table(**columns))
    assert (found.formats, found.kind) == (("lmsys",), "ratings")
    assert found.frame["vote"].to_list() == [1, 0, -1]
    columns["winner_tie"] = [0, 0, 0]
    with refused(row=2, column="winner_tie", source="votes.csv", got=0):
        read(table(**columns))


def game(g1, g2, first="m2", second="m1", **more):
    return {"question_id": 81, "model_1": first, "model_2": second, "g1_winner": g1,
            "g2_winner": g2, "judge": ["gpt-4", "pair-v2"], "g1_user_prompt": "",
            "g2_user_prompt": "", "g1_judgment": "", "g2_judgment": "", "turn": 1,
            "tstamp": 1.0, **more}  # fmt: skip


def test_fastchat_pairs_are_two_votes_each():
    judged = [game("model_1", "tie"), game("error", "error", g1_judgment="I say **[[B]]**",
                                           g2_judgment="$ERROR$")]  # fmt: skip
    found = read(lines(judged))
    assert found.formats == ("fastchat",)
    # m1 comes first: what was model_1 is B here, and was shown first in game 1.
    assert rows(found, "item", "vote", "order", "sample", "status") == [
        ("81|1|m1|m2", -1, "BA", 0, "ok"),
        ("81|1|m1|m2", 0, "AB", 0, "ok"),
        ("81|1|m1|m2", 1, "BA", 1, "ok"),
        ("81|1|m1|m2", None, "AB", 1, "failed"),
    ]
    assert set(rows(found, "judge", "template", "group")) == {("gpt-4", "pair-v2", "81")}
    with pytest.raises(InputError, match="row 2: not in the format fastchat, or damaged"):
        read(lines([game("tie", "tie"), {"question_id": 1, "model_1": "x"}]))


def test_fastchat_scores_of_single_answers():
    scores = [("m1", 8), ("m2", 5.5), ("m3", -1)]
    judged = [{"question_id": 81, "model": model, "judge": ["gpt-4", "single-v1"],
               "user_prompt": "", "judgment": "Rating: [[8]]", "score": score,
               "turn": 2, "tstamp": 1.0}
              for model, score in scores]  # fmt: skip
    found = read(lines(judged))
    assert found.formats == ("fastchat-scores",)
    assert rows(found, "item", "vote", "margin") == [
        ("81|2|m1|m2", 1, 2.5), ("81|2|m1|m3", None, None), ("81|2|m2|m3", None, None),
    ]  # fmt: skip
    assert dict(found.unread) == {"unparsed": 2}


def test_arena_hard_shows_the_baseline_first_and_swaps():
    games = [{"score": "A>>B", "judgment": {"answer": "[[A>>B]]"}, "prompt": []},
             {"score": "B>A", "judgment": {"answer": "[[B>A]]"}, "prompt": []}]  # fmt: skip
    one = {"uid": "q", "category": "hard_prompt", "judge": "gpt-4.1", "model": "m",
           "baseline": "o3", "games": games}  # fmt: skip
    two = one | {"uid": "r", "games": [{"score": None}, None]}
    found = read(lines([one, two]))
    assert found.formats == ("arena-hard",)
    # A is m here, o3 is B: both games went to o3.
    assert rows(found, "item", "vote", "margin", "order", "status", "task") == [
        ("q|m|o3", -1, 2.0, "BA", "ok", "hard_prompt"),
        ("q|m|o3", -1, 1.0, "AB", "ok", "hard_prompt"),
        ("r|m|o3", None, None, "BA", "unparsed", "hard_prompt"),
        ("r|m|o3", None, None, "AB", "failed", "hard_prompt"),
    ]


def test_arena_hard_of_before_does_not_name_the_baseline():
    games = [{"user_prompt": "", "judgment": "", "score": "A=B"}] * 2
    file = lines([{"question_id": "q", "model": "m", "judge": "gpt-4", "games": games}])
    found = read(file)
    assert found.frame["item"].to_list() == ["q|baseline|m"] * 2
    assert found.remarks == ("the files do not name the baseline; set constants.baseline",)
    found = read(file, constants={"baseline": "gpt-4-0314", "judge": "other"})
    assert set(rows(found, "item", "judge", "vote")) == {("q|gpt-4-0314|m", "other", 0)}
    assert found.remarks == ()


def completion(*texts, finish_reason="stop", refusal=None):
    """The body of a response, made by OpenAI's own types."""
    from openai.types.chat import ChatCompletion

    choices = [
        {"index": k, "finish_reason": finish_reason, "logprobs": None,
         "message": {"role": "assistant", "content": text, "refusal": refusal}}
        for k, text in enumerate(texts)
    ]  # fmt: skip
    made = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-5.4",
            "choices": choices}  # fmt: skip
    return ChatCompletion.model_validate(made).model_dump()


def request(custom_id, body=None, status=200):
    response = {"status_code": status, "request_id": "r", "body": body or {"error": {}}}
    return {"id": "batch_req_1", "custom_id": custom_id, "response": response, "error": None}


def test_openai_batch_outputs():
    expired = {"id": "b", "custom_id": "q4-AB-0", "response": None,
               "error": {"code": "batch_expired", "message": "too late"}}  # fmt: skip
    file = lines([
        request("q1-AB-0", completion("[[A]]")),
        request("q1-BA-0", completion("[[A]]")),
        request("q-2-AB-0", completion("[[TIE]]")),
        request("q-2-BA-3", completion("[[A", finish_reason="length")),
        request("q3-AB-0", completion(None, refusal="No.")),
        request("q3-BA-0", status=500),
        expired,
    ])  # fmt: skip
    found = read(file)
    assert found.formats == ("openai-batch",)
    assert rows(found, "item", "order", "sample", "vote", "status") == [
        ("q1", "AB", 0, 1, "ok"), ("q1", "BA", 0, -1, "ok"), ("q-2", "AB", 0, 0, "ok"),
        ("q-2", "BA", 3, None, "truncated"), ("q3", "AB", 0, None, "refused"),
        ("q3", "BA", 0, None, "failed"), ("q4", "AB", 0, None, "failed"),
    ]  # fmt: skip
    assert set(found.frame["judge"]) == {"gpt-5.4"}
    assert dict(found.unread) == {"failed": 2, "truncated": 1, "refused": 1}


def test_ids_of_requests_can_be_made_in_any_way():
    file = lines([request("BA:x:y:1", completion("[[A]]", "[[B]]"))])
    found = read(file, custom_id="{order}:{group}:{item}:{sample}")
    assert rows(found, "item", "group", "order", "sample", "vote") == [
        ("y", "x", "BA", 2, -1), ("y", "x", "BA", 3, 1),
    ]  # fmt: skip
    with refused(row=1, column="custom_id", source="rows.jsonl", got="BA:x:y:1") as error:
        read(file, custom_id="{item}-{order}")
    assert error.value.expected == "{item}-{order}"
    with refused("custom_id", got="{order}"):
        read(file, custom_id="{order}")
    found = read(lines([request("x", completion("[[A]]"))] * 2))
    assert rows(found, "item", "sample", "vote") == [("x", 0, 1), ("x", 1, 1)]
    assert found.remarks == (
        "custom_id does not contain the order: A is assumed to be shown first",
    )


@pytest.mark.parametrize("ids", [["task-1", "q1-BA-0"], ["q1-BA-0", "task-1"]])
def test_ids_of_requests_are_of_one_shape(ids):
    file = lines([request(each, completion("[[A]]")) for each in ids])
    with refused(row=2, column="custom_id", source="rows.jsonl", got=ids[1]):
        read(file)
    assert read(file, custom_id="{item}").frame["item"].to_list() == ids


def test_choices_are_numbered_over_all_files():
    one = lines([request("q1-AB-1", completion("[[B]]"))], "one.jsonl")
    two = lines([request("q1-AB-0", completion("[[A]]", "[[B]]"))], "two.jsonl")
    assert rows(read([one, two]), "sample", "vote") == [(2, -1), (0, 1), (1, -1)]


def test_odd_answers_of_a_batch(cli):
    said = {"model": "gpt-5.4", "choices": []}
    parts = completion("")
    parts["choices"][0]["message"]["content"] = [
        {"type": "text", "text": "So: "}, {"type": "text", "text": "[[B]]"}
    ]  # fmt: skip
    found = read(lines([request("x-AB", said), request("y-AB", parts)]))
    assert rows(found, "item", "vote", "status") == [("x", None, "empty"), ("y", -1, "ok")]
    damaged = completion("")
    damaged["choices"] = 5
    file = lines([request("x-AB", parts), request("y-AB", damaged), request("z-AB", parts)])
    assert one_line(*cli("import", file, "-o", "out.csv")).startswith(
        "rows.jsonl, row 2: not in the format openai-batch, or damaged: "
    )


def test_batches_of_the_responses_endpoint():
    from openai.types.responses import Response

    def body(*parts, **more):
        message = {"id": "m", "type": "message", "role": "assistant", "status": "completed",
                   "content": list(parts)}  # fmt: skip
        made = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-5.4",
                "output": [{"id": "t", "type": "reasoning", "summary": []}, message],
                "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip
        return Response.model_validate(made | more).model_dump(mode="json")

    text = {"type": "output_text", "text": "So: [[B]]", "annotations": []}
    cut = {"incomplete_details": {"reason": "max_output_tokens"}}
    found = read(lines([
        request("x-AB", body(text)),
        request("x-BA", body(text, **cut)),
        request("y-AB", body({"type": "refusal", "refusal": "No."})),
    ]))  # fmt: skip
    assert rows(found, "item", "order", "vote", "status") == [
        ("x", "AB", -1, "ok"), ("x", "BA", None, "truncated"), ("y", "AB", None, "refused"),
    ]  # fmt: skip


def graded(prompt, test, text, *components, provider="openai:gpt-5.4-mini", **more):
    """A result as promptfoo's schema has it."""
    asserted = [part["assertion"] for part in components]
    found = {"pass": True, "score": 1, "reason": "", "componentResults": list(components)}
    return {"promptIdx": prompt, "testIdx": test, "promptId": "p",
            "testCase": {"vars": {"q": text}, "assert": asserted},
            "provider": {"id": provider, "label": ""}, "prompt": {"raw": "", "label": ""},
            "vars": {"q": text}, "response": {"output": "o"}, "success": True, "score": 1,
            "latencyMs": 1, "gradingResult": found, "namedScores": {}, **more}  # fmt: skip


def component(kind, passed, score, **assertion):
    return {"pass": passed, "score": score, "reason": "r",
            "assertion": {"type": kind, "value": "v", **assertion}}  # fmt: skip


def promptfoo(results, **config):
    return document({"evalId": "e", "results": {"version": 3, "timestamp": "t", "prompts": [],
                     "results": results, "stats": {}}, "config": config})  # fmt: skip


def test_promptfoo_selections():
    best = component("select-best", True, 1, provider="openai:gpt-5.4")
    other = component("select-best", False, 0, provider="openai:gpt-5.4")
    found = read(promptfoo([
        graded(0, 0, "x", other, provider="z"), graded(1, 0, "x", best, provider="y"),
        graded(2, 0, "x", other, provider="w"),
        graded(0, 1, "x", best, provider="z"), graded(1, 1, "x", other, provider="y"),
        graded(2, 1, "x", other, provider="w"),
        graded(0, 2, "failed", other, provider="z"), graded(1, 2, "failed", other, provider="y"),
    ]))  # fmt: skip
    assert found.formats == ("promptfoo",)
    assert sorted(rows(found, "item", "sample", "vote", "order", "status"), key=str) == [
        ("test-0|select-best|w|y", 0, -1, "BA", "ok"),
        ("test-0|select-best|w|z", 1, -1, "BA", "ok"),
        ("test-0|select-best|y|z", 0, 1, "BA", "ok"),
        ("test-0|select-best|y|z", 1, -1, "BA", "ok"),
        ("test-2|select-best|y|z", 0, None, "BA", "failed"),
    ]
    assert set(rows(found, "judge", "task")) == {("openai:gpt-5.4", "select-best")}


def test_promptfoo_scores_of_a_rubric():
    grader = {"defaultTest": {"options": {"provider": {"id": "judge"}}}}
    failed = graded(1, 1, "y", provider="same")
    failed["testCase"]["assert"] = [{"type": "llm-rubric", "value": "v", "metric": "helpful"}]
    results = [
        graded(0, 0, "x", component("llm-rubric", True, 0.9, metric="helpful"),
               component("equals", True, 1), provider="same"),
        graded(1, 0, "x", component("llm-rubric", False, 0.25, metric="helpful"), provider="same"),
        graded(0, 1, "y", component("llm-rubric", False, 0.25, metric="helpful"), provider="same"),
        failed,
    ]  # fmt: skip
    found = read(promptfoo(results, **grader))
    assert rows(found, "item", "vote", "judge", "status", "system_b") == [
        ("test-0|helpful|same prompt 0|same prompt 1", 1, "judge", "ok", "same prompt 1"),
        ("test-1|helpful|same prompt 0|same prompt 1", None, "judge", "failed", "same prompt 1"),
    ]
    assert found.frame["margin"].to_list() == [pytest.approx(0.65), None]
    with pytest.raises(InputError, match="no test has two outputs with results of 'other' of"):
        read(promptfoo(results), name="other")


def test_assertions_of_one_type_are_numbered():
    def rubrics(*scores):
        return [component("llm-rubric", True, score, value=f"rubric {k}")
                for k, score in enumerate(scores)]  # fmt: skip

    one, two = graded(0, 0, "x", *rubrics(1, 0), provider="a"), graded(
        1, 0, "x", *rubrics(0, 0.5), provider="b"
    )  # fmt: skip
    found = read(promptfoo([one, two]))
    assert rows(found, "item", "task", "vote") == [
        ("test-0|llm-rubric|a|b", "llm-rubric", 1),
        ("test-0|llm-rubric 2|a|b", "llm-rubric 2", -1),
    ]
    assert read(promptfoo([one, two]), name="llm-rubric 2").frame["vote"].to_list() == [-1]
    assert read(promptfoo([one, two]), name="llm-rubric").n_votes == 2
    # The first failed: the other is the second still.
    del two["gradingResult"]["componentResults"][0]
    found = read(promptfoo([one, two]))
    assert rows(found, "task", "vote", "status") == [
        ("llm-rubric", None, "failed"), ("llm-rubric 2", -1, "ok"),
    ]  # fmt: skip


def test_a_sample_of_a_system_has_one_score():
    file = table(group=["p", "p", "p"], system=["x", "y", "x"], score=[1, 2, 1], sample=[0, 0, 0])
    with pytest.raises(InputError) as raised:
        read(file)
    assert str(raised.value) == (
        "votes.csv, rows 1 and 3: both have group 'p', system 'x', sample 0"
    )


# Grades

FIVE = btdagg.Scale(range(1, 6))
PASS = btdagg.PASS_FAIL
SCORES = {"id": ["x", "y", "z"], "accuracy": ["4", "n/a", "1.0"], "tone": ["5", "", "Missing"],
          "who": ["j", "j", "k"]}  # fmt: skip


def test_a_column_of_scores_is_grades_and_what_is_no_number_is_missing():
    imported = read(table(**SCORES), columns={"score": "accuracy", "judge": "who"})
    assert rows(imported, "item", "score", "judge", "status") == [
        ("x", 4, "j", "ok"), ("y", None, "j", "unparsed"), ("z", 1, "k", "ok"),
    ]  # fmt: skip
    assert (imported.kind, imported.n_votes, dict(imported.unread)) == (
        "grades", 2, {"unparsed": 1},
    )  # fmt: skip
    with pytest.raises(InputError, match="scores are 1, 4, and their scale is not given"):
        imported.votes  # noqa: B018
    worded = read("votes.csv", columns={"score": "accuracy"}, words={"N/A": 2, "4": "missing"})
    assert worded.frame["score"].to_list() == [None, 2, 1]


@pytest.mark.parametrize("kind", ["criterion", "judge"])
def test_a_wide_table_has_a_column_of_grades_for_each_criterion_or_judge(kind):
    imported = read_grades(
        table(**SCORES), scale=FIVE, columns={kind: {"right": "accuracy", "tone": "tone"}}
    )
    assert rows(imported, "item", kind, "score", "status") == [
        ("x", "right", 4, "ok"), ("x", "tone", 5, "ok"),
        ("y", "right", None, "unparsed"), ("y", "tone", None, "empty"),
        ("z", "right", 1, "ok"), ("z", "tone", None, "unparsed"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="no column 'style'; found"):
        read_grades("votes.csv", columns={kind: ["style"]})


def test_criteria_in_numbers_and_in_words_are_read_by_the_keys_of_votes_or_of_all(cli):
    """Words of pass and fail are told criterion by criterion; a key may be of several columns."""
    found = table(
        conversation=[1, 1, 2, 2], bot=["a", "a", "a", "a"], criterion=["safe", "tone"] * 2,
        score=["pass", "7", "fail", "9"],
    )  # fmt: skip
    imported = read_grades(found, columns={"item": ("conversation", "bot")})
    assert rows(imported, "item", "score") == [("1|a", 1), ("1|a", 7), ("2|a", 0), ("2|a", 9)]
    for key in ("item", "votes.item"):
        status, _, _ = cli("import", found, "--set", f"{key}=conversation+bot", "-o", "out.csv")
        assert status == 0
        safe = btdagg.read_votes("out.csv", where={"criterion": "safe"}, scale=btdagg.PASS_FAIL)
        assert safe.frame["item"].to_list() == ["1|a", "2|a"]
    both = table(
        "judged.csv",
        item=["1", "2"],
        score=[3, 4],
        bot=["x", "y"],
        who=["u", "v"],
        **{"a+b": [7, 8]},
    )
    for column, ids in (("bot+who", ["x|u", "y|v"]), ("a+b", ["7", "8"])):
        told = ("--set", f"judge={column}", "--set", "scale=1-5")
        assert cli("import", both, *told, "-o", "judged.csv.csv")[0] == 0
        found = pl.read_csv("judged.csv.csv", infer_schema=False)
        assert (found["judge"].to_list(), found["score"].to_list()) == (ids, ["3", "4"])
    told = ("--set", "labels.label=score", "--set", "labels.scale=1-5")
    assert cli("import", both, *told, "-o", "people.csv")[0] == 0
    assert "label" in pl.read_csv("people.csv").columns
    told = ("--set", "votes.scale.tone=1-10", "--set", "votes.scale.safe=pass/fail")
    assert (
        "import takes one scale, not one per criterion"
        in cli("import", found, *told, "-o", "o.csv")[2]
    )
    several = table("grades.csv", item=[1, 2], vote=[3, 5])
    refused = cli("import", several, "-o", "o.csv")[2]
    assert "to read grades pass --set scale=1-5" in refused
    assert cli("import", several, "--set", "votes.scale=1-5", "-o", "o.csv")[0] == 0
    assert btdagg.read_votes("o.csv", scale=FIVE).frame["vote"].to_list() == [3, 5]


def test_grades_of_people_are_labels_or_ratings():
    people = {"id": ["x", "x"], "by": ["ann", "bo"], "human": [4, 5]}
    columns = {"label": "human", "item": "id"}
    imported = read_grades(table(**people), columns=columns | {"rater": "by"}, scale=FIVE)
    assert (imported.kind, rows(imported, "item", "rater", "score")) == (
        "ratings", [("x", "ann", 4), ("x", "bo", 5)],
    )  # fmt: skip
    with pytest.raises(InputError, match="both have item 'x', with labels 4 and 5"):
        read_grades("votes.csv", columns=columns, scale=FIVE)
    labels = read_grades(
        table(**SCORES), kind="labels", columns={"criterion": ["tone"]}, scale=FIVE
    )
    assert rows(labels, "item", "label", "criterion")[0] == ("x", 5, "tone")
    assert btdagg.read_labels(labels.frame, scale=FIVE).labels.tolist() == [5]


@pytest.mark.parametrize(
    ("score", "options", "message"),
    [
        (11, {"scale": FIVE}, "row 2, column score: got '11', expected 1, 2, 3, 4 or 5"),
        ("3.5", {"scale": FIVE}, "got '3.5', expected 1, 2, 3, 4 or 5"),
        (1, {"scale": FIVE, "words": {"1": "good"}}, "'1=good', expected a grade or missing"),
        (1, {"columns": {"score": "score", "group": "id"}}, "no column for system among"),
        (1.5, {"scale": 10}, "row 2, column score: got '1.5', expected a number from 0 to 1"),
    ],
)
def test_a_number_that_is_no_grade_is_refused(score, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_grades(table(id=["a", "b"], score=["1", str(score)]), **options)


def test_a_system_has_a_response_of_its_own():
    answers = {"group": ["p", "p"], "system": ["m", "n"], "score": [3, 4]}
    assert rows(read_grades(table(**answers), scale=FIVE), "item", "score", "system") == [
        ("p|m", 3, "m"), ("p|n", 4, "n"),
    ]  # fmt: skip
    assert read("votes.csv").kind == "votes"  # two systems are compared unless scores are grades
    answers["item"] = answers.pop("group")
    with refused("columns", row=1, column="item", source="votes.csv", got="p"):
        read_grades(table(**answers), scale=FIVE)


def test_promptfoo_grades():
    rubric = component("llm-rubric", True, 0.5, metric="helpful", provider="judge")
    other = component("g-eval", False, 0.25)
    graded_results = [
        graded(0, 0, "x", rubric, other, component("equals", True, 1)),
        graded(0, 1, "y", component("llm-rubric", False, 0, metric="helpful"), other),
    ]
    # promptfoo calls an answer that its grader could not read a failed one, with a score of 0.
    failed = graded_results[1]["gradingResult"]["componentResults"][0]
    failed |= {"assertion": rubric["assertion"], "metadata": {"graderError": True}}
    item = "test-{}|openai:gpt-5.4-mini".format
    for options, scores in (
        ({"scale": 4}, [2, 1, None, 1]), ({"scale": PASS}, [1, 0, None, 0]),
    ):  # fmt: skip
        imported = read_grades(promptfoo(graded_results), **options)
        assert rows(imported, "item", "criterion", "score", "judge", "status") == [
            (item(0), "helpful", scores[0], "judge", "ok"),
            (item(0), "g-eval", scores[1], None, "ok"),
            (item(1), "helpful", scores[2], "judge", "failed"),
            (item(1), "g-eval", scores[3], None, "ok"),
        ]
    with pytest.raises(InputError, match="no test has two outputs with results"):
        read("document.json")


def test_answers_with_grades():
    texts = ["So: [[4]]", "Grade: 2", "[[9]]", "Hard to say."]
    batch = lines(request(f"x{k}", completion(text)) for k, text in enumerate(texts))
    imported = read_grades(batch, scale=FIVE)
    assert rows(imported, "item", "score", "judge", "status") == [
        ("x0", 4, "gpt-5.4", "ok"), ("x1", 2, "gpt-5.4", "ok"),
        ("x2", None, "gpt-5.4", "unparsed"), ("x3", None, "gpt-5.4", "unparsed"),
    ]  # fmt: skip
    answers = table(id=list("abcd"), said=texts)
    read_texts = read_grades(answers, columns={"answer": "said"}, scale=FIVE)
    assert read_texts.frame["score"].to_list() == [4, 2, None, None]


def test_results_of_deepeval():
    metric = {"name": "Accuracy [GEval]", "evaluationModel": "gpt-5.4"}
    run = {"testCases": [
        {"name": "test_case_0", "metricsData": [metric | {"score": 0.7, "success": True}]},
        {"name": "test_case_1", "metricsData": [
            metric | {"score": None, "success": False, "error": "timeout"}]},
    ]}  # fmt: skip
    for made in (run, {"testRunData": run}):
        imported = read_grades(document(made), scale=10)
        assert imported.formats == ("deepeval",)
        assert rows(imported, "item", "criterion", "judge", "score", "status") == [
            ("test_case_0", metric["name"], "gpt-5.4", 7, "ok"),
            ("test_case_1", metric["name"], "gpt-5.4", None, "failed"),
        ]
    assert read_grades("document.json", scale=PASS).frame["score"].to_list() == [1, None]


def test_ratings_as_of_rewardbench2():
    whole = {"id": [7, 8], "scores": [[9, -1], [[1, 2], [3, 4]]], "subset": ["Math", "Focus"],
             "num_correct": [1, 1], "model": "judge"}  # fmt: skip
    ten = btdagg.Scale(range(1, 11))
    imported = read_grades(document(whole), scale=ten)
    assert rows(imported, "item", "sample", "score", "group", "task", "status") == [
        ("7-0", 0, 9, "7", "Math", "ok"), ("7-1", 0, None, "7", "Math", "failed"),
        ("8-0", 0, 1, "8", "Focus", "ok"), ("8-0", 1, 2, "8", "Focus", "ok"),
        ("8-1", 0, 3, "8", "Focus", "ok"), ("8-1", 1, 4, "8", "Focus", "ok"),
    ]  # fmt: skip
    labels = read_grades("document.json", kind="labels", scale=PASS)
    assert rows(labels, "item", "label") == [("7-0", 1), ("7-1", 0), ("8-0", 1), ("8-1", 0)]
    assert labels.frame.columns == ["item", "label", "group", "task", "format"]
    listed = [{"id": 7, "scores": [9, 8]}]
    assert read_grades(lines(listed), scale=ten).frame["item"].to_list() == ["7-0", "7-1"]


def test_grades_and_pairs_are_imported_apart():
    lines([game("tie", "tie")], "a.jsonl")
    with pytest.raises(InputError, match="some files have grades, others votes on pairs"):
        read(["a.jsonl", table(id=["x"], score=[1])])


# What is refused


@pytest.mark.parametrize(
    ("options", "argument", "message"),
    [
        (
            {"columns": {"item": "id", "vote": "winner"}},
            "words",
            "unknown: 'model_a' in 2 rows, 'draw' in 1 row; say",
        ),
        ({"columns": {"item": "id"}}, "columns", "no column of votes among item, winner, order"),
        ({"columns": {"vote": "winner", "group": "who"}}, "columns", "no column for system_a and"),
        ({}, "columns", "votes.csv: not in the format inspect or "),
        ({"format": "other"}, "format", "expected one of inspect, openai-batch"),
        ({"constants": {"order": "first"}}, "constants", "expected AB or BA"),
        ({"constants": {"vote": "B"}}, "constants", "expected columns that are the same in all"),
        (
            {"columns": {"item": "id", "vote": "winner"}, "custom_id": "{item}"},
            "custom_id",
            " the format table does not use custom_id; only openai-batch",
        ),
    ],
)
def test_what_is_wrong_with_arguments_is_said(options, argument, message):
    winners = {name: v for name, v in WINNERS.items() if name != "id" or "system_a" not in message}
    with pytest.raises(InputError) as raised:
        read(table(**winners), **options)
    assert raised.value.argument == argument
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("row", "column", "expected"),
    [
        (("error", "tie", "m2", "m1", {"m1_score": "x", "m2_score": 1}), "m1_score", "a number"),
        (("A", "tie"), "g1_winner", "model_1, model_2, tie or error"),
        ({"uid": 1, "model": "m", "judge": "j", "games": []}, "games", "a list of two"),
    ],
)  # fmt: skip
def test_records_that_are_none_are_named_by_row(row, column, expected):
    if isinstance(row, tuple):
        *players, more = row if isinstance(row[-1], dict) else (*row, {})
        row = game(*players, **more)
    with pytest.raises(InputError) as raised:
        read(lines([row]))
    error = raised.value
    assert (error.source, error.row, error.column) == ("rows.jsonl", 1, column)
    assert error.expected == expected


def test_a_folder_without_files(folder):
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="empty: no file to import in this folder, expected files"):
        read("empty")
    pl.DataFrame({"item": ["x"], "vote": [1]}).write_parquet("empty/votes.parquet")
    assert rows(read("empty"), "item", "vote") == [("x", 1)]


# All of them


def test_formats_may_be_mixed_but_not_judges_and_people():
    judged = lines([game("tie", "tie")], "a.jsonl")
    people = lines([{"question_id": 1, "model_a": "x", "model_b": "y", "winner": "tie",
                     "judge": "expert_1"}], "b.jsonl")  # fmt: skip
    with pytest.raises(InputError, match="some votes are by judges, others by people"):
        read([judged, people])
    found = read([judged, people], kind="votes")
    assert found.formats == ("fastchat", "lmsys")
    assert found.frame["judge"].to_list() == ["gpt-4", "gpt-4", "expert_1"]


def test_what_is_written_is_not_read_the_next_time(cli, folder):
    (folder / "judged").mkdir()
    lines([game("tie", "tie")], "out.jsonl")
    (folder / "judged" / "a.jsonl").symlink_to(folder / "out.jsonl")
    (folder / "linked").symlink_to("judged")
    for output in ("judged/votes.csv", "linked/votes.csv"):
        said = one_line(*cli("import", "judged", "-o", output))
        assert said == f"--output is {output}, which lies in the input folder judged"
    assert "an input file" in one_line(*cli("import", "judged", "-o", "out.jsonl"))


def test_a_question_and_an_id_of_nested_annotations(tmp_path):
    """The id is one of the task's data, and one of two questions is chosen."""
    result = [
        {"from_name": "best", "type": "choices", "value": {"choices": ["B"]}},
        {"from_name": "stars", "type": "rating", "value": {"rating": 4}},
    ]
    person = {"id": 7, "email": "ada@example.com"}
    annotations = [{"completed_by": person, "was_cancelled": False, "result": result}]
    task = {"id": 1, "data": {"qid": "q1"}, "annotations": annotations}
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([task]))
    with pytest.raises(InputError, match="questions best, stars; choose one by columns="):
        read(path)
    imported = read(path, columns={"item": "qid", "label": "best"})
    assert (imported.formats, imported.kind) == (("label-studio",), "ratings")
    row = imported.frame.row(0, named=True)
    assert (row["item"], row["rater"], row["vote"]) == ("q1", "ada@example.com", -1)
    stars = read(path, columns={"label": "stars"}).frame.row(0, named=True)
    assert (stars["item"], stars["score"]) == ("1", 4)
