"""The commands, gathered."""

from __future__ import annotations

from typing import Annotated

import typer

from btdagg import __version__
from btdagg.cli.calibrate import calibrate
from btdagg.cli.decide import decide
from btdagg.cli.demo import demo
from btdagg.cli.evaluate import evaluate
from btdagg.cli.judge import judge
from btdagg.cli.pipeline import run
from btdagg.cli.plan import plan
from btdagg.cli.raters import raters
from btdagg.cli.serve import serve
from btdagg.cli.sql import sql
from btdagg.cli.votes import votes

app = typer.Typer(
    name="btdagg",
    help="Calibrated labels from the noisy three-way votes of LLM judges.\n\n"
    "Exit status: 0 done; 2 bad input, and nothing is written; 3 a cap ended the run; 70 a bug in "
    "btdagg; 130 Ctrl-C; 141 nobody reads the output any more.",
    epilog="Begin with: btdagg demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"btdagg {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
    debug: Annotated[  # taken out of the arguments before they are parsed, wherever it stands
        bool, typer.Option("--debug", help="Print the traceback of an error, too.")
    ] = False,
) -> None:
    """Calibrated labels from the noisy three-way votes of LLM judges."""


for command in (
    demo, run, judge, votes, evaluate, calibrate, plan, decide, raters, sql, serve
):  # fmt: skip
    app.command()(command)
