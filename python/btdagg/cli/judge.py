"""`btdagg judge`: pairs to votes, in a store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from btdagg._core import InputError
from btdagg.cli.common import Json, at_least, differences_said, note, say_differences, tables_of
from btdagg.cli.judge_output import (
    run_asking,
    say_decisions,
    say_estimate,
    say_labelling,
    say_rule,
    say_run,
    say_stopped,
)
from btdagg.cli.judge_settings import JudgeFlags, PairsFile, with_judge_flags

if TYPE_CHECKING:
    from btdagg.judge.pairs import Pair, Pairs
    from btdagg.votes import Table


@with_judge_flags
def judge(
    pairs: PairsFile,
    flags: JudgeFlags,
    store: Annotated[
        str,
        typer.Option(
            "--store",
            "-s",
            help="File of the votes (SQLite), or postgresql://user@host/database.",
            rich_help_panel="Output",
        ),
    ] = "votes.db",
    method: Annotated[
        Literal["sample", "greedy", "few-shot", "gsa", "usc"],
        typer.Option(
            help="Votes, or decisions by another method, which the votes are exported with.",
            rich_help_panel="Judge",
        ),
    ] = "sample",
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            "-l",
            metavar="LABELS",
            help="Labels (columns item, label) of some pairs: the examples of few-shot, or what "
            "the rule of --stop is learned from.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Ask a judge for votes on pairs; run it again to go on where it left off.

    Votes are in the store as soon as they are counted: the command may be stopped, or killed, at
    any time. A larger -n later asks for what is missing alone. With --stop pairs get as many votes
    as the rule wants; btdagg decide takes the rule, too.

    Example: btdagg judge pairs.jsonl --model gpt-5.4 -n 12 --store votes.db --dry-run
    """
    from btdagg.judge.jobs import judge as ask
    from btdagg.judge.methods import asking_of, decide_by
    from btdagg.judge.pairs import read_pairs
    from btdagg.judge.stopping import differences, judge_by_rule, open_pairs
    from btdagg.judge.store import VoteStore
    from btdagg.online import StoppingRule
    from btdagg.pipeline import Pipeline
    from btdagg.votes import read_labels

    settings = flags.settings()
    judging, rule = settings.judging, settings.rule
    if rule is not None and method != "sample":
        raise InputError("--stop is for --method sample")
    if judging.batch and method == "usc":
        raise InputError("--method usc is not for --batch: it reads answers in a way of its own")
    raw = tables_of(settings.columns, pairs, *([] if labels is None else [labels]))
    several = read_pairs(raw[0])
    judging.prompt.check(several)
    pipeline = None
    examples: list[tuple[Pair, int]] = []
    if rule is not None and labels is not None and settings.examples is None:
        with differences_said():
            pipeline = Pipeline(
                several, read_labels(raw[1]), judging, rule=rule, prior="neighbours"
            )  # as btdagg run does, so that both learn the same rule
    else:
        examples = _examples(method, several, raw[1] if labels else None, settings.examples)
    if pipeline is None and isinstance(rule, StoppingRule):
        say_differences(differences(several, judging, rule))
        rule = replace(rule, model=replace(rule.model, provenance=None))  # which is said
    elif pipeline is None and rule is not None:
        raise InputError(
            f"--stop {settings.stop} wants --labels: the rule is learned from the pairs that have "
            "one; a file of btdagg plan or run is a rule already"
        )
    if n_identical := several.n_identical:
        note(f"{n_identical} pairs of {pairs} have the same text on both sides")
    if flags.dry_run:
        asking = judging
        if method in ("greedy", "few-shot"):
            asking = asking_of(method, judging, examples=examples)

        def to_ask(opened: VoteStore | None) -> Pairs:
            if pipeline is not None:
                return pipeline.pairs_to_ask(opened)
            if opened is None or not isinstance(rule, StoppingRule):
                return several
            return open_pairs(several, asking, rule, opened)

        wanted = say_estimate(asking, to_ask, store, json)
        if rule is not None:
            say_rule(rule, len(several) - len(wanted))
        if method in ("gsa", "usc"):
            note(f"these are the samples; {method} makes a further call for each pair")
        return 0
    total = judging.n * len(several)
    with VoteStore(store, keep_exchanges=not settings.drop_exchanges) as opened:
        if pipeline is not None:
            labelling = run_asking(partial(pipeline.run, store=opened), total, settings)
            return say_labelling(labelling, store, json, settings.allow_missing)
        if method != "sample":
            by = partial(decide_by, method, several, judging, store=opened, examples=examples)
            return say_decisions(
                run_asking(by, total, settings), store, json, settings.allow_missing
            )
        if isinstance(rule, StoppingRule):
            by_rule = partial(judge_by_rule, several, judging, rule, store=opened)
            stopped = run_asking(by_rule, total, settings)
            return say_stopped(stopped.run, stopped, store, json, settings.allow_missing)
        run = run_asking(partial(ask, several, judging, store=opened), total, settings)
    if judging.logprobs and run.statuses["ok"] and not run.n_confident:
        note("the endpoint gives no log-probabilities: no vote of this run has a confidence")
    return say_run(run, store, json, settings.allow_missing)


def _examples(
    method: str, pairs: Pairs, labels: Table | None, n_examples: int | None
) -> list[tuple[Pair, int]]:
    """Examples of few-shot; other methods have none."""
    from btdagg.judge.prompts import labelled_pairs

    at_least(n_examples, "examples", 1)
    if method != "few-shot":
        if labels is not None or n_examples is not None:
            raise InputError("--labels and examples are for --method few-shot")
        return []
    if labels is None:
        raise InputError("--method few-shot wants --labels, for its examples")
    return labelled_pairs(pairs, labels, n_examples=n_examples)
