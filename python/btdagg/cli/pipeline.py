"""`btdagg run`: pairs and a few labels to labels of all pairs.

Not in a file run.py, since `btdagg.cli.run` is the function that runs a command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import btdagg
from btdagg.cli import judge_options as options
from btdagg.cli.asking import ask, ask_by_rule
from btdagg.cli.common import Force, Json, files_read, note, print_json, progress_bar
from btdagg.cli.judge_words import say_run
from btdagg.cli.labelling import (
    Fitted,
    fit_tasks,
    label_items,
    names_of_files,
    save_fitted,
    votes_of,
)
from btdagg.cli.reporting import open_report, refuse_report, say_where
from btdagg.cli.score_table import evaluation_as_json, print_table
from btdagg.cli.stopping import Stopping, saved_as_dict, say_saved
from btdagg.cli.tables import Columns, tables_of
from btdagg.evaluation import Protocol, RandomSplits
from btdagg.evaluation import evaluate as run_evaluation
from btdagg.files import write_table
from btdagg.outputs import OutputFolder
from btdagg.report.sections import write_protocols, write_scores
from btdagg.report.study import Study
from btdagg.tables.table import refuse, text

if TYPE_CHECKING:
    from btdagg.judge.pairs import Pairs
    from btdagg.judge.stopping import RuleOf


# None has a name that a user's own file is likely to have.
_DECIDED, _VOTES, _EVALUATION = "decided.csv", "judged_votes.parquet", "evaluation.json"


def run(
    context: typer.Context,
    pairs: options.PairsFile,
    labels: Annotated[
        Path,
        typer.Option(
            "--labels",
            "-l",
            help="Gold labels of some pairs (columns item, label; optional task, group).",
            show_default=False,
        ),
    ],
    model: options.Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the results and, unless --store is given, of the votes.",
        ),
    ] = Path("out"),
    base_url: options.BaseUrl = None,
    key_variable: options.KeyVariable = "OPENAI_API_KEY",
    n: options.NVotes = 12,
    template: options.Template = "response",
    values: options.Values = None,
    store: Annotated[
        str | None,
        typer.Option("--store", "-s", help="As of btdagg judge.", show_default="in the folder"),
    ] = None,
    name: options.JudgeName = "",
    temperature: options.Temperature = "0.5",
    reasoning_effort: options.Effort = None,
    max_answer_tokens: options.MaxAnswerTokens = None,
    allow_tie: options.AllowTie = None,
    stream: options.Stream = False,
    concurrency: options.Concurrency = 16,
    requests_per_minute: options.Rpm = None,
    max_cost: options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    timeout: options.Timeout = 600.0,
    retry: options.Retry = "",
    stop: Annotated[
        str | None,
        typer.Option(
            help="Ask for fewer votes on pairs without a label: lossless (the very labels of all "
            "votes), epsilon=0.05 (so many may change), price=0.01 (of a vote, in units of error) "
            "or budget=5 (votes a pair).",
            show_default="all votes",
        ),
    ] = None,
    columns: Columns = None,
    splits: Annotated[int, typer.Option(help="Random splits of the evaluation.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the splits.")] = 0,
    force: Force = False,
    json: Json = False,
) -> int:
    """Judge pairs, calibrate on the labels, decide every pair, and say how good that is.

    Votes that are in the store are not asked for again: run it again after a stop, or with more
    labels. With --stop the labelled pairs get all votes, and the others as many as a rule wants
    that is learned from these. The folder gets decided.csv, a model for each task (and rule),
    evaluation.json, judged_votes.parquet and a report: report/index.html.

    Example: btdagg run pairs.jsonl --labels labels.csv --model gpt-5.4 -n 12 -o out
    """
    from btdagg.judge.pairs import read_pairs
    from btdagg.judge.runs import total_of
    from btdagg.judge.stopping import open_pairs
    from btdagg.judge.store import VoteStore, votes_frame

    judging = options.judging_of(
        model=model,
        n=n,
        template=template,
        judge=name,
        temperature=temperature,
        reasoning_effort=reasoning_effort,
        max_answer_tokens=max_answer_tokens,
        allow_tie=allow_tie,
        concurrency=concurrency,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=None,
        max_calls=None,
        max_tokens=None,
        max_cost=max_cost,
        price_in=price_in,
        price_out=price_out,
        timeout=timeout,
        attempts=8,
        retry=retry,
        values=values,
    )
    page = output / "report"
    reads = files_read(context, "output")
    refuse_report(page, reads, force)
    stopping = Stopping.parse(stop)
    if stopping is not None:
        stopping.refuse_out_of_range(n)
    raw_pairs, raw_labels = tables_of(columns, pairs, labels)
    several = _with_tasks(read_pairs(raw_pairs))
    judging.prompt.check(several)
    gold = btdagg.read_labels(raw_labels)
    labelled, others = several, None
    if stopping is not None:
        labelled, others = _parted(several, gold)
    tasks = _tasks(several, gold)
    folder = OutputFolder(output, reads=reads, force=force).claim(_files(tasks, stopping))
    output.mkdir(parents=True, exist_ok=True)
    place = store or str(output / "votes.db")
    endpoint = (base_url, key_variable, stream)
    stopped = None
    with VoteStore(place) as opened:
        asked = ask(labelled, judging, opened, *endpoint)
        if asked.stopped:
            return say_run(asked, place, json)
        votes = votes_of(votes_frame(opened, asked=judging.asked), judging.n, labelled)
        fitted, refused = fit_tasks(votes, gold, judging.n, stopping)
        if others is not None and len(others):
            others, rules = _with_rules(others, fitted)
            left = asked.left_of(judging.limits)
            if left is None and len(open_pairs(others, judging, rules, opened)):
                asked.stopped = "the caps are used up by the pairs with a label"
            elif left is not None:
                rest = replace(judging, limits=left)
                stopped = ask_by_rule(others, rest, rules, opened, *endpoint)
                asked = total_of([asked, stopped.run])
            if asked.stopped:
                return say_run(asked, place, json)
        mine = votes
        if others is not None:
            mine = votes_of(votes_frame(opened, asked=judging.asked), judging.n, several)
        everything = votes_frame(opened)
    if not json:
        say_run(asked, place, False)
        if stopped is not None:
            say_saved(stopped)
    with folder.replacing(_VOTES) as file:
        write_table(everything, file, ".parquet")
    decided = label_items(mine, gold, fitted)
    with folder.replacing(_DECIDED) as file:
        write_table(decided, file, ".csv")
    results: dict[str, Any] = {
        "n_items": decided.height,
        "models": save_fitted(fitted, folder, tasks),
        "not_decided": refused,
        "labels": str(output / _DECIDED),
        "evaluation": None,
    }
    if stopped is not None:
        results["stopped"] = saved_as_dict(stopped)
    # Under a rule only the labelled pairs have all votes, as the model that is scored wants them.
    protocol = Protocol(RandomSplits(n_splits=splits, seed=seed))
    study = Study(votes, gold, protocol=protocol, progress=progress_bar)
    try:
        with progress_bar("evaluating") as progress:
            evaluation = run_evaluation(votes, gold, protocol=protocol, progress=progress)
    except btdagg.InputError as error:
        note(f"not evaluated: {error}")
    else:
        results["evaluation"] = evaluation_as_json(evaluation, splits=splits, seed=seed)
        folder.write(_EVALUATION, dumps(results["evaluation"], indent=2) + "\n")
        if not json:
            print_table(evaluation)
        title = f"{judging.asked.judge} on {pairs.name}"
        with open_report(page, title, context, reads, force) as report:
            write_scores(report, evaluation)
            write_protocols(report, study)
        say_where(page)
    if json:
        print_json(results)
    return 0


def _tasks(pairs: Pairs, gold: btdagg.Labels) -> list[str]:
    """Tasks that there may be models of; none has a name where nothing says the tasks."""
    for table in (pairs, gold):
        if "task" in table.columns:
            named = text(table, "task").drop_nulls().unique(maintain_order=True)
            return named.to_list() or [""]
    return [""]


def _files(tasks: Sequence[str], stopping: Stopping | None) -> list[str]:
    """Files that a job may write, besides its store and its report."""
    models, rules = zip(*names_of_files(tasks).values(), strict=True)
    return [_DECIDED, _VOTES, _EVALUATION, *models, *(rules if stopping is not None else ())]


def _with_tasks(pairs: Pairs) -> Pairs:
    """Pairs with their tasks as text, if they have a column of them.

    Raises
    ------
    InputError
        If one has none; the message names the row.
    """
    if "task" not in pairs.columns:
        return pairs
    tasks = text(pairs, "task")
    refuse(pairs, tasks.is_null(), "task", "the name of a task, as other pairs have")
    return pairs.renumbered(pairs.frame.with_columns(tasks.alias("task")))


def _parted(pairs: Pairs, gold: btdagg.Labels) -> tuple[Pairs, Pairs]:
    """Pairs that have a label, and the others."""
    import polars as pl

    if "task" in gold.columns and "task" not in pairs.columns:
        raise btdagg.InputError(
            f"{pairs.source}: {gold.source} has a column task, and pairs without a label do not "
            "say theirs; want the column here too"
        )
    known = pl.col("item").cast(pl.String).is_in(text(gold, "item").implode())
    return (
        pairs.renumbered(pairs.frame.filter(known)),
        pairs.renumbered(pairs.frame.filter(~known)),
    )


def _with_rules(pairs: Pairs, fitted: Mapping[str, Fitted]) -> tuple[Pairs, RuleOf]:
    """Pairs whose task has a rule, and which; the others, which nothing could decide, are said."""
    import polars as pl

    rules = {task: one.rule for task, one in fitted.items() if one.rule is not None}
    if "task" not in pairs.columns:
        return pairs, lambda _: rules[""]
    known = pl.col("task").is_in(list(rules))
    rest = pairs.frame.filter(~known).height
    if rest:
        note(f"{rest} pairs are not judged, since no label is of their task")
    return pairs.renumbered(pairs.frame.filter(known)), lambda pair: rules[pair.fields["task"]]
