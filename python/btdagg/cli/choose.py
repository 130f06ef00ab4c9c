"""`btdagg choose`: draw the items to label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import btdagg
from btdagg._util.files import write_table
from btdagg._util.outputs import table_if_any
from btdagg.cli.common import (
    Columns,
    Filters,
    Json,
    VotesFile,
    files_read,
    filtered,
    out,
    print_json,
    say_what_is_pooled,
    table_to_write,
    tables_of,
)
from btdagg.cli.console import write_data
from btdagg.estimates.sample_design import WHOLE, ChosenItems, Design
from btdagg.estimates.to_label import Drawing
from btdagg.report.table import Entry

if TYPE_CHECKING:
    import polars as pl


def choose(
    context: typer.Context,
    votes: VotesFile,
    n: Annotated[
        int,
        typer.Option(
            "--items",
            help="How many items to draw, those of --after among them; with --group, how many "
            "groups.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the items to this file: .csv, .tsv, .jsonl, .ndjson or .parquet.",
            show_default="standard output, as CSV",
            rich_help_panel="Output",
        ),
    ] = None,
    design: Annotated[
        Design | None,
        typer.Option(
            help="simple: any items are as likely as any others. stratified: each stratum of items "
            "with like votes has its share.",
            show_default="simple, or that of --after",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Column of the votes, such as prompt: draw whole groups of items that share a "
            "value.",
            show_default="single items",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the draw.", show_default="0, or that of --after"),
    ] = None,
    after: Annotated[
        Path | None,
        typer.Option(
            help="Top up: a file that this command wrote, with its labels. Its rows come first, "
            "with the probabilities of the larger sample.",
            show_default=False,
        ),
    ] = None,
    filters: Filters = None,
    columns: Columns = None,
    json: Json = False,
) -> None:
    """Draw the items to label by chance, and write with what probability each was drawn.

    The columns are item, task and group where there are any, stratum, probability, design, seed,
    round and an empty label to fill in. btdagg estimate reads the file as it is then. The same
    votes and seed give the same items on every machine, whatever the order of the rows.

    Example: btdagg choose votes.csv --items 50 -o to_label.csv
    """
    table_to_write("--output", output, files_read(context, "output"))
    if output is not None:
        _refuse_to_lose_labels(output)
    places = [votes] if after is None else [votes, after]
    raw_votes, *before = tables_of(columns, *places)
    table = filtered(btdagg.read_votes(raw_votes), filters)
    drawing = Drawing(table, None if group is None else group.strip().lower())
    if before:
        chosen, frame = drawing.more(n, before[0], design, seed)
    else:
        chosen, frame = drawing.first(n, design or "simple", seed or 0)
    say_what_is_pooled(table, "takes", ["task"])
    if output is None:
        write_data(frame.write_ndjson() if json else frame.write_csv())
        return
    write_table(frame, output, output.suffix)
    if json:
        print_json({**_as_json(chosen, frame, group), "output": str(output)})
        return
    _show(chosen, frame, group, output)


def _refuse_to_lose_labels(path: Path) -> None:
    """Raise an `InputError` if somebody has added labels to a file that this command wrote."""
    existing = table_if_any(path)
    if existing is not None and "label" in existing and existing["label"].count():
        raise btdagg.InputError(f"--output is {path}, which has labels; choose another name")


def _show(chosen: ChosenItems, frame: pl.DataFrame, group: str | None, output: Path) -> None:
    strata = _strata(chosen)
    what = "item" if group is None else "group"
    if list(strata) != [WHOLE]:
        header = ["stratum", f"{what}s", "drawn", "probability"]
        rows = [
            [
                Entry(name),
                Entry(f"{one['n_units']:,}"),
                Entry(f"{one['n']:,}"),
                Entry(f"{one['probability']:.3f}"),
            ]
            for name, one in strata.items()
        ]
        out.print_rows(header, rows, 1)
    n_new = int((frame["round"] == frame["round"].max()).sum())
    items = "" if group is None else f" with {frame.height:,} items"
    added = f", {n_new:,} items of them new" if n_new < frame.height else ""
    share = "" if len(strata) > 1 else f", probability {chosen.n / chosen.n_units:.3g}"
    out.print(
        f"drew {chosen.n:,} of {chosen.n_units:,} {what}s{items}{added}: {chosen.design} sample, "
        f"seed {chosen.seed}{share}; wrote {output}",
        soft_wrap=True,
    )


def _as_json(chosen: ChosenItems, frame: pl.DataFrame, group: str | None) -> dict[str, Any]:
    return {
        "design": chosen.design,
        "seed": chosen.seed,
        "unit": "item" if group is None else "group",
        "n": chosen.n,
        "n_units": chosen.n_units,
        "n_items": frame.height,
        "n_new_items": int((frame["round"] == frame["round"].max()).sum()),
        "strata": [{"stratum": name, **one} for name, one in _strata(chosen).items()],
    }


def _strata(chosen: ChosenItems) -> dict[str, dict[str, Any]]:
    """Return how many units each stratum has, and how many were drawn."""
    import numpy as np

    drawn = np.unique(chosen.units[chosen.rows])
    units, first = np.unique(chosen.units, return_index=True)
    strata, found = chosen.strata[first], {}
    for name in sorted(set(strata.tolist())):
        inside = strata == name
        n, n_units = int(np.isin(units[inside], drawn).sum()), int(inside.sum())
        found[name] = {"n_units": n_units, "n": n, "probability": n / n_units}
    return found
