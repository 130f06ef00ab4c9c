"""Budget of a run of the engine, and its results."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from btdagg._util.numbers import as_integer, as_number
from btdagg._util.readable import readable
from btdagg.judge.client import Usage, Verdict
from btdagg.judge.prices import Prices, cost_of

_REASONS = 100  # that are told apart


@dataclass(frozen=True)
class Limits:
    """Bounds of a run; None means none.

    Parameters
    ----------
    concurrency : int
        Calls at the same time.
    requests_per_minute, tokens_per_minute : float, optional
        Evenly spread, without bursts. Tokens are those sent and received.
    max_calls, max_cost : optional
        Caps on what this run asks, repeats after faults included. A call is made only if the cap
        holds even if it and all calls in flight cost as much as they can.
    max_wait : float
        Seconds for which a limit of the endpoint, or one that has worked and is away, is waited
        for.
    """

    concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    max_wait: float = 900.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "max_calls"):
            if getattr(self, name) is not None:
                as_integer(getattr(self, name), name, 1)
        for name in ("requests_per_minute", "tokens_per_minute", "max_wait", "max_cost"):
            value = getattr(self, name)
            if value is not None:
                as_number(value, name, above=0)


class Budget:
    """Caps, and what this process has used and reserved of them."""

    # `take` waits while calls in flight may still leave room, and returns None once none can.

    def __init__(self, limits: Limits, prices: Prices | None, answer_tokens: int | None) -> None:
        self.calls, self.cost = 0, 0.0
        self.reached = ""
        self._limits, self._answer_tokens = limits, answer_tokens or 0
        self._prices = prices or Prices()
        self._reserved, self._in_flight = 0.0, 0
        self._changed = asyncio.Event()

    async def take(self, prompt_bytes: int) -> float | None:
        """Reserve a call; return what it may cost, None where a cap is reached."""
        while not self.reached:
            reserved, full = self.reserve(prompt_bytes)
            if reserved is not None:
                return reserved
            if not self._in_flight:
                self.reached = full
                break
            self._changed.clear()
            await self._changed.wait()
        self._changed.set()  # the others that wait see it too
        return None

    def reserve(self, prompt_bytes: int) -> tuple[float | None, str]:
        """Reserve a call, or say which cap it could pass."""
        limits, price = self._limits, self._prices.of(prompt_bytes, self._answer_tokens)
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            return None, f"{limits.max_calls} calls were made, which is max_calls"
        # Reserved costs are added and taken away: what rounding leaves of them is no cost.
        cost = self.cost + self._reserved + price
        if limits.max_cost is not None and cost > limits.max_cost * (1 + 1e-12):
            return None, (
                f"the run has cost {self.cost:.4g}, and another call of up to {price:.2g} could "
                f"exceed max_cost ({limits.max_cost:g})"
            )
        self._hold(price, 1)
        return price, ""

    def close(self) -> None:
        """Release all who wait."""
        self.reached = self.reached or "stopped"
        self._changed.set()

    def give_back(self, reserved: float) -> None:
        """Take back a call that was not made."""
        self._hold(reserved, -1)

    def settle(self, reserved: float, cost: float) -> None:
        """Replace what a call could have cost by what it did, or may have where nobody knows."""
        self._hold(reserved, -1)
        self.calls += 1
        self.cost += cost

    def _hold(self, reserved: float, calls: int) -> None:
        self.calls += calls
        self._in_flight += calls
        self._reserved += calls * reserved
        self._changed.set()


@dataclass(frozen=True)
class Savings:
    """Votes that a stopping rule has saved.

    It has settled `n_settled` of `n_items` pairs; they have `n_samples` samples in the store, and
    would have `n_full` without it.
    """

    n_items: int
    n_settled: int
    n_samples: int
    n_full: int


@readable
@dataclass
class JudgeRun:
    """Results of a run, and votes that were stored before.

    Attributes
    ----------
    statuses, stored : Counter of str
        Samples by status: those of this run, and those wanted that were in the store before.
    reasons : Counter of str
        Why samples of this run have no vote; of many reasons the first hundred.
    n_items, n_wanted, n_elsewhere : int
        Items and samples looked at so far; samples under way in batches or another process.
    n_calls, n_retries, n_limited, n_canaries : int
        Requests made; of these repeats, those refused for a limit of the endpoint, and probes
        whether it refuses every request.
    n_pair_faults : int
        Samples whose pair the endpoint refuses, such as for its length.
    prompt_tokens, completion_tokens, reasoning_tokens, cached_tokens : int
        As far as replies say; `n_unknown_usage` of them do not.
    cost : float or None
        By the endpoint or prices; `charged_cost` counts towards the cap, and includes what calls
        that were lost, or do not state their tokens, could have cost.
    n_confident : int
        Answers with a confidence.
    stopped : str
        Why the run ended early; empty where it did not. `is_useless` says that it is for answers
        without votes.
    settled : Savings or None
        Votes that a stopping rule has saved, if there was one.
    waits_for, waits_seconds : str, float
        Reason that a run waits, such as a limit of the endpoint; and how long yet.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    stored: Counter[str] = field(default_factory=Counter)
    n_elsewhere: int = 0
    n_items: int = 0
    n_wanted: int = 0
    n_calls: int = 0
    n_retries: int = 0
    n_limited: int = 0
    n_canaries: int = 0
    n_pair_faults: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    n_unknown_usage: int = 0
    n_confident: int = 0
    cost: float | None = None
    charged_cost: float = 0.0
    stopped: str = ""
    is_useless: bool = False
    settled: Savings | None = None
    seconds: float = 0.0
    waits_for: str = ""
    waits_seconds: float = 0.0

    def look_at(self, wanted: Sequence[Sequence[Any]], stored: Mapping[str, int]) -> None:
        """Count the samples wanted of some items, and those that are in the store."""
        self.n_items += len(wanted)
        self.n_wanted += sum(map(len, wanted))
        self.stored.update(stored)

    def add(self, reading: Verdict) -> None:
        """Count a sample that is in the store now."""
        self.statuses[reading.status] += 1
        self.n_confident += reading.confidence is not None
        is_listed = reading.reason in self.reasons or len(self.reasons) < _REASONS
        if reading.status != "ok" and is_listed:
            self.reasons[reading.reason] += 1

    def count_usage(self, usage: Usage | None, prices: Prices | None) -> float:
        """Count the tokens and the cost of an answer, and return the cost."""
        if usage is None:
            self.n_unknown_usage += 1
            return 0.0
        self.prompt_tokens += usage.prompt
        self.completion_tokens += usage.completion
        self.reasoning_tokens += usage.reasoning
        self.cached_tokens += usage.cached
        cost = cost_of(usage, prices)
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost
        self.charged_cost += cost or 0.0
        return cost or 0.0

    @property
    def n_votes(self) -> int:
        """Votes wanted that are in the store, of this run and before."""
        return self.statuses["ok"] + self.stored["ok"]

    @property
    def n_without_vote(self) -> int:
        """Samples wanted that are in the store with a reason why there is no vote."""
        return self.statuses.total() + self.stored.total() - self.n_votes

    @property
    def is_done(self) -> bool:
        """Whether every sample wanted is in the store, with a vote or a reason."""
        return not self.stopped and self.n_wanted == self.statuses.total() + self.stored.total()

    @property
    def is_complete(self) -> bool:
        """Whether every sample wanted is in the store with a vote."""
        return self.is_done and not self.n_without_vote

    @property
    def missing_share(self) -> float:
        """Share of the samples wanted that have no vote."""
        return (self.n_wanted - self.n_votes) / self.n_wanted if self.n_wanted else 0.0

    def left_of(self, limits: Limits) -> Limits | None:
        """Return what this run has left of its caps; None where one is used up."""
        used = {"max_calls": self.n_calls, "max_cost": self.charged_cost}
        caps = {name: getattr(limits, name) for name in used}
        left = {name: cap - used[name] for name, cap in caps.items() if cap is not None}
        return None if any(rest <= 0 for rest in left.values()) else replace(limits, **left)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        fields = vars(self).copy()
        del fields["waits_for"], fields["waits_seconds"]
        if self.n_unknown_usage and not self.prompt_tokens:
            fields |= dict.fromkeys(("prompt_tokens", "completion_tokens", "reasoning_tokens"))
            fields["cost"] = self.cost or None
        names = ("n_votes", "n_without_vote", "is_done", "is_complete")
        fields |= {name: getattr(self, name) for name in names}
        return fields | {"settled": self.settled and asdict(self.settled)}


def add_to(total: JudgeRun, run: JudgeRun) -> None:
    """Add what a run has done to what others have."""
    for name, value in vars(run).items():
        if isinstance(value, Counter):
            getattr(total, name).update(value)
        elif name not in _OF_THE_LAST and value is not None:
            setattr(total, name, (getattr(total, name) or 0) + value)


_OF_THE_LAST = ("stopped", "is_useless", "n_elsewhere", "settled", "waits_for", "waits_seconds")


def total_of(runs: Sequence[JudgeRun]) -> JudgeRun:
    """Return several runs, of which the last may have ended early, as one."""
    total = JudgeRun(**{name: getattr(runs[-1], name) for name in _OF_THE_LAST})
    for run in runs:
        add_to(total, run)
    return total


class Usefulness:
    """Whether a judge's answers hold votes at all, and the likely cause if they do not."""

    # Page's cumulative sum of log-likelihood ratios, 90% useless answers against 50%: with at most
    # half useless a stop is rarer than one in a million answers; with all useless it takes 24.

    def __init__(self) -> None:
        self._sum = 0.0
        self._last: deque[tuple[str, str]] = deque(maxlen=64)

    def see(self, reading: Verdict) -> bool:
        """Take an answer in; whether it shows that going on is of no use."""
        if reading.status == "ok":
            self._sum = max(self._sum + math.log(0.1 / 0.5), 0.0)
        else:
            self._sum += math.log(0.9 / 0.5)
            self._last.append((reading.status, reading.reason))
        return self._sum >= math.log(1e6)

    def cause(self) -> str:
        """Say what the useless answers have in common, and what may help."""
        status, n = Counter(status for status, _ in self._last).most_common(1)[0]
        reasons = Counter(reason for other, reason in self._last if other == status)
        return (
            f"most answers have no vote. Of the last {len(self._last)} without one, {n} are "
            f"{status} (most often: {reasons.most_common(1)[0][0]}); {_REMEDIES[status]}"
        )


_REMEDIES = {
    "truncated": "raise max_answer_tokens or lower reasoning_effort, and ask for these again",
    "empty": "if they hold reasoning alone, lower reasoning_effort or raise max_answer_tokens; "
    "otherwise try streaming, or another name of the model",
    "refused": "another template or model may help",
    "failed": "the endpoint answers short requests but not these",
    "unparsed": "structured answers may help; {answer} in a template tells the judge how to "
    "answer, and the word for a tie is in its table [answer]",
}
