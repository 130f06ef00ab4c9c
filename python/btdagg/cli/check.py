"""`btdagg check`: what is in files, and what to do next."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from btdagg.cli.common import Json, print_json, say, say_in_words


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Votes, labels or pairs: tables, vote stores, and files of other tools.",
        ),
    ],
    json: Json = False,
) -> None:
    """Say what is in files, what is wrong with it, what it can support, and what to do next.

    Votes and labels that are named together are looked at together. A table with columns of your
    own is read as far as its names and words tell; what they do not tell is left open with "...".

    Example: btdagg check votes.csv labels.csv
    """
    from btdagg.check import check as look

    checked = look(files)
    if json:
        print_json(asdict(checked))
        return
    for line in str(checked).splitlines():  # a command is copied whole
        (say if line.startswith("Next") else say_in_words)(line)
