"""The command group `btdagg`."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from btdagg import __version__
from btdagg._util.extensions import imported
from btdagg.cli.flags import with_flags

# Modules of commands that are not called like the command.
_MODULES = {"run": "pipeline", "import": "imports"}
COMMANDS = {
    "demo": "See what calibration does, on simulated judges.",
    "run": "Judge pairs, calibrate, label every pair, and evaluate the result.",
    "choose": "Draw a random sample of items to label.",
    "label": "Label pairs by hand, on a page in the browser.",
    "judge": "Ask a judge for votes on pairs.",
    "batch": "Ask a judge in batches, at half the price.",
    "import": "Import votes that other tools have collected.",
    "check": "Describe files, what is wrong with them, and what to do next.",
    "votes": "Summarize votes, or export a vote store.",
    "evaluate": "Compare the calibrated model with other methods on labelled items.",
    "compare": "Say which of two judges, prompts, numbers of votes or methods is better.",
    "difference": "Say whether two systems differ by more than chance, by their scores.",
    "calibrate": "Fit the model to the votes of labelled items.",
    "estimate": "Estimate win rates over all items, from labels of some.",
    "gate": "Stop a release that is worse than the current version.",
    "rejudge": "Carry a calibration over to a new judge.",
    "bias": "Say what the judge favours, such as length or a system.",
    "certify": "Certify which labels agree with people as often as asked.",
    "plan": "Make a stopping rule and forecast what it saves.",
    "decide": "Decide the label of every item.",
    "sql": "Print a model as a SQL expression.",
    "serve": "Serve decisions over HTTP.",
    "paper": "Reproduce the paper's tables.",
}
"""The commands in the order of `btdagg --help`, and what each does."""


class _Commands(TyperGroup):
    """The commands. Each is imported when it is used, because imports take most of the start."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            module = imported(f"btdagg.cli.{_MODULES.get(cmd_name, cmd_name)}")
            # A name that Python keeps for itself has an underscore.
            command: Any = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")
            if not isinstance(command, typer.Typer):
                alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
                alone.command(cmd_name)(with_flags(command))
                command = alone
            command = typer.main.get_command(command)
            for subcommand in (command, *getattr(command, "commands", {}).values()):
                _show_no_types_of_flags(subcommand)
                # Lines are the terminal's; paragraphs are kept.
                subcommand.help = re.sub(r"(?<!\n)\n(?!\n)", " ", subcommand.help or "")
            self.commands[cmd_name] = command
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_params(self, ctx: Any) -> Any:
        return _show_no_types_of_flags(self, super().get_params(ctx))


def _show_no_types_of_flags(command: Any, parameters: Any = None) -> Any:
    """A flag takes no value, and Typer's help would show ``<bool>``."""
    parameters = command.get_params(typer.Context(command)) if parameters is None else parameters
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


app = typer.Typer(
    name="btdagg",
    cls=_Commands,
    help="Calibrated labels from the noisy votes and grades of LLM judges.\n\n"
    "Exit status: 0 done; 1 a release gate did not pass; 2 bad input, nothing written; 3 a limit "
    "ended the run, or votes are missing; 70 a bug in btdagg; 130 Ctrl-C; 141 the reader of the "
    "output went away.",
    epilog="To start: btdagg demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich takes as long to import as all that the help needs
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_given: bool) -> None:
    if is_given:
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
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            metavar="FILE",
            help="Project file, which says how data are read; btdagg check --save writes one.",
            show_default="btdagg.toml, if it is in the working directory",
        ),
    ] = None,
    debug: Annotated[  # removed from the arguments before they are parsed
        bool, typer.Option("--debug", help="Also print the traceback of an error.")
    ] = False,
) -> None:
    """Calibrated labels from the noisy votes and grades of LLM judges."""
