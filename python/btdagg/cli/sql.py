"""`btdagg sql`: write a model as a SQL expression."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import btdagg
from btdagg.cli.console import write_data


def sql(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model from btdagg calibrate.", show_default=False),
    ],
    dialect: Annotated[
        str,
        typer.Option("--dialect", "-d", help="SQL dialect: duckdb, postgresql, sqlite or spark."),
    ] = "duckdb",
    minus: Annotated[str, typer.Option(help="Column that counts votes for B.")] = "minus",
    tie: Annotated[str, typer.Option(help="Column that counts ties.")] = "tie",
    plus: Annotated[str, typer.Option(help="Column that counts votes for A.")] = "plus",
    max_votes: Annotated[
        int | None,
        typer.Option(
            help="Look decisions up instead of computing them, for databases without mathematical "
            "functions. Items with more votes get NULL; at most 200.",
            show_default="closed form",
        ),
    ] = None,
) -> None:
    """Print the decision of a model as one SQL expression over three columns of counts.

    Example: btdagg sql model.json --dialect postgresql
    """
    fitted = btdagg.DavidsonModel.load(model)
    written = fitted.to_sql(dialect, minus=minus, tie=tie, plus=plus, max_votes=max_votes)
    write_data(f"{written}\n")
