"""What `judge` and `run` print about a job while it runs and after, and their exit status."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from rich.cells import cell_len, set_cell_size

from btdagg._util.addresses import shown_address
from btdagg.cli.common import err, note, out, print_json
from btdagg.report.wording import visible

if TYPE_CHECKING:
    from btdagg.cli.judge_settings import JudgeSettings
    from btdagg.judge.jobs import Estimate
    from btdagg.judge.judging import Judging
    from btdagg.judge.methods import Decisions
    from btdagg.judge.pairs import Pairs
    from btdagg.judge.runs import JudgeRun
    from btdagg.judge.stopping import StoppedRun
    from btdagg.judge.store import VoteStore
    from btdagg.online import StoppingRule
    from btdagg.online.rule import RuleKind
    from btdagg.pipeline import Labelling

T = TypeVar("T")

INTERRUPTED = 130
INCOMPLETE = 3  # exit status where a run ended early, or too many votes are missing
_MISSING = 0.05  # share of the votes wanted that may be missing, none of them for a failure


def say_estimate(
    asking: Judging, pairs_to_ask: Callable[[VoteStore | None], Pairs], store: str, json: bool
) -> Pairs:
    """Print the estimate of a job; return the pairs that it may ask about."""
    from btdagg.judge.jobs import estimate
    from btdagg.judge.store import NoStoreError, VoteStore

    try:
        with VoteStore(store, create=False) as opened:
            wanted = pairs_to_ask(opened)
            found = estimate(wanted, asking, opened)
            _print_estimate(found, json, asking.prices is not None)
    except NoStoreError:
        wanted = pairs_to_ask(None)
        _print_estimate(estimate(wanted, asking), json, asking.prices is not None)
    return wanted


def say_rule(rule: StoppingRule | RuleKind, n_settled: int) -> None:
    """Print how many fewer votes than estimated a rule asks for."""
    from btdagg.online.rule import RuleKind

    others = f"{n_settled} pairs are settled already; " if n_settled else ""
    told = f"{others}the estimate counts all votes of the other pairs; the rule "
    if isinstance(rule, RuleKind) or rule.votes is None:
        note(f"{told}asks for fewer")
        return
    note(f"{told}is expected to ask for {rule.expected_votes:.2f} of {rule.n} a pair")


def _print_estimate(found: Estimate, json: bool, has_prices: bool) -> None:
    if json:
        print_json(asdict(found))
        return
    out.print(
        f"{found.n_items} pairs, {found.n_wanted} votes; {found.n_there} are in the store, "
        f"{found.n_calls} calls to make"
    )
    out.print(f"about {found.prompt_tokens} tokens to send")
    if found.completion_tokens is None:
        note("the length of answers is not known yet; max_answer_tokens limits it")
    else:
        out.print(f"about {found.completion_tokens} tokens to receive")
    if found.cost is not None:
        out.print(f"cost about {found.cost:.4g}")
    elif not has_prices:
        note("for the cost, set prices = {prompt = ..., completion = ...} (per million tokens)")


def say_run(run: JudgeRun, store: str, json: bool, allowed: float | None) -> int:
    """Print the result of a run; return the exit status.

    `allowed` is the share of the votes wanted that may be missing; unless given, none may have
    failed, and 5% may be missing for other reasons.
    """
    if json:
        print_json(run.as_dict())
    else:
        cost = "" if run.cost is None else f", cost {run.cost:.4g}"
        if run.reported_cost is not None:
            cost += f", cost reported {run.reported_cost:.4g}"
        out.print(
            f"{run.statuses['ok']} new votes, {run.there['ok']} there before: {_by_status(run)}"
        )
        out.print(
            f"{run.n_calls} calls ({run.n_retries} repeated), {_tokens(run)}{cost}; "
            f"store {shown_address(store)}",
            soft_wrap=True,
        )
    if run.n_batched:
        note(f"{run.n_batched} samples are in batches under way: btdagg batch list")
    if run.n_without_vote:
        of_pairs = (
            f" ({run.n_pair_faults} since the endpoint refuses their pair)"
            if run.n_pair_faults
            else ""
        )
        why = "".join(
            f", most often for this reason: {reason}" for reason, _ in run.reasons.most_common(1)
        )
        note(
            f"{run.n_without_vote} samples are without a vote{of_pairs}{why}; --retry all asks for "
            "them again"
        )
    if not run.stopped and (missing := _too_many_missing(run, allowed)):
        note(f"{missing}: exit status {INCOMPLETE}")
    if run.stopped:
        goes_on = "" if run.is_useless else ", the same command continues"
        note(f"stopped early: {run.stopped}; all votes so far are kept{goes_on}")
    return status_of(run, allowed)


def say_stopped(
    run: JudgeRun, stopped: StoppedRun | None, store: str, json: bool, allowed: float | None
) -> int:
    """Print the result of a job, and what its rule saved; return the exit status."""
    saved = {} if stopped is None else saved_as_dict(stopped)
    if json:
        print_json({**run.as_dict(), **saved})
        return status_of(run, allowed)
    status = say_run(run, store, json, allowed)
    if stopped is not None:
        say_saved(stopped)
    return status


def say_labelling(found: Labelling, store: str, json: bool, allowed: float | None) -> int:
    """Print the result of a pipeline's votes; return the exit status."""
    for remark in found.notes:
        note(remark)
    return say_stopped(found.run, found.stopped, store, json, allowed)


def say_decisions(decisions: Decisions, store: str, json: bool, allowed: float | None) -> int:
    """Print the result of a method; return the exit status."""
    if json:
        told = {**vars(decisions), "runs": [run.as_dict() for run in decisions.runs]}
        del told["decided"]
        print_json({**told, "n_decided": len(decisions.decided)})
        return max(status_of(run, allowed) for run in decisions.runs)
    status = max(say_run(run, store, json, allowed) for run in decisions.runs)
    line = f"{len(decisions.decided)} items decided: {', '.join(decisions.columns)}"
    if n_examples := len(decisions.examples):
        line += (
            f"; {n_examples} of these are examples of the prompt: the store has no decision of "
            "them, and evaluations leave them out"
        )
    out.print(line, soft_wrap=True)
    if decisions.undecided and not status:
        note(f"{len(decisions.undecided)} items are not decided, because an answer is missing")
    return status


def status_of(run: JudgeRun, allowed: float | None) -> int:
    """Return the exit status of a run."""
    if run.stopped:
        return INTERRUPTED if run.stopped == "interrupted" else INCOMPLETE
    return INCOMPLETE if _too_many_missing(run, allowed) else 0


def _too_many_missing(run: JudgeRun, allowed: float | None) -> str:
    """Say that more votes are missing than may be; empty where they are not."""
    n_failed = run.statuses["failed"] + run.there["failed"]
    if allowed is None and n_failed:
        return f"{n_failed} votes failed, and no allow_missing says that they may"
    most = _MISSING if allowed is None else allowed
    if run.missing_share <= most:
        return ""
    return f"{run.missing_share:.1%} of the votes are missing, more than allow_missing = {most:g}"


def _tokens(run: JudgeRun) -> str:
    if run.n_unknown_usage and not run.prompt_tokens:
        return "tokens unknown"
    cached = f" ({run.cached_tokens} from its cache)" if run.cached_tokens else ""
    unknown = f" (of {run.n_unknown_usage} answers unknown)" if run.n_unknown_usage else ""
    return f"{run.prompt_tokens} tokens sent{cached}, {run.completion_tokens} received{unknown}"


def _by_status(run: JudgeRun) -> str:
    both = run.statuses + run.there
    return ", ".join(f"{n} {status}" for status, n in both.most_common()) or "nothing wanted"


def say_saved(stopped: StoppedRun) -> None:
    """Print how many votes a rule has saved."""
    if not stopped.n_items:
        return
    per_pair = stopped.n_samples / stopped.n_items
    full = stopped.n_full / stopped.n_items
    # A run that is not finished has saved nothing yet.
    fewer = "" if stopped.run.stopped else f", {1 - per_pair / full:.0%} fewer"
    out.print(
        f"stopped: {stopped.n_settled} of {stopped.n_items} pairs settled, {per_pair:.2f} of "
        f"{full:g} votes a pair{fewer}"
    )


def saved_as_dict(stopped: StoppedRun) -> dict[str, int]:
    """Return what `say_saved` prints as plain values."""
    return {
        "n_items": stopped.n_items,
        "n_settled": stopped.n_settled,
        "n_samples": stopped.n_samples,
        "n_full": stopped.n_full,
    }


_EVERY = 0.5 if err.is_terminal else 15.0  # seconds between lines of progress


def run_asking(asking: Callable[..., Awaitable[T]], total: int, settings: JudgeSettings) -> T:
    """Run what takes a client, a stop and a watch, with progress; `total` votes are expected.

    The first Ctrl-C ends it in good order, the second at once.
    """
    try:
        return asyncio.run(_asking(asking, total, settings))
    except asyncio.CancelledError:  # of the second Ctrl-C
        raise KeyboardInterrupt from None


async def _asking(asking: Callable[..., Awaitable[T]], total: int, settings: JudgeSettings) -> T:
    client = settings.client()
    stop = asyncio.Event()
    task = asyncio.current_task()

    def interrupt() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
            return
        stop.set()
        note("stopping: calls under way have a few seconds to finish; Ctrl-C again ends them too")

    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):  # Windows; not the main thread
        loop.add_signal_handler(signal.SIGINT, interrupt)
        loop.add_signal_handler(signal.SIGTERM, interrupt)
    try:
        return await asking(client=client, stop=stop, watch=_Progress(total))
    finally:
        await client.close()


class _Progress:
    """Writes a line now and then; on a terminal it replaces the one before."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began = self._last = time.monotonic()
        self._n_before = self._n_earlier = 0
        self._run: JudgeRun | None = None
        self._said = ""  # what is waited for

    def __call__(self, run: JudgeRun) -> None:
        if run is not self._run:  # of a job that has several
            if self._run is not None:
                self._n_earlier += self._run.n_votes
            self._run, self._n_before = run, 0
        waits_anew = run.waits_for.partition(" (")[0] != self._said
        if time.monotonic() - self._last < (_EVERY if not waits_anew else min(_EVERY, 1.0)):
            return
        self._said = run.waits_for.partition(" (")[0]
        line = visible(", ".join(self._parts(run)))
        if not err.is_terminal:
            print(line, file=sys.stderr)
            return
        # The last column stays free: a terminal that goes on to the next line keeps what is there.
        print(set_cell_size(_cut(line, err.width - 1), err.width - 1), end="\r", file=sys.stderr)

    def _parts(self, run: JudgeRun) -> list[str]:
        now = time.monotonic()
        new = run.statuses["ok"]
        rate = (new - self._n_before) / (now - self._last)
        self._last, self._n_before = now, new
        done = self._n_earlier + run.n_votes
        parts = [f"{done}/{self._total} votes", f"{rate:.1f}/s"]
        parts += [f"{n} {status}" for status, n in sorted(run.statuses.items()) if status != "ok"]
        if run.cost is not None:
            parts.append(f"cost {run.cost:.4g}")
        if run.waits_for:
            seconds = f" for {_duration(run.waits_seconds)}" if run.waits_seconds else ""
            parts.append(f"waiting{seconds}: {run.waits_for}")
        elif rate > 0 and self._total > done:
            left = (self._total - done) * (now - self._began) / max(new, 1)
            parts.append(f"{_duration(left)} to go")
        return parts


def _cut(line: str, width: int) -> str:
    return line if cell_len(line) <= width else f"{set_cell_size(line, max(width - 3, 0))}..."


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
