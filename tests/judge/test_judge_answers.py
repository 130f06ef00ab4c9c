"""Reading verdicts: a table of answers, and that nothing without a verdict is ever a vote."""

import json
import math
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from btdagg import InputError
from btdagg.judge import parse_verdict
from btdagg.judge.answers import AnswerFormat, sequence_probability

TABLE = Path(__file__).with_name("verdicts.jsonl").read_text(encoding="utf-8")
VOTES = {"first": 1, "tie": 0, "second": -1}
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
    want = row["want"]  # a status, the response that wins, or a grade
    status = want if want in STATUSES else "ok"
    grade = None if isinstance(want, str) else want
    assert (verdict.status, verdict.vote, verdict.grade) == (status, VOTES.get(want), grade)
    assert bool(verdict.reason) == (want in STATUSES)
    assert (verdict.confidence, verdict.margin) == (row.get("confidence"), row.get("margin"))


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
        *("[[A]] or [[B]]", "[[A]], [[B]] or [[TIE]]", "It is not [[B]]", "if so, [[A]]", "[[A]]?"),
        *("[[maybe]]", "Verdict: A good one", "Verdict: A or B", "Verdict: B, maybe a tie"),
        *("Verdict: unclear", '{"verdict": "unclear"}', '{"verdict": "A"', "[[A", "A]]"),
    ]
)


@given(PROSE, FORMATS)
def test_prose_is_never_a_vote(prose, answer):
    # A sentence at the end: a last line that is nothing but a word is a verdict.
    verdict = parse_verdict(prose + "\nThat is all there is to say about them.", answer)
    assert (verdict.vote, verdict.confidence) == (None, None)
    assert verdict.status in ("unparsed", "refused")


@given(st.text(), FORMATS)
def test_any_text_without_the_forms_is_never_a_vote(text, answer):
    folded = unicodedata.normalize("NFKC", text).casefold()
    forms = ["[[", "verdict", "winner", "final", "my", "overall", "preferred", "<answer"]
    assume(not any(form in folded for form in forms))
    assume(parse_verdict(f"{text}\nThat is all.", answer).status != "truncated")
    assert parse_verdict(f"{text}\nThat is all.", answer).vote is None


@given(PROSE, TRAPS, FORMATS)
def test_traps_are_never_a_vote(prose, trap, answer):
    assert parse_verdict(f"{prose}\n\nSo be it.\n\n{trap} indeed.", answer).vote is None


LAST = st.sampled_from([("A", "first"), ("B", "second"), ("TIE", "tie")])
WRITTEN = {
    "[[{}]]": AnswerFormat(),
    "<verdict>{}</verdict>": AnswerFormat(),
    "Verdict: {}": AnswerFormat("line"),
    '{{"verdict": "{}"}}': AnswerFormat("json"),
}


@given(PROSE, st.sampled_from([*WRITTEN]), st.sampled_from([*WRITTEN]), LAST, LAST)
def test_a_verdict_at_the_end_counts_unless_another_one_contradicts_it(
    prose, form, asked, first, last
):
    end = f"{prose}\n\nSo, having read them again:\n\n{form.format(last[0])}"
    assert parse_verdict(end, WRITTEN[asked]).vote == VOTES[last[1]]
    both = parse_verdict(f"{asked.format(first[0])}\n\n{end}", WRITTEN[asked])
    assert both.vote == (VOTES[last[1]] if first == last else None)
    assert both.status == ("ok" if first == last else "unparsed")


@given(PROSE, st.sampled_from([*WRITTEN]), LAST)
def test_a_verdict_that_prose_follows_is_none(prose, form, last):
    """It may take back the verdict, in words that nobody can list."""
    text = f"{form.format(last[0])}\n\n{prose}\nThat is what I think of them."
    assert parse_verdict(text, WRITTEN[form]).vote is None


@given(PROSE, TRAPS, st.sampled_from(["[[{}]]", "Verdict: {}", "{} is it: [[{}]]", "so\n\n{}"]))
def test_exchanging_the_names_exchanges_the_choices(prose, trap, form):
    other = {1: -1, -1: 1, 0: 0, None: None}
    text = f"{prose}\n{trap}\n{form.format('A', 'A')}"
    named = parse_verdict(text, AnswerFormat(first="A", second="B"))
    exchanged = parse_verdict(text, AnswerFormat(first="B", second="A"))
    assert (named.status, other[named.vote]) == (exchanged.status, exchanged.vote)


# Each is repeated to 300,000 characters; with the square of that a test would take hours.
LONG = {
    "tags that do not end": "[[",
    "objects that do not end": '{"verdict": ',
    "objects without a verdict": '{"a": ' * 200 + '{"verdict": 1}' + "}" * 200,
    "elements that do not end": "<verdict>",
    "braces": "{",
    "fields of an object that does not end": ", verdict: 'A' x",
    "labels": "Verdict: ",
    "tags": "[[A]] ",
    "words before a label": "the ",
    "blanks after a label": "verdict" + " " * 1000,
    "lines": "A\n",
    "combining marks": "\u0301\u0327",
    "digits": "confidence: " + "1" * 1000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_answers_take_time_in_proportion(text):
    text *= 300_000 // len(text)
    verdict = parse_verdict(f"{text}\nThat is all.", AnswerFormat(confidence=True))
    assert verdict.status in ("unparsed", "ok")
    assert parse_verdict(f"{text}\n\nSo be it.\n\n[[B]]").vote in (-1, None)


def test_what_is_beyond_the_bounds_is_no_vote():
    broken = '{"verdict": "A" x '
    assert parse_verdict(f"{broken * 3}\n\n[[B]]").vote == -1
    assert parse_verdict(f"[[A]] {broken * 3}").vote is None
    assert parse_verdict(f"{broken * 100}\n\n[[B]]").vote is None
    assert parse_verdict("[[A]]\n" * 1001).vote is None
    # An unclear label so far back that it is not looked at does not bring back what was before.
    assert parse_verdict("[[A]]\nVerdict: none\n" + "My choice is hard.\n" * 100).vote is None


@pytest.mark.parametrize("pattern", ["Choice: (", r"Choice: \w", "(A)|(B)"])
def test_a_pattern_has_one_group(pattern):
    with pytest.raises(InputError) as caught:
        AnswerFormat(pattern=pattern)
    assert caught.value.argument == "pattern"


def test_a_vote_is_from_the_point_of_view_of_a():
    for word, vote in (("A", 1), ("B", -1), ("TIE", 0)):
        assert parse_verdict(f"[[{word}]]").vote == vote
        assert parse_verdict(f"[[{word}]]", order="BA").vote == -vote


# Probabilities of sequences


PROBABILITIES = st.lists(st.floats(1e-6, 1), min_size=1, max_size=50)


@given(PROBABILITIES)
def test_it_is_the_geometric_mean(probabilities):
    mean = sequence_probability([math.log(p) for p in probabilities])
    expected = math.prod(p ** (1 / len(probabilities)) for p in probabilities)
    assert mean == pytest.approx(expected, rel=1e-9)
    assert min(probabilities) * (1 - 1e-9) <= mean <= max(probabilities) * (1 + 1e-9)


def test_extremes():
    assert sequence_probability([0.0]) == 1.0
    assert sequence_probability([1e-7, 0.0]) == 1.0  # rounding of an endpoint
    assert sequence_probability([-math.inf, 0.0]) == 0.0
    assert sequence_probability([-9999.0]) == 0.0


@pytest.mark.parametrize("values", [[], [-1.0, 0.5], [math.nan]])
def test_what_is_no_logarithm_of_a_probability_has_none(values):
    assert sequence_probability(values) is None
