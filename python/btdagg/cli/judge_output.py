"""What `judge` and `run` print about a job, and their exit status."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from btdagg._util.addresses import shown_address
from btdagg.cli.common import note, out, print_json
from btdagg.cli.stopping import saved_as_dict, say_saved

if TYPE_CHECKING:
    from collections.abc import Callable

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
