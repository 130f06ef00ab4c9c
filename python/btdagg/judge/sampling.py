"""The engine: calls made, answers read, votes written, so that none is lost or counted twice.

A fixed number of workers take calls from a short queue. What fills the queue goes through the plan
a stretch at a time: it looks up what the store has, claims the rest, and writes the prompts of what
it claimed. A worker asks, reads the answer and waits until the store has it before it takes the
next call: what is asked and not yet durable is never more than the number of workers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from btdagg.judge.client import ChatReply, ChatRequest, Order
from btdagg.judge.judging import JudgeJob, Judging, Reader, Work, stretches_of
from btdagg.judge.pacing import Pacing
from btdagg.judge.retries import Asker, EndpointError, Usefulness
from btdagg.judge.runs import Budget, JudgeRun
from btdagg.judge.store import BATCHED, Answered, Claimed, StoreError
from btdagg.judge.writing import StoreWriter

# Samples that are looked up and claimed at a time, unless there are more workers.
_STRETCH = 128
# Calls in a row that may fail, while short ones work, before the run stops: until the first one
# works, and after.
_FAILURES_AT_FIRST = 3
_FAILURES_LATER = 32
_UNTIL_A_VOTE = 16  # workers, so that few answers are bought of a judge that gives no votes
_LOOK_AGAIN = (0.25, 5.0)  # seconds, at first and at most, between looks at what others ask
_TELL = 0.5  # seconds between looks at what is waited for

INTERRUPTED = "interrupted"


class _Call(NamedTuple):
    """A sample that is asked for."""

    claimed: Claimed
    request: ChatRequest
    read: Reader


async def sample(plan: Iterable[Work], judging: Judging, job: JudgeJob) -> JudgeRun:
    """Ask for every sample of a plan, gone through lazily, that the store does not have.

    Raises
    ------
    EndpointError
        If no call can work: a wrong key, no such model, an endpoint that is not one.
    StoreError
        If the store cannot be read or written.
    """
    return await _Sampler(judging, job).run(plan)


class _Sampler:
    def __init__(self, judging: Judging, job: JudgeJob) -> None:
        self._judging, self._job = judging, job
        limits = judging.limits
        pacing = job.pacing or Pacing(limits, clock=asyncio.get_running_loop().time)
        self._run = JudgeRun(cost=None if judging.prices is None else 0.0)
        self._most_in_a_row = max(_FAILURES_LATER, 2 * limits.concurrency)
        self._name = getattr(job.client, "name", "") or f"judge {judging.setup.judge}"
        self._writer = StoreWriter(job.store)
        self._budget = Budget(judging.limits, judging.prices, judging.max_answer_tokens)
        self._asker = Asker(
            job.client,
            judging,
            pacing,
            self._run,
            self._budget,
            name=self._name,
            halt=self._halt,
            most_in_a_row=self._most_in_a_row,
        )
        self._stopping = self._asker.stopping
        self._works = asyncio.Event()  # set once a call has worked: until then there is one worker
        if pacing.has_worked:
            self._works.set()
        self._voted = asyncio.Event()  # set once there is a vote: until then there are few workers
        self._usefulness = Usefulness()
        self._failures = 0  # calls in a row
        # Of calls that failed for no known fault, until one that works shows that it is not that
        # of the endpoint.
        self._unsettled: list[Answered] = []
        self._queue: asyncio.Queue[_Call | None] = asyncio.Queue(max(limits.concurrency, 1))
        self._claimed: dict[tuple[str, Order, int], Claimed] = {}
        self._error: Exception | None = None

    async def run(self, plan: Iterable[Work]) -> JudgeRun:
        began = time.monotonic()
        owning = self._job.store.owner()
        try:
            writer = self._writer
            writer.ask = await writer.call(self._job.store.ask_of, self._judging.setup)
            writer.owner = await writer.call(owning.__enter__)
            try:
                await self._run_tasks(plan)
            finally:
                await asyncio.shield(self._wind_up(owning))
        finally:
            self._writer.close()
            self._run.seconds = time.monotonic() - began
            self._run.charged_tokens = self._budget.tokens
            self._run.charged_cost = self._budget.cost
        if self._error is not None:
            raise self._error
        return self._run

    async def _run_tasks(self, plan: Iterable[Work]) -> None:
        workers = [self._work(number) for number in range(self._judging.limits.concurrency)]
        tasks = [asyncio.create_task(work) for work in (self._feed(plan), *workers)]
        guards = (self._obey(), self._cut_off(tasks), self._tell())
        guarding = [asyncio.create_task(guard) for guard in guards]
        try:
            await asyncio.wait(tasks)
            await self._settle_failures()
        except asyncio.CancelledError:
            self._halt(INTERRUPTED)
            raise
        finally:
            for task in (*tasks, *guarding):
                task.cancel()
            await asyncio.gather(*tasks, *guarding, return_exceptions=True)

    async def _wind_up(self, owning: Any) -> None:
        """Make durable what is there, give back what was not asked, let go of the lock."""
        try:
            try:
                await self._writer.settle()
            except StoreError as error:
                n = len(self._writer.unsaved)
                self._error = StoreError(
                    f"{error}; {n} answers that are not in it will be asked for again"
                )
            self._budget.close()
            if not isinstance(self._error, StoreError):
                claims = list(self._claimed.values())
                await self._commit("give_back", self._writer.ask, claims)
        except StoreError as error:
            self._error = self._error or error
        finally:
            try:
                await self._writer.call(owning.__exit__, None, None, None)
            except StoreError as error:
                self._error = self._error or error

    # Stopping

    def _halt(self, why: str, error: Exception | None = None) -> None:
        """Ask no more; the first reason counts."""
        if not self._stopping.is_set():
            self._run.stopped = why
            self._error = error
            self._stopping.set()
            self._works.set()
            self._voted.set()
            self._budget.close()

    async def _obey(self) -> None:
        await self._job.stop.wait()
        self._halt(INTERRUPTED)

    async def _cut_off(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Give calls in flight time to finish once the run is to stop, but no more than that."""
        await self._stopping.wait()
        if self._run.stopped == INTERRUPTED or self._error is not None:
            await asyncio.sleep(self._judging.grace)
            for task in tasks:
                task.cancel()

    async def _tell(self) -> None:
        """Let whoever watches know what is waited for."""
        while True:
            await asyncio.sleep(_TELL)
            before = self._run.waits_for
            self._run.waits_for, self._run.waits_seconds = self._asker.state()
            if before or self._run.waits_for:
                self._job.watch(self._run)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the run."""
        if seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()
            except TimeoutError:
                pass

    # Filling the queue

    async def _feed(self, plan: Iterable[Work]) -> None:
        try:
            elsewhere: list[Work] = []
            for stretch in stretches_of(plan, max(_STRETCH, self._judging.limits.concurrency)):
                if self._stopping.is_set():
                    return
                texts = [(work.item, work.digest, work.task) for work in stretch if work.digest]
                await self._commit("know_items", texts)
                self._run.n_items += len(stretch)
                self._run.n_wanted += sum(len(work.wanted) for work in stretch)
                elsewhere += await self._take(stretch, self._judging.again)
            wait, longest = _LOOK_AGAIN
            while elsewhere and not self._stopping.is_set():
                await self._sleep(wait)
                wait = min(2 * wait, longest)
                left, elsewhere = elsewhere, []
                for stretch in stretches_of(left, _STRETCH):
                    elsewhere += await self._take(stretch, ())
        except Exception as error:
            self._halt("an error", error)
        finally:
            # Workers go on until they have seen the end of the queue; there may be none left.
            while self._stopping.is_set() and not self._queue.empty():
                self._queue.get_nowait()
            for _ in range(self._judging.limits.concurrency):
                await self._queue.put(None)

    async def _take(self, stretch: Sequence[Work], again: Collection[str]) -> list[Work]:
        """Claim what can be, queue it, and return the work that others are at."""
        works = {work.item: work for work in stretch}
        wanted = {work.item: work.wanted for work in stretch}
        ask = self._writer.ask
        claimed, elsewhere, stored = await self._commit("claim", ask, wanted, again)
        self._run.n_elsewhere += stored.pop(BATCHED, 0)
        self._run.stored.update(stored)
        calls: dict[tuple[str, Order], list[_Call]] = {}
        for sample in claimed:
            self._claimed[sample.item, sample.order, sample.sample] = sample
            work, place = works[sample.item], (sample.item, sample.order)
            if place in calls:
                request = calls[place][0].request
            else:
                request = self._judging.request(work, sample.order)
            calls.setdefault(place, []).append(
                _Call(sample, request, work.read or self._judging.read)
            )
        sent = {place: of_prompt[0].request.messages for place, of_prompt in calls.items()}
        await self._commit("keep_messages", ask, sent)
        # One call of each prompt first, then its others: endpoints that keep what they have read
        # of a prompt have it by then.
        in_order = [of_prompt[0] for of_prompt in calls.values()]
        in_order += [call for of_prompt in calls.values() for call in of_prompt[1:]]
        for call in in_order:
            if self._stopping.is_set():
                break
            await self._queue.put(call)
        return [replace(works[item], wanted=samples) for item, samples in elsewhere.items()]

    # Asking

    async def _work(self, number: int) -> None:
        if number:
            await self._works.wait()
        if number >= _UNTIL_A_VOTE:
            await self._voted.wait()
        try:
            while (call := await self._queue.get()) is not None:
                if not self._stopping.is_set():
                    await self._serve(call)
        except Exception as error:
            self._halt("an error", error)
            while await self._queue.get() is not None:
                pass  # whoever fills the queue must not wait for us
        finally:
            self._works.set()
            self._voted.set()  # there may be none to come

    async def _serve(self, call: _Call) -> None:
        answered = await self._answer_to(call)
        if answered is None:
            return
        self._unsettled.append(answered)
        if not self._failures:
            settled, self._unsettled = self._unsettled, []
            await self._count(settled)

    async def _count(self, answered: Sequence[Answered]) -> None:
        """Make answers durable, then count them."""
        await self._writer.save(answered)
        for answer in answered:
            del self._claimed[answer.item, answer.order, answer.sample]
            self._run.add(answer.status, answer.reason)
        self._run.waits_for, self._run.waits_seconds = self._asker.state()
        self._job.watch(self._run)

    async def _answer_to(self, call: _Call) -> Answered | None:
        """Ask until there is an answer; None if the run ends."""
        claimed = call.claimed
        request = replace(call.request, sample=claimed.sample)
        if self._judging.request_seed is not None:
            request = replace(request, seed=self._judging.request_seed + claimed.sample)
        outcome, n_requests = await self._asker.ask(request)
        if outcome is None:
            return None
        if isinstance(outcome, ChatReply):
            return self._answered(claimed, outcome, n_requests, call.read)
        if outcome.kind in ("rejected", "forbidden"):
            if not await self._asker.is_of_the_pair(request):
                return None
            self._worked()
            self._run.n_pair_faults += 1
        else:
            self._not_worked(str(outcome))
        return Answered.of_failure(claimed, str(outcome), n_requests)

    def _worked(self) -> None:
        """Note that the endpoint has worked, whatever it said."""
        self._works.set()
        self._failures = 0

    def _not_worked(self, reason: str) -> None:
        """Note that a call has failed, and end the run where too many have."""
        self._failures += 1
        most = self._most_in_a_row if self._works.is_set() else _FAILURES_AT_FIRST
        if self._failures >= most:
            self._end(f"{self._failures} calls in a row failed, the last with: {reason}")

    def _end(self, why: str) -> None:
        self._halt(why, EndpointError(f"{self._name}: {why}"))

    async def _settle_failures(self) -> None:
        """Mark what failed last: short requests have shown that the endpoint works."""
        if self._unsettled and self._error is None:
            await self._count(self._unsettled)

    # What came of it

    def _answered(
        self, claimed: Claimed, reply: ChatReply, attempts: int, read: Reader
    ) -> Answered:
        self._worked()
        reading = read(reply, claimed.order)
        self._run.n_confident += reading.confidence is not None
        if reading.status == "ok":
            self._voted.set()
        if self._usefulness.see(reading) and not self._stopping.is_set():
            self._run.is_useless = True
            self._halt(self._usefulness.cause())
        return Answered.of_reply(claimed, reply, reading, attempts, self._judging.prices)

    async def _commit(self, method: str, *arguments: Any) -> Any:
        return await self._writer.commit(getattr(self._writer.owner, method), *arguments)
