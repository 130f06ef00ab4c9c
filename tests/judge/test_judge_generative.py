"""Generative aggregation: what a further call shows, and how its answer is read."""

import pytest

from btdagg.judge.methods import (
    Sample,
    aggregation_messages,
    choice_format,
    order_of_aggregation,
    parse_choice,
)
from btdagg.judge.pairs import Pair
from btdagg.judge.prompts import PromptTemplate

TEMPLATE = PromptTemplate("t", "<{first}|{second}> {answer}", "Be fair.")
PAIR = Pair("q1", "alpha", "beta")
SAMPLES = [
    Sample("AB", 1, "A is right.\n\n[[A]]"),
    Sample("BA", 1, "B is right.\n\n[[B]]"),
    Sample("BA", 0, "Even {so}.\n\n[[TIE]]"),
]


def test_every_answer_is_shown_and_turned_round_where_it_has_to_be():
    system, user = aggregation_messages("gsa", TEMPLATE, PAIR, "AB", SAMPLES)
    assert system["content"] == "Be fair."
    text = user["content"]
    assert text.startswith("<alpha|beta> 3 assessors")
    assert "<sample_1>\nA is right.\n\n[[A]]\n</sample_1>" in text
    assert (
        "<sample_2>\n(It saw the two in the opposite order: its A is B above.)\n"
        "B is right.\n\n[[B]]\n(In the names used above: [[A]])\n</sample_2>"
    ) in text
    assert "Even {so}.\n\n[[TIE]]\n(In the names used above: [[TIE]])\n</sample_3>" in text
    assert text.endswith(TEMPLATE.answer.instructions)


def test_exchanging_a_and_b_changes_nothing_but_the_order():
    other = {"AB": "BA", "BA": "AB"}
    exchanged = [Sample(other[each.order], -each.vote, each.text) for each in SAMPLES]
    for method in ("gsa", "usc"):
        one = aggregation_messages(method, TEMPLATE, PAIR, "AB", SAMPLES)
        swapped = Pair("q1", "beta", "alpha")
        assert one == aggregation_messages(method, TEMPLATE, swapped, "BA", exchanged)


def test_universal_self_consistency_asks_for_a_number():
    text = aggregation_messages("usc", TEMPLATE, PAIR, "AB", SAMPLES)[1]["content"]
    assert text.endswith("such as [[1]].")
    assert TEMPLATE.answer.instructions not in text
    json = TEMPLATE.asking(kind="json")
    assert '"choice": N' in aggregation_messages("usc", json, PAIR, "AB", SAMPLES)[1]["content"]
    assert "choice" in choice_format(json)["json_schema"]["schema"]["properties"]
    assert choice_format(TEMPLATE) is None


def test_orders_are_balanced_over_items():
    orders = [order_of_aggregation(f"item-{number}") for number in range(1000)]
    assert orders == [order_of_aggregation(f"item-{number}") for number in range(1000)]
    assert 440 < orders.count("AB") < 560


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("[[2]]", 1),
        ("Most prefer A, as does the third.\n\n[[3]]", 2),
        ("[[Assessment 2]]", 1),
        ("\\[\\[2\\]\\]", 1),
        ("First [[1]].\n\nOn reflection [[3]]", 2),
        ("**3**.", 2),
        ('{"reasoning": "r", "choice": 2}', 1),
        ('```json\n{"choice": "3"}\n```', 2),
        ("<think>[[1]]</think>\n[[2]]", 1),
    ],
)
def test_a_choice_is_read(text, number):
    chosen, verdict = parse_choice(text, 3)
    assert (chosen, verdict.status) == (number, "ok")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The second assessment is the most consistent.", "no number of an answer"),
        ("[[4]]", "chose 4, expected a number from 1 to 3"),
        ("[[1]]\n\n[[A]]", "chose A, expected a number from 1 to 3"),
        ("[[1]], [[2]] or [[3]]", "several numbers"),
        ('{"choice": null}', "chose null, expected a number from 1 to 3"),
    ],
)
def test_what_is_no_choice_is_unparsed(text, reason):
    chosen, verdict = parse_choice(text, 3)
    assert (chosen, verdict.status, verdict.reason) == (None, "unparsed", reason)


def test_no_choice_where_there_is_no_answer():
    for text, finish, status in [
        (None, "stop", "empty"),
        ("[[1]]", "length", "truncated"),
        ("", "refusal", "refused"),
    ]:
        assert parse_choice(text, 3, finish_reason=finish)[1].status == status
