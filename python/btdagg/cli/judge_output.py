"""Output of `judge` and `run` during a job and after it, and their exit status."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, TypeVar

from btdagg._util.addresses import shown_address
from btdagg._util.wording import in_line
from btdagg.cli.common import err, note, print_json, say

if TYPE_CHECKING:
    from btdagg.cli.judge_settings import JudgeSettings
    from btdagg.judge.judging import JudgeJob, Judging
    from btdagg.judge.methods import Decisions
    from btdagg.judge.pairs import Pairs
    from btdagg.judge.runs import JudgeRun
    from btdagg.judge.store.store import VoteStore
    from btdagg.online import StoppingRule
    from btdagg.online.rule import RuleKind

T = TypeVar("T")

INTERRUPTED = 130
INCOMPLETE = 3  # exit status where a run ended early, or too many votes are missing
_MISSING = 0.05  # share of the votes wanted that may be missing, none of them for a failure
_EVERY = 15.0  # seconds between lines of progress, where there is no terminal for a bar


def say_estimate(
    asking: Judging,
    pairs_to_ask: Callable[[VoteStore | None], Pairs],
    base_url: str | None,
    store: str,
    json: bool,
) -> Pairs:
    """Print the estimate of a job; return the pairs that it may ask about."""
    from btdagg.cli.judge_settings import listed_prices
    from btdagg.judge.jobs import estimate

    with _stored(store) as opened:
        pairs = pairs_to_ask(opened)
        job = estimate(pairs, asking, opened)
    if asking.prices is None and job.completion_tokens is not None:
        paid = replace(asking, prices=listed_prices(asking.model, base_url)).paid
        cost = None if paid is None else paid.of(job.prompt_tokens, job.completion_tokens)
        job = replace(job, cost=cost)
    if json:
        print_json(asdict(job))
        return pairs
    say(
        f"{job.n_items} {asking.scale.mode.judged}s, {job.n_wanted} votes; {job.n_stored} are in "
        f"the store, {job.n_calls} calls to make"
    )
    say(f"about {job.prompt_tokens} tokens to send")
    if job.completion_tokens is None:
        note("the length of answers is not known yet; max_answer_tokens would limit it")
    else:
        say(f"about {job.completion_tokens} tokens to receive")
        if job.cost is not None:
            say(f"cost about {job.cost:.4g}")
        else:
            note("for the cost, set prices = {prompt = ..., completion = ...} (per million tokens)")
    return pairs


@contextmanager
def _stored(place: str) -> Iterator[VoteStore | None]:
    if "://" not in place and not os.path.exists(place):  # without importing a database
        yield None
        return
    from btdagg.judge.store.database import NoStoreError
    from btdagg.judge.store.store import VoteStore

    try:
        store = VoteStore(place, create=False)
    except NoStoreError:
        yield None
        return
    with store:
        yield store


def say_rule(rule: StoppingRule | RuleKind, n_settled: int) -> None:
    """Print that a rule asks for fewer votes than the estimate, and how many if known."""
    from btdagg.online import StoppingRule

    fewer = "will ask for fewer"
    if isinstance(rule, StoppingRule) and rule.votes is not None:
        fewer = f"is expected to ask for {rule.expected_votes:.2f} of {rule.n} votes a pair"
    settled = f"{n_settled} pairs are settled already; " if n_settled else ""
    note(f"{settled}the estimate assumes all votes for every pair left; the stopping rule {fewer}")


def say_run(run: JudgeRun, settings: JudgeSettings, store: str, json: bool = False) -> int:
    """Print the result of a run, and what a stopping rule saved; return the exit status."""
    allowed = settings.allow_missing
    if json:
        print_json(run.as_dict())
    else:
        by_status = ", ".join(f"{n} {s}" for s, n in (run.statuses + run.stored).most_common())
        say(
            f"{run.statuses['ok']} new votes, {run.stored['ok']} stored before: "
            f"{by_status or 'nothing to ask for'}"
        )
        say(
            f"{run.n_calls} calls ({run.n_retries} repeated), {tokens_and_cost(run)}; "
            f"store {shown_address(store)}"
        )
    if run.n_elsewhere:
        note(
            f"{run.n_elsewhere} samples are being asked for by other processes or batches (btdagg "
            "batch list)"
        )
    if run.n_without_vote:
        why = "".join(
            f", most often for this reason: {reason}" for reason, _ in run.reasons.most_common(1)
        )
        note(
            f"{run.n_without_vote} samples are without a vote{why}; "
            "--set judge.again=all asks again"
        )
    if run.stopped:
        goes_on = "" if run.is_useless else ", the same command continues"
        note(f"stopped early: {run.stopped}; all votes so far are kept{goes_on}")
    elif missing := _too_many_missing(run, allowed):
        note(f"{missing}: exit status {INCOMPLETE}")
    settled = run.settled
    if settled is not None and settled.n_items and not json:
        per_pair, full = (n / settled.n_items for n in (settled.n_samples, settled.n_full))
        thing = settings.judging.scale.mode.judged
        # A run that is not finished has saved nothing yet.
        fewer = "" if run.stopped else f", {1 - per_pair / full:.0%} fewer"
        say(
            f"stopping rule: {settled.n_settled} of {settled.n_items} {thing}s settled, "
            f"{per_pair:.2f} of {full:g} votes a {thing}{fewer}"
        )
    return status_of(run, allowed)


def say_decisions(decisions: Decisions, settings: JudgeSettings, store: str, json: bool) -> int:
    """Print the result of a method; return the exit status."""
    if json:
        values = {**vars(decisions), "runs": [run.as_dict() for run in decisions.runs]}
        print_json({**values, "decided": None, "n_decided": len(decisions.decided)})
        return max(status_of(run, settings.allow_missing) for run in decisions.runs)
    status = max(say_run(run, settings, store) for run in decisions.runs)
    line = f"{len(decisions.decided)} items decided: {', '.join(decisions.columns)}"
    if n_examples := len(decisions.examples):
        line += f"; {n_examples} of them are examples in the prompt and get no decision"
    say(line)
    if decisions.undecided and not status:
        note(f"{len(decisions.undecided)} items are not decided, because an answer is missing")
    return status


def status_of(run: JudgeRun, allowed: float | None) -> int:
    """Exit status of a run; `allowed` is the share without votes (0 failed, 5% others)."""
    if run.stopped:
        return INTERRUPTED if run.stopped == "interrupted" else INCOMPLETE
    return INCOMPLETE if _too_many_missing(run, allowed) else 0


def _too_many_missing(run: JudgeRun, allowed: float | None) -> str:
    n_failed = run.statuses["failed"] + run.stored["failed"]
    if allowed is None and n_failed:
        return f"{n_failed} votes failed, and allow_missing is not set"
    most = _MISSING if allowed is None else allowed
    if run.missing_share <= most:
        return ""
    return f"{run.missing_share:.1%} of the votes are missing, more than allow_missing = {most:g}"


def tokens_and_cost(run: JudgeRun) -> str:
    """Say what a run has used, and what it has cost."""
    cost = "".join(f", {words}" for words in _cost(run))
    if run.n_unknown_usage and not run.prompt_tokens:
        return f"tokens unknown{cost}"
    cached = f" ({run.cached_tokens} from its cache)" if run.cached_tokens else ""
    unknown = f" (of {run.n_unknown_usage} answers unknown)" if run.n_unknown_usage else ""
    sent = f"{run.prompt_tokens} tokens sent{cached}"
    return f"{sent}, {run.completion_tokens} received{unknown}{cost}"


def _cost(run: JudgeRun) -> list[str]:
    if run.cost is None or (run.n_unknown_usage and not run.charged_cost):
        return []
    by_replies, counted = f"{run.cost:.4g}", f"{run.charged_cost:.4g}"
    if by_replies == counted:
        return [f"cost {counted}"]
    return [f"cost about {counted} ({by_replies} by replies)"]


# While it runs


def run_asking(
    asking: Callable[[JudgeJob], Awaitable[T]],
    store: VoteStore,
    total: int,
    settings: JudgeSettings,
) -> T:
    """Run a job with progress; the first Ctrl-C ends it in good order, the second at once."""
    try:
        return asyncio.run(_asking(asking, store, total, settings))
    except asyncio.CancelledError:  # of the second Ctrl-C
        raise KeyboardInterrupt from None


async def _asking(
    asking: Callable[[JudgeJob], Awaitable[T]],
    store: VoteStore,
    total: int,
    settings: JudgeSettings,
) -> T:
    from btdagg.judge.judging import JudgeJob

    client = settings.client()
    stop = asyncio.Event()
    task = asyncio.current_task()

    def interrupt() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
            return
        stop.set()
        note(
            "stopping: running calls have a few seconds to finish; press Ctrl-C again to end them "
            "too"
        )

    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):  # Windows; not the main thread
        loop.add_signal_handler(signal.SIGINT, interrupt)
        loop.add_signal_handler(signal.SIGTERM, interrupt)
    progress = _Progress(total)
    try:
        with progress.bar:
            return await asking(JudgeJob(store, client, stop, progress))
    finally:
        await client.close()


class _Progress:
    def __init__(self, total: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.completed}/{task.total} votes"),
            BarColumn(bar_width=10),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.description}", markup=False),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._task = self.bar.add_task("", total=total)
        self._total, self._n_earlier = total, 0
        self._run: JudgeRun | None = None
        self._last, self._waited_for = time.monotonic(), ""

    def __call__(self, run: JudgeRun) -> None:
        if run is not self._run:  # of a job that has several
            self._n_earlier += 0 if self._run is None else self._run.n_votes
            self._run = run
        n_votes = self._n_earlier + run.n_votes
        state = in_line(", ".join(_state(run)))
        self.bar.update(self._task, completed=n_votes, description=state)
        waits_for = run.waits_for.partition(" (")[0]
        if err.is_terminal or time.monotonic() - self._last < (
            _EVERY if waits_for == self._waited_for else 1.0
        ):
            return
        self._last, self._waited_for = time.monotonic(), waits_for
        print(f"{n_votes}/{self._total} votes{', ' if state else ''}{state}", file=sys.stderr)


def _state(run: JudgeRun) -> list[str]:
    parts = [f"{n} {status}" for status, n in sorted(run.statuses.items()) if status != "ok"]
    parts += _cost(run)
    if run.waits_for:
        seconds = f" for {run.waits_seconds:.0f} s" if run.waits_seconds else ""
        parts.append(f"waiting{seconds}: {run.waits_for}")
    return parts
