"""Reading verdicts: a table of answers, and that nothing without a verdict is ever a vote."""

import json
import random
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from btdagg import InputError
from btdagg.judge.answers import AnswerFormat, Verdict, parse_verdict, vote_of

TABLE = Path(__file__).with_name("verdicts.jsonl").read_text(encoding="utf-8")
ANSWERS = [json.loads(line) for line in TABLE.split("\n") if line]
STATUSES = ("unparsed", "refused", "truncated", "empty")


@pytest.mark.parametrize(
    "row", ANSWERS, ids=[f"{number}-{row['about']}" for number, row in enumerate(ANSWERS, 1)]
)
def test_answers(row):
    verdict = parse_verdict(
        row["answer"],
        AnswerFormat(**row.get("format", {})),
        finish_reason=row.get("finish_reason"),
        refusal=row.get("refusal"),
    )
    if row["want"] in STATUSES:
        assert (verdict.status, verdict.choice) == (row["want"], None)
        assert verdict.reason
    else:
        assert (verdict.status, verdict.choice, verdict.reason) == ("ok", row["want"], "")
    assert verdict.confidence == row.get("confidence")


def test_the_table_is_large_and_covers_every_outcome():
    wanted = [row["want"] for row in ANSWERS]
    assert len(ANSWERS) >= 80
    assert set(wanted) == {"first", "second", "tie", *STATUSES}


# Without an explicit verdict there is no vote

# Words that tempt; none of them is a verdict, whatever they are put beside.
TEMPTING = """
    A B a b tie TIE same equal draw better worse best is the Response Translation I prefer choose
    wins answer: final. overall, good, not because if or and [A] (B) *A* **B** "A" `B` A> >B A=B 1.
    8/10 A. B, tie? {A} {"score": 3} confidence: 90 <b>A</b> boxed \\boxed{B} ist besser Antwort
    译文A 更好 平局 無 ー meilleur également - # > : = -> ... … ' " [ ] { } < >
"""
WORDS = st.sampled_from([*TEMPTING.split(), "\n", "\n\n"])
PROSE = st.lists(WORDS, max_size=40).map(" ".join)
FORMATS = st.sampled_from(
    [
        AnswerFormat(),
        AnswerFormat("json"),
        AnswerFormat("line", "1", "2", "0"),
        AnswerFormat(tie=None),
    ]
)
# What looks like a verdict and must not be taken for one.
TRAPS = st.sampled_from(
    [
        "[[A]] or [[B]]",
        "[[A]], [[B]] or [[TIE]]",
        "It is not [[B]]",
        "if so, [[A]]",
        "[[A]]?",
        "[[maybe]]",
        "Verdict: A good one",
        "Verdict: A or B",
        "Verdict: B, maybe a tie",
        "Verdict: unclear",
        '{"verdict": "unclear"}',
        '{"verdict": "A"',
        "[[A",
        "A]]",
    ]
)


@given(PROSE, FORMATS)
def test_prose_is_never_a_vote(prose, answer):
    # A sentence at the end: a last line that is nothing but a word is a verdict.
    verdict = parse_verdict(prose + "\nThat is all there is to say about them.", answer)
    assert (verdict.choice, verdict.confidence) == (None, None)
    assert verdict.status in ("unparsed", "refused")


@given(st.text(), FORMATS)
def test_any_text_without_the_forms_is_never_a_vote(text, answer):
    folded = unicodedata.normalize("NFKC", text).casefold()
    assume(
        not any(
            form in folded
            for form in (
                "[[",
                "verdict",
                "winner",
                "final",
                "my ",
                "overall",
                "preferred",
                "<answer",
            )
        )
    )
    assume(parse_verdict(f"{text}\nThat is all.", answer).status != "truncated")
    assert parse_verdict(f"{text}\nThat is all.", answer).choice is None


@given(PROSE, TRAPS, FORMATS)
def test_traps_are_never_a_vote(prose, trap, answer):
    assert parse_verdict(f"{prose}\n\nSo be it.\n\n{trap} indeed.", answer).choice is None


@given(PROSE, TRAPS, st.sampled_from([("A", "first"), ("B", "second"), ("TIE", "tie")]))
def test_the_last_explicit_verdict_wins(prose, trap, last):
    word, choice = last
    for form in ("[[{}]]", "Verdict: {}", '{{"verdict": "{}"}}', "<verdict>{}</verdict>"):
        text = f"{trap}\n\n[[A]]\n\n{prose}\n\nSo, having read them again:\n\n{form.format(word)}"
        assert parse_verdict(text).choice == choice


@given(PROSE, TRAPS, st.sampled_from(["[[{}]]", "Verdict: {}", "{} is it: [[{}]]", "so\n\n{}"]))
def test_exchanging_the_names_exchanges_the_choices(prose, trap, form):
    other = {"first": "second", "second": "first", "tie": "tie", None: None}
    text = f"{prose}\n{trap}\n{form.format('A', 'A')}"
    one = parse_verdict(text, AnswerFormat(first="A", second="B"))
    exchanged = parse_verdict(text, AnswerFormat(first="B", second="A"))
    assert (one.status, other[one.choice]) == (exchanged.status, exchanged.choice)


@given(PROSE)
def test_a_verdict_is_read_the_same_twice(prose):
    assert parse_verdict(prose) == parse_verdict(prose)


# Each is repeated to a million characters; with the square of that a test would take hours.
LONG = {
    "tags that do not end": "[[",
    "objects that do not end": '{"verdict": ',
    "objects that are broken": '{"verdict": "A" x} ',
    "objects without a verdict": '{"a": ' * 200 + '{"verdict": 1}' + "}" * 200,
    "fields of an object that does not end": 'verdict: "x" ',
    "elements that do not end": "<verdict>",
    "braces": "{",
    "labels": "Verdict: ",
    "labels with values": "Verdict: A\n",
    "tags": "[[A]] ",
    "words before a label": "the ",
    "stars": "*",
    "blanks after a label": "verdict" + " " * 1000,
    "lines": "A\n",
    "combining marks": "\u0301\u0327",
    "digits": "confidence: " + "1" * 1000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_answers_take_time_in_proportion(text):
    text *= 1_000_000 // len(text)
    verdict = parse_verdict(f"{text}\nThat is all.", AnswerFormat(confidence=True))
    assert verdict.status in ("unparsed", "ok")
    assert parse_verdict(f"{text}\n\nSo be it.\n\n[[B]]").choice in ("second", None)


def test_what_is_beyond_the_bounds_is_no_vote():
    broken = '{"verdict": "A" x '
    assert parse_verdict(f"[[A]] {broken * 3}\n\n[[B]]").choice == "second"
    assert parse_verdict(f"[[A]] {broken * 100}").choice is None
    # An unclear label so far back that it is not looked at does not bring back what was before.
    assert parse_verdict("[[A]]\nVerdict: none\n" + "My choice is hard.\n" * 100).choice is None


MUTATIONS = [
    *(
        "[[",
        "]]",
        "[[A]]",
        "[[B]] ",
        "Verdict:",
        " not ",
        " or ",
        "if ",
        '{"verdict": "',
        '"}',
        "<",
    ),
    *("</verdict>", "<answer>", "winner", "Preferred response: ", "\n", "**", "A", "B", "tie", "?"),
    *(
        "<think>",
        "</think>",
        "\u200b",
        "\uff21",
        "\0",
        "\ud800",
        "\u0301",
        "\\boxed{",
        "confidence: 9",
    ),
]


def mutated(draw, text):
    """The text with a few pieces cut out, doubled, moved or put in."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randint(0, len(text))
        end = min(start + draw.randint(0, 12), len(text))
        piece = draw.choice(("", text[start:end] * 2, draw.choice(MUTATIONS)))
        place = draw.choice((start, draw.randint(0, len(text))))
        text = text[:start] + text[end:]
        text = text[:place] + piece + text[place:]
    return text


@pytest.mark.soak
def test_a_hundred_thousand_mutated_answers():
    draw = random.Random(0)
    texts = [row["answer"] for row in ANSWERS if row["answer"] and not row.get("format")]
    texts = [text for text in texts if len(text) < 150]
    swapped, absent = AnswerFormat(first="B", second="A"), AnswerFormat("tag", "Yod", "Mem", None)
    mirror = {"first": "second", "second": "first", "tie": "tie"}
    n_votes = 0
    for number in range(100_000):
        text = mutated(draw, texts[number % len(texts)])
        verdict = parse_verdict(text)
        assert (verdict.choice is not None) == (verdict.status == "ok")
        if verdict.choice is None:
            assert verdict.reason
        elif number % 8 == 0:
            n_votes += 1
            # A vote is for a word that is there, and the word alone says for which response.
            assert parse_verdict(text, swapped).choice == mirror[verdict.choice], text
            assert parse_verdict(text, absent).choice is None, text
    assert n_votes > 1000


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("Choice: (", "not a regular expression: missing ), unterminated subpattern"),
        (r"Choice: \w", "expected one group, which is the verdict"),
        ("(A)|(B)", "expected one group, which is the verdict"),
    ],
)
def test_a_pattern_has_one_group(pattern, message):
    with pytest.raises(InputError, match=re.escape(message)):
        AnswerFormat(pattern=pattern)


# Votes


@pytest.mark.parametrize(
    ("choice", "order", "vote"),
    [
        ("first", "AB", 1),
        ("second", "AB", -1),
        ("first", "BA", -1),
        ("second", "BA", 1),
        ("tie", "AB", 0),
        ("tie", "BA", 0),
    ],
)
def test_a_vote_is_from_the_point_of_view_of_a(choice, order, vote):
    assert vote_of(Verdict(choice, "ok"), order) == vote


@pytest.mark.parametrize("order", ["AB", "BA"])
@pytest.mark.parametrize("status", STATUSES)
def test_no_choice_is_no_vote(order, status):
    assert vote_of(Verdict(None, status), order) is None
