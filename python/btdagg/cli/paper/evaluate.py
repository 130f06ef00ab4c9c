"""`btdagg paper evaluate`: compare aggregators on random splits, as the paper does."""

from __future__ import annotations

from typing import Annotated

import typer

from btdagg.cli.common import Columns, Filters, Force, Json, LabelsFile, VotesFile, at_least
from btdagg.cli.evaluate import By, Methods, NumbersOfVotes, compare
from btdagg.cli.prior import PriorOption
from btdagg.cli.reporting import ReportOption
from btdagg.evaluation import PAPER_TEST, Protocol, RandomSplits, SplitTest


def evaluate(
    context: typer.Context,
    votes: VotesFile,
    labels: LabelsFile,
    filters: Filters = None,
    columns: Columns = None,
    by: By = None,
    methods: Methods = None,
    n_votes: NumbersOfVotes = None,
    prior: PriorOption = None,
    size: Annotated[
        int | None, typer.Option(help="Number of items to calibrate on.", show_default="5%")
    ] = None,
    splits: Annotated[int, typer.Option(help="Number of random splits, at least 2.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the splits.")] = 0,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Test exactly, and combine the p-values of splits by twice their median, which "
            "is valid for dependent splits; else by 100 random sign patterns and the mean.",
        ),
    ] = False,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="Numbers of labels in the report's sweep, separated by commas.",
            show_default="20,40,...,200, as far as there are items",
        ),
    ] = None,
    report: ReportOption = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Compare methods on random splits that calibrate on few items, with the paper's test.

    Example: btdagg paper evaluate votes.parquet labels.csv --prior none --report out
    """
    at_least(splits, "--splits", 2)
    test = PAPER_TEST
    if exact:
        test = SplitTest()
    protocol = Protocol(RandomSplits(size=size, n_splits=splits, seed=seed), test)
    settings = {"splits": splits, "seed": seed}
    compare(
        context, protocol, settings, by, methods, prior, n_votes=n_votes, json=json, sizes=sizes
    )
