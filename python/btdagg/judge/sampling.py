"""The engine: calls made, answers read, votes written, so that none is lost or counted twice."""
# A feeder claims what the store lacks, a stretch of the plan at a time, and queues it. Workers wait
# until an answer is durable before the next call: at most one unsaved answer a worker.

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from btdagg.judge.client import ChatError, ChatReply, ChatRequest, Order, Verdict, batched
from btdagg.judge.health import OF_THE_REQUEST
from btdagg.judge.judging import JudgeJob, Judging, Reader, Work
from btdagg.judge.pacing import Pacing, elapsed
from btdagg.judge.retries import Asker
from btdagg.judge.runs import Budget, JudgeRun, Usefulness
from btdagg.judge.store.database import StoreError
from btdagg.judge.store.owner import BATCHED, Answered, Claimed, Owner
from btdagg.judge.store.store import VoteStore

_T = TypeVar("_T")

_AT_A_TIME = 32  # items that are looked up, and whose samples are claimed
_LOOK_AGAIN = (0.25, 5.0)  # seconds, at first and at most, between looks at what others ask
_TELL = 0.5  # seconds between looks at what is waited for
# Seconds in which others may join a commit: little beside a call, and much beside a commit.
_GATHERING = 0.02

INTERRUPTED = "interrupted"


class _Call(NamedTuple):
    claimed: Claimed
    request: ChatRequest
    read: Reader


async def sample(plan: Iterable[Work], judging: Judging, job: JudgeJob) -> JudgeRun:
    """Ask for every sample of a plan, gone through lazily, that the store does not have."""
    # Raises `EndpointError` if no call can work, `StoreError` if the store cannot be used.
    return await _Sampler(judging, job).run(plan)


class _Sampler:
    def __init__(self, judging: Judging, job: JudgeJob) -> None:
        self._judging, self._job = judging, job
        limits = judging.limits
        pacing = job.pacing or Pacing(limits, clock=asyncio.get_running_loop().time)
        self._run = JudgeRun(cost=None if judging.prices is None else 0.0)
        self._writer = _Writer(job.store)
        self._budget = Budget(limits, judging.prices, judging.max_answer_tokens)
        self._asker = Asker(job.client, judging, pacing, self._run, self._budget, halt=self._halt)
        self._stopping = self._asker.stopping
        self._works = asyncio.Event()  # set once a call has worked: until then there is one worker
        if pacing.has_worked:
            self._works.set()
        self._usefulness = Usefulness()
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
        except asyncio.CancelledError:
            self._halt(INTERRUPTED)
            raise
        finally:
            for task in (*tasks, *guarding):
                task.cancel()
            await asyncio.gather(*tasks, *guarding, return_exceptions=True)

    async def _wind_up(self, owning: Any) -> None:
        """Make durable what is there, give back what was not asked, let go of the lock."""
        writer = self._writer
        self._budget.close()
        try:
            await writer.settle()
            await self._commit("give_back", writer.ask, list(self._claimed.values()))
        except StoreError as error:
            n = len(writer.unsaved)
            lost = f"; {n} answers are not in it and will be asked for again" if n else ""
            self._error = StoreError(f"{error}{lost}")
        finally:
            try:
                await writer.call(owning.__exit__, None, None, None)
            except StoreError as error:
                self._error = self._error or error

    # Stopping

    def _halt(self, why: str, error: Exception | None = None) -> None:
        if not self._stopping.is_set():
            self._run.stopped = why
            self._error = error
            self._stopping.set()
            self._works.set()
            self._budget.close()

    async def _obey(self) -> None:
        await self._job.stop.wait()
        self._halt(INTERRUPTED)

    async def _cut_off(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        await self._stopping.wait()
        if self._run.stopped == INTERRUPTED or self._error is not None:
            await asyncio.sleep(self._judging.grace)
            for task in tasks:
                task.cancel()

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_TELL)
            before = self._run.waits_for
            self._run.waits_for, self._run.waits_seconds = self._asker.state()
            if before or self._run.waits_for:
                self._job.watch(self._run)

    # Filling the queue

    async def _feed(self, plan: Iterable[Work]) -> None:
        try:
            elsewhere: list[Work] = []
            for stretch in batched(plan, _AT_A_TIME):
                if self._stopping.is_set():
                    return
                await self._commit("know_items", [work.pair.about for work in stretch])
                self._run.look_at([work.wanted for work in stretch], {})
                elsewhere += await self._take(stretch, self._judging.again)
            wait, longest = _LOOK_AGAIN
            while elsewhere and not self._stopping.is_set():
                await elapsed(wait, self._stopping)
                wait = min(2 * wait, longest)
                left, elsewhere = elsewhere, []
                for stretch in batched(left, _AT_A_TIME):
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
            self._claimed[sample[:3]] = sample
            work, place = works[sample.item], (sample.item, sample.order)
            if place in calls:
                request = calls[place][0].request
            else:
                request = self._judging.request(work, sample.order)
            read = work.read or partial(self._judging.read, responses=work.pair.responses)
            calls.setdefault(place, []).append(_Call(sample, request, read))
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

    async def _serve(self, call: _Call) -> None:
        claimed, request = call.claimed, replace(call.request, sample=call.claimed.sample)
        if self._judging.request_seed is not None:
            request = replace(request, seed=self._judging.request_seed + claimed.sample)
        outcome, n_requests = await self._asker.ask(request)
        if outcome is None:
            return
        if isinstance(outcome, ChatReply):
            reading = call.read(outcome, claimed.order)
            answered = Answered(claimed, reading, n_requests, outcome, self._judging.prices)
        else:
            reading = Verdict("failed", reason=str(outcome))
            answered = Answered(claimed, reading, n_requests)
        is_of_pair = isinstance(outcome, ChatError) and outcome.kind in OF_THE_REQUEST
        if not is_of_pair and self._usefulness.see(reading) and not self._stopping.is_set():
            self._run.is_useless = True
            self._halt(self._usefulness.cause())
        self._works.set()
        await self._writer.save(answered)
        del self._claimed[claimed[:3]]
        self._run.add(reading)
        self._run.waits_for, self._run.waits_seconds = self._asker.state()
        self._job.watch(self._run)

    async def _commit(self, method: str, *arguments: Any) -> Any:
        return await self._writer.commit(getattr(self._writer.owner, method), *arguments)


class _Writer:
    """Writes to a store in a thread, one transaction at a time; `unsaved` answers are retried."""

    owner: Owner

    def __init__(self, store: VoteStore) -> None:
        self.ask = 0
        self.unsaved: list[Answered] = []
        self._is_server = store.path is None
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "btdagg-store")
        self._waiting: list[Answered] = []
        self._writing: asyncio.Task[None] | None = None

    async def call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        loop = asyncio.get_running_loop()
        called = loop.run_in_executor(self._thread, partial(function, *arguments))
        try:
            return await asyncio.shield(called)
        except asyncio.CancelledError:
            # Nobody else may use the connection before.
            await asyncio.wait([called])
            called.exception()
            raise

    async def commit(self, function: Callable[..., _T], *arguments: Any) -> _T:
        async with self._turn:
            # SQLite is left and entered again, and with it the interpreter's lock, for every row.
            # From a thread each row would wait for the event loop, so the rows are written here,
            # in microseconds, and only other writers and the disk are waited for in a thread.
            try:
                await self.call(self.owner.begin)
                if self._is_server:
                    result = await self.call(function, *arguments)
                else:
                    result = function(*arguments)
                await self.call(self.owner.commit)
            except BaseException:
                self.owner.roll_back()
                raise
            return result

    async def save(self, answered: Answered) -> None:
        """Return once an answer is durable; who comes meanwhile shares the transaction."""
        self._waiting.append(answered)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        await asyncio.shield(self._writing)

    async def settle(self) -> None:
        if self._writing is not None:
            await asyncio.wait([self._writing])
        async with self._turn:
            pass
        if self.unsaved:
            await self.commit(self._save, self.unsaved)
            self.unsaved = []

    def close(self) -> None:
        self._thread.shutdown()

    async def _write(self) -> None:
        await asyncio.sleep(_GATHERING)
        answered, self._waiting, self._writing = self._waiting, [], None
        try:
            await self.commit(self._save, answered)
        except BaseException:
            self.unsaved += answered
            raise

    def _save(self, answered: Sequence[Answered]) -> None:
        self.owner.save(self.ask, answered)
