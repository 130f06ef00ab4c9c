"""`btdagg sql`: write a model as a SQL expression."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from btdagg._util.errors import expect
from btdagg.cli.common import model_or_panel, parse_pairs
from btdagg.cli.console import write_data
from btdagg.model.sql.dialects import DIALECTS


def sql(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model from btdagg calibrate, or a saved panel."),
    ],
    dialect: Annotated[
        Literal[tuple(DIALECTS)],  # type: ignore[valid-type]
        typer.Option("--dialect", "-d", help="SQL dialect."),
    ] = "duckdb",
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=COLUMN",
            help="Name a column: minus, tie or plus, the counts of an item's votes; mean, of "
            "grades; or a covariate of the model.",
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Print the columns of a query: label, p_minus, p_tie and p_plus, or p_ and each "
            "grade.",
        ),
    ] = False,
) -> None:
    """Print the decision of a model as one SQL expression.

    It reads columns of counts: minus, tie and plus for pairs, three columns for each judge of a
    panel, or mean for grades. The documentation has a query that counts a table of votes. Columns
    and words of btdagg.toml play no part.

    Example: btdagg sql model.json --dialect postgresql
    """
    fitted = model_or_panel(model)
    covariates = [covariate.name for covariate in fitted.covariates]
    counts = [] if fitted.judges else [*fitted.COLUMNS]
    named: dict[str, str] = {}
    for name, column in parse_pairs(keys, "keys"):
        allowed = [*counts, *covariates]
        expected = f"one of each of {', '.join(allowed)}" if allowed else "no names here"
        expect(name in allowed and name not in named, "keys", f"{name}={column}", expected)
        named[name] = column
    options: dict[str, Any] = {name: named.pop(name) for name in counts if name in named}
    written = fitted.to_sql(dialect, covariates=named, probabilities=probabilities, **options)
    write_data(f"{written}\n")
