"""One request, as often as it takes: limits waited for, faults repeated, and whose fault it is.

A fault of the endpoint (its key, its model, a parameter that it does not know) ends the run before
any vote is marked; a fault of the pair (too long, not allowed) marks the pair's votes. Where an
endpoint that has answered nothing yet refuses a request, a short one that is the same but for its
text settles it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import replace

from btdagg.judge.calls import Messages
from btdagg.judge.client import ChatClient, ChatReply, ChatRequest, Usage
from btdagg.judge.judging import Judging
from btdagg.judge.limits import Budget, Reserved
from btdagg.judge.pairs import Pair
from btdagg.judge.prices import BYTES_PER_TOKEN, size_of
from btdagg.judge.retry import ChatError, EndpointError, delay_before
from btdagg.judge.runs import JudgeRun
from btdagg.judge.throttle import Call, Throttle

# Replies in a row that are none of a chat endpoint, until the first that is.
_STRANGE_REPLIES = 3
_SAID_AFTER = 2.0  # seconds without an answer, after which the last fault is said


class Asker:
    """Makes the requests of a run.

    Parameters
    ----------
    client, judging, throttle
        Who is asked, how, and how fast.
    run : JudgeRun
        In which calls, tokens and cost are counted.
    budget : Budget
        Caps, of this process or of all that share them.
    name : str
        What messages call the endpoint.
    halt : callable
        Ends the run, with a reason and an error.

    Attributes
    ----------
    stopping : asyncio.Event
        Once it is set no further request is made.
    most_in_a_row : int
        Refusals in a row after which an endpoint that has worked is tried by a short request again.
    """

    def __init__(
        self,
        client: ChatClient,
        judging: Judging,
        throttle: Throttle,
        run: JudgeRun,
        budget: Budget,
        *,
        name: str,
        halt: Callable[[str, Exception | None], None],
        most_in_a_row: int,
    ) -> None:
        self.stopping = asyncio.Event()
        self._budget = budget
        self._client, self._judging, self._throttle = client, judging, throttle
        self._run, self._name, self._halt = run, name, halt
        self._most_in_a_row = most_in_a_row
        self._refusals = 0  # in a row
        self._one_canary = asyncio.Lock()
        self._answers = 0  # whose tokens are known
        self._draw = random.Random()
        self._limited_by = ""
        self._troubled: tuple[float, str, int] | None = None  # since when, by what, how often

    async def ask(self, request: ChatRequest) -> tuple[ChatReply | ChatError | None, int]:
        """Ask until there is an answer, or a fault that asking again does not help.

        Returns
        -------
        outcome : ChatReply, ChatError or None
            None where the run ends before.
        n_requests : int
        """
        size = size_of(request.messages)
        n_requests = n_faults = 0
        while True:
            admitted = await self._admit(size, request.n)
            if admitted is None:
                return None, n_requests
            n_requests += 1
            self._run.n_calls += 1
            self._run.n_retries += n_requests > 1
            outcome = await self._request(request, size, *admitted)
            if isinstance(outcome, ChatReply):
                self._throttle.has_worked = True
                self._troubled, self._refusals = None, 0
                return outcome, n_requests
            if outcome.is_limit:
                continue
            n_faults += 1
            self._trouble(outcome)
            if self._is_of_the_endpoint(outcome, n_faults):
                self._end(str(outcome))
                return None, n_requests
            if outcome.kind in ("rejected", "forbidden") or n_faults >= self._judging.max_attempts:
                return outcome, n_requests
            await self._sleep(delay_before(n_faults, self._draw))
            if self.stopping.is_set():
                return None, n_requests

    async def is_of_the_pair(self, request: ChatRequest) -> bool:
        """Whether a refusal of this request is for its text; the run ends where it is not."""
        if self._is_trusted:
            self._refusals += 1
            return True
        async with self._one_canary:
            if self.stopping.is_set() or self._is_trusted:
                return not self.stopping.is_set()
            canary = replace(request, messages=self._short_messages(), n=1)
            outcome, n_requests = await self.ask(canary)
            self._run.n_canaries += n_requests
            if isinstance(outcome, ChatError):
                self._end(f"refuses a short request, too: {outcome}")
            return isinstance(outcome, ChatReply)

    @property
    def _is_trusted(self) -> bool:
        return self._throttle.has_worked and self._refusals < self._most_in_a_row

    def state(self) -> tuple[str, float]:
        """What is waited for, empty where for nothing; and the seconds that it takes yet."""
        closed_for = self._throttle.closed_for
        if closed_for > 0 and self._limited_by:
            return f"rate limit ({self._limited_by})", closed_for
        if self._troubled is not None and time.monotonic() - self._troubled[0] > _SAID_AFTER:
            _, said, n_faults = self._troubled
            return f"answer ({said}; {n_faults} calls in a row)", 0.0
        return "", 0.0

    # One request

    async def _admit(self, size: int, answers: int) -> tuple[Call, Reserved] | None:
        """Wait for a place; None if there is none any more."""
        while True:
            expected = self._expected(size)
            call = await self._throttle.admit(expected, self.stopping)
            if call is None:
                return None
            reserved = None
            try:
                reserved = await self._budget.take(size, answers, expected)
            finally:
                if reserved is None:
                    self._throttle.withdrawn(call)
            if reserved is None:
                self._halt(self._budget.reached, None)
                return None
            if self._throttle.made(call):
                return call, reserved
            self._budget.give_back(reserved)

    async def _request(
        self, request: ChatRequest, size: int, call: Call, reserved: Reserved
    ) -> ChatReply | ChatError:
        fault: ChatError | None = None
        usage: Usage | None = None
        limits, may_cost = None, True
        try:
            async with asyncio.timeout(self._judging.timeout):
                reply = await self._client.complete(request)
            usage, limits = reply.usage, reply.limits
            return reply
        except ChatError as error:
            fault, may_cost, limits = error, error.may_cost, error.limits
        except TimeoutError:
            fault = ChatError(f"no answer within {self._judging.timeout:g} s")
        except Exception as error:
            fault = ChatError(f"{type(error).__name__}: {' '.join(str(error).split())}")
        finally:
            self._settle(reserved, usage, may_cost, fault is None)
            if fault is None or not fault.is_limit:
                tokens = None if usage is None else usage.prompt + usage.completion
                self._throttle.answered(call, tokens, limits)
        if fault.is_limit:
            self._refused(fault, call)
        return fault

    def _refused(self, fault: ChatError, call: Call) -> None:
        """Note a limit; end the run where it is one that is not waited for."""
        self._run.n_limited += 1
        self._limited_by = str(fault)
        seconds = self._throttle.refused(
            call,
            retry_after=fault.retry_after,
            of_tokens="token" in str(fault).lower(),
            limits=fault.limits,
        )
        longest = self._judging.limits.max_wait
        if max(seconds, fault.retry_after or 0.0) > longest:
            asked = seconds if fault.retry_after is None else fault.retry_after
            self._end(
                f"asks to wait {asked / 60:.0f} minutes ({fault}); --max-wait bounds how long a "
                f"limit is waited for, {longest / 60:g} minutes"
            )

    def _expected(self, size: int) -> float:
        """Tokens that a call will have, as far as one can tell."""
        completion = self._run.completion_tokens / self._answers if self._answers else 0.0
        return size / BYTES_PER_TOKEN + completion

    def _settle(
        self, reserved: Reserved, usage: Usage | None, may_cost: bool, is_answer: bool
    ) -> None:
        prices = self._judging.prices
        if usage is None:
            self._run.n_unknown_usage += is_answer
            # What it used nobody knows; where it may have cost something, all that it could.
            self._budget.settle(
                reserved,
                reserved.tokens if may_cost else 0,
                reserved.cost if may_cost else 0.0,
                is_known=not may_cost,
            )
            return
        self._answers += 1
        run = self._run
        run.prompt_tokens += usage.prompt
        run.completion_tokens += usage.completion
        run.reasoning_tokens += usage.reasoning
        run.cached_tokens += usage.cached
        if usage.cost is not None:
            run.reported_cost = (run.reported_cost or 0.0) + usage.cost
        cost = 0.0
        if prices is not None and run.cost is not None:
            cost = prices.cost(usage)
            run.cost += cost
        self._budget.settle(reserved, usage.prompt + usage.completion, cost)

    # Faults

    def _is_of_the_endpoint(self, fault: ChatError, n_faults: int) -> bool:
        """Whether no further call can work."""
        if fault.kind == "protocol":
            return not self._throttle.has_worked and n_faults >= _STRANGE_REPLIES
        return fault.kind == "fatal"

    def _trouble(self, fault: ChatError) -> None:
        since, _, n_faults = self._troubled or (time.monotonic(), "", 0)
        self._troubled = since, str(fault), n_faults + 1

    def _end(self, why: str) -> None:
        self._halt(why, EndpointError(f"{self._name}: {why}"))

    def _short_messages(self) -> Messages:
        """The prompt of a pair that no endpoint could have anything against."""
        prompt = self._judging.prompt
        fields = dict.fromkeys(prompt.placeholders, "text")
        pair = Pair("canary", "Yes.", "No.", "Is 2 more than 1?", "Yes.", fields)
        return self._judging.messages(prompt.render(pair))

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the run."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            pass
