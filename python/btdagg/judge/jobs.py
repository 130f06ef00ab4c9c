"""Jobs: votes on pairs from a judge, and what they will take."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from btdagg._util.errors import forbid
from btdagg._util.readable import readable
from btdagg.judge.client import ChatClient, Status, batched
from btdagg.judge.judging import JudgeJob, Judging
from btdagg.judge.pairs import Pairs, read_pairs
from btdagg.judge.prices import BYTES_PER_TOKEN, size_of
from btdagg.judge.provider import client_of
from btdagg.judge.runs import JudgeRun

if TYPE_CHECKING:
    from btdagg.judge.store.store import VoteStore
    from btdagg.votes.source import Source

_ESTIMATED_AT_A_TIME = 500


async def judge(
    pairs: Pairs | Source,
    judging: Judging | None = None,
    *,
    store: VoteStore | str | os.PathLike[str],
    client: ChatClient | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    stop: asyncio.Event | None = None,
    watch: Callable[[JudgeRun], object] | None = None,
    **options: Any,
) -> JudgeRun:
    """Ask a judge for votes on pairs, as far as a store does not have them.

    Parameters
    ----------
    pairs : Pairs, or whatever `read_pairs` reads
    judging : Judging, optional
        Who judges, and how. Parameters by name, such as ``model="gpt-5.4", n=12``, make one or
        change it.
    store : VoteStore, path or URL
    client : ChatClient, optional
        Who is asked; an endpoint unless given. A store and a client that are given stay open.
    base_url, api_key, headers : optional
        Of the endpoint, such as ``http://localhost:8000/v1``; the provider's own, and the key of
        the environment, unless given.
    stop : asyncio.Event, optional
        Once it is set no further call is made.
    watch : callable, optional
        Called with the run so far whenever votes have become durable.

    Raises
    ------
    InputError
        If pairs or options are not what they should be, no call can work, or the store cannot be
        used. Votes that were counted are in the store whatever happens.
    """
    judging = Judging(**options) if judging is None else replace(judging, **options)
    pairs = pairs if isinstance(pairs, Pairs) else read_pairs(pairs)
    address = {"base_url": base_url, "api_key": api_key, "headers": headers}
    async with opened(store, client, judging, stop, watch, **address) as job:
        return await judge_pairs(pairs, judging, job)


async def judge_pairs(pairs: Pairs, judging: Judging, job: JudgeJob) -> JudgeRun:
    """Ask for votes on pairs, as far as the store of a job does not have them."""
    # Imported where votes are asked for: an estimate needs no database.
    from btdagg.judge.sampling import sample

    judging.prompt.check(pairs)
    if judging.batch:
        from btdagg.judge.batches.steps import judge_by_batches

        return await judge_by_batches(partial(judging.plan, pairs), judging, job)
    return await sample(judging.plan(pairs), judging, job)


@asynccontextmanager
async def opened(
    store: VoteStore | str | os.PathLike[str],
    client: ChatClient | None,
    judging: Judging,
    stop: asyncio.Event | None,
    watch: Callable[[JudgeRun], object] | None,
    **endpoint: Any,
) -> AsyncIterator[JudgeJob]:
    """A job of the store and client given, which stay open, or of ones closed at the end."""
    from btdagg.judge.store.store import VoteStore

    forbid(
        client is not None and any(value is not None for value in endpoint.values()),
        "base_url, api_key and headers describe an endpoint; a client was given as well",
    )
    async with AsyncExitStack() as stack:
        if client is None:
            client = client_of(judging.model, timeout=judging.timeout, **endpoint)
            stack.push_async_callback(client.close)
        if not isinstance(store, VoteStore):
            store = stack.enter_context(VoteStore(store))
        yield JudgeJob(store, client, stop or asyncio.Event(), watch or (lambda _: None))


@readable
@dataclass(frozen=True)
class JobForecast:
    """Forecast of a job's calls, tokens and cost."""

    # Of `n_wanted` votes the store has `n_stored`, or reasons why there is none; `n_calls` are to
    # make, repeats after faults apart. `prompt_tokens` count four bytes each; `completion_tokens`
    # go by the judge's answers so far, or else by the limit on an answer, and are None without
    # either, as is the `cost` without prices.

    n_items: int
    n_wanted: int
    n_stored: int
    n_calls: int
    prompt_tokens: int
    completion_tokens: int | None
    cost: float | None


def estimate(pairs: Pairs, judging: Judging, store: VoteStore | None = None) -> JobForecast:
    """Say what a job will take, without asking anybody."""
    judging.prompt.check(pairs)
    per_answer = None if store is None else store.answer_tokens_of(judging.setup.judge)
    per_answer = judging.max_answer_tokens if per_answer is None else per_answer
    n_wanted = n_calls = n_bytes = 0
    for batch in batched(judging.plan(pairs), _ESTIMATED_AT_A_TIME):
        items = [work.item for work in batch]
        stored = {} if store is None else store.samples_of(judging.setup, items)
        for work in batch:
            samples = stored.get(work.item, {})
            missing = [key for key in work.wanted if is_missing(samples.get(key), judging.again)]
            n_wanted += len(work.wanted)
            n_calls += len(missing)
            for order, n in Counter(order for order, _ in missing).items():
                n_bytes += n * size_of(work.messages(order))
    prompt_tokens = n_bytes // BYTES_PER_TOKEN
    completion = None if per_answer is None else round(per_answer * n_calls)
    cost = None
    if judging.paid is not None and completion is not None:
        cost = judging.paid.of(prompt_tokens, completion)
    n_stored = n_wanted - n_calls
    return JobForecast(len(pairs), n_wanted, n_stored, n_calls, prompt_tokens, completion, cost)


def is_missing(
    sample: tuple[Status | None, *tuple[Any, ...]] | None, again: Collection[str] = ()
) -> bool:
    """Whether a sample, as `VoteStore.samples_of` has it, is still to be asked for."""
    return sample is None or sample[0] is None or sample[0] in again
