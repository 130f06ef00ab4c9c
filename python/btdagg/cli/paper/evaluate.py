"""`btdagg paper evaluate`: compare aggregators on random splits, as the paper does."""

from __future__ import annotations

from typing import Annotated

import typer

from btdagg import Protocol
from btdagg.cli.common import Signs
from btdagg.cli.evaluate import Evaluated, compare
from btdagg.evaluation import PAPER_TEST, RandomSplits
from btdagg.paper import DavidsonMae
from btdagg.paper.conditions import COMPARED
from btdagg.paper.questions import QUESTIONS


def evaluate(
    evaluated: Evaluated,
    selection: Signs,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="weak|neighbours|none|FILE",
            help="As for btdagg evaluate.",
            show_default="none, the paper's fit",
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Number of items to calibrate on.", show_default="5%")
    ] = None,
    splits: Annotated[int, typer.Option(min=2, help="Number of random splits.")] = 100,
) -> None:
    """Compare methods on random splits that calibrate on few items, with the paper's test.

    Its own method davidson-mae fits by absolute error, the paper's ablation of the loss.

    Example: btdagg paper evaluate votes.parquet labels.csv --report out
    """
    protocol = Protocol(RandomSplits(size=size, n_splits=splits), PAPER_TEST)
    own = {"davidson-mae": DavidsonMae}
    compare(evaluated, selection, prior, protocol, QUESTIONS, COMPARED, own, splits=splits)
