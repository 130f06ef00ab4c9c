"""Sending batches and collecting them, so that a process may end between any two instants."""
# A batch claims its samples from when its file is whole until its results are stored. One that may
# have been made is looked for at the endpoint; results and end are written in one transaction.

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from btdagg.judge.answers import AnswerFormat
from btdagg.judge.batches.endpoint import BatchEndpoint, BatchResult, CallError, RemoteBatch
from btdagg.judge.batches.files import BatchWriter, key_of_sample
from btdagg.judge.client import ChatError, ChatReply, Verdict
from btdagg.judge.faults import EndpointError
from btdagg.judge.judging import JudgeJob, Judging, Work, read_answer
from btdagg.judge.pacing import elapsed
from btdagg.judge.prices import Prices
from btdagg.judge.runs import JudgeRun, add_to
from btdagg.judge.sampling import INTERRUPTED
from btdagg.judge.store.owner import Answered, Batch, Owner

# Seconds after which a batch that a process was making when it died is at the endpoint, if ever.
_ARRIVED_AFTER = 5.0
_ATTEMPTS = 8  # to make a batch
LOOK_AGAIN = (1.0, 60.0)  # seconds, at first and at most, between looks at batches under way


async def judge_by_batches(
    plan: Callable[[], Iterable[Work]], judging: Judging, job: JudgeJob
) -> JudgeRun:
    """Write, send, wait and collect, earlier batches first, until all of a plan is stored."""
    store, began = job.store, time.monotonic()
    with store.owner() as owner:
        desk, ask = BatchDesk(owner, BatchEndpoint.of(job.client)), store.ask_of(judging.setup)
        run = JudgeRun(cost=None if judging.prices is None else 0.0)
        await desk.see_through(ask, run, job)
        run.statuses.clear()  # they are among those that are stored
        writer = BatchWriter(judging, owner, store, job.client)
        for attempt in range(judging.max_attempts):
            if run.stopped:
                break
            written = await writer.write(plan(), () if attempt else judging.again)
            if not attempt:
                run.n_items, run.n_wanted = written.n_items, written.n_wanted
                run.stored.update(written.stored)
            run.n_elsewhere = written.n_elsewhere
            n_before = run.statuses.total()
            why = await desk.see_through(ask, run, job) if writer.batches else None
            run.stopped = run.stopped or written.stopped
            if not why:
                break
            if run.statuses.total() == n_before and not run.stopped:
                reason = why.most_common(1)[0][0]
                raise EndpointError(f"{desk.name}: every request of a batch failed: {reason}")
    run.seconds = time.monotonic() - began
    return run


@dataclass
class Collected:
    """A collected batch: votes stored in `run`; `why` others failed, which are free again."""

    batch: Batch
    remote: RemoteBatch
    why: Counter[str] = field(default_factory=Counter)
    run: JudgeRun = field(default_factory=JudgeRun)


class BatchDesk:
    """Takes the batches of an endpoint further, for an owner of samples."""

    # Its methods return None where another process is at a batch.

    def __init__(self, owner: Owner, endpoint: BatchEndpoint) -> None:
        self.owner, self.endpoint, self.name = owner, endpoint, endpoint.name

    async def see_through(self, ask: int, run: JudgeRun, job: JudgeJob) -> Counter[str]:
        """Send and collect all batches of an ask until told to stop; return why samples failed."""
        why: Counter[str] = Counter()
        wait, longest = LOOK_AGAIN
        while batches := self.owner.open_batches(ask, self.name):
            n_done, is_under_way = 0, False
            for batch in batches:
                sent = await self.send(batch.id)
                collected = await self.collect(sent, is_waiting=True) if sent else None
                if collected is None or not collected.remote.has_ended:
                    is_under_way = True
                    n_done += collected.remote.done if collected else 0
                    continue
                why.update(collected.why)
                add_to(run, collected.run)
                job.watch(run)
                if collected.remote.status == "failed":
                    reason = collected.remote.reason or "no reason given"
                    raise EndpointError(f"{self.name}: batch {batch.id} failed: {reason}")
            if not is_under_way:
                continue
            n = sum(batch.n_requests for batch in batches)
            run.waits_for = f"batches ({n_done} of {n} requests done)"
            job.watch(run)
            if not await elapsed(wait, job.stop):
                run.stopped = INTERRUPTED
                break
            wait = min(2 * wait, longest)
        run.waits_for = ""
        return why

    # Sending

    async def send(self, batch: int) -> Batch | None:
        """Send a batch, unless it is sent."""
        held_batch = self.owner.hold_batch(batch)
        self.owner.commit()
        if held_batch is None or held_batch.state == "sent":
            return held_batch
        try:
            return await self._sent(held_batch)
        except FileNotFoundError:
            raise EndpointError(
                f"{held_batch.file} no longer exists; "
                f"`btdagg batch cancel {held_batch.id}` frees its samples"
            ) from None
        finally:
            self.owner.roll_back()

    async def _sent(self, batch: Batch) -> Batch:
        may_be_made = batch.state == "sending"
        if batch.input_file is None:
            file = await self.endpoint.upload(Path(batch.file))
            batch = self._noted(batch, input_file=file)
        if not may_be_made:
            batch = self._noted(batch, state="sending")
        remote, attempt = None, 0
        while remote is None:
            if may_be_made:
                remote = await self._made_before(batch)
            if remote is None:
                attempt += 1
                try:
                    remote = await self.endpoint.create(batch)
                except CallError as error:
                    if not error.may_pass or attempt >= _ATTEMPTS:
                        raise
                    may_be_made = True
                    await asyncio.sleep(error.retry_after)
        return self._noted(batch, state="sent", remote=remote)

    def _noted(self, batch: Batch, **values: Any) -> Batch:
        self.owner.note_batch(batch.id, **values)
        self.owner.commit()
        return replace(batch, **values)

    async def _made_before(self, batch: Batch) -> str | None:
        taken = self.owner.remotes()
        self.owner.commit()
        for wait in (0.0, _ARRIVED_AFTER):
            await asyncio.sleep(wait)
            remote = await self.endpoint.find(batch, taken)
            if remote is not None:
                return remote
        return None

    # Collecting

    async def collect(self, batch: Batch, *, is_waiting: bool = False) -> Collected | None:
        """Write the results of a batch to the store, once it has ended, in one transaction."""
        # While waiting, an unreachable endpoint counts as a batch that has not ended. Returns the
        # remote batch alone where it has not ended; None also where it is collected.
        assert batch.remote is not None
        try:
            remote = await self.endpoint.look(batch.remote, is_patient=not is_waiting)
        except CallError as error:
            if not error.may_pass:
                raise
            remote = RemoteBatch(str(error))
        collected = Collected(batch, remote)
        if not remote.has_ended:
            return collected
        results = await self.endpoint.results(remote)
        try:
            held_batch = self.owner.hold_batch(batch.id)
            if held_batch is None:
                return None
            answered = self._answered(held_batch, results, collected)
            self.owner.save(held_batch.ask, answered, held_batch.owner)
            self.owner.close_batch(held_batch, "collected")
            self.owner.commit()
        finally:
            self.owner.roll_back()
        for sample in answered:
            collected.run.add(sample.reading)
        return collected

    def _answered(
        self, batch: Batch, results: dict[str, BatchResult], collected: Collected
    ) -> list[Answered]:
        """Refusals are kept beside answers; alone only if such requests were answered before."""
        file, claims = Path(batch.file).name, self.owner.claims_of(batch)
        keys = [key_of_sample(file, claim.item, claim.order, claim.sample) for claim in claims]
        if results and claims and results.keys().isdisjoint(keys):
            raise EndpointError(
                f"{self.name}: batch {batch.remote} has other requests than its file"
            )
        form, run, prices = AnswerFormat(**json.loads(batch.answer)), collected.run, None
        if batch.price_in is not None and batch.price_out is not None:
            prices = Prices(batch.price_in, batch.price_out)
            run.cost = 0.0
        absent = f"no result: the batch is {collected.remote.status}"
        kept: list[Answered] = []
        refused: dict[str, list[Answered]] = {"rejected": [], "forbidden": []}
        for key, sample in zip(keys, claims, strict=True):
            result = results.get(key, BatchResult(key, 0, absent))
            run.n_calls += result.status > 0
            outcome = _outcome_of(result, self.endpoint)
            if isinstance(outcome, ChatReply):
                reading = read_answer(form, outcome, sample.order)
                run.count_usage(outcome.usage, prices)
                kept.append(Answered(sample, reading, 1, outcome, prices))
            elif outcome.kind in refused:
                verdict = Verdict("failed", reason=str(outcome))
                refused[outcome.kind].append(Answered(sample, verdict, 1))
            else:
                collected.why[str(outcome)] += 1
        is_answered, has_worked = bool(kept), self.owner.has_answers(batch.ask)
        for kind, samples in refused.items():
            if is_answered or (has_worked and kind == "rejected"):
                run.n_pair_faults += len(samples)
                kept += samples
            else:  # it may be no fault of the pairs
                collected.why.update(sample.reading.reason for sample in samples)
        return kept

    async def collect_at_end(self, batch: Batch) -> Collected | None:
        """Collect a batch once it has ended."""
        wait, longest = LOOK_AGAIN
        while True:
            collected = await self.collect(batch, is_waiting=True)
            if collected is None or collected.remote.has_ended:
                return collected
            await asyncio.sleep(wait)
            wait = min(2 * wait, longest)

    # Ending

    async def cancel(self, batch: int) -> int | None:
        """End a batch, here or at the endpoint; return how many samples are free (0 there)."""
        held_batch = self.owner.hold_batch(batch)
        self.owner.commit()
        if held_batch is None:
            return None
        remote = held_batch.remote
        if held_batch.state == "sending":
            remote = await self._made_before(held_batch)
        if remote is None:
            return self.forget(batch)
        await self.endpoint.cancel(remote)
        self._noted(held_batch, state="sent", remote=remote)
        return 0

    def forget(self, batch: int) -> int | None:
        """Free what is in a batch, sent or not."""
        held_batch = self.owner.hold_batch(batch)
        freed = None if held_batch is None else self.owner.close_batch(held_batch, "dropped")
        self.owner.commit()
        return freed


def _outcome_of(result: BatchResult, endpoint: BatchEndpoint) -> ChatReply | ChatError:
    body = result.body
    if not result.status:
        fields = body if isinstance(body, dict) else {"code": body}
        return ChatError(str(fields.get("code") or fields.get("message") or "not asked"))
    if result.status >= 400 or not isinstance(body, dict):
        return endpoint.client.refused(result.status, body)
    try:
        return endpoint.client.read(body)
    except ChatError as fault:
        return fault
