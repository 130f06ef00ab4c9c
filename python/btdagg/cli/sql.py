"""`btdagg sql`: a model to a SQL expression."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import btdagg
from btdagg.cli.console import write_data


def sql(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="What btdagg calibrate wrote.", show_default=False),
    ],
    dialect: Annotated[
        str, typer.Option("--dialect", "-d", help="duckdb, postgresql, sqlite or spark.")
    ] = "duckdb",
    minus: Annotated[str, typer.Option(help="Column of the votes for B.")] = "minus",
    tie: Annotated[str, typer.Option(help="Column of the ties.")] = "tie",
    plus: Annotated[str, typer.Option(help="Column of the votes for A.")] = "plus",
    max_votes: Annotated[
        int | None,
        typer.Option(
            help="Up to 200: look decisions up, without mathematical functions; items of more "
            "votes are NULL.",
            show_default="closed form",
        ),
    ] = None,
) -> None:
    """Print the decision as one SQL expression over three columns of counts.

    Example: btdagg sql model.json --dialect postgresql
    """
    fitted = btdagg.DavidsonModel.load(model)
    written = fitted.to_sql(dialect, minus=minus, tie=tie, plus=plus, max_votes=max_votes)
    write_data(f"{written}\n")
