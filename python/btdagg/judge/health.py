"""Health of an endpoint, by the calls of a run: whether it is right, and whether it is there."""
# Faults of the endpoint (key, model, parameter, an outage) mark no vote, faults of a pair mark its
# votes. What cannot be told apart is asked with a short text (`retries`).

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from btdagg.judge.client import ChatError, ChatReply

OF_THE_REQUEST = ("rejected", "forbidden")  # kinds of faults that another request may not have
_REFUSALS_IN_A_ROW = 32  # at least: a file of pairs that are all too long may have as many
_SAID_AFTER = 2.0  # seconds without an answer, after which the last fault is said


class Trouble(NamedTuple):
    """Calls in a row to which an endpoint gave no answer: since when, the last fault, how many."""

    since: float
    fault: str
    n: int


@dataclass
class Health:
    """Health of an endpoint that gets `concurrency` calls at a time, by the calls so far."""

    concurrency: int
    has_worked: bool = False
    n_refusals: int = 0  # in a row
    forbidden_at: float = -math.inf  # the last refusal that might be of every request
    worked_at: float = -math.inf  # when the last call that worked was made
    answered_at: float = -math.inf  # the last time that the endpoint was at work
    back_at: float = -math.inf  # the last time that it was seen to be back
    trouble: Trouble | None = None
    is_away: bool = False

    @property
    def is_trusted(self) -> bool:
        """Whether a refusal is the request's: the endpoint takes others, and took one since."""
        most = max(_REFUSALS_IN_A_ROW, 2 * self.concurrency)
        is_doubtful = self.n_refusals > most or self.worked_at < self.forbidden_at
        return self.has_worked and not is_doubtful

    def answered_since(self, moment: float) -> bool:
        """Whether the endpoint was at work after a moment."""
        return self.answered_at >= moment

    def see(self, outcome: ChatReply | ChatError, began: float, now: float) -> None:
        """Note what came of a call that no limit refused."""
        if isinstance(outcome, ChatReply):
            self.has_worked = True
            self.worked_at, self.n_refusals = max(self.worked_at, began), 0
        elif outcome.kind not in OF_THE_REQUEST:
            since, _, n = self.trouble or (now, "", 0)
            self.trouble = Trouble(since, str(outcome), n + 1)
            return
        self.trouble, self.answered_at = None, now

    def refused(self, fault: ChatError, now: float) -> None:
        """Note that the endpoint does not take a request."""
        self.n_refusals += 1
        if fault.kind == "forbidden":
            self.forbidden_at = now

    def came_back(self, now: float) -> None:
        """Note that nobody looks any more whether an endpoint is back."""
        if self.is_away:
            self.is_away, self.back_at = False, now

    def state(self, now: float) -> str:
        """Reason to wait; empty if there is none."""
        since, fault, n_faults = self.trouble or (math.inf, "", 0)
        if now - since <= _SAID_AFTER:
            return ""
        if self.is_away:
            return f"endpoint to come back ({fault}; down for {duration(now - since)})"
        return f"answer ({fault}; {n_faults} calls in a row)"


def duration(seconds: float) -> str:
    """Seconds, or minutes where there are many."""
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} minutes"
