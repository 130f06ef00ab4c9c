"""`btdagg choose`: draw the items to label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from btdagg._util.errors import InputError
from btdagg._util.files import write_table
from btdagg.cli.common import (
    Reading,
    Signs,
    TableOutput,
    VotesFile,
    differences_said,
    model_or_panel,
    note,
    out,
    say,
    what_is_pooled,
)
from btdagg.cli.console import write_data
from btdagg.questions.choose import WHOLE, ChosenItems, Design, Drawing
from btdagg.result import Entry


def choose(
    n: Annotated[
        int,
        typer.Option(
            "--items",
            help="Number of items to draw, including those of --after; with --group, number of "
            "groups.",
        ),
    ],
    selection: Signs,
    votes: VotesFile = None,
    output: TableOutput = None,
    design: Annotated[
        Design | None,
        typer.Option(
            help="simple: every item is equally likely. stratified: items with similar votes (with "
            "--model: similar expected labels) form strata, and each stratum gets its share.",
            show_default="simple; stratified with --model; with --after that of the earlier sample",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A model calibrated on other labels; strata then follow the labels it expects."
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Draw whole groups: items that share a value of this column of the votes, such as "
            "prompt.",
            show_default="single items",
        ),
    ] = None,
    after: Annotated[
        Path | None,
        typer.Option(
            help="Enlarge an earlier sample: a file that this command wrote, with its labels. Its "
            "rows come first, with the probabilities of the larger sample.",
        ),
    ] = None,
) -> None:
    """Draw a random sample of items to label, and write each item's probability of being drawn.

    The columns are item, task and group if there are any, unit (whether items or groups were
    drawn), stratum, probability, least_probability (the lowest probability of any item), design,
    seed, round, and an empty label to fill in. btdagg estimate reads the filled-in file. The same
    votes give the same sample on every machine, in any order of the rows.

    Example: btdagg choose votes.csv --items 50 -o to_label.csv
    """
    if output is not None:
        _refuse_to_lose_labels(output)
    project = selection.project
    sources = (("votes", project.place("votes", votes)), ("labels", after))
    raw_votes, *before = project.read(*sources)
    (kept_votes,), fitted = selection.filtered(raw_votes), None
    if model is None:
        table = selection.votes(kept_votes)
    else:  # which may have been fitted to votes with a strength
        fitted = model_or_panel(model)
        reading = Reading(typed=selection.typed, keys=selection.keys, filters=selection.filters)
        table = reading.votes(kept_votes, fitted)
    with differences_said():
        drawing = Drawing(table, None if group is None else group.strip().lower(), fitted)
    if before:
        chosen, frame = drawing.more(n, before[0], design)
    else:
        chosen, frame = drawing.first(n, design or ("stratified" if model else "simple"), 0)
    note(*what_is_pooled(table, "takes", ["task"]))
    if output is None:
        write_data(frame.write_csv())
        return
    write_table(frame, output, output.suffix)
    n_new = int((frame["round"] == frame["round"].max()).sum())
    strata, unit = _strata(chosen), "item" if group is None else "group"
    if strata[0][0] != WHOLE:
        rows = [
            [Entry(name), *(Entry(f"{k:,}") for k in (n_units, n_drawn)), Entry(f"{part:.3f}")]
            for name, n_units, n_drawn, part in strata
        ]
        out.print_rows(["stratum", f"{unit}s", "drawn", "probability"], rows, 1)
    items = "" if group is None else f" with {frame.height:,} items"
    added = f", {n_new:,} of them new" if n_new < frame.height else ""
    share = "" if len(strata) > 1 else f", probability {chosen.n / chosen.n_units:.3g}"
    say(
        f"drew {chosen.n:,} of {chosen.n_units:,} {unit}s{items}{added}: {chosen.design} sample, "
        f"seed {chosen.seed}{share}; wrote {output}"
    )


def _refuse_to_lose_labels(path: Path) -> None:
    from btdagg.votes.source import table_if_any

    existing = table_if_any(path)
    if existing is not None and "label" in existing and existing["label"].count():
        raise InputError(
            f"output is {path}, which already has labels; choose another name", argument="output"
        )


def _strata(chosen: ChosenItems) -> list[tuple[str, int, int, float]]:
    drawn = np.isin(np.arange(chosen.n_units), chosen.units[chosen.rows])
    _, first = np.unique(chosen.units, return_index=True)
    of = chosen.strata[first]
    return [
        (name, int((of == name).sum()), int(drawn[of == name].sum()), drawn[of == name].mean())
        for name in sorted(set(of.tolist()))
    ]
