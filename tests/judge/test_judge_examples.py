"""Few-shot prompts: what the examples show, in both orders."""

import pytest

from btdagg.judge import Pair, PromptTemplate, read_pairs
from btdagg.judge.prompts import FewShot, labelled_pairs

TEMPLATE = PromptTemplate("t", "{first} | {second}", "Judge. {answer}")
EXAMPLES = [(Pair(f"q{n}", f"a{n}", f"b{n}"), label) for n, label in enumerate((1, 1, 0, -1))]
PAIR = Pair("q9", "a9", "b9")


def said(messages):
    return [message["content"] for message in messages]


def test_examples_come_between_the_instructions_and_the_pair():
    messages = FewShot(TEMPLATE, EXAMPLES).render(PAIR)
    assert [message["role"] for message in messages] == [
        "system",
        *["user", "assistant"] * 4,
        "user",
    ]
    assert said(messages)[1:] == [
        *("a0 | b0", "[[A]]"),
        *("b1 | a1", "[[B]]"),  # every second one is turned round, and its label with it
        *("a2 | b2", "[[TIE]]"),
        *("b3 | a3", "[[A]]"),
        "a9 | b9",
    ]


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_exchanging_a_and_b_changes_nothing_but_the_order(order):
    exchanged = [(Pair(pair.item, pair.b, pair.a), -label) for pair, label in EXAMPLES]
    other = {"AB": "BA", "BA": "AB"}[order]
    one = FewShot(TEMPLATE, EXAMPLES).render(PAIR, order)
    assert one == FewShot(TEMPLATE, exchanged).render(Pair("q9", "b9", "a9"), other)


def test_a_pair_is_not_its_own_example():
    messages = FewShot(TEMPLATE, EXAMPLES).render(EXAMPLES[2][0])
    questions = [message["content"] for message in messages if message["role"] == "user"]
    assert questions == ["a0 | b0", "b1 | a1", "b3 | a3", "a2 | b2"]


PAIRS = read_pairs({"item": [1, 2, 3], "a": ["x", "y", "z"], "b": ["u", "v", "w"]})


def test_examples_are_the_labelled_pairs():
    found = labelled_pairs(PAIRS, {"item": ["3", "1", "7"], "label": ["B", "tie", "A"]})
    assert [(pair.item, label) for pair, label in found] == [("1", 0), ("3", -1)]
    assert len(labelled_pairs(PAIRS, {"item": [3, 1], "label": [1, 1]}, n_examples=1)) == 1
