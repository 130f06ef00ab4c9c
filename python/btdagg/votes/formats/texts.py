"""Verdicts in the texts of judges, by the parser of `btdagg judge`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from btdagg.judge.answers import AnswerFormat, Verdict, parse_verdict, vote_of
from btdagg.votes.words import blanks

_TAG = re.compile(r"\[\[([^\[\]\n]{1,20})\]\]")


class Heard(NamedTuple):
    """What texts say: a vote or None, and a status, of each; and what would let more be read."""

    votes: list[int | None]
    statuses: list[str]
    confidences: list[float | None]
    hint: str | None


class Said(NamedTuple):
    """A text of a judge, who of the pair was shown first, and how the text ended."""

    text: str | None
    order: str = "AB"
    finish_reason: str | None = None
    refusal: str | None = None
    failed: bool = False


def heard(texts: Iterable[Said], answer: AnswerFormat) -> Heard:
    """Read the verdicts of texts, turned to A's point of view."""
    parse = lru_cache(maxsize=4096)(parse_verdict)
    found = Heard([], [], [], None)
    unknown: Counter[str] = Counter()
    example = None  # an answer without a verdict
    for said in texts:
        # Short texts repeat, long ones do not.
        read = parse if len(said.text or "") < 64 else parse_verdict
        verdict = read(said.text, answer, finish_reason=said.finish_reason, refusal=said.refusal)
        if verdict.status == "unparsed" and (tags := _TAG.findall(said.text or "")):
            unknown[tags[-1].strip()] += 1
        if verdict.status == "unparsed" and answer.pattern is None:
            example = example or said.text
        found.votes.append(None if said.failed else vote_of(verdict, said.order))
        found.statuses.append("failed" if said.failed else verdict.status)
        found.confidences.append(verdict.confidence)
    known = {word.upper() for word in answer.words}
    for word, n in unknown.most_common():
        if word.upper() not in known:
            how = blanks([word.lower()])
            return found._replace(hint=f"answers that say [[{word}]]: {n}; {how}")
    if example is not None:
        last = example.strip().rpartition("\n")[2][-80:]
        how = "--answer-pattern says where the verdict is"
        return found._replace(hint=f"an unparsed answer ends in {last!r}; {how}")
    return found


def vote_in(text: str | None, answer: AnswerFormat, order: str) -> int | None:
    """Return the vote of one text, None where it has none."""
    verdict: Verdict = parse_verdict(text, answer)
    return vote_of(verdict, order)
