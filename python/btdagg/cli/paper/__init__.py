"""`btdagg paper`: what serves the paper's tables alone."""

from __future__ import annotations

import typer

from btdagg.cli.flags import with_flags
from btdagg.cli.paper.evaluate import evaluate
from btdagg.cli.paper.raters import raters
from btdagg.cli.paper.votes import votes

paper = typer.Typer(
    name="paper",
    help="Reproduce the paper's tables: random splits, raters left out one by one, tie rates, "
    "errors by order.\n\nExample: btdagg paper raters ratings.csv votes.parquet --filter "
    "judge=gpt-5.4 --report out",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
for command in (evaluate, raters, votes):
    paper.command()(with_flags(command))
