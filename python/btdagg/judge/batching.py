"""Asking by batches: written, sent, waited for and collected, in as many processes as it takes.

A batch takes hours, so no process can hold what is in it. Its samples are claimed by the batch,
from when its file is whole until its results are in the store. Whatever happens between, the next
process finds in the store how far it is.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable

from btdagg._core import InputError
from btdagg.judge.batch_endpoint import BatchEndpoint, RemoteBatch
from btdagg.judge.batch_files import BatchWriter
from btdagg.judge.batch_steps import LOOK_AGAIN, collect_batch, send_batch
from btdagg.judge.errors import EndpointError
from btdagg.judge.judging import Judging
from btdagg.judge.provider import ModelClient
from btdagg.judge.runs import JudgeRun
from btdagg.judge.sampling import INTERRUPTED
from btdagg.judge.store import Batch, Owner, VoteStore
from btdagg.judge.work import Work


async def judge_by_batches(
    plan: Callable[[], Iterable[Work]],
    judging: Judging,
    *,
    client: object,
    store: VoteStore,
    stop: asyncio.Event | None = None,
    watch: Callable[[JudgeRun], object] | None = None,
) -> JudgeRun:
    """Write, send, wait and collect, until all samples of a plan are in the store.

    What an earlier call left under way is waited for and collected first.

    Parameters
    ----------
    plan : callable
        Returns what is wanted, anew each time.
    judging, client, store, stop, watch
        See :func:`btdagg.judge.judge`; the client is a `ModelClient`.

    Raises
    ------
    InputError
        If the client is another, or no batch can work.
    """
    if not isinstance(client, ModelClient) or client.provider != "openai":
        raise InputError(
            "batches are of OpenAI-style endpoints, expected a ModelClient of openai as the client"
        )
    began = time.monotonic()
    with store.owner() as owner:
        waiting = _Waiting(owner, BatchEndpoint(client), stop or asyncio.Event(), watch)
        run = waiting.run
        if judging.prices is not None:
            run.cost = 0.0
        ask = store.ask_of(judging.asked)
        await waiting.through(ask)
        run.statuses.clear()  # they are among those that are there
        writer = BatchWriter(judging, owner, store, base_url=client.name)
        for attempt in range(judging.max_attempts):
            if run.stopped:
                break
            written = writer.write(plan(), () if attempt else judging.again)
            if not attempt:
                run.n_items, run.n_wanted = written.n_items, written.n_wanted
                run.there.update(written.there)
            run.n_batched = written.n_batched
            if not written.batches:
                run.stopped = written.stopped
                break
            n_before = run.statuses.total()
            await waiting.through(ask)
            run.stopped = run.stopped or written.stopped
            if not waiting.n_freed:
                break
            if run.statuses.total() == n_before and not run.stopped:
                why = waiting.why.most_common(1)[0][0]
                raise EndpointError(f"{client.name}: no request of a batch worked: {why}")
    run.seconds = time.monotonic() - began
    return run


class _Waiting:
    """Sends what is written, and collects what is sent."""

    def __init__(
        self,
        owner: Owner,
        endpoint: BatchEndpoint,
        stop: asyncio.Event,
        watch: Callable[[JudgeRun], object] | None,
    ) -> None:
        self._owner, self._endpoint, self._stop, self._watch = owner, endpoint, stop, watch
        self.run = JudgeRun()
        self.n_freed = 0
        self.why: Counter[str] = Counter()

    async def through(self, ask: int) -> None:
        """See all batches of what is asked through, unless told to stop."""
        self.n_freed, self.why = 0, Counter()
        wait, longest = LOOK_AGAIN
        while batches := self._open(ask):
            under_way = [each for batch in batches if (each := await self._see_to(batch))]
            if not under_way:
                continue
            done = sum(each.done for each in under_way)
            n = sum(batch.n_requests for batch in batches)
            self.run.waits_for = f"batches ({done} of {n} requests are done)"
            if self._watch is not None:
                self._watch(self.run)
            try:
                async with asyncio.timeout(wait):
                    await self._stop.wait()
            except TimeoutError:
                wait = min(2 * wait, longest)
                continue
            self.run.stopped = INTERRUPTED
            break
        self.run.waits_for = ""

    def _open(self, ask: int) -> list[Batch]:
        found = [
            batch
            for batch in self._owner.open_batches()
            if batch.ask == ask and batch.endpoint == self._endpoint.name
        ]
        self._owner.commit()
        return found

    async def _see_to(self, batch: Batch) -> RemoteBatch | None:
        """Take a batch a step further; how far it is where it has not ended."""
        sent = await send_batch(batch.id, self._owner, self._endpoint)
        if sent is None:  # another process is at it
            return RemoteBatch("elsewhere", (), "", 0, batch.n_requests)
        found = await collect_batch(sent, self._owner, self._endpoint)
        if found is None:
            return None
        if not found.remote.has_ended:
            return found.remote
        self.n_freed += found.n_freed
        self.why.update(found.why)
        _add(self.run, found.run)
        if self._watch is not None:
            self._watch(self.run)
        if found.remote.status == "failed":
            said = found.remote.said or "no reason is given"
            raise EndpointError(f"{self._endpoint.name}: batch {batch.id} failed: {said}")
        return None


def _add(run: JudgeRun, more: JudgeRun) -> None:
    """Add what a batch brought to a run."""
    run.statuses.update(more.statuses)
    run.reasons.update(more.reasons)
    for name in ("n_calls", "n_pair_faults", "n_confident", "n_unknown_usage", "charged_tokens",
                 "prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens",
                 "charged_cost"):  # fmt: skip
        setattr(run, name, getattr(run, name) + getattr(more, name))
    if more.cost is not None:
        run.cost = (run.cost or 0.0) + more.cost
