"""Votes that have a strength: steps, scores and log-probabilities, from answers to tables."""

import asyncio
import math
from collections import Counter

import polars as pl
import pytest

from btdagg import InputError, calibrate, decisions, read_labels, read_votes, tally
from btdagg.judge import (
    TEMPLATES,
    ChatReply,
    ChatRequest,
    FunctionClient,
    Judging,
    ModelClient,
    Token,
    VoteStore,
    judge,
)
from btdagg.judge.answers import AnswerFormat, verdict_probabilities
from btdagg.judge.judging import JudgeJob, read_answer
from btdagg.judge.methods import asking_of
from btdagg.judge.simulated import SimulatedClient
from btdagg.judge.stopping import judge_by_rule
from btdagg.judge.store.store import votes_frame
from btdagg.online import StoppingRule
from judging import config, pairs_of
from refusals import refused

PAIRS = pairs_of(20)
P = ["p_minus", "p_tie", "p_plus"]


def frame_of(store, **options):
    with VoteStore(store, create=False) as opened:
        return votes_frame(opened, **options)


def asked(store, client=None, pairs=PAIRS, **options):
    """Votes of a judge, the simulated one unless it is another, in a store."""
    judging = Judging("sim", **{"n": 4, "request_seed": 0, **options})
    run = asyncio.run(judge(pairs, judging, store=store, client=client or SimulatedClient()))
    return run, frame_of(store, setup=judging.setup)


# Margins


@pytest.mark.parametrize("kind", ["tag", "line", "json"])
def test_a_margin_is_the_same_in_both_orders_and_the_vote_is_mirrored(kind):
    forms = {"tag": "[[{}]]", "line": "Verdict: {}", "json": '{{"verdict": "{}"}}'}
    steps = {"A>>B": (1, 2), "A>B": (1, 1), "A=B": (0, 0), "B>A": (-1, 1), "B>>A": (-1, 2)}
    answer = AnswerFormat(kind, scale="steps")
    assert all(step in answer.instructions for step in steps)
    for step, (vote, margin) in steps.items():
        for order, sign in (("AB", 1), ("BA", -1)):
            reading = read_answer(answer, ChatReply(forms[kind].format(step)), order)
            assert (reading.status, reading.vote, reading.margin) == ("ok", sign * vote, margin)


@pytest.mark.parametrize(
    ("template", "margins"), [("response-steps", {0, 1, 2}), ("response-scores", set(range(10)))]
)
@pytest.mark.parametrize("options", [{}, {"structured": True}, {"allow_tie": False}], ids=str)
def test_margins_go_from_answers_to_the_table(tmp_path, template, margins, options):
    run, votes = asked(tmp_path / "v.db", template=template, **options)
    assert run.statuses == {"ok": 80}
    assert set(votes["margin"]) <= margins
    assert len(set(votes["margin"])) > 2 - ("allow_tie" in options)
    assert ((votes["margin"] == 0) == (votes["vote"] == 0)).all()
    assert (votes["vote"] == 0).any() == ("allow_tie" not in options)
    assert not set(P) & set(votes.columns)


def test_lines_of_scores_are_asked_for_and_answered(tmp_path):
    template = TEMPLATES["response-scores"].asking(kind="line", confidence=True)
    assert "one line that reads A: X, B: Y, where" in template.answer.instructions
    run, votes = asked(tmp_path / "v.db", template=template)
    assert run.statuses == {"ok": 80}
    assert votes["confidence"].null_count() == 0
    schema = template.asking(kind="json").answer.response_format["json_schema"]["schema"]
    score = {"type": "integer", "enum": [*range(1, 11)]}
    assert schema["properties"]["A"] == schema["properties"]["B"] == score


def test_a_store_holds_votes_of_all_kinds(tmp_path):
    place = tmp_path / "v.db"
    for template in ("response", "response-steps", "response-scores"):
        asked(place, template=template)
    assert not {"margin", *P} & set(asked(place)[1].columns)
    asked(place, judge="other", confidence="logprobs")
    votes = frame_of(place)
    kind = pl.when(pl.col("judge") == "other").then(pl.lit("p")).otherwise("template")
    by_kind = votes.group_by(kind.alias("kind")).agg(pl.col("margin", "p_tie").count())
    assert {row[0]: row[1:] for row in by_kind.rows()} == {
        "response": (0, 0),
        "response-steps": (80, 0),
        "response-scores": (80, 0),
        "p": (0, 80),
    }
    with pytest.raises(InputError) as caught:
        read_votes(place)  # margins or probabilities?
    assert caught.value.argument == "strength"
    # Votes that have no strength of a kind count whole.
    plain = {"judge": ["sim"], "template": ["response"]}
    for strength in ("margin", "probabilities", "none"):
        assert not (read_votes(place, strength=strength).filter(plain).counts()[1] % 1).any()
    scores = votes.filter(template="response-scores")
    margins = (scores["vote"] * scores["margin"]).to_list()
    full_margin = 2 * scores["margin"].mean()
    expected = tally(scores["item"].to_list(), margins, full_margin=full_margin)[1]
    read = read_votes(place, strength="margin").filter({"template": ["response-scores"]})
    assert read.counts()[1].tolist() == expected.tolist()


def test_a_judge_has_probabilities_of_all_votes_or_of_none(tmp_path):
    place = tmp_path / "v.db"
    asked(place, n=2)
    asked(place, n=4, confidence="logprobs")
    expected = "40 of 80 votes have none"
    with refused("strength", row=1, column="p_minus", source="v.db", expected=expected):
        read_votes(place)


@pytest.mark.parametrize(
    "options", [{"template": "response-scores"}, {"confidence": "logprobs"}], ids=str
)
def test_a_rule_stops_by_the_strength_of_votes(tmp_path, options):
    pairs = pairs_of(30)
    labels = {"item": [f"q{k}" for k in range(25)], "label": [(0, -1, 1)[k % 3] for k in range(25)]}
    judging = Judging("sim", n=12, request_seed=0, **options)
    _, votes = asked(tmp_path / "all.db", pairs=pairs, n=12, **options)
    all_votes = read_votes(votes)
    model = calibrate(all_votes, read_labels(labels), prior="weak").model
    rule = StoppingRule.lossless(model, 12, step=2)

    async def ask():
        with VoteStore(tmp_path / "few.db") as store:
            return await judge_by_rule(pairs, judging, rule, JudgeJob(store, SimulatedClient()))

    run = asyncio.run(ask())
    assert run.n_calls == run.settled.n_samples < 12 * 30
    few = frame_of(tmp_path / "few.db")
    ids, counts = read_votes(few, **model.provenance.how_to_read(all_votes)).counts()
    assert (counts % 1).any()
    assert rule.stops(counts).all()
    of_all = dict(decisions(all_votes, model).select("item", "label").rows())
    assert dict(zip(ids, rule.decide(counts), strict=True)) == of_all


def test_an_answer_that_is_no_score_is_counted_and_never_a_tie(tmp_path):
    texts = ["A: 11, B: 4", "3.5.2, 4", "A: 7", "I cannot say.", "<scores>7, 4</scores>"]
    given = iter(texts * 16)
    client = FunctionClient(lambda _: next(given))
    run, votes = asked(tmp_path / "v.db", client, template="response-scores")
    assert run.statuses == {"unparsed": 64 - 16, "refused": 16, "ok": 16}
    counted = Counter(zip(votes["status"], votes["margin"], strict=True))
    assert counted == {("unparsed", None): 48, ("refused", None): 16, ("ok", 3.0): 16}


def test_what_works_on_verdicts_alone_says_so(tmp_path):
    judging = Judging("sim", template="response-steps")
    for method in ("few-shot", "gsa", "usc"):
        with refused("template", got="response-steps", expected="a template"):
            asking_of(method, judging)
    assert asking_of("greedy", judging).n == 2
    with refused("scale", got="stars"):
        AnswerFormat(scale="stars")


# Log-probabilities


def tokens(*parts):
    """Tokens of a text: those with alternatives as a mapping, of which the first was drawn."""
    made = []
    for part in parts:
        chances = part if isinstance(part, dict) else {part: 1.0}
        logs = {text: math.log(chance) for text, chance in chances.items()}
        drawn = next(iter(logs))
        made.append(Token(drawn, logs[drawn], logs))
    return made


def probabilities(*parts, answer=None):
    found = verdict_probabilities(tokens(*parts), answer or AnswerFormat())
    return None if found is None else tuple(found[name] for name in ("second", "tie", "first"))


@pytest.mark.parametrize(
    ("parts", "by_hand"),
    [
        # The mass of other tokens is left out: .6, .2 and .1 of .9.
        (("[[", {"A": 0.6, "B": 0.2, "T": 0.1, "C": 0.1}, "]]"), (0.2, 0.1, 0.6)),
        # With brackets, blanks and small letters it is the same word.
        (({"[[A": 0.4, " [[a": 0.2, "[[B]]": 0.3, "((B": 0.1}, "]]"), (0.3, 0.0, 0.6)),
        ((" Verdict", ":", {" B": 0.5, "B": 0.25, " A": 0.125, " An": 0.1}), (0.75, 0.0, 0.125)),
        # A word in several tokens; "T" may be the beginning of no other.
        (("[[", {"T": 0.5, "A": 0.3, "TI": 0.1}, {"IE": 0.9, "RUE": 0.1}, "]]"), (0, 0.6, 0.3)),
        # The drawn token counts, whether it is in the list or not.
        (("[[", {"B": 0.25, "A": 0.75}, "]]"), (0.25, 0.0, 0.75)),
        # Articles and other letters are no verdict.
        (({"A": 0.9, "B": 0.1}, " text. [[", {"B": 0.8, "A": 0.2}, "]]"), (0.8, 0.0, 0.2)),
        (('{"verdict": "', {"A": 0.5, "TIE": 0.5}, '", "why": "A', ' is short"}'), (0, 0.5, 0.5)),
    ],
)  # fmt: skip
def test_probabilities_by_hand(parts, by_hand):
    total = sum(by_hand)
    expected = [chance / total for chance in by_hand]
    assert probabilities(*parts) == pytest.approx(expected, abs=1e-12)


def test_words_that_begin_alike_are_told_apart_by_what_follows():
    answer = AnswerFormat("line", "Response 1", "Response 2", "Neither")
    parts = ("Verdict:", {" Response": 0.75, " Neither": 0.25}, {" 2": 0.6, " 1": 0.4})
    assert probabilities(*parts, answer=answer) == pytest.approx((0.45, 0.25, 0.3))


def test_there_are_none_without_a_verdict_or_without_alternatives():
    assert probabilities("I cannot say", ".") is None
    assert probabilities("[[", {"equal": 0.9, "A": 0.1}, "]]") is None  # not what was asked for
    assert verdict_probabilities([Token("[[A]]", -0.1)], AnswerFormat()) is None
    assert verdict_probabilities([Token("[[A]]", math.nan, {"x": -1})], AnswerFormat()) is None
    assert verdict_probabilities([], AnswerFormat()) is None


def test_probabilities_are_mirrored_and_a_verdict_in_other_words_counts_whole():
    drawn = tokens("[[", {"A": 0.6, "B": 0.3, "TIE": 0.1}, "]]")
    by_order = {
        order: read_answer(AnswerFormat(), ChatReply("[[A]]", tokens=drawn), order)
        for order in ("AB", "BA")
    }
    assert by_order["AB"].probabilities == pytest.approx((0.3, 0.1, 0.6))
    assert by_order["BA"].probabilities == pytest.approx((0.6, 0.1, 0.3))
    assert (by_order["AB"].vote, by_order["BA"].vote) == (1, -1)
    other = ChatReply("[[equal]]", tokens=tokens("[[", {"equal": 0.9, "A": 0.1}, "]]"))
    assert read_answer(AnswerFormat(), other, "BA").probabilities == (0, 1, 0)
    unread = ChatReply("Who knows.", tokens=tokens("Who knows."))
    assert read_answer(AnswerFormat(), unread, "AB").probabilities is None
    # Steps have a margin instead.
    steps = ChatReply("[[A>B]]", tokens=tokens("[[", {"A": 0.9, "B": 0.1}, ">B]]"))
    reading = read_answer(AnswerFormat(scale="steps"), steps, "AB")
    assert (reading.margin, reading.probabilities) == (1, None)


@pytest.mark.parametrize("allow_tie", [True, False])
def test_the_simulated_judge_votes_as_often_as_it_says(tmp_path, allow_tie):
    options = {"confidence": "logprobs", "allow_tie": allow_tie}
    _, votes = asked(tmp_path / "v.db", pairs=pairs_of(60), n=12, **options)
    assert votes.select(pl.sum_horizontal(P)).to_series().to_list() == pytest.approx([1] * 720)
    for label, name in zip((-1, 0, 1), P, strict=True):
        share = (votes["vote"] == label).mean()
        assert votes[name].mean() == pytest.approx(share, abs=0.05)
    # In one order all samples of an item were as probable.
    spread = votes.group_by("item", "order").agg(pl.col("p_plus").max() - pl.col("p_plus").min())
    assert spread["p_plus"].max() < 1e-12
    assert votes.filter(vote=1)["p_plus"].mean() > votes.filter(vote=-1)["p_plus"].mean() + 0.1
    assert votes["confidence"].is_between(0, 1).all()


@pytest.mark.parametrize("stream", [False, True])
def test_an_endpoint_gives_them(cli, judge_server, folder, stream):
    PAIRS.frame.write_ndjson("pairs.jsonl")
    server = judge_server()
    status, _, err = cli(
        "judge", "pairs.jsonl", "-m", "m", "-n", 2,
        "--set", f"judge.base_url={server.url},judge.confidence=logprobs",
        *config(stream=stream),
    )  # fmt: skip
    assert status == 0, err
    votes = frame_of("votes.db")
    assert votes.select(pl.sum_horizontal(P)).to_series().to_list() == pytest.approx([1] * 40)
    assert votes["p_tie"].n_unique() > 2
    assert cli("votes", "votes.db", "--export", "v.csv")[0] == 0
    assert {*P, "vote"} < set(pl.read_csv("v.csv").columns)


def test_five_alternatives_are_asked_for(judge_server):
    request = ChatRequest([{"role": "user", "content": "?"}], "m", logprobs=True)
    client = ModelClient("openai", judge_server().url, api_key="sk-test")
    body = asyncio.run(client.body_of(request))
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)


def test_a_function_may_give_probabilities(tmp_path):
    chances = {"A": 0.5, "B": 0.3, "TIE": 0.2}
    logs = {word: math.log(chance) for word, chance in chances.items()}
    client = FunctionClient(lambda _: ChatReply("A", tokens=[Token("A", logs["A"], logs)]))
    _, votes = asked(tmp_path / "v.db", client)
    by_order = votes.group_by("order").agg(pl.col(P).unique().first().round(9)).sort("order")
    assert by_order.rows() == [("AB", 0.3, 0.2, 0.5), ("BA", 0.5, 0.2, 0.3)]
