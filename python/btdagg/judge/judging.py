"""Who judges pairs, and how: one value, from the user to the engine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from btdagg._util.errors import InputError, expect, forbid, one_of
from btdagg._util.numbers import as_integer, as_number
from btdagg._util.readable import readable
from btdagg.judge.answers import (
    AnswerFormat,
    parse_verdict,
    sequence_probability,
    verdict_probabilities,
)
from btdagg.judge.client import (
    BATCHING,
    SIMULATED,
    STATUSES,
    ChatClient,
    ChatReply,
    ChatRequest,
    Messages,
    Order,
    Setup,
    Verdict,
    provider_of,
    samples_of,
)
from btdagg.judge.pairs import Pair
from btdagg.judge.prices import Prices
from btdagg.judge.prompts import PromptTemplate, get_template
from btdagg.judge.runs import JudgeRun, Limits

if TYPE_CHECKING:
    from btdagg.judge.pacing import Pacing
    from btdagg.judge.store.store import VoteStore
    from btdagg.votes.scale import Scale

Reader = Callable[[ChatReply, Order], Verdict]


@dataclass(frozen=True)
class Work:
    """The samples wanted of one item.

    Attributes
    ----------
    pair : Pair
    wanted : sequence of (order, sample)
    messages : callable
        From an order to what is sent.
    read, response_format : optional
        Reads the answers, and their JSON schema, in place of the template's.
    """

    pair: Pair
    wanted: Sequence[tuple[Order, int]]
    messages: Callable[[Order], Messages]
    read: Reader | None = None
    response_format: Mapping[str, Any] | None = None

    @property
    def item(self) -> str:
        """Name of the item in a store: with its criterion, if there is one."""
        return self.pair.key


@dataclass(frozen=True)
class JudgeJob:
    """Who is asked, where votes are kept, and who hears of them."""

    # Once `stop` is set no further call is made; `watch` is called with the run so far whenever
    # votes have become durable; `pacing` is what earlier runs have learned of the endpoint's
    # limits.

    store: VoteStore
    client: ChatClient
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    watch: Callable[[JudgeRun], object] = lambda _: None
    pacing: Pacing | None = None


@dataclass(frozen=True)
class Sampling:
    """Plan of the calls for each pair: all `n` samples; see also :mod:`btdagg.judge.methods`."""

    def setup(self, judging: Judging) -> Setup:
        """Settings of all calls."""
        return Setup(
            judging.judge or provider_of(judging.model)[1],
            judging.prompt.name,
            judging.prompt.digest,
            "sample",
            judging.temperature,
            judging.reasoning_effort,
            judging.settings,
            judging.scale,
        )

    def plan(self, judging: Judging, pairs: Iterable[Pair]) -> Iterator[Work]:
        """Every sample wanted, pair by pair."""
        for pair in pairs:
            yield Work(pair, judging.samples, partial(judging.prompt.render, pair))


SAMPLING = Sampling()
_INTEGERS = {"max_answer_tokens": 1, "request_seed": 0, "max_attempts": 1}
_CHOICES = {
    "system_role": ("system", "developer", "user"),
    "confidence": ("none", "logprobs", "verbal"),
}


@readable
@dataclass(frozen=True)
class Judging:
    """Who judges pairs or single responses, and how.

    Parameters
    ----------
    model : str
        Such as ``anthropic:claude-sonnet-5``; a bare name is one of OpenAI's, or of an
        endpoint that speaks its protocol.
    n : int
        Votes per pair; half of them with A first and half with B first, so an even number. Or
        grades per response, by each criterion.
    template : str, path or PromptTemplate
        Name of a template, a .toml file, or one made in Python.
    judge : str, optional
        Name of the judge in tables; the model unless given.
    order : ``both``, ``AB`` or ``BA``
        For pairs only.
    temperature : float, optional
        None leaves it to the endpoint.
    reasoning_effort : str, optional
        Such as ``low``, for models that think.
    request_seed : int, optional
        Sent with each request, plus the number of its sample.
    system_role : ``system``, ``developer`` or ``user``
        Role of the template's instructions; ``user`` puts them before the pair in one message.
    max_answer_tokens : int, optional
        Limit on the tokens of an answer, thinking included. With a higher one, truncated answers
        can be asked for again.
    confidence : ``none``, ``logprobs`` or ``verbal``
        ``logprobs``: the probability of each verdict, by the endpoint's log-probabilities;
        ``verbal``: how sure the judge says it is.
    allow_tie : bool
    values : mapping of str to str
        Values of the template's placeholders for all pairs.
    structured : bool
        Ask for JSON by a schema; where the endpoint refuses that, for any JSON, or in words alone.
    extra : mapping
        Further fields of each request's body.
    limits : Limits
    prices : Prices, optional
    timeout : float
        Seconds for a call, from request to the end of the answer, streamed or not.
    max_attempts : int
        Requests for one answer, at least 1.
    again : collection of statuses, or ``all``
        Samples to ask for again, which the store has without a vote.
    batch : bool
        Whether to ask by batches, at half the prices: all at once, for answers within a day.
    grace : float
        Seconds that calls in flight have to finish after an interruption.
    method : Sampling
        Plan of the calls for each pair: its `n` samples, unless
        :func:`btdagg.judge.methods.asking_of` says otherwise.
    """

    model: str
    n: int = 12
    template: str | os.PathLike[str] | PromptTemplate = "response"
    judge: str = ""
    order: str = "both"
    temperature: float | None = 0.5
    reasoning_effort: str | None = None
    request_seed: int | None = None
    system_role: str = "system"
    max_answer_tokens: int | None = None
    confidence: str = "none"
    allow_tie: bool | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    structured: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    prices: Prices | None = None
    timeout: float = 600.0
    max_attempts: int = 8
    again: Collection[str] = ()
    batch: bool = False
    grace: float = 5.0
    method: Sampling = SAMPLING

    def __post_init__(self) -> None:
        if self.again == "all":
            object.__setattr__(self, "again", STATUSES[1:])
        forbid(not self.model.strip(), "model is empty, expected the model's name at the endpoint")
        if not self.scale.mirrored:
            for name in ("order", "confidence"):
                got = getattr(self, name)
                expected = f"None, since template {self.prompt.name} shows a single response"
                expect(got == getattr(Judging, name) or got == "verbal", name, got, expected)
        _ = self.samples  # which checks their number
        if self.temperature is not None:
            as_number(self.temperature, "temperature", least=0)
        as_number(self.timeout, "timeout", above=0)
        for name, least in _INTEGERS.items():
            if getattr(self, name) is not None:
                as_integer(getattr(self, name), name, least)
        for name, choices in _CHOICES.items():
            one_of(getattr(self, name), choices, name)
        for status in self.again:
            expected = f"all, or some of {', '.join(STATUSES[1:])}"
            expect(status in STATUSES[1:], "again", status, expected)
        if self.batch and (self.model == SIMULATED or provider_of(self.model)[0] not in BATCHING):
            expected = f"a model of {' or '.join(BATCHING)}, the providers with batches"
            raise InputError(argument="model", got=self.model, expected=expected)
        if self.limits.max_cost is not None and self.prices is None:
            raise InputError("max_cost needs prices", argument="prices")
        forbid(
            self.limits.max_cost is not None and self.max_answer_tokens is None,
            "max_cost needs max_answer_tokens (reasoning included), since a single answer of "
            "any length could exceed it",
            "max_answer_tokens",
        )

    @cached_property
    def prompt(self) -> PromptTemplate:
        """The template, with the answer asked for as these options say."""
        return (
            get_template(self.template)
            .with_values(self.values)
            .asking(
                kind="json" if self.structured else None,
                allow_tie=self.allow_tie,
                confidence=True if self.confidence == "verbal" else None,
            )
        )

    @property
    def gives_strength(self) -> bool:
        """Whether votes will have a strength: a margin, or the probability of each verdict."""
        return self.prompt.answer.scale != "choice" or self.confidence == "logprobs"

    @property
    def scale(self) -> Scale:
        """The scale of the votes."""
        return self.prompt.answer.votes

    @property
    def step(self) -> int:
        """How many votes come together: of a pair in both orders, two."""
        return len({order for order, _ in self.samples})

    @property
    def samples(self) -> tuple[tuple[Order, int], ...]:
        """Orders and numbers of the samples of an item; a single response has no other order."""
        return samples_of(self.n, self.order if len(self.scale.mode.orders) > 1 else "AB")

    @cached_property
    def setup(self) -> Setup:
        """Settings of all calls."""
        return self.method.setup(self)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that change answers besides template, temperature and reasoning effort."""
        sent = {
            "extra": dict(self.extra) or None,
            "request_seed": self.request_seed,
            "system_role": None if self.system_role == "system" else self.system_role,
        }
        return {name: value for name, value in sent.items() if value is not None}

    def messages(self, messages: Messages) -> Messages:
        """Messages with the template's instructions in the role that is asked for."""
        if self.system_role == "system" or messages[0]["role"] != "system":
            return messages
        first, *rest = messages
        if self.system_role == "developer":
            return [{**first, "role": "developer"}, *rest]
        content = f"{first['content']}\n\n{rest[0]['content']}"
        return [{**rest[0], "content": content}, *rest[1:]]

    def request(self, work: Work, order: Order) -> ChatRequest:
        """The request about an item in an order."""
        return ChatRequest(
            self.messages(work.messages(order)),
            self.model,
            temperature=self.setup.temperature,
            max_tokens=self.max_answer_tokens,
            reasoning_effort=self.setup.reasoning_effort,
            logprobs=self.confidence == "logprobs",
            response_format=work.response_format or self.prompt.answer.response_format,
            extra=self.extra,
            item=work.item,
            order=order,
        )

    @property
    def paid(self) -> Prices | None:
        """Prices as they are paid: half of those given where it asks by batches."""
        if self.prices is None or not self.batch:
            return self.prices
        return Prices(self.prices.prompt / 2, self.prices.completion / 2)  # whatever was cached

    def plan(self, pairs: Iterable[Pair]) -> Iterator[Work]:
        """The method's calls, pair by pair."""
        return self.method.plan(self, pairs)

    def read(self, reply: ChatReply, order: Order, responses: Sequence[str] = ()) -> Verdict:
        """Read the verdict of an answer about responses."""
        return read_answer(self.prompt.answer, reply, order, responses)


def read_answer(
    answer: AnswerFormat, reply: ChatReply, order: Order, responses: Sequence[str] = ()
) -> Verdict:
    """Return what an answer about responses says, given the form that was asked for."""
    verdict = parse_verdict(
        reply.text,
        answer,
        order=order,
        finish_reason=reply.finish_reason,
        refusal=reply.text if reply.finish_reason == "refusal" else None,
        responses=responses,
    )
    if verdict.confidence is None and not answer.confidence and reply.token_logprobs:
        verdict = verdict._replace(confidence=sequence_probability(reply.token_logprobs))
    if verdict.vote is None or answer.scale != "choice" or not any(t[2] for t in reply.tokens):
        return verdict
    chances = verdict_probabilities(reply.tokens, answer)
    if chances is None:  # a verdict in other words counts whole
        minus, tie, plus = (float(vote == verdict.vote) for vote in (-1, 0, 1))
    else:
        minus, tie, plus = (chances[name] for name in ("second", "tie", "first"))
        minus, plus = (minus, plus) if order == "AB" else (plus, minus)
    return verdict._replace(probabilities=(minus, tie, plus))
