"""Aggregation by a further call: what is asked about the answers of an item, and what it decides.

Generative Self-Aggregation shows the answers and asks for a verdict in their light. Universal
Self-Consistency asks which of the answers agrees best with the others, and takes its verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from btdagg._core import InputError
from btdagg.judge.answer_format import json_schema
from btdagg.judge.answers import Status, Verdict, answer_alone, ended_early, side_by_side

if TYPE_CHECKING:
    from btdagg.judge.calls import Order
    from btdagg.judge.pairs import Pair
    from btdagg.judge.prompts import Messages, PromptTemplate

GenerativeMethod = Literal["gsa", "usc"]
_VERSION = 1  # of the wording below

_INTRODUCTION = """
{n} assessors have compared the two, independently of each other. Their assessments follow. Some of
them saw the two in the opposite order, so that what they call {a} is {b} above and the other way
round; that is said where it is so, and the verdict is repeated in the names used above.
"""
_GSA = """
Draw on them to reach your own verdict: weigh their arguments, check them against the texts, keep
what holds and correct what does not. Do not merely count them. {answer}
"""
_USC = """
Choose the assessment that agrees best with all of them taken together: the one whose verdict and
reasons most of the others share. {choose}
"""
_CHOOSE_TAG = "End with its number on a line of its own, in double brackets, such as [[1]]."
_CHOOSE_JSON = 'Answer with one JSON object and nothing else: {"reasoning": "...", "choice": N}.'


@dataclass(frozen=True)
class Sample:
    """An answer to be aggregated.

    Attributes
    ----------
    order : "AB" or "BA"
        Which response was shown first.
    vote : -1, 0 or 1
        From A's point of view.
    text : str
        The answer.
    """

    order: Order
    vote: int
    text: str


def order_of_aggregation(item: str) -> Order:
    """Order in which the further call shows an item: one of the two, by a hash of its id.

    There is one call per item, so the order is balanced over the items.
    """
    return "BA" if sha256(item.encode(errors="replace")).digest()[0] & 1 else "AB"


def aggregation_messages(
    method: GenerativeMethod,
    template: PromptTemplate,
    pair: Pair,
    order: Order,
    samples: Sequence[Sample],
) -> Messages:
    """Messages of the further call over the answers of an item.

    Parameters
    ----------
    method : "gsa" or "usc"
    template : PromptTemplate
        That of the answers.
    pair : Pair
    order : "AB" or "BA"
        In which the further call shows the pair.
    samples : sequence of Sample

    Raises
    ------
    InputError
        If there are no samples.
    """
    if not samples:
        raise InputError(f"item {pair.item!r} has no answers to aggregate")
    names = template.answer
    shown = [
        f"<sample_{number}>\n{_shown(sample, order, template)}\n</sample_{number}>"
        for number, sample in enumerate(samples, start=1)
    ]
    introduction = _INTRODUCTION.format(n=len(samples), a=names.first, b=names.second)
    if method == "gsa":
        asked = _GSA.format(answer=names.instructions)
    else:
        asked = _USC.format(choose=_CHOOSE_JSON if names.kind == "json" else _CHOOSE_TAG)
    parts = [introduction.strip(), *shown, asked.strip()]
    return template.render(pair, order, answer="\n\n".join(parts))


def aggregation_digest(method: GenerativeMethod, template: PromptTemplate) -> str:
    """SHA-256 of everything that a further call sends but the pair and its answers."""
    wording = (_INTRODUCTION, _GSA, _USC, _CHOOSE_TAG, _CHOOSE_JSON)
    told = "\0".join((method, template.digest, str(_VERSION), *wording))
    return sha256(told.encode()).hexdigest()


def choice_format(template: PromptTemplate) -> dict[str, Any] | None:
    """Response format of Universal Self-Consistency, for a template that asks for JSON."""
    if template.answer.kind != "json":
        return None
    fields = {"reasoning": {"type": "string"}, "choice": {"type": "integer"}}
    return json_schema("choice", fields)


@dataclass(frozen=True)
class Chosen:
    """Which answer is chosen: its number from 0, None unless `status` is ``ok``."""

    number: int | None
    status: Status
    reason: str = ""


_NUMBER = re.compile(r"\\?\[\\?\[[ \t]*(?:sample|assessment|#)?[ \t_]*(\w+)[ \t]*\\?\]\\?\]", re.I)
_JSON_NUMBER = re.compile(r"\{[^{}]*\"choice\"\s*:\s*\"?(\w+)\"?[^{}]*\}")


def parse_choice(
    text: str | None,
    n_samples: int,
    *,
    finish_reason: str | None = None,
    refusal: str | None = None,
) -> Chosen:
    """Read the number of the chosen answer: the last one that is stated.

    Parameters
    ----------
    text : str or None
    n_samples : int
        How many answers there are; another number than theirs is none.
    finish_reason, refusal : str, optional
        See :func:`btdagg.judge.answers.parse_verdict`.
    """
    early = ended_early(finish_reason, refusal)
    said = early or answer_alone(text)
    if isinstance(said, Verdict):
        return Chosen(None, said.status, said.reason)
    found = [*_NUMBER.finditer(said), *_JSON_NUMBER.finditer(said)]
    found.sort(key=lambda match: match.end())
    numbers = [match[1] for match in found]
    if not found and re.fullmatch(r"[\s*`]*\d+[\s*`.]*", said):
        numbers = [said.strip(" \n*`.")]
    if not numbers:
        return Chosen(None, "unparsed", "no number of an answer")
    if len(set(numbers[-2:])) > 1 and side_by_side(said, *(match.span() for match in found[-2:])):
        return Chosen(None, "unparsed", "several numbers in a row")
    last = numbers[-1]
    if not (last.isascii() and last.isdecimal() and 1 <= int(last) <= n_samples):
        return Chosen(None, "unparsed", f"chose {last}, expected a number from 1 to {n_samples}")
    return Chosen(int(last) - 1, "ok")


def _shown(sample: Sample, order: Order, template: PromptTemplate) -> str:
    if sample.order == order:
        return sample.text.strip()
    names = template.answer
    better = sample.vote if order == "AB" else -sample.vote
    choice = {1: "first", 0: "tie", -1: "second"}[better]
    return (
        f"(It saw the two in the opposite order: its {names.first} is {names.second} above.)\n"
        f"{sample.text.strip()}\n"
        f"(In the names used above: {names.written(choice)})"
    )
