"""One request, as often as it takes, and when a run is given up."""
# Faults of the endpoint (key, model, parameter) end the run before a vote is marked; faults of a
# pair mark its votes. A probe, the same request with a short text, tells which it is.

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from btdagg.judge.client import ChatClient, ChatError, ChatReply, ChatRequest, current_request
from btdagg.judge.faults import EndpointError
from btdagg.judge.judging import Judging
from btdagg.judge.pacing import AdmittedCall, Pacing, elapsed
from btdagg.judge.pairs import Pair
from btdagg.judge.prices import BYTES_PER_TOKEN, size_of
from btdagg.judge.runs import Budget, JudgeRun

# Faults in a row of one request, or seconds until a fault, after which the endpoint is probed if
# nobody was answered meanwhile.
_FAULTS_IN_A_ROW, _LONG = 3, 30.0
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 60.0  # seconds at most before a request is repeated
_REFUSALS_IN_A_ROW = 32  # at least, after which an endpoint that has worked is probed
_LOOK_AGAIN = (1.0, 15.0)  # seconds, at first and at most, between probes of one that is away
_SAID_AFTER = 2.0  # seconds without an answer, after which the last fault is said
OF_THE_REQUEST = ("rejected", "forbidden")  # kinds of faults that another request may not have
_SHORT = ("Yes.", "No.", "Is 2 more than 1?", "Yes.")  # a pair that nobody has anything against


class _Trouble(NamedTuple):
    """Calls in a row to which an endpoint gave no answer: since when, the last fault, how many."""

    since: float
    fault: str
    n: int


@dataclass
class _Health:
    n_refusals: int = 0  # in a row
    forbidden_at: float = -math.inf  # the last refusal that might be of every request
    worked_at: float = -math.inf  # when the last call that worked was made
    answered_at: float = -math.inf  # the last time that the endpoint was at work
    back_at: float = -math.inf  # the last time that it was seen to be back
    trouble: _Trouble | None = None
    is_away: bool = False

    def answered_since(self, moment: float) -> bool:
        return self.answered_at >= moment

    def see(self, outcome: ChatReply | ChatError, began: float, now: float) -> None:
        if isinstance(outcome, ChatReply):
            self.worked_at, self.n_refusals = max(self.worked_at, began), 0
        elif outcome.kind not in OF_THE_REQUEST:
            since, _, n = self.trouble or (now, "", 0)
            self.trouble = _Trouble(since, str(outcome), n + 1)
            return
        self.trouble, self.answered_at = None, now


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
        self._health = _Health()
        # Of its own: processes with the same seed would all come back at the same moments.
        self._draw = random.Random()
        self._one_probe = asyncio.Lock()
        self._n_measured = 0  # answers whose tokens are known
        self._limited_by = ""

    async def ask(self, request: ChatRequest) -> tuple[ChatReply | ChatError | None, int]:
        """Return an answer, a lasting fault, or None if the run ends; and how many requests."""
        health, size = self._health, size_of(request.messages)
        n_requests = n_faults = 0
        since = self._clock()  # the last fault
        while True:
            outcome = await self._once(request, size, is_repeated=n_requests > 0)
            if outcome is None:
                return None, n_requests
            n_requests += 1
            if isinstance(outcome, ChatReply):
                return outcome, n_requests
            if outcome.is_limit:
                continue
            if outcome.kind in OF_THE_REQUEST:
                health.n_refusals += 1
                if outcome.kind == "forbidden":
                    health.forbidden_at = self._clock()
                if not (self._is_trusted or await self._probe(request, lambda: self._is_trusted)):
                    return None, n_requests
                self._run.n_pair_faults += 1
                return outcome, n_requests
            n_faults += 1
            is_last = n_faults >= self._judging.max_attempts
            is_telling = n_faults >= _FAULTS_IN_A_ROW or self._clock() - since > _LONG
            # Others may have been answered just before the endpoint went away: whoever would give
            # up looks anew.
            if is_last or (is_telling and health.answered_at < since):
                if not await self._probe(request, partial(health.answered_since, self._clock())):
                    return None, n_requests
                was_away = health.back_at >= since
                if is_last and not was_away:
                    return outcome, n_requests
                n_faults = 0 if was_away else n_faults
            since = self._clock()
            longest = min(_FIRST_DELAY * 2.0 ** (n_faults - 1), _LONGEST_DELAY)
            await elapsed(self._draw.uniform(0, longest), self.stopping)

    async def _probe(self, request: ChatRequest, is_settled: Callable[[], bool]) -> bool:
        """Whether the run goes on: it ends if a short request, too, is refused."""
        async with self._one_probe:
            if not self.stopping.is_set() and not is_settled():
                outcome = await self._probed(request)
                if isinstance(outcome, ChatError) and not self._is_trusted:
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
                since, fault, n_faults = health.trouble or (self._clock(), str(outcome), 1)
                away_for, longest_away = self._clock() - since, self._judging.limits.max_wait
                if not self._pacing.has_worked:
                    self._end(f"{fault}; all {n_faults} requests failed")
                    return None
                if away_for >= longest_away:
                    waited, most = _duration(away_for), _duration(longest_away)
                    self._end(f"no answer for {waited} ({fault}), longer than max_wait ({most})")
                    return None
                health.is_away = True
                seconds = min(self._draw.uniform(wait / 2, wait), longest_away - away_for)
                await elapsed(seconds, self.stopping)
                wait = min(2 * wait, longest)
        finally:
            if health.is_away:
                health.is_away, health.back_at = False, self._clock()

    @property
    def _is_trusted(self) -> bool:
        health, most = self._health, max(_REFUSALS_IN_A_ROW, 2 * self._judging.limits.concurrency)
        is_doubtful = health.n_refusals > most or health.worked_at < health.forbidden_at
        return self._pacing.has_worked and not is_doubtful

    def state(self) -> tuple[str, float]:
        """What is waited for, empty for nothing, and the seconds that are left."""
        closed_for = self._pacing.closed_for
        if closed_for > 0 and self._limited_by:
            return f"rate limit ({self._limited_by})", closed_for
        since, fault, n_faults = self._health.trouble or (math.inf, "", 0)
        seconds = self._clock() - since
        if seconds <= _SAID_AFTER:
            return "", 0.0
        if self._health.is_away:
            return f"endpoint to come back ({fault}; down for {_duration(seconds)})", 0.0
        return f"answer ({fault}; {n_faults} calls in a row)", 0.0

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
            self._pacing.has_worked |= isinstance(outcome, ChatReply)
            self._health.see(outcome, began, self._clock())
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
            wait = _duration(asked or seconds)
            self._end(
                f"asks for a wait of {wait} ({fault}), longer than max_wait ({_duration(longest)})"
            )

    def _end(self, why: str) -> None:
        name = getattr(self._client, "name", "") or f"judge {self._judging.setup.judge}"
        self._halt(why, EndpointError(f"{name}: {why}"))


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} minutes"
