"""Generative aggregation: what a further call shows, and how its answer is read."""

from btdagg.judge import Pair, PromptTemplate
from btdagg.judge.methods import (
    Sample,
    aggregation_messages,
    number_format,
    order_of_aggregation,
)

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


def test_universal_self_consistency_asks_for_a_number_as_for_a_grade():
    text = aggregation_messages("usc", TEMPLATE, PAIR, "AB", SAMPLES)[1]["content"]
    assert text.endswith("on a line of its own: [[N]], where N is 1, 2 or 3.")
    assert TEMPLATE.answer.instructions not in text
    json = TEMPLATE.asking(kind="json")
    assert '"grade": N' in aggregation_messages("usc", json, PAIR, "AB", SAMPLES)[1]["content"]
    form = number_format(json, SAMPLES).response_format["json_schema"]["schema"]
    assert form["properties"]["grade"]["enum"] == [1, 2, 3]
    assert number_format(TEMPLATE, SAMPLES[:1]).grades == (1, 2)


def test_orders_are_balanced_over_items():
    orders = [order_of_aggregation(f"item-{number}") for number in range(1000)]
    assert orders == [order_of_aggregation(f"item-{number}") for number in range(1000)]
    assert 440 < orders.count("AB") < 560
