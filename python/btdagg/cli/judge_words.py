"""What the commands that judge say of a job, and their exit status."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from btdagg.cli.common import note, out, print_json
from btdagg.cli.stopping import saved_as_dict, say_saved

if TYPE_CHECKING:
    from btdagg.judge.jobs import Estimate
    from btdagg.judge.methods import Decisions
    from btdagg.judge.runs import JudgeRun
    from btdagg.judge.stopping import StoppedRun

INTERRUPTED = 130
INCOMPLETE = 3  # exit status where a cap ended the run


def say_estimate(found: Estimate, json: bool) -> None:
    """Print what a job will take."""
    if json:
        print_json(asdict(found))
        return
    out.print(
        f"{found.n_items} pairs, {found.n_wanted} votes; {found.n_there} are in the store, "
        f"{found.n_calls} calls to make"
    )
    out.print(f"about {found.prompt_tokens} tokens to send")
    if found.completion_tokens is None:
        note("how long answers are is not known yet: --max-answer-tokens bounds them")
    else:
        out.print(f"about {found.completion_tokens} tokens to receive")
    if found.cost is not None:
        out.print(f"cost about {found.cost:.4g}")
    else:
        note("--price-in and --price-out, per million tokens, would price it")


def say_run(run: JudgeRun, store: str, json: bool) -> int:
    """Print what came of a run; return the exit status."""
    from sqlalchemy import make_url

    shown = make_url(store).render_as_string(hide_password=True) if "://" in store else store
    if json:
        print_json(run.as_dict())
    else:
        cost = "" if run.cost is None else f", cost {run.cost:.4g}"
        out.print(
            f"{run.statuses.total()} new votes, {run.there.total()} there before: {_by_status(run)}"
        )
        out.print(
            f"{run.n_calls} calls ({run.n_retries} repeated), {run.prompt_tokens} tokens sent, "
            f"{run.completion_tokens} received{cost}; store {shown}",
            soft_wrap=True,
        )
    if run.n_without_vote:
        note(f"{run.n_without_vote} samples are without a vote; --retry all asks for them again")
    if run.stopped:
        note(f"stopped early: {run.stopped}; every vote counted is kept, the same command goes on")
    return _status_of(run)


def say_stopped(stopped: StoppedRun, store: str, json: bool) -> int:
    """Print what came of a job under a rule; return the exit status."""
    if json:
        print_json({**stopped.run.as_dict(), **saved_as_dict(stopped)})
        return _status_of(stopped.run)
    status = say_run(stopped.run, store, json)
    say_saved(stopped)
    return status


def say_decisions(decisions: Decisions, store: str, json: bool) -> int:
    """Print what came of a method; return the exit status."""
    if json:
        told = {**vars(decisions), "runs": [run.as_dict() for run in decisions.runs]}
        del told["decided"]
        print_json({**told, "n_decided": len(decisions.decided)})
        stopped = [run.stopped for run in decisions.runs if run.stopped]
        return (INTERRUPTED if "interrupted" in stopped else INCOMPLETE) if stopped else 0
    status = max(say_run(run, store, json) for run in decisions.runs)
    out.print(f"{len(decisions.decided)} items decided: {', '.join(decisions.columns)}")
    if decisions.undecided and not status:
        note(f"{len(decisions.undecided)} items are not decided, for want of an answer")
    return status


def _status_of(run: JudgeRun) -> int:
    if not run.stopped:
        return 0
    return INTERRUPTED if run.stopped == "interrupted" else INCOMPLETE


def _by_status(run: JudgeRun) -> str:
    both = run.statuses + run.there
    return ", ".join(f"{n} {status}" for status, n in both.most_common()) or "nothing wanted"
