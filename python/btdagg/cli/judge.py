"""`btdagg judge`: pairs to votes, in a store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from btdagg._core import InputError
from btdagg.cli import judge_options as options
from btdagg.cli.asking import ask, ask_by_rule, run_asking
from btdagg.cli.common import Json, at_least, note
from btdagg.cli.judge_words import say_decisions, say_estimate, say_run, say_stopped
from btdagg.cli.provenance import say_differences
from btdagg.cli.stopping import load_rule
from btdagg.cli.tables import Columns, tables_of

if TYPE_CHECKING:
    from btdagg.judge.pairs import Pair, Pairs
    from btdagg.online import StoppingRule
    from btdagg.tables import Table


def judge(
    context: typer.Context,
    pairs: options.PairsFile,
    model: options.Model,
    base_url: options.BaseUrl = None,
    key_variable: options.KeyVariable = "OPENAI_API_KEY",
    n: options.NVotes = 12,
    template: options.Template = "response",
    store: options.Store = "votes.db",
    name: options.JudgeName = "",
    order: options.OrderName = "both",
    temperature: options.Temperature = "0.5",
    reasoning_effort: options.Effort = None,
    max_answer_tokens: options.MaxAnswerTokens = None,
    confidence: options.Confidence = "none",
    allow_tie: options.AllowTie = None,
    structured: options.Structured = False,
    stream: options.Stream = False,
    concurrency: options.Concurrency = 16,
    requests_per_minute: options.Rpm = None,
    tokens_per_minute: options.Tpm = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    timeout: options.Timeout = 600.0,
    attempts: options.Attempts = 8,
    samples_per_call: options.PerCall = 1,
    retry: options.Retry = "",
    drop_exchanges: options.DropExchanges = False,
    values: options.Values = None,
    method: options.Method = "sample",
    labels: options.LabelledBy = None,
    n_examples: options.NExamples = None,
    columns: Columns = None,
    stop: Annotated[
        Path | None,
        typer.Option(
            metavar="RULE",
            help="What btdagg plan wrote: ask for fewer votes, as far as the rule wants them.",
            show_default="all votes",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many calls it takes and what they cost.")
    ] = False,
    json: Json = False,
) -> int:
    """Ask a judge for votes on pairs; run it again to go on where it left off.

    Votes are in the store as soon as they are counted: the command may be stopped, or killed, at
    any time. A larger -n later asks for what is missing alone. With --stop pairs get as many votes
    as the rule wants; btdagg decide takes the rule, too.

    Example: btdagg judge pairs.jsonl --model gpt-5.4 -n 12 --store votes.db --dry-run
    """
    from btdagg.judge.jobs import estimate
    from btdagg.judge.methods import asking_of, decide_by
    from btdagg.judge.pairs import read_pairs
    from btdagg.judge.stopping import differences, open_pairs
    from btdagg.judge.store import NoStoreError, VoteStore

    rule = None
    if stop is not None:
        if method != "sample":
            raise InputError("--stop is for --method sample")
        given = context.get_parameter_source("n")
        rule = load_rule(stop, None if given is None or given.name == "DEFAULT" else n, order)
        n = rule.n
    judging = options.judging_of(
        model=model,
        n=n,
        template=template,
        judge=name,
        order=order,
        temperature=temperature,
        reasoning_effort=reasoning_effort,
        max_answer_tokens=max_answer_tokens,
        confidence=confidence,
        allow_tie=allow_tie,
        structured=structured,
        concurrency=concurrency,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_cost=max_cost,
        price_in=price_in,
        price_out=price_out,
        timeout=timeout,
        attempts=attempts,
        samples_per_call=samples_per_call,
        retry=retry,
        values=values,
    )
    raw = tables_of(columns, pairs, *([] if labels is None else [labels]))
    several = read_pairs(raw[0])
    judging.prompt.check(several)
    for option, value in (
        ("--max-calls", max_calls),
        ("--max-tokens", max_tokens),
        ("--samples-per-call", samples_per_call),
    ):
        at_least(value, option, 1)
    examples = examples_of(method, several, raw[1] if labels else None, n_examples)
    if rule is not None:
        say_differences(differences(several, judging, rule))
        rule = replace(rule, model=replace(rule.model, provenance=None))  # which is said
    if several.n_identical:
        note(f"{several.n_identical} pairs of {pairs} have the same text on both sides")
    if dry_run:
        asking = judging
        if method in ("greedy", "few-shot"):
            asking = asking_of(method, judging, examples=examples)
        try:
            with VoteStore(store, create=False) as opened:
                wanted = several if rule is None else open_pairs(several, asking, rule, opened)
                found = estimate(wanted, asking, opened)
        except NoStoreError:
            wanted, found = several, estimate(several, asking)
        say_estimate(found, json)
        if rule is not None:
            note(_expected(rule, len(several) - len(wanted)))
        if method in ("gsa", "usc"):
            note(f"these are the samples; {method} makes a further call for each pair")
        return 0
    with VoteStore(store, keep_exchanges=not drop_exchanges) as opened:
        if method != "sample":
            by = partial(decide_by, method, several, judging, store=opened, examples=examples)
            total = judging.n * len(several)
            decisions = run_asking(by, total, judging, base_url, key_variable, stream)
            return say_decisions(decisions, store, json)
        if rule is not None:
            stopped = ask_by_rule(several, judging, rule, opened, base_url, key_variable, stream)
            return say_stopped(stopped, store, json)
        run = ask(several, judging, opened, base_url, key_variable, stream)
    return say_run(run, store, json)


def _expected(rule: StoppingRule, n_settled: int) -> str:
    others = f"{n_settled} pairs are settled; " if n_settled else ""
    told = f"{others}these are all votes of pairs that are not; the rule "
    if rule.votes is None:
        return f"{told}asks for fewer"
    return f"{told}is expected to ask for {rule.expected_votes:.2f} of {rule.n} a pair"


def examples_of(
    method: str, pairs: Pairs, labels: Table | None, n_examples: int | None
) -> list[tuple[Pair, int]]:
    """Examples of few-shot; other methods have none."""
    from btdagg.judge.examples import labelled_pairs
    from btdagg.judge.methods import METHODS

    if method not in ("sample", *METHODS):
        raise InputError(f"--method is {method!r}, want one of sample, {', '.join(METHODS)}")
    at_least(n_examples, "--examples", 1)
    if method != "few-shot":
        if labels is not None or n_examples is not None:
            raise InputError("--labels and --examples are for --method few-shot")
        return []
    if labels is None:
        raise InputError("--method few-shot wants --labels, for its examples")
    return labelled_pairs(pairs, labels, n_examples=n_examples)
