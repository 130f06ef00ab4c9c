"""The other methods of the paper on the judge's side, as runs of the engine.

Each is a `Method` that asks for something else than samples, and a rule that makes decisions of
the answers: greedy decoding and few-shot ask twice at temperature 0, once in each
order, and decide by the rounded median; generative aggregation asks once more, at temperature 0,
over the samples of an item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.judge.answers import (
    Status,
    Verdict,
    answer_alone,
    ended_early,
    json_schema,
    side_by_side,
)
from btdagg.judge.calls import Asked, Order, batched, samples_of
from btdagg.judge.jobs import judge
from btdagg.judge.judging import SAMPLING, Judging, digest_of_pair
from btdagg.judge.prompts import FewShot
from btdagg.judge.runs import JudgeRun
from btdagg.judge.store import VoteStore
from btdagg.judge.work import Reading, Work
from btdagg.methods.median import rounded_median

if TYPE_CHECKING:
    import asyncio

    from btdagg.judge.client import ChatClient, ChatReply
    from btdagg.judge.limits import Limits
    from btdagg.judge.pairs import Pair, Pairs
    from btdagg.judge.prompts import Messages, PromptTemplate

GenerativeMethod = Literal["gsa", "usc"]
METHODS = ("greedy", "few-shot", "gsa", "usc")

_ITEMS_AT_A_TIME = 500


@readable
@dataclass(frozen=True)
class Decisions:
    """What a method decided.

    Attributes
    ----------
    method : str
    columns : tuple of str
        Names under which the decisions are in the store, and columns of what it exports.
    decided : dict of item to -1, 0, 1
    examples : tuple of str
        Items that the prompt of few-shot shows: of them no decision is in the store, so that
        evaluations leave them out.
    undecided : tuple of str
        Items for which an answer is missing.
    runs : tuple of JudgeRun
        Of the samples, where the method is over samples, and of its own calls.
    """

    method: str
    columns: tuple[str, ...]
    decided: dict[str, int]
    undecided: tuple[str, ...]
    runs: tuple[JudgeRun, ...]
    examples: tuple[str, ...] = ()


async def decide_by(
    method: str,
    pairs: Pairs,
    judging: Judging,
    *,
    store: VoteStore,
    client: ChatClient,
    examples: Sequence[tuple[Pair, int]] = (),
    stop: asyncio.Event | None = None,
    watch: Callable[[JudgeRun], object] | None = None,
) -> Decisions:
    """Decide pairs by a method, as far as the store does not have the answers that it takes.

    Decisions are written to the store as `greedy`, `few_shot`, or `gsa_12` for those on 12 samples;
    `gsa` as well if the store has no further samples. An item for which an answer is missing is not
    decided, and of the examples of few-shot no decision is written, so that evaluations leave them
    out.

    Parameters
    ----------
    method : ``greedy``, ``few-shot``, ``gsa`` or ``usc``
    pairs : Pairs
    judging : Judging
        Who judges, and how the samples are asked for that `gsa` and `usc` are over; those that the
        store has are not asked for again.
    store : VoteStore
    client : ChatClient
        Not closed.
    examples : sequence of (Pair, label)
        For `few-shot`; see :func:`btdagg.judge.prompts.labelled_pairs`.
    stop, watch
        See :func:`btdagg.judge.judge`.

    Returns
    -------
    Decisions

    Raises
    ------
    InputError
        If there is no such method, few-shot has no examples, the store does not keep answers and
        the method needs them; and as :func:`btdagg.judge.judge` does.
    """
    ask = partial(judge, pairs, store=store, client=client, stop=stop, watch=watch)
    runs: list[JudgeRun] = []
    asking = asking_of(method, judging, store=store, examples=examples)
    limits: Limits | None = judging.limits
    if isinstance(asking.method, Aggregation):
        runs.append(await ask(judging))
        limits = runs[0].left_of(judging.limits)
        if limits is None and not runs[0].stopped:
            runs.append(JudgeRun(stopped="the caps are used up by the samples"))
    if limits is not None and not any(run.stopped for run in runs):
        runs.append(await ask(replace(asking, limits=limits)))
    decided: dict[str, int] = {}
    undecided: list[str] = []
    for batch in batched(pairs, _ITEMS_AT_A_TIME):
        items = [pair.item for pair in batch]
        votes = store.votes_of(asking.asked, items)
        decided |= _medians(votes, asking.n)
        undecided += [item for item in items if item not in decided]
    columns = _columns(method, judging, store, pairs)
    # The prompt shows their labels to all other items: no method is to be scored on them.
    shown = {pair.item for pair, _ in examples} if method == "few-shot" else set()
    written = {item: label for item, label in decided.items() if item not in shown}
    for column in columns:
        store.write_decisions(judging.asked, column, written, undecided=shown)
    return Decisions(method, columns, decided, tuple(undecided), tuple(runs), tuple(sorted(shown)))


def asking_of(
    method: str,
    judging: Judging,
    *,
    store: VoteStore | None = None,
    examples: Sequence[tuple[Pair, int]] = (),
) -> Judging:
    """What a method asks, its samples apart, as the engine takes it and `estimate` prices it.

    Raises
    ------
    InputError
        See `decide_by`.
    """
    once = replace(judging, temperature=0.0)
    if method == "greedy":
        return replace(once, n=2, order="both", method=Greedy())
    if method == "few-shot":
        shots = FewShot(judging.prompt, examples)
        return replace(once, n=2, order="both", method=WithExamples(shots))
    if method not in ("gsa", "usc"):
        raise InputError(f"method is {method!r}, expected one of {', '.join(METHODS)}")
    if store is None or not store.keep_exchanges:
        raise InputError(
            f"{method} is over the answers of a judge, and the store keeps none; keep exchanges"
        )
    generative: GenerativeMethod = "gsa" if method == "gsa" else "usc"
    return replace(once, n=1, order="AB", method=Aggregation(generative, judging, store))


@dataclass(frozen=True)
class Greedy:
    """Two answers at temperature 0, one in each order."""

    def asked(self, judging: Judging) -> Asked:
        """What all calls have in common."""
        return replace(SAMPLING.asked(judging), method="greedy")

    def plan(self, judging: Judging, pairs: Iterable[Pair]) -> Iterator[Work]:
        """Both orders of every pair."""
        return SAMPLING.plan(judging, pairs)


@dataclass(frozen=True)
class WithExamples:
    """Two answers at temperature 0, one in each order, with labelled examples in the prompt."""

    shots: FewShot

    def asked(self, judging: Judging) -> Asked:
        """What all calls have in common."""
        asked = SAMPLING.asked(judging)
        return replace(asked, method="few-shot", template_digest=self.shots.digest)

    def plan(self, judging: Judging, pairs: Iterable[Pair]) -> Iterator[Work]:
        """Both orders of every pair."""
        for pair in pairs:
            for work in SAMPLING.plan(judging, [pair]):
                yield replace(work, messages=partial(self.shots.render, pair))


@dataclass(frozen=True)
class Aggregation:
    """One answer at temperature 0 over the samples of an item."""

    method: GenerativeMethod
    samples: Judging
    store: VoteStore

    def asked(self, judging: Judging) -> Asked:
        """What all calls have in common, the samples that they are over included."""
        over = {"over": self.samples.asked.prompt, "n": self.samples.n, "order": self.samples.order}
        asked = SAMPLING.asked(judging)
        return replace(
            asked,
            method=self.method,
            template_digest=aggregation_digest(self.method, judging.prompt),
            settings={**asked.settings, **over},
        )

    def plan(self, judging: Judging, pairs: Iterable[Pair]) -> Iterator[Work]:
        """Every pair that has an answer with a vote, in one order."""
        wanted = set(samples_of(self.samples.n, self.samples.order))
        for batch in batched(pairs, _ITEMS_AT_A_TIME):
            answers = self.store.answers_of(self.samples.asked, [pair.item for pair in batch])
            for pair in batch:
                samples = tuple(
                    Sample(order, vote, text)
                    for order, sample, vote, text in answers.get(pair.item, ())
                    if (order, sample) in wanted
                )
                if samples:
                    yield self._work(judging.prompt, pair, samples)

    def _work(self, prompt: PromptTemplate, pair: Pair, samples: Sequence[Sample]) -> Work:
        work = Work(
            pair.item,
            ((order_of_aggregation(pair.item), 0),),
            lambda order: aggregation_messages(self.method, prompt, pair, order, samples),
            digest_of_pair(pair),
            pair.fields.get("task"),
        )
        if self.method == "gsa":
            return work
        read = partial(_read_choice, [sample.vote for sample in samples])
        return replace(work, read=read, response_format=choice_format(prompt))


def _read_choice(votes: Sequence[int], reply: ChatReply, order: Order) -> Reading:
    """Vote of the sample that an answer chooses; that is from A's point of view already."""
    chosen = parse_choice(reply.text, len(votes), finish_reason=reply.finish_reason)
    if chosen.number is None:
        return Reading(chosen.status, reason=chosen.reason)
    return Reading("ok", votes[chosen.number])


def _medians(votes: dict[str, list[int]], n: int) -> dict[str, int]:
    """Rounded median of the items that have all n votes."""
    items = [item for item, several in votes.items() if len(several) == n]
    counts = np.array(
        [[votes[item].count(label) for label in (-1, 0, 1)] for item in items], dtype=np.int64
    ).reshape(-1, 3)
    return dict(zip(items, map(int, rounded_median(counts)), strict=True))


def _columns(method: str, judging: Judging, store: VoteStore, pairs: Pairs) -> tuple[str, ...]:
    if method in ("greedy", "few-shot"):
        return (method.replace("-", "_"),)
    wanted = set(samples_of(judging.n, judging.order))
    for batch in batched(pairs, _ITEMS_AT_A_TIME):
        there = store.samples_of(judging.asked, [pair.item for pair in batch])
        if any(not wanted.issuperset(samples) for samples in there.values()):
            return (f"{method}_{judging.n}",)
    return (method, f"{method}_{judging.n}")


# Generative aggregation: a further call over the answers of an item

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
