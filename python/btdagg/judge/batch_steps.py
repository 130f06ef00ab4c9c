"""Sending a batch and collecting it, so that a process may end between any two instants.

The store says how far a batch is. One that may have been made is looked for at the endpoint before
another is made; its results and its end are written in one transaction.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from btdagg._core import InputError
from btdagg.judge.answered import answer_of, failure_of
from btdagg.judge.answers import AnswerFormat
from btdagg.judge.batch_endpoint import BatchEndpoint, RemoteBatch
from btdagg.judge.batch_files import Result, key_of_sample, read_results
from btdagg.judge.client import ChatReply
from btdagg.judge.errors import ChatError, EndpointError
from btdagg.judge.judging import read_answer
from btdagg.judge.prices import Prices
from btdagg.judge.provider import ModelClient
from btdagg.judge.runs import JudgeRun
from btdagg.judge.store import Answered, Batch, Claimed, Owner

# Seconds after which a batch that a process was making when it died is at the endpoint, if ever.
_ARRIVED_AFTER = 5.0
_ATTEMPTS = 8  # to make a batch
LOOK_AGAIN = (1.0, 60.0)  # seconds, at first and at most, between looks at batches under way


async def send_batch(batch: int, owner: Owner, endpoint: BatchEndpoint) -> Batch | None:
    """Send a batch, unless it is sent; None where another process is at it.

    Raises
    ------
    InputError
        If its file is gone, or the endpoint does not take it. It can be sent again.
    """
    held = owner.hold_batch(batch)
    owner.commit()
    if held is None or held.state == "sent":
        return held
    try:
        return await _sent(held, owner, endpoint)
    except OSError as error:
        raise InputError(
            f"{held.file}: {error.strerror}; it is of batch {batch}, and "
            f"btdagg batch cancel {batch} frees what is in it"
        ) from None
    finally:
        owner.roll_back()


async def _sent(held: Batch, owner: Owner, endpoint: BatchEndpoint) -> Batch:
    file = Path(held.file)
    was_made = held.state == "sending"
    if held.input_file is None:
        held = replace(held, input_file=await endpoint.upload(file, file.name))
        owner.note_batch(held.id, input_file=held.input_file)
        owner.commit()
    assert held.input_file is not None
    remote = None
    if not was_made:
        owner.note_batch(held.id, state="sending")
        owner.commit()
    attempt = 0
    while remote is None:
        if was_made:  # perhaps
            remote = await _found(held, endpoint)
        if remote is None:
            attempt += 1
            try:
                remote = await endpoint.create(held.input_file, file.name)
            except ChatError as fault:
                passes = fault.kind in ("transient", "limited", "protocol")
                if not passes or attempt >= _ATTEMPTS:
                    raise EndpointError(f"{endpoint.name}: {fault}") from None
                was_made = True
                await asyncio.sleep(fault.retry_after or 0.0)
    owner.note_batch(held.id, state="sent", remote=remote)
    owner.commit()
    return replace(held, state="sent", remote=remote)


async def _found(held: Batch, endpoint: BatchEndpoint) -> str | None:
    """Return what the endpoint calls a batch that may have been made."""
    assert held.input_file is not None
    for wait in (0.0, _ARRIVED_AFTER):
        await asyncio.sleep(wait)
        remote = await endpoint.find(held.input_file, Path(held.file).name)
        if remote is not None:
            return remote
    return None


# Collecting


@dataclass
class Collected:
    """What came of a batch.

    Attributes
    ----------
    batch : Batch
    remote : RemoteBatch
    statuses : Counter of str
        Samples that are in the store now.
    n_freed : int
        Those without an answer, which can be asked for again.
    why : Counter of str
        Why they have none.
    run : JudgeRun
        Calls, tokens and cost.
    """

    batch: Batch
    remote: RemoteBatch
    statuses: Counter[str] = field(default_factory=Counter)
    n_freed: int = 0
    why: Counter[str] = field(default_factory=Counter)
    run: JudgeRun = field(default_factory=JudgeRun)


async def collect_batch(batch: Batch, owner: Owner, endpoint: BatchEndpoint) -> Collected | None:
    """Write the results of a batch to the store, once it has ended.

    Done in one transaction, so that it is either collected or as before.

    Returns
    -------
    Collected or None
        With the remote batch alone where it has not ended; None where another process is at it, or
        it has been collected.

    Raises
    ------
    EndpointError
        If the endpoint does not answer, or has other results than it says.
    """
    assert batch.remote is not None
    found = Collected(batch, await endpoint.look(batch.remote))
    if not found.remote.has_ended:
        return found
    results = await _results(found.remote, endpoint)
    held = owner.hold_batch(batch.id)
    if held is None:
        owner.roll_back()
        return None
    try:
        claims = owner.claims_of(held)
        answered = _answered(held, claims, results, endpoint.client, found)
        owner.save(held.ask, answered, held.owner)
        owner.know_endpoint(held.ask, held.endpoint)
        found.n_freed = owner.close_batch(held, "collected")
        owner.commit()
    except BaseException:
        owner.roll_back()
        raise
    for each in answered:
        found.run.add(each.status, each.reason)
    found.statuses = found.run.statuses
    return found


async def _results(remote: RemoteBatch, endpoint: BatchEndpoint) -> dict[str, Result]:
    """Results of a batch by key, all that there are: what is missing would be bought again."""
    results: dict[str, Result] = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in remote.files:
            to = Path(folder) / "results.jsonl"
            await endpoint.download(file, to)
            try:
                for result in read_results(to):
                    results.setdefault(result.key, result)
            except ValueError as error:
                raise EndpointError(f"{endpoint.name}: file {file}: {error}") from None
    if len(results) < remote.done:
        raise EndpointError(
            f"{endpoint.name}: {len(results)} results of {remote.done} requests that are done"
        )
    return results


def _answered(
    batch: Batch,
    claims: list[Claimed],
    results: dict[str, Result],
    client: ModelClient,
    found: Collected,
) -> list[Answered]:
    """Return what is to be kept; the reasons of the rest are counted."""
    form = AnswerFormat(**json.loads(batch.answer))
    prices = None
    if batch.price_in is not None and batch.price_out is not None:
        prices = Prices(batch.price_in, batch.price_out)
        found.run.cost = 0.0
    kept: list[Answered] = []
    refused: list[Answered] = []
    for each in claims:
        result = results.get(key_of_sample(each.item, each.order, each.sample))
        outcome = _outcome_of(result, client, found.remote)
        found.run.n_calls += result is not None and result.status > 0
        if isinstance(outcome, ChatReply):
            reading = read_answer(form, outcome, each.order)
            found.run.n_confident += reading.confidence is not None
            _count_usage(found.run, outcome, prices)
            kept.append(replace(answer_of(each, outcome, reading, 1, prices), latency=None))
        elif outcome.kind in ("rejected", "forbidden"):
            refused.append(failure_of(each, str(outcome), 1))
        else:
            found.why[str(outcome)] += 1
    if refused and not kept:  # then it is no fault of the pairs
        found.why.update(each.reason for each in refused)
        return []
    found.run.n_pair_faults = len(refused)
    return kept + refused


def _outcome_of(
    result: Result | None, client: ModelClient, remote: RemoteBatch
) -> ChatReply | ChatError:
    if result is None:
        return ChatError(f"no result, the batch is {remote.status}")
    if not result.status:
        said = result.body if isinstance(result.body, dict) else {}
        return ChatError(str(said.get("code") or said.get("message") or "not asked"))
    if result.status < 400 and isinstance(result.body, dict):
        try:
            return client.read(result.body)
        except ChatError:
            return ChatError("the result is no chat completion")
    return client.refused(result.status, result.body)


def _count_usage(run: JudgeRun, reply: ChatReply, prices: Prices | None) -> None:
    usage = reply.usage
    if usage is None:
        run.n_unknown_usage += 1
        return
    run.prompt_tokens += usage.prompt
    run.completion_tokens += usage.completion
    run.reasoning_tokens += usage.reasoning
    run.cached_tokens += usage.cached
    run.charged_tokens += usage.prompt + usage.completion
    if prices is not None and run.cost is not None:
        run.cost += prices.cost(usage)
        run.charged_cost += prices.cost(usage)


async def waited(batch: Batch, owner: Owner, endpoint: BatchEndpoint) -> Collected | None:
    """Collect a batch once it has ended."""
    wait, longest = LOOK_AGAIN
    while True:
        found = await collect_batch(batch, owner, endpoint)
        if found is None or found.remote.has_ended:
            return found
        await asyncio.sleep(wait)
        wait = min(2 * wait, longest)


async def cancel_batch(batch: int, owner: Owner, endpoint: BatchEndpoint) -> int | None:
    """End a batch: free what was not sent, else tell the endpoint.

    Returns
    -------
    int or None
        Samples that are free; 0 where the batch ends at the endpoint, and None where another
        process is at it.
    """
    held = owner.hold_batch(batch)
    owner.commit()
    if held is None:
        return None
    remote = held.remote
    if held.state == "sending":
        remote = await _found(held, endpoint)
    if remote is None:
        return forget_batch(batch, owner)
    await endpoint.cancel(remote)
    owner.note_batch(batch, state="sent", remote=remote)
    owner.commit()
    return 0


def forget_batch(batch: int, owner: Owner) -> int | None:
    """Free what is in a batch, sent or not; None where another process is at it."""
    held = owner.hold_batch(batch)
    freed = None if held is None else owner.close_batch(held, "dropped")
    owner.commit()
    return freed
