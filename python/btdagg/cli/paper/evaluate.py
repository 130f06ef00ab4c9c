"""`btdagg paper evaluate`: compare aggregators on random splits, as the paper does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from btdagg import Protocol
from btdagg._util.lazy import pl
from btdagg.cli.common import Reading, Signs
from btdagg.cli.evaluate import Additions, Evaluated, compare
from btdagg.evaluation import PAPER_TEST, RandomSplits
from btdagg.paper import DavidsonMae
from btdagg.paper.conditions import COMPARED
from btdagg.paper.questions import QUESTIONS

if TYPE_CHECKING:
    from btdagg import Votes

_VARIED = ("template", "temperature")  # columns of the ablations


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
    additions = Additions(QUESTIONS, COMPARED, {"davidson-mae": DavidsonMae}, _varied)
    compare(evaluated, selection, prior, protocol, additions, splits=splits)


def _varied(used: Votes, evaluated: Evaluated, reading: Reading) -> dict[str, Votes]:
    """Return the votes for the ablation of each column, without the filters on that column."""
    varied = {}
    for column in _VARIED:
        filters = [
            text for text in reading.filters or () if text.partition("=")[0].strip() != column
        ]
        votes = used
        if len(filters) < len(reading.filters or ()):
            wider = replace(reading, filters=filters)
            votes = wider.data(evaluated.votes, evaluated.labels).votes
        if votes.are_counts or column not in votes.columns:
            continue
        by = [name for name in ("task", "judge") if name in votes.columns]
        # Of the parts within which the values of the column differ.
        parts = [
            part for _, part in votes.partition(by) if part.values(column).drop_nulls()[1:].len()
        ]
        if parts:
            varied[column] = votes.with_data(pl.concat([part.numbered() for part in parts]))
    return varied
