"""One request, as often as it takes, and when a run is given up."""
# A call that a limit refused is repeated without end, one that the endpoint does not take never,
# and any other fault `max_attempts` times; but what may be a fault of the endpoint and not of the
# request is settled by a probe, the same request with a short text, before a vote is marked.

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from btdagg.judge.client import ChatClient, ChatError, ChatReply, ChatRequest, current_request
from btdagg.judge.faults import EndpointError
from btdagg.judge.health import OF_THE_REQUEST, Health, Trouble, duration
from btdagg.judge.judging import Judging
from btdagg.judge.pacing import AdmittedCall, Pacing, elapsed
from btdagg.judge.pairs import Pair
from btdagg.judge.prices import BYTES_PER_TOKEN, size_of
from btdagg.judge.runs import Budget, JudgeRun

# Faults in a row of one request, or seconds until a fault, after which the endpoint is probed if
# nobody was answered meanwhile: one fault is common, three are not; half a minute is a time-out.
_FAULTS_IN_A_ROW, _LONG = 3, 30.0
# Seconds at most before a request is repeated, at first and ever, drawn evenly from 0 ("full
# jitter"), so that requests that failed together do not come back together.
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 60.0
# Seconds, at first and at most, between probes of an endpoint that is away.
_LOOK_AGAIN = (1.0, 15.0)
_SAID_AFTER = 2.0  # seconds of waiting, from which on the reason is said
_SHORT = ("Yes.", "No.", "Is 2 more than 1?", "Yes.")  # a pair that nobody has anything against


@dataclass
class _Tries:
    """The calls of one request."""

    since: float  # the last fault, or the beginning
    n: int = 0
    n_faults: int = 0  # since the endpoint was last away

    def fail(self, most: int, now: float) -> tuple[bool, bool]:
        """Count a fault: whether it is the last, and whether it may be the endpoint's."""
        self.n_faults += 1
        is_last = self.n_faults >= most
        return is_last, self.n_faults >= _FAULTS_IN_A_ROW or now - self.since > _LONG

    def delay(self) -> float:
        """Seconds at most before the next call."""
        return min(_FIRST_DELAY * 2.0 ** (self.n_faults - 1), _LONGEST_DELAY)


class Asker:
    """Makes a run's requests: counted in `run`, capped by `budget`, ended by `halt`."""

    def __init__(
        self,
        client: ChatClient,
        judging: Judging,
        pacing: Pacing,
        run: JudgeRun,
        budget: Budget,
        *,
        halt: Callable[[str, Exception | None], None],
    ) -> None:
        self.stopping = asyncio.Event()
        self._client, self._judging, self._pacing = client, judging, pacing
        self._run, self._budget, self._halt = run, budget, halt
        self._clock = asyncio.get_running_loop().time
        self._health = Health(judging.limits.concurrency, pacing.has_worked)
        # Of its own: processes with the same seed would all come back at the same moments.
        self._draw = random.Random()
        self._one_probe = asyncio.Lock()
        self._n_measured = 0  # answers whose tokens are known
        self._limited_by = ""

    async def ask(self, request: ChatRequest) -> tuple[ChatReply | ChatError | None, int]:
        """Return an answer, a lasting fault, or None if the run ends; and how many requests."""
        size, tries = size_of(request.messages), _Tries(self._clock())
        while True:
            outcome = await self._once(request, size, is_repeated=tries.n > 0)
            if outcome is None:
                return None, tries.n
            tries.n += 1
            if isinstance(outcome, ChatReply):
                return outcome, tries.n
            if outcome.is_limit:
                continue
            if outcome.kind in OF_THE_REQUEST:
                is_its_own = await self._is_of_the_request(request, outcome)
                return outcome if is_its_own else None, tries.n
            if not await self._may_repeat(request, tries):
                return None if self.stopping.is_set() else outcome, tries.n
            tries.since = self._clock()
            await elapsed(self._draw.uniform(0, tries.delay()), self.stopping)

    async def _is_of_the_request(self, request: ChatRequest, fault: ChatError) -> bool:
        """Whether only this request is not taken; else the run ends."""
        health = self._health
        health.refused(fault, self._clock())
        if not (health.is_trusted or await self._probe(request, lambda: health.is_trusted)):
            return False
        self._run.n_pair_faults += 1
        return True

    async def _may_repeat(self, request: ChatRequest, tries: _Tries) -> bool:
        """Whether a request that failed is made again, once the endpoint is known to be there."""
        health = self._health
        is_last, is_telling = tries.fail(self._judging.max_attempts, self._clock())
        # Others may have been answered just before the endpoint went away: whoever would give up
        # looks anew.
        if is_last or (is_telling and not health.answered_since(tries.since)):
            if not await self._probe(request, partial(health.answered_since, self._clock())):
                return False
            if health.back_at >= tries.since:  # it was away: nothing of this was the request's
                tries.n_faults = 0
            elif is_last:
                return False
        return True

    async def _probe(self, request: ChatRequest, is_settled: Callable[[], bool]) -> bool:
        """Whether the run goes on: it ends if a short request, too, is refused."""
        async with self._one_probe:
            if not self.stopping.is_set() and not is_settled():
                outcome = await self._probed(request)
                if isinstance(outcome, ChatError) and not self._health.is_trusted:
                    self._end(f"refuses even a short request: {outcome}")
        return not self.stopping.is_set()

    async def _probed(self, request: ChatRequest) -> ChatReply | ChatError | None:
        """Ask about a short pair until the endpoint answers: at once, if it never worked."""
        prompt, health = self._judging.prompt, self._health
        pair = Pair("probe", *_SHORT, dict.fromkeys(prompt.placeholders, "text"))
        messages = self._judging.messages(prompt.render(pair))
        probe = replace(request, messages=messages, item="", order=None, sample=None)
        wait, longest = _LOOK_AGAIN
        try:
            while True:
                outcome = await self._once(probe, size_of(messages))
                if outcome is None:
                    return None
                self._run.n_canaries += 1
                if isinstance(outcome, ChatReply) or outcome.kind in OF_THE_REQUEST:
                    return outcome
                if outcome.is_limit:
                    continue
                trouble = health.trouble or Trouble(self._clock(), str(outcome), 1)
                away_for, longest_away = (
                    self._clock() - trouble.since,
                    self._judging.limits.max_wait,
                )
                if not health.has_worked:
                    self._end(f"{trouble.fault}; all {trouble.n} requests failed")
                    return None
                if away_for >= longest_away:
                    waited, most = duration(away_for), duration(longest_away)
                    what = f"no answer for {waited} ({trouble.fault})"
                    self._end(f"{what}, longer than max_wait ({most})")
                    return None
                health.is_away = True
                seconds = min(self._draw.uniform(wait / 2, wait), longest_away - away_for)
                await elapsed(seconds, self.stopping)
                wait = min(2 * wait, longest)
        finally:
            health.came_back(self._clock())

    def state(self) -> tuple[str, float]:
        """Reason to wait, empty if there is none, and the seconds that are left."""
        closed_for = self._pacing.closed_for
        if closed_for > 0 and self._limited_by:
            return f"rate limit ({self._limited_by})", closed_for
        hinted_wait = self._pacing.hinted_wait
        if hinted_wait > _SAID_AFTER:
            return "rate limit (by the endpoint's headers)", hinted_wait
        return self._health.state(self._clock()), 0.0

    # One request

    async def _once(
        self, request: ChatRequest, size: int, *, is_repeated: bool = False
    ) -> ChatReply | ChatError | None:
        reserved = await self._budget.take(size)
        if reserved is None:
            self._halt(self._budget.reached, None)
            return None
        call = None
        try:
            answer_tokens = self._run.completion_tokens / max(self._n_measured, 1)
            call = await self._pacing.admit(size / BYTES_PER_TOKEN + answer_tokens, self.stopping)
        finally:
            if call is None:
                self._budget.give_back(reserved)
        if call is None:
            if not self.stopping.is_set():
                wait, longest = self._pacing.hinted_wait, self._judging.limits.max_wait
                self._end(
                    f"allows no call for {duration(wait)} by its headers, longer than max_wait "
                    f"({duration(longest)})"
                )
            return None
        self._run.n_calls += 1
        self._run.n_retries += is_repeated
        outcome: ChatReply | ChatError | None = None
        began = self._clock()
        try:
            outcome = await self._outcome(request)
        finally:
            self._settle(outcome, call, reserved)
        if isinstance(outcome, ChatError) and outcome.is_limit:
            self._refused(outcome, call)
        elif isinstance(outcome, ChatError) and outcome.kind == "fatal":
            self._end(str(outcome))
            return None
        else:
            self._health.see(outcome, began, self._clock())
            self._pacing.has_worked = self._health.has_worked  # also for the runs after this one
        return outcome

    async def _outcome(self, request: ChatRequest) -> ChatReply | ChatError:
        current_request.set(request)
        try:
            async with asyncio.timeout(self._judging.timeout):
                return await self._client.complete(request)
        except ChatError as fault:
            return fault
        except TimeoutError:
            words = f"no complete answer within {self._judging.timeout:g} s"
        except Exception as error:
            words = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return ChatError(words, may_cost=True)

    def _settle(
        self, outcome: ChatReply | ChatError | None, call: AdmittedCall, reserved: float
    ) -> None:
        usage = outcome.usage if isinstance(outcome, ChatReply) else None
        if usage is not None:
            self._n_measured += 1
            cost = self._run.count_usage(usage, self._judging.prices)
        else:
            self._run.n_unknown_usage += isinstance(outcome, ChatReply)
            # What it used nobody knows; where it may have cost something, all that it could.
            is_free = isinstance(outcome, ChatError) and not outcome.may_cost
            cost = 0.0 if is_free else reserved
        self._budget.settle(reserved, cost)
        self._run.charged_cost = self._budget.cost
        if not (isinstance(outcome, ChatError) and outcome.is_limit):
            tokens = None if usage is None else usage.prompt + usage.completion
            self._pacing.answered(call, tokens, outcome.limits if outcome else None)

    def _refused(self, fault: ChatError, call: AdmittedCall) -> None:
        self._run.n_limited += 1
        self._limited_by = str(fault)
        of_tokens = "token" in str(fault).lower()
        asked, longest = fault.retry_after, self._judging.limits.max_wait
        seconds = self._pacing.refused(
            call, retry_after=asked, of_tokens=of_tokens, limits=fault.limits
        )
        if max(seconds, asked or 0.0) > longest:
            wait = duration(asked or seconds)
            self._end(
                f"asks for a wait of {wait} ({fault}), longer than max_wait ({duration(longest)})"
            )

    def _end(self, why: str) -> None:
        name = getattr(self._client, "name", "") or f"judge {self._judging.setup.judge}"
        self._halt(why, EndpointError(f"{name}: {why}"))
