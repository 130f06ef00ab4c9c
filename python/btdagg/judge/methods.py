"""The paper's other methods on the judge's side: greedy, few-shot, GSA and USC."""
# Greedy and few-shot ask twice at temperature 0, once in each order, and take the rounded median.
# GSA asks once more for a verdict in the light of an item's samples, USC which sample agrees best.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.errors import InputError, one_of
from btdagg._util.readable import readable
from btdagg.judge.answers import CHOICES, AnswerFormat
from btdagg.judge.client import ChatReply, Order, Setup, Verdict, batched
from btdagg.judge.jobs import judge_pairs
from btdagg.judge.judging import JudgeJob, Judging, Sampling, Work, read_answer
from btdagg.judge.prompts import FewShot, Messages, PromptTemplate
from btdagg.judge.runs import JudgeRun, Limits
from btdagg.judge.store.store import VoteStore
from btdagg.methods import RoundedMedian

if TYPE_CHECKING:
    from btdagg.judge.pairs import Pair, Pairs

METHODS = ("greedy", "few-shot", "gsa", "usc")

_ITEMS_AT_A_TIME = 500


@readable
@dataclass(frozen=True)
class Decisions:
    """A method's decisions: labels by item, which are in the store under the names `columns`."""

    # `undecided` lack an answer; `examples` are shown by few-shot; `runs` are samples and own
    # calls.

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
    job: JudgeJob,
    *,
    examples: Sequence[tuple[Pair, int]] = (),
) -> Decisions:
    """Decide pairs by a method, asking for the answers that the store does not have."""
    # Decisions are stored as `greedy`, `few_shot`, or `gsa_12` for 12 samples; `gsa` as well if the
    # store has no more. Items that lack an answer, and examples of few-shot, are not decided. The
    # store and client of the job stay open; for `examples` see
    # :func:`btdagg.judge.prompts.labelled_pairs`.
    store = job.store
    runs: list[JudgeRun] = []
    asking = asking_of(method, judging, store=store, examples=examples)
    limits: Limits | None = judging.limits
    if isinstance(asking.method, _Aggregation):
        runs.append(await judge_pairs(pairs, judging, job))
        limits = runs[0].left_of(judging.limits)
        if limits is None and not runs[0].stopped:
            runs.append(JudgeRun(stopped="the samples have used up max_calls or max_cost"))
    if limits is not None and not any(run.stopped for run in runs):
        runs.append(await judge_pairs(pairs, replace(asking, limits=limits), job))
    decided: dict[str, int] = {}
    has_more_samples = False
    wanted = set(judging.samples)
    for batch in batched(pairs, _ITEMS_AT_A_TIME):
        items = [pair.key for pair in batch]
        decided |= _medians(store.samples_of(asking.setup, items), asking.n)
        stored = store.samples_of(judging.setup, items).values()
        has_more_samples |= any(not wanted.issuperset(samples) for samples in stored)
    undecided = tuple(pair.key for pair in pairs if pair.key not in decided)
    columns = (method.replace("-", "_"),)
    if isinstance(asking.method, _Aggregation):
        columns = (*(() if has_more_samples else columns), f"{method}_{judging.n}")
    # The prompt shows their labels to all other items: no method is to be scored on them.
    shown = {pair.key for pair, _ in examples} if method == "few-shot" else set()
    written = {item: label for item, label in decided.items() if item not in shown}
    for column in columns:
        store.write_decisions(judging.setup, column, written, undecided=shown)
    return Decisions(method, columns, decided, undecided, tuple(runs), tuple(sorted(shown)))


def asking_of(
    method: str,
    judging: Judging,
    *,
    store: VoteStore | None = None,
    examples: Sequence[tuple[Pair, int]] = (),
) -> Judging:
    """Return what a method asks besides its samples."""
    once = replace(judging, temperature=0.0)
    answer = judging.prompt.answer
    if not judging.scale.mirrored or (method != "greedy" and answer.scale != "choice"):
        expected = f"a template that asks for A, B or a tie, as {method} needs"
        raise InputError(argument="template", got=judging.prompt.name, expected=expected)
    if method in ("greedy", "few-shot"):
        shots = None if method == "greedy" else FewShot(judging.prompt, examples)
        return replace(once, n=2, order="both", method=_Greedy(shots))
    one_of(method, METHODS, "method")
    if store is None or not store.keep_exchanges:
        raise InputError(
            f"{method} needs the judge's answers, which this store does not keep; keep exchanges"
        )
    return replace(once, n=1, order="AB", method=_Aggregation(method, judging, store))


@dataclass(frozen=True)
class _Greedy(Sampling):
    shots: FewShot | None = None

    def setup(self, judging: Judging) -> Setup:
        setup = super().setup(judging)
        if self.shots is None:
            return replace(setup, method="greedy")
        return replace(setup, method="few-shot", template_digest=self.shots.digest)

    def plan(self, judging: Judging, pairs: Iterable[Pair]) -> Iterator[Work]:
        for work in super().plan(judging, pairs):
            if self.shots is not None:
                work = replace(work, messages=partial(self.shots.render, work.pair))
            yield work


@dataclass(frozen=True)
class _Aggregation(Sampling):
    """One answer at temperature 0 over the samples of an item."""

    method: str
    samples: Judging
    store: VoteStore

    def setup(self, judging: Judging) -> Setup:
        over = {"over": self.samples.setup.prompt, "n": self.samples.n, "order": self.samples.order}
        setup = super().setup(judging)
        sent = (self.method, judging.prompt.digest, str(_VERSION), _INTRODUCTION, _GSA, _USC)
        return replace(
            setup,
            method=self.method,
            template_digest=sha256("\0".join(sent).encode()).hexdigest(),
            settings={**setup.settings, **over},
        )

    def plan(self, judging: Judging, pairs: Iterable[Pair]) -> Iterator[Work]:
        wanted = self.samples.samples
        for batch in batched(pairs, _ITEMS_AT_A_TIME):
            items = [pair.key for pair in batch]
            stored = self.store.samples_of(self.samples.setup, items, "answer")
            for pair in batch:
                of_item = stored.get(pair.key, {})
                samples = tuple(
                    Sample(key[0], vote, text)
                    for key in wanted
                    for _, vote, text in [of_item.get(key, (None, None, None))]
                    if vote is not None and text is not None
                )
                if samples:
                    yield self._work(judging.prompt, pair, samples)

    def _work(self, prompt: PromptTemplate, pair: Pair, samples: Sequence[Sample]) -> Work:
        work = Work(
            pair,
            ((order_of_aggregation(pair.key), 0),),
            lambda order: aggregation_messages(self.method, prompt, pair, order, samples),
        )
        if self.method == "gsa":
            return work
        answer = number_format(prompt, samples)

        def chosen_vote(reply: ChatReply, order: Order) -> Verdict:
            verdict = read_answer(answer, reply, order)
            if verdict.grade is None:
                return verdict
            # Of the sample with that number; it is from A's point of view already.
            return Verdict("ok", samples[min(int(verdict.grade), len(samples)) - 1].vote)

        return replace(work, read=chosen_vote, response_format=answer.response_format)


def _medians(stored: Mapping[str, Mapping[Any, tuple[Any, ...]]], n: int) -> dict[str, int]:
    votes = {item: [vote for _, vote in samples.values()] for item, samples in stored.items()}
    items = [item for item, of_item in votes.items() if len(of_item) - of_item.count(None) == n]
    counts = np.array(
        [[votes[item].count(label) for label in (-1, 0, 1)] for item in items], dtype=np.int64
    ).reshape(-1, 3)
    return dict(zip(items, map(int, RoundedMedian().decide(counts)), strict=True))


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
reasons most of the others share. The verdict is its number. {answer}
"""


class Sample(NamedTuple):
    """An answer to be aggregated: the order it saw, its vote from A's point of view, its text."""

    order: Order
    vote: int
    text: str


def order_of_aggregation(item: str) -> Order:
    """Return the order of the one further call on an item: balanced, by a hash of its id."""
    return "BA" if sha256(item.encode(errors="replace")).digest()[0] & 1 else "AB"


def aggregation_messages(
    method: str, template: PromptTemplate, pair: Pair, order: Order, samples: Sequence[Sample]
) -> Messages:
    """Return the messages of the further call, which shows the pair in an order."""
    names = template.answer
    shown = [
        f"<sample_{number}>\n{_shown(sample, order, template)}\n</sample_{number}>"
        for number, sample in enumerate(samples, start=1)
    ]
    introduction = _INTRODUCTION.format(n=len(samples), a=names.first, b=names.second)
    wording, answer = (_GSA, names) if method == "gsa" else (_USC, number_format(template, samples))
    question = wording.format(answer=answer.instructions)
    parts = [introduction.strip(), *shown, question.strip()]
    return template.render(pair, order, answer="\n\n".join(parts))


def number_format(template: PromptTemplate, samples: Sequence[Sample]) -> AnswerFormat:
    """Return USC's form of an answer: the number of a sample, as a grade is asked for."""
    return AnswerFormat(template.answer.kind, grades=tuple(range(1, max(len(samples), 2) + 1)))


def _shown(sample: Sample, order: Order, template: PromptTemplate) -> str:
    if sample.order == order:
        return sample.text.strip()
    names = template.answer
    vote = sample.vote if order == "AB" else -sample.vote
    return (
        f"(It saw the two in the opposite order: its {names.first} is {names.second} above.)\n"
        f"{sample.text.strip()}\n"
        f"(In the names used above: {names.written(CHOICES[vote])})"
    )
