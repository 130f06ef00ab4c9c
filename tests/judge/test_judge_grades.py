"""Grades of single responses: what is asked, how answers are read, and what the store has."""

import asyncio
import json
from collections import Counter

import polars as pl
import pytest
import sqlalchemy as sa

from btdagg import PASS_FAIL, GradeModel, InputError, Scale, read_votes
from btdagg.judge import (
    TEMPLATES,
    FunctionClient,
    Judging,
    PromptTemplate,
    StoreError,
    VoteStore,
    get_template,
    judge,
    parse_verdict,
    read_pairs,
)
from btdagg.judge.answers import AnswerFormat
from btdagg.judge.judging import JudgeJob
from btdagg.judge.methods import asking_of
from btdagg.judge.simulated import SimulatedClient
from btdagg.judge.stopping import judge_by_rule
from btdagg.judge.store import database as schema
from btdagg.judge.store.store import summaries, votes_frame
from btdagg.online import StoppingRule
from commands import one_line
from judging import config

CRITERIA = {"clear": "5: clear. 1: not.", "right": "5: right. 1: wrong."}
SCALES = {"pass-fail": (0, 1), "grade-5": tuple(range(1, 6)), "grade-10": tuple(range(1, 11))}
ROWS = [
    {"item": f"q{i}", "prompt": f"{i} + {i}?", "response": f"It is {i} + {i} = {2 * i + i % 2}."}
    for i in range(1, 13)
]
ITEMS = read_pairs(ROWS)


def graded(store, client=None, items=ITEMS, **options):
    """The run of a judge, the simulated one unless it is another, and its grades."""
    judging = Judging("sim", **{"n": 3, "template": "grade-5", "request_seed": 0, **options})
    run = asyncio.run(judge(items, judging, store=store, client=client or SimulatedClient()))
    with VoteStore(store, create=False) as opened:
        return run, votes_frame(opened, setup=judging.setup)


# Reading an answer


def test_other_points_and_a_pattern():
    halves = AnswerFormat(grades=[0, 0.5, 1], confidence=True)
    assert parse_verdict("Confidence: 80\n[[0.5]]", halves).confidence == 0.8
    assert parse_verdict("[[0.25]]", halves).grade is None
    mine = AnswerFormat(grades="1-5", pattern=r"stars=(\S+)")
    assert parse_verdict("stars=4", mine).grade == 4
    assert parse_verdict("stars=6", mine).grade is None


# What is asked


@pytest.mark.parametrize(
    ("template", "kind"), [("pass-fail", "tag"), ("grade-5", "line"), ("grade-10", "json")]
)
def test_every_grade_is_asked_for_and_read(tmp_path, template, kind):
    asked = TEMPLATES[template].asking(kind=kind, confidence=True)
    (system, user) = asked.render(ITEMS[0])
    assert user["content"].count(ITEMS[0].response) == 1
    assert "{" not in system["content"]
    assert TEMPLATES[template].defaults["rubric"] in system["content"]
    run, frame = graded(tmp_path / "v.db", template=asked, n=12)
    assert run.statuses == {"ok": 144}
    assert set(frame["score"]) <= {*SCALES[template]}
    assert frame["score"].n_unique() > 1
    assert frame["confidence"].null_count() == 0
    assert frame.schema["score"] == pl.Int64


def test_a_rubric_is_of_the_user_s_own():
    items = read_pairs([{**row, "rubric": f"rubric {row['item']}"} for row in ROWS])
    template = get_template("grade-5")
    assert "rubric q1" in str(template.render(items[0]))
    assert template.defaults["rubric"] not in str(template.render(items[0]))
    same = template.with_values({"rubric": "for all"})
    assert "for all" in str(same.render(ITEMS[0]))
    assert len({template.digest, same.digest}) == 2
    changed = read_pairs([{**row, "rubric": "another"} for row in ROWS])
    assert items[0].digest != changed[0].digest
    reference = PromptTemplate(
        "mine", "{response} {reference} {answer}", answer=AnswerFormat(grades="1-5")
    )
    with pytest.raises(InputError, match="has no column for"):
        reference.check(ITEMS)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"order": "BA"}, "order"),
        ({"allow_tie": False}, "allow_tie"),
        ({"confidence": "logprobs"}, "confidence"),
        ({"template": "response", "n": 2}, "template"),
    ],
)
def test_what_has_no_meaning_for_grades_is_an_error(tmp_path, options, argument):
    with pytest.raises(InputError) as caught:
        graded(tmp_path / "v.db", **options)
    assert caught.value.argument == argument


def test_templates_and_methods_of_pairs_are_refused():
    with pytest.raises(InputError) as caught:
        AnswerFormat(grades="1-5", scale="steps")
    assert caught.value.argument == "scale"
    with pytest.raises(InputError) as caught:
        asking_of("greedy", Judging("sim", template="grade-5"))
    assert caught.value.argument == "template"
    with pytest.raises(InputError, match=r"no \{response\}"):
        PromptTemplate("mine", "{first} {second}", answer=AnswerFormat(grades="1-5"))
    pairs = read_pairs({"item": ["q"], "a": ["x"], "b": ["y"], "output": ["z"], "prompt": ["p"]})
    assert pairs.shown == ("first", "second")
    with pytest.raises(InputError):
        TEMPLATES["pass-fail"].check(pairs)


# What the store has


def test_each_criterion_is_a_call_of_its_own(store_place):
    place = store_place
    items = read_pairs(ROWS, criteria=CRITERIA)
    prompts = Counter()

    def answer(request):
        prompts[request.messages[0]["content"]] += 1
        return "[[5]]" if "5: clear" in request.messages[0]["content"] else "[[2]]"

    run, frame = graded(place, FunctionClient(answer), items)
    assert run.n_calls == 72
    assert sorted(prompts.values()) == [36, 36]
    scores = frame.group_by("criterion").agg(pl.col("score").unique(), pl.col("item").n_unique())
    assert sorted(scores.rows()) == [("clear", [5], 12), ("right", [2], 12)]
    assert graded(place, items=items)[0].n_calls == 0
    # Rows of one's own: a criterion and a rubric each.
    rows = [{**row, "criterion": n, "rubric": r} for row in ROWS for n, r in CRITERIA.items()]
    assert graded(place, items=read_pairs(rows))[0].n_calls == 0
    with pytest.raises(StoreError, match=r"'q1 \[clear\]' is stored with other texts"):
        graded(place, items=read_pairs(ROWS, criteria={"clear": "otherwise"}))
    with VoteStore(place) as store:
        assert [row["n_items"] for row in summaries(store)] == [12]
    votes = read_votes(place)
    assert votes.scale == Scale(range(1, 6))
    assert votes.filter({"task": ["right"]}).counts()[1].tolist() == [[0, 3, 0, 0, 0]] * 12
    with pytest.raises(InputError) as caught:
        read_pairs(rows, criteria=CRITERIA)
    assert caught.value.argument == "criteria"
    with pytest.raises(InputError, match="item"):
        read_pairs([*rows, rows[0]])


def test_a_store_has_grades_of_one_scale_and_says_which(store_place):
    place = store_place
    _, frame = graded(place, FunctionClient(lambda _: "[[2]]"))
    assert not {"vote", "order"} & {*frame.columns}
    assert read_votes(place).scale == read_votes(frame).scale == Scale(range(1, 6))
    for options in ({"template": "pass-fail"}, {"template": "response", "n": 2}):
        pairs = read_pairs({"item": ["q"], "a": ["x"], "b": ["y"], "prompt": ["p"]})
        items = ITEMS if options["template"] == "pass-fail" else pairs
        with pytest.raises(StoreError, match="a store of grades on 1-5"):
            graded(place, items=items, **options)
    with VoteStore(place) as store:
        (row,) = summaries(store)
        assert (row["n_votes"], row["mean_grade"], row["tie_rate"]) == (36, 2, None)
        for bad in ({"grade": 1e10}, {"vote": 1}, {"grade": None}, {"status": "unparsed"}):
            with pytest.raises(StoreError, match=r"(?i)check"), store._engine.begin() as connection:
                connection.execute(sa.update(schema.votes).values(**bad))


def test_what_is_off_the_scale_is_counted_and_asked_for_again(tmp_path):
    few = read_pairs(ROWS[:2])
    run, frame = graded(tmp_path / "v.db", FunctionClient(lambda _: "[[6]]"), few)
    assert run.statuses == {"unparsed": 6}
    assert frame["score"].null_count() == 6
    assert run.reasons == {'not one of the allowed words: "6"': 6}
    run, frame = graded(tmp_path / "v.db", items=few, again=("unparsed",))
    assert (run.n_calls, run.n_votes, run.n_without_vote) == (6, 6, 0)


# Stopping


def test_a_rule_asks_until_no_grade_can_change_the_decision(tmp_path):
    n, scale = 8, Scale(range(1, 6))
    _, full = graded(tmp_path / "full.db", n=n)
    counts = read_votes(full).counts()[1]
    model = GradeModel(2, (1.5, 2.5, 3.5, 4.5), scale)
    rule = StoppingRule.lossless(model, n)
    judging = Judging("sim", n=n, template="grade-5", request_seed=0)
    with VoteStore(tmp_path / "some.db") as store:
        job = JudgeJob(store, SimulatedClient())
        run = asyncio.run(judge_by_rule(ITEMS, judging, rule, job))
        few = read_votes(votes_frame(store), scale=scale).counts()[1]
    assert run.settled.n_settled == len(ITEMS)
    assert few.sum() == run.n_calls < counts.sum()
    assert rule.decide(few).tolist() == model.decide(counts).tolist()
    for other in ("grade-10", "response"):
        with pytest.raises(InputError) as caught:
            asyncio.run(judge_by_rule(ITEMS, Judging("sim", n=n, template=other), rule, job))
        assert caught.value.argument == "template"


# The command line


@pytest.fixture
def folder(folder):
    pl.DataFrame(ROWS).write_csv("items.csv")
    return folder


ASK = ("judge", "items.csv", "--set", "judge.template=grade-5", "-n", "4")


def test_commands_by_criteria(cli, folder, judge_server):
    server = judge_server()
    ask = (*ASK, "--model", "sim", "--set", f"judge.base_url={server.url}")
    criteria = [f"--criterion={name}={rubric}" for name, rubric in CRITERIA.items()]
    assert "96 calls to make" in cli(*ask, *criteria, "--dry-run")[1]
    for keys in ({}, {"structured": True}):
        status, out, err = cli(*ask, *criteria, "--store", f"{len(keys)}.db", *config(**keys))
        assert (status, "96 new votes" in out) == (0, True), err
        assert len(server.log()) == 96 * (1 + len(keys))
    assert (
        "0 new votes, 96 stored before"
        in cli(*ask, "--store", "0.db", *config(criteria=CRITERIA))[1]
    )
    assert cli("votes", "0.db", "--export", "votes.csv")[0] == 0
    assert pl.read_csv("votes.csv")["criterion"].value_counts()["count"].to_list() == [48, 48]
    assert "mean" in cli("votes", "0.db")[1]
    assert [row["task"] for row in json.loads(cli("votes", "votes.csv", "--json")[1])["votes"]] == [
        *CRITERIA
    ]
    message = one_line(*cli(*ask, "--set", "judge.confidence=logprobs"))
    assert "confidence" in message


def test_one_command_to_grades(cli, folder, quick_commands):
    many = [
        {**row, "item": f"{row['item']}-{k}", "response": f"{row['response']} {k}"}
        for row in ROWS
        for k in range(2)
    ]
    pl.DataFrame(many).write_csv("items.csv")
    labels = [
        {"item": row["item"], "label": "pass" if len(row["item"]) < 5 else "fail"} for row in many
    ]
    pl.DataFrame(labels[::2]).write_csv("labels.csv")  # to which the grades say nothing
    command = ("run", "items.csv", "--labels", "labels.csv", "-m", "simulated", "-n", "5")
    options = ("--set", "judge.template=grade-5", "--stop", "lossless")
    status, out, err = cli(*command, *options)
    assert status == 0, err
    assert not out.startswith("0 new votes")
    model = GradeModel.load("out/model.json")
    assert (model.scale, model.label_scale) == (Scale(range(1, 6)), PASS_FAIL)
    decided = pl.read_csv("out/decided.csv")
    assert decided["item"].to_list() == [row["item"] for row in many]
    assert set(decided["label"]) <= {0, 1}
    assert decided["settled"].all()
    assert (decided["mean"].null_count() > 0) == (len({*model.reachable}) == 1)
    rule = ("judge", "items.csv", "--set", "judge.template=grade-5", "--stop", "out/rule.json")
    out = cli(*rule, "-m", "simulated", "-s", "out/votes.db")[1]
    assert out.startswith("0 new votes")
    assert "24 of 24 responses settled" in out
    message = one_line(
        *cli(*command, "--set", "judge.template=grade-5", "--set", "labels.scale=1-3", "-o", "b")
    )
    assert "labels.csv" in message
    message = one_line(*cli(*command, *options[:2], "--stop", "budget=3", "-o", "b"))
    assert "lossless" in message
    criteria = ("--criterion", "x=1", "--criterion", "y=1", "-o", "b")
    assert "no column criterion" in one_line(*cli(*command, *options[:2], *criteria))
