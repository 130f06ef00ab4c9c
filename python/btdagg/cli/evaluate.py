"""`btdagg evaluate`: votes and labels to a comparison of aggregators."""

from __future__ import annotations

from typing import Annotated

import typer

import btdagg
from btdagg.aggregators import AGGREGATORS, by_name
from btdagg.cli.common import (
    Filters,
    Json,
    LabelsFile,
    VotesFile,
    at_least,
    filtered,
    note,
    print_json,
    progress_bar,
    say_what_is_pooled,
)
from btdagg.cli.score_table import evaluation_as_json, print_table
from btdagg.evaluation import evaluate as run_evaluation


def evaluate(
    votes: VotesFile,
    labels: LabelsFile,
    filters: Filters = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Columns, with commas between; each of their values is a line.",
            show_default="task,judge where there are such columns",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, with commas between: " + ", ".join(AGGREGATORS) + ". soft-sc and ci-sc "
            "want the confidences of votes; gsa and usc are columns of decisions (gsa_4 with "
            "--votes 4).",
            show_default="davidson,majority",
        ),
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            help="Column of the confidences of votes, numbers of at least 0.",
            show_default="confidence, where there is one",
        ),
    ] = None,
    n_votes: Annotated[
        str | None,
        typer.Option(
            "--votes",
            "-n",
            help="Votes per item, with commas between: the first so many of each item.",
            show_default="all",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help="Share of the items to calibrate on.", show_default="0.05"),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(help="Number of items to calibrate on instead.", show_default=False),
    ] = None,
    splits: Annotated[int, typer.Option(help="Random splits, at least 2.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the splits.")] = 0,
    json: Json = False,
) -> None:
    """Compare the calibrated model with other methods on random splits of your labelled items.

    Each split calibrates on a small share of the items and scores the rest: mean absolute error
    (MAE, lower is better) and pairwise accuracy (higher is better), with 95% intervals of the
    mean over the splits.

    Example: btdagg evaluate votes.parquet labels.csv --filter template=base --votes 4,8
    """
    at_least(splits, "--splits", 2)
    table = filtered(btdagg.read_votes_or_counts(votes), filters)
    gold = btdagg.read_labels(labels)
    with progress_bar("evaluating") as progress:
        evaluation = run_evaluation(
            table,
            gold,
            by=None if by is None else [column.strip().lower() for column in by.split(",")],
            n_votes=_budgets(n_votes),
            aggregators=None if methods is None else by_name(methods.split(",")),
            confidence=None if confidence is None else confidence.strip().lower(),
            share=share,
            size=size,
            n_splits=splits,
            seed=seed,
            progress=progress,
        )
    if isinstance(table, btdagg.Votes):
        # Missing votes are among the remarks of the evaluation.
        say_what_is_pooled(table, "takes", evaluation.by, missing=False)
    if json:
        print_json(
            evaluation_as_json(evaluation, splits=splits, seed=seed, n_unlabelled=gold.n_missing)
        )
        return
    print_table(evaluation)
    if gold.n_missing:
        note(f"{gold.n_missing} rows of {labels} have no label and are left out")


def _budgets(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        budgets = [int(number) for number in text.split(",")]
    except ValueError:
        raise btdagg.InputError(
            f"--votes is {text!r}, want whole numbers with commas between, such as 4,8"
        ) from None
    if min(budgets) < 1:
        raise btdagg.InputError(f"--votes is {text!r}, want whole numbers of at least 1")
    return budgets
