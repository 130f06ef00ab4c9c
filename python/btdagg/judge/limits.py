"""How fast may be asked, and how much in all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from btdagg._core import InputError
from btdagg._util.validation import as_integer, as_number
from btdagg.judge.prices import Prices


@dataclass(frozen=True)
class Limits:
    """Bounds of a run; None means none.

    Parameters
    ----------
    concurrency : int
        Calls at the same time.
    requests_per_minute, tokens_per_minute : float, optional
        Evenly spread, without bursts. Tokens are those sent and received: an estimate until the
        reply is there, and what it says from then on.
    max_calls, max_tokens, max_cost : optional
        Caps on what this run asks, repeats after faults included. A call is made only if the cap
        holds even if it and all calls in flight are as large as they can be.
    max_wait : float
        Seconds for which a limit of the endpoint is waited for, or an endpoint that has worked and
        does not answer; the run ends where it takes longer.
    """

    concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_wait: float = 900.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "max_calls", "max_tokens"):
            if getattr(self, name) is not None:
                as_integer(getattr(self, name), name, 1)
        for name in ("requests_per_minute", "tokens_per_minute", "max_wait", "max_cost"):
            value = getattr(self, name)
            if value is not None and as_number(value, name) <= 0:
                raise InputError(f"{name} is {value}, expected more than 0")

    def refuse_unbounded(self, answer_tokens: int | None, prices: Prices | None) -> None:
        """Refuse caps that could not be kept."""
        if self.max_cost is not None and prices is None:
            raise InputError("a cap on cost needs prices", argument="prices")
        if answer_tokens is None and (self.max_tokens is not None or self.max_cost is not None):
            raise InputError(
                "a cap on tokens or cost needs max_answer_tokens, thinking included: without it "
                "one answer could pass the cap",
                argument="max_answer_tokens",
            )

    def less(self, calls: int, tokens: int, cost: float) -> Limits | None:
        """Return what is left of the caps after so much of each; None where one is used up."""
        used = {"max_calls": calls, "max_tokens": tokens, "max_cost": cost}
        left = {
            name: getattr(self, name) - spent
            for name, spent in used.items()
            if getattr(self, name) is not None
        }
        return None if any(rest <= 0 for rest in left.values()) else replace(self, **left)


@dataclass(frozen=True, slots=True)
class Reserved:
    """What a call in flight may use at most."""

    tokens: int
    cost: float


@dataclass(slots=True)
class Spent:
    """Calls that were made, what they have used, and what those in flight may use at most."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    reserved_tokens: int = 0
    reserved_cost: float = 0.0

    def take(self, reserved: Reserved, calls: int = 1) -> None:
        """Add a call in flight; with -1 calls, take back one that was not made."""
        self.calls += calls
        self.reserved_tokens += calls * reserved.tokens
        self.reserved_cost += calls * reserved.cost

    def settle(self, reserved: Reserved, tokens: int, cost: float) -> None:
        """Replace what a call could have used by what it did."""
        self.reserved_tokens -= reserved.tokens
        self.reserved_cost -= reserved.cost
        self.tokens += tokens
        self.cost += cost

    def reaches(self, limits: Limits, more: Reserved) -> str:
        """Say which cap one more call could pass; empty for none."""
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            return f"the cap of {limits.max_calls} calls is reached"
        most = self.tokens + self.reserved_tokens + more.tokens
        if limits.max_tokens is not None and most > limits.max_tokens:
            return (
                f"the cap of {limits.max_tokens} tokens is reached: {self.tokens} are used, and "
                f"another call may need up to {more.tokens}"
            )
        # Reserved costs are added and taken away: what rounding leaves of them is no cost.
        cost = self.cost + self.reserved_cost + more.cost
        if limits.max_cost is not None and cost > limits.max_cost * (1 + 1e-12):
            return (
                f"the cap of {limits.max_cost:g} on the cost is reached: {self.cost:.4g} is spent, "
                f"and another call may cost up to {more.cost:.2g}"
            )
        return ""


class Budget:
    """Caps, and what this process has spent and reserved of them.

    `take` waits while calls in flight may still leave room, and says no once none can.
    """

    def __init__(self, limits: Limits, prices: Prices | None, answer_tokens: int | None) -> None:
        limits.refuse_unbounded(answer_tokens, prices)
        self.spent = Spent()
        self.reached = ""
        self._limits = limits
        self._prices = prices
        self._answer_tokens = answer_tokens
        self._changed = asyncio.Event()
        self._in_flight = 0

    async def take(self, prompt_bytes: int) -> Reserved | None:
        """Reserve a call; None where a cap is reached."""
        more = self._at_most(prompt_bytes)
        while not self.reached:
            full = self.spent.reaches(self._limits, more)
            if not full:
                self._in_flight += 1
                self.spent.take(more)
                return more
            if not self._in_flight:
                self.reached = full
                break
            self._changed.clear()
            await self._changed.wait()
        self._changed.set()  # the others that wait see it too
        return None

    def close(self) -> None:
        """Release all who wait."""
        self.reached = self.reached or "stopped"
        self._changed.set()

    def give_back(self, reserved: Reserved) -> None:
        """Take back a call that was not made."""
        self._in_flight -= 1
        self.spent.take(reserved, -1)
        self._changed.set()

    def settle(self, reserved: Reserved, tokens: int, cost: float) -> None:
        """Replace what a call could have used by what it did, or may have where nobody knows."""
        self._in_flight -= 1
        self.spent.settle(reserved, tokens, cost)
        self._changed.set()

    def _at_most(self, prompt_bytes: int) -> Reserved:
        completion = self._answer_tokens or 0
        cost = 0.0 if self._prices is None else self._prices.of(prompt_bytes, completion)
        return Reserved(prompt_bytes + completion, cost)
