"""`btdagg judge`: pairs to votes, in a store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from btdagg._util.errors import InputError, forbid
from btdagg.cli.common import Json, note, say_differences
from btdagg.cli.judge_output import run_asking, say_decisions, say_estimate, say_rule, say_run
from btdagg.cli.judge_settings import JudgeFlags, PairsFile, Store, store_of

if TYPE_CHECKING:
    from btdagg.judge.pairs import Pair, Pairs
    from btdagg.judge.store.store import VoteStore


def judge(
    flags: JudgeFlags,
    pairs: PairsFile = None,
    store: Store = None,
    method: Annotated[
        Literal["sample", "greedy", "few-shot", "gsa", "usc"],
        typer.Option(
            help="sample asks for votes; the other methods make decisions, which are exported with "
            "the votes.",
            rich_help_panel="Judge",
        ),
    ] = "sample",
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            "-l",
            metavar="LABELS",
            help="Labels (columns item, label) of some pairs, used as examples by few-shot.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Ask a judge for votes on pairs, or grades of responses; re-run to continue.

    Every vote is stored as it comes, so the command may be stopped or killed at any time. A larger
    -n later asks only for the missing votes. With --stop each pair gets as many votes as the
    stopping rule of that file needs; btdagg run learns such rules, and btdagg decide applies them.

    Example: btdagg judge pairs.jsonl --model gpt-5.4 -n 12 --store votes.db --dry-run
    """
    from btdagg.judge.pairs import read_pairs

    settings = flags.settings()
    judging, rule, place = settings.judging, settings.rule, store_of(store, settings.store)
    forbid(rule is not None and method != "sample", "--stop needs --method sample")
    if (labels is None) == (method == "few-shot"):
        raise InputError("--labels and --method few-shot must be given together")
    if settings.examples is not None and method != "few-shot":
        raise InputError(f"examples = {settings.examples} needs --method few-shot")
    forbid(judging.batch and method == "usc", "--method usc cannot be combined with --batch")
    place_of_pairs = flags.project.place("pairs", pairs)
    sources = (("pairs", place_of_pairs), ("labels", labels))
    tables = flags.tables(settings.columns, *sources)
    pairs_read = read_pairs(tables[0], criteria=settings.criteria)
    judging.prompt.check(pairs_read)
    examples: list[tuple[Pair, int]] = []
    if rule is not None:
        from btdagg.judge.stopping import differences, refuse_other_n
        from btdagg.online import StoppingRule

        if not isinstance(rule, StoppingRule):
            raise InputError(
                f"--stop {settings.stop} is a rule to learn, which only btdagg run can do; give "
                "the file of a rule that btdagg plan or run wrote"
            )
        refuse_other_n(rule, judging)
        say_differences(differences(pairs_read, judging, rule))
        rule = replace(rule, model=replace(rule.model, provenance=None))  # which is said
    if method == "few-shot":
        from btdagg.judge.prompts import labelled_pairs

        examples = labelled_pairs(pairs_read, tables[1], n_examples=settings.examples)
    if n_identical := pairs_read.n_identical:
        note(f"{n_identical} pairs of {place_of_pairs} have the same text on both sides")
    if flags.dry_run:
        asking = judging
        if method in ("greedy", "few-shot"):
            from btdagg.judge.methods import asking_of

            asking = asking_of(method, judging, examples=examples)

        def to_ask(opened: VoteStore | None) -> Pairs:
            if opened is None or rule is None:
                return pairs_read
            from btdagg.judge.stopping import open_pairs

            return open_pairs(pairs_read, asking, rule, opened)

        unsettled = say_estimate(asking, to_ask, settings.base_url, place, json)
        if rule is not None:
            say_rule(rule, len(pairs_read) - len(unsettled))
        if method in ("gsa", "usc"):
            note(f"these are the calls for samples; {method} makes one more for each pair")
        return 0
    from btdagg.judge.jobs import judge_pairs
    from btdagg.judge.methods import decide_by
    from btdagg.judge.stopping import judge_by_rule
    from btdagg.judge.store.store import VoteStore

    total = judging.n * len(pairs_read)
    with VoteStore(place, keep_exchanges=not settings.drop_exchanges) as opened:
        if method != "sample":
            by = partial(decide_by, method, pairs_read, judging, examples=examples)
            return say_decisions(run_asking(by, opened, total, settings), settings, place, json)
        if rule is not None:
            ask = partial(judge_by_rule, pairs_read, judging, rule)
        else:
            ask = partial(judge_pairs, pairs_read, judging)
        run = run_asking(ask, opened, total, settings)
    if judging.confidence == "logprobs" and run.statuses["ok"] and not run.n_confident:
        note("the endpoint returns no log-probabilities, so no vote of this run has a confidence")
    return say_run(run, settings, place, json)
