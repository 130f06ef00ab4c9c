"""Votes on pairs: what a user asks for, as the engine takes it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from btdagg._core import InputError
from btdagg.judge.calls import (
    ORDERS,
    STATUSES,
    Asked,
    Order,
    Status,
    batched,
    digest_of,
    samples_of,
)
from btdagg.judge.client import ChatClient, ChatReply
from btdagg.judge.confidence import sequence_probability
from btdagg.judge.limits import Limits
from btdagg.judge.openai_client import KEY_VARIABLE, OpenAIClient
from btdagg.judge.pairs import Pair, Pairs, read_pairs
from btdagg.judge.prices import Prices, estimated_tokens
from btdagg.judge.prompts import PromptTemplate, get_template
from btdagg.judge.runs import JudgeRun, Settings
from btdagg.judge.sampling import sample
from btdagg.judge.store import VoteStore
from btdagg.judge.verdicts import parse_verdict, vote_of
from btdagg.judge.work import Reading, Work
from btdagg.validation import as_integer, as_number

if TYPE_CHECKING:
    from btdagg.sources import Source

_ESTIMATED_AT_A_TIME = 500

_Kind = TypeVar("_Kind", bound="Judging")


@dataclass(frozen=True)
class Judging:
    """Who judges pairs, and how.

    Parameters
    ----------
    model : str
        As the endpoint calls it.
    n : int
        Votes per pair; half of them with A first and half with B first, so an even number.
    template : str, path or PromptTemplate
        Name of a template, a .toml file, or one made in Python.
    judge : str, optional
        Name of the judge in tables; the model unless given.
    order : ``both``, ``AB`` or ``BA``
    temperature : float, optional
        None leaves it to the endpoint.
    reasoning_effort : str, optional
        Such as ``low``, for models that think.
    max_answer_tokens : int, optional
        Limit on the tokens of an answer, thinking included. It does not make a vote another vote:
        with a higher one, truncated answers can be asked for again.
    confidence : ``none``, ``logprobs`` or ``verbal``
        The probability of the answer where the endpoint gives log-probabilities, or what the judge
        says when asked how sure it is.
    allow_tie : bool
    values : mapping of str to str
        What placeholders of the template stand for in all pairs.
    structured : bool
        Ask for JSON by a schema, where the endpoint supports it.
    extra : mapping
        Further fields of each request's body.
    limits, prices, timeout, max_attempts, samples_per_call, grace
        See `Limits`, `Prices` and :class:`btdagg.judge.runs.Settings`.
    again : collection of statuses
        Samples that are there without a vote and are to be asked for again.

    Raises
    ------
    InputError
        If a value is out of range; the message names it.
    """

    model: str
    n: int = 12
    template: str | os.PathLike[str] | PromptTemplate = "response"
    judge: str = ""
    order: str = "both"
    temperature: float | None = 0.5
    reasoning_effort: str | None = None
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
    samples_per_call: int = 1
    again: Collection[str] = ()
    grace: float = 5.0

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise InputError("model is empty, want its name at the endpoint")
        samples_of(self.n, self.order)
        if self.temperature is not None and as_number(self.temperature, "temperature") < 0:
            raise InputError(f"temperature is {self.temperature}, want 0 or more")
        if self.max_answer_tokens is not None:
            as_integer(self.max_answer_tokens, "max_answer_tokens", 1)
        if self.confidence not in ("none", "logprobs", "verbal"):
            raise InputError(f"confidence is {self.confidence!r}, want none, logprobs or verbal")
        if as_number(self.timeout, "timeout") <= 0:
            raise InputError(f"timeout is {self.timeout}, want more than 0")
        as_integer(self.max_attempts, "max_attempts", 1)
        as_integer(self.samples_per_call, "samples_per_call", 1)
        for status in self.again:
            if status not in STATUSES[1:]:
                raise InputError(
                    f"status to retry is {status!r}, want one of {', '.join(STATUSES[1:])}"
                )
        self.limits.refuse_unbounded(self.max_answer_tokens, self.prices)

    @cached_property
    def prompt(self) -> PromptTemplate:
        """The template, with the answer asked for as these options say."""
        return (
            get_template(self.template)
            .given(self.values)
            .asking(
                kind="json" if self.structured else None,
                allow_tie=self.allow_tie,
                confidence=True if self.confidence == "verbal" else None,
            )
        )

    @cached_property
    def asked(self) -> Asked:
        """What all calls have in common."""
        return Asked(
            self.judge or self.model,
            self.prompt.name,
            self.prompt.digest,
            "sample",
            self.temperature,
            self.reasoning_effort,
            {"extra": dict(self.extra)} if self.extra else {},
        )

    @property
    def settings(self) -> Settings:
        """How the engine is to ask."""
        return Settings(
            self.model,
            max_answer_tokens=self.max_answer_tokens,
            logprobs=self.confidence == "logprobs",
            response_format=self.prompt.answer.response_format,
            extra=self.extra,
            limits=self.limits,
            prices=self.prices,
            timeout=self.timeout,
            max_attempts=self.max_attempts,
            again=tuple(self.again),
            samples_per_call=self.samples_per_call,
            grace=self.grace,
        )

    def plan(self, pairs: Pairs | Sequence[Pair]) -> Iterator[Work]:
        """Every sample wanted, pair by pair."""
        wanted = samples_of(self.n, self.order)
        for pair in pairs:
            render = partial(self.prompt.render, pair)
            yield Work(pair.item, wanted, render, digest_of_pair(pair), pair.fields.get("task"))

    def read(self, reply: ChatReply, order: Order) -> Reading:
        """What an answer says."""
        answer = self.prompt.answer
        verdict = parse_verdict(
            reply.text,
            answer,
            finish_reason=reply.finish_reason,
            refusal=reply.text if reply.finish_reason == "refusal" else None,
        )
        confidence = verdict.confidence
        if confidence is None and not answer.confidence and reply.token_logprobs:
            with suppress(InputError):  # log-probabilities that are none
                confidence = sequence_probability(reply.token_logprobs)
        return Reading(verdict.status, vote_of(verdict, order), confidence, verdict.reason)


def like(kind: type[_Kind], judging: Judging, **changed: object) -> _Kind:
    """Judge as `judging` does, but in another kind of way, and for what is changed."""
    same: dict[str, Any] = {each.name: getattr(judging, each.name) for each in fields(Judging)}
    return kind(**{**same, **changed})


async def judge(
    pairs: Pairs | Source,
    judging: Judging | None = None,
    *,
    store: VoteStore | str | os.PathLike[str],
    client: ChatClient | None = None,
    base_url: str | None = None,
    key_variable: str = KEY_VARIABLE,
    stop: asyncio.Event | None = None,
    watch: Callable[[JudgeRun], object] | None = None,
    **options: Any,
) -> JudgeRun:
    """Ask a judge for votes on pairs, as far as a store does not have them.

    Parameters
    ----------
    pairs : Pairs, or whatever `read_pairs` reads
    judging : Judging, optional
        Who judges, and how; or its parameters by name: ``model="gpt-5.4", n=12``.
    store : VoteStore, path or URL
        A store that is given is not closed.
    client : ChatClient, optional
        Who is asked; not closed. An endpoint unless given.
    base_url : str, optional
        Of the endpoint, such as ``http://localhost:8000/v1``; OpenAI's own unless given.
    key_variable : str
        Environment variable that holds the key.
    stop : asyncio.Event, optional
        Once it is set no further call is made.
    watch : callable, optional
        Called with the run so far whenever votes have become durable.

    Returns
    -------
    JudgeRun

    Raises
    ------
    InputError
        If pairs or options are not what they should be, options come beside a `judging` or an
        endpoint beside a `client`, no call can work, or the store cannot be used. Votes that were
        counted are in the store whatever happens.
    """
    if judging is None:
        judging = Judging(**options)
    elif options:
        raise InputError(
            f"{', '.join(options)} and a judging are given, want one of them: "
            f"dataclasses.replace(judging, {next(iter(options))}=...) changes it"
        )
    if client is not None and (base_url is not None or key_variable != KEY_VARIABLE):
        raise InputError("base_url and key_variable are of an endpoint, and a client is given")
    pairs = pairs if isinstance(pairs, Pairs) else read_pairs(pairs)
    judging.prompt.check(pairs)
    own = None
    with ExitStack() as stack:
        if client is None:
            client = own = OpenAIClient(
                base_url, key_variable=key_variable, timeout=judging.timeout
            )
        try:
            if not isinstance(store, VoteStore):
                store = stack.enter_context(VoteStore(store))
            return await sample(
                judging.plan(pairs),
                judging.asked,
                client=client,
                store=store,
                read=judging.read,
                settings=judging.settings,
                stop=stop,
                watch=watch,
            )
        finally:
            if own is not None:
                await own.close()


@dataclass(frozen=True)
class Estimate:
    """What a job will take, before it is begun.

    Attributes
    ----------
    n_items, n_wanted : int
        Pairs, and votes wanted in all.
    n_there : int
        Votes wanted, or reasons why there is none, that the store has.
    n_calls : int
        Requests to make, repeats after faults apart.
    prompt_tokens : int
        About so many, at four bytes each.
    completion_tokens : int or None
        About so many: by the judge's answers so far, or else by the limit on an answer; None where
        there is neither.
    cost : float or None
        Price of these; None without prices or completion tokens.
    """

    n_items: int
    n_wanted: int
    n_there: int
    n_calls: int
    prompt_tokens: int
    completion_tokens: int | None
    cost: float | None


def estimate(pairs: Pairs, judging: Judging, store: VoteStore | None = None) -> Estimate:
    """Say what a job will take, without asking anybody."""
    judging.prompt.check(pairs)
    per_answer = None if store is None else store.answer_tokens_of(judging.asked.judge)
    per_answer = judging.max_answer_tokens if per_answer is None else per_answer
    n_wanted = n_there = n_calls = n_answers = prompt_tokens = 0
    for batch in batched(judging.plan(pairs), _ESTIMATED_AT_A_TIME):
        items = [work.item for work in batch]
        found = {} if store is None else store.samples_of(judging.asked, items)
        for work in batch:
            there = found.get(work.item, {})
            for order in ORDERS:
                keys = [key for key in work.wanted if key[0] == order]
                missing = [key for key in keys if is_missing(there.get(key), judging.again)]
                calls = -(-len(missing) // judging.samples_per_call)
                n_wanted += len(keys)
                n_there += len(keys) - len(missing)
                n_answers += len(missing)
                n_calls += calls
                if calls:
                    prompt_tokens += calls * estimated_tokens(work.messages(order))
    completion = None if per_answer is None else round(per_answer * n_answers)
    cost = None
    if judging.prices is not None and completion is not None:
        cost = judging.prices.of(prompt_tokens, completion)
    return Estimate(len(pairs), n_wanted, n_there, n_calls, prompt_tokens, completion, cost)


def is_missing(
    sample: tuple[Status | None, int | None] | None, again: Collection[str] = ()
) -> bool:
    """Whether a sample, as `VoteStore.samples_of` has it, is still to be asked for."""
    return sample is None or sample[0] is None or sample[0] in again


def digest_of_pair(pair: Pair) -> str:
    """Digest of the texts of a pair."""
    return digest_of([pair.a, pair.b, pair.prompt, pair.reference])
