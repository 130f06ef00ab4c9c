"""`btdagg label`: a page on which people label pairs, or grade responses."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from btdagg._util.errors import InputError, forbid
from btdagg._util.outputs import require_file, require_no_link
from btdagg.cli.common import (
    ProjectOption,
    note,
    parse_pairs,
    say,
)
from btdagg.cli.flags import TABLE

if TYPE_CHECKING:
    import polars as pl

    from btdagg.judge.pairs import Pairs
    from btdagg.labelling import LabelStore
    from btdagg.votes import Table

TOKEN = "BTDAGG_LABEL_TOKEN"


def label(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Write the labels to this file: .csv, .tsv, .jsonl, .ndjson or .parquet. The file "
            "is updated as labels come in.",
        ),
        TABLE,
    ],
    reading: ProjectOption,
    pairs: Annotated[
        str | None,
        typer.Argument(
            metavar="PAIRS",
            help="Pairs (columns item, a, b; optional prompt, reference), or single responses to "
            "grade (item, response; optional prompt, reference, rubric, criterion) on the "
            "scale of --set labels.scale=1-5 (or 0,0.5,1, or pass/fail). Criteria of the same "
            "item are on one page. .jsonl, .csv, .tsv or .parquet.",
            show_default="of btdagg.toml",
        ),
    ] = None,
    criteria: Annotated[
        list[str] | None,
        typer.Option(
            "--criterion",
            metavar="NAME=RUBRIC",
            help="Criterion by which every response is graded; repeat for more.",
            show_default="the column criterion, or one grade",
        ),
    ] = None,
    drawn: Annotated[
        Path | None,
        typer.Option(
            help="The items to label, in this order: the file of btdagg choose, or another with a "
            "column item (optional probability and group, which are copied to the labels).",
            show_default="all pairs, in a random order",
        ),
    ] = None,
    n_items: Annotated[
        int | None,
        typer.Option("--items", min=1, help="Label the first N items.", show_default="all"),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Option(
            help="Votes of the judge, for the estimate that is printed at the end. Raters never "
            "see them.",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            "-s",
            help="Store of the labels: a file (SQLite), or postgresql://user@host/database.",
            show_default="the output's name with .db",
        ),
    ] = None,
    export: Annotated[
        bool,
        typer.Option(
            "--export",
            help="Write the labels of the store to the output, without serving a page.",
        ),
    ] = False,
    disputed: Annotated[
        bool, typer.Option("--disputed", help="Show a rater only items on which others disagree.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; one that other machines can reach needs --behind-proxy."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8000,
    behind_proxy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A proxy serves the page by HTTPS under this name (and :port, unless 443).",
        ),
    ] = None,
) -> None:
    """Label pairs, or grade responses, on a page in the browser; Ctrl-C ends it.

    Open the address that is printed. Each label is stored before the page shows the next pair, and
    re-running the command continues the work. Raters enter their names on the page; several can
    work at the same time. Responses are shown in random order, without ids or names of models.

    The columns are item, rater, label, seconds, note, and criterion if there is one. A skipped pair
    has no label. If raters disagree, the key raters says how other commands read the labels.

    The address contains a token, which is new for each run unless the environment variable
    BTDAGG_LABEL_TOKEN is set.

    Example: btdagg label pairs.jsonl -o human.csv --items 50
    """
    place = store if store is not None else str(output.with_suffix(".db"))
    if store is None:
        require_no_link(place)
    require_file("output", output, reads=[place])
    from btdagg.judge.pairs import read_pairs
    from btdagg.labelling import Assignment, LabelStore, Outcome, Session, serve_labels
    from btdagg.votes.grades import scale_in
    from btdagg.votes.scale import PAIRS
    from btdagg.votes.sides import sides_of
    from btdagg.votes.votes import read_votes

    project = reading.project
    pairs = project.place("pairs", pairs)
    raw = project.read(("pairs", pairs), ("labels", drawn), ("votes", votes))
    asked = dict(parse_pairs(criteria, "criteria", "NAME=RUBRIC"))
    all_pairs = read_pairs(raw[0], criteria=asked)
    chosen = (
        None if drawn is None else _chosen(raw[1], has_criteria="criterion" in all_pairs.columns)
    )
    scale = project.scale("labels") or PAIRS
    of_judge = None
    if votes is not None:
        judge_scale = scale
        with suppress(InputError):  # a judge may have a scale of its own
            judge_scale = scale_in(raw[-1])
        of_judge = read_votes(
            raw[-1], scale=judge_scale if judge_scale.mode == scale.mode else scale
        )
    called = sides_of(all_pairs, project.setting("a"), project.setting("b"), scale=scale)
    if n_identical := all_pairs.n_identical:
        note(f"{n_identical} pairs of {pairs} have the same text on both sides")
    with LabelStore(place, create=not export) as opened:
        order, of_item = None, None
        if chosen is not None:
            order = chosen["item"].unique(maintain_order=True).to_list()
            if "criterion" in chosen.columns:
                of_item = dict(chosen.group_by("item").agg("criterion").iter_rows())
        assignment = Assignment(all_pairs, order, n_items, scale=scale, criteria=of_item)
        outcome = Outcome(assignment, _carried(all_pairs, chosen), of_judge, called)
        session = Session(opened, assignment, outcome, disputed=disputed)
        _refuse_to_lose(output, opened)

        def write() -> None:
            if answers := opened.answers():  # a table without rows is none
                outcome.save(answers, output)

        forbid(export and not opened.answers(), f"{opened.name} has no labels to write")
        write()
        if not export:
            serve_labels(
                session,
                write,
                lambda address: say(f"open {address}"),
                host=host,
                port=port,
                behind_proxy=behind_proxy,
                token=os.environ.get(TOKEN),
            )
            write()
        answers = opened.answers()
        for line in outcome.lines([answer for answer in answers if answer.item in assignment]):
            say(line)
        written = f"wrote {output}" if answers else f"nothing to write to {output} yet"
        say(f"{written}; the labels are kept in {opened.name}")


def _chosen(table: Table, *, has_criteria: bool) -> pl.DataFrame:
    """Items to label with what goes to their labels; ids as text; the task is their criterion."""
    import polars as pl

    from btdagg.votes.schema import fractions, groups, ids, names, parse
    from btdagg.votes.source import with_item
    from btdagg.votes.table import refuse_duplicates, require

    table = with_item(table)
    require(table, ["item"])
    if has_criteria and "task" in table.columns and "criterion" not in table.columns:
        table = table.with_data(table.data.rename({"task": "criterion"}))
    carried = ("probability", "group", "criterion" if has_criteria else "task")
    kinds = {"item": ids, "probability": fractions, "group": groups, carried[-1]: names}
    table = parse(table, kinds)
    kept = [name for name in carried if name in table.columns]
    refuse_duplicates(table, ["item", *(["criterion"] if "criterion" in kept else [])])
    return table.frame.select(pl.col("item").cast(pl.String), *kept)


def _carried(pairs: Pairs, chosen: pl.DataFrame | None) -> pl.DataFrame | None:
    # What goes to the labels besides what raters say, by item.
    import polars as pl

    from btdagg.votes.schema import groups, names, parse

    chosen_columns = [] if chosen is None else chosen.columns
    kinds = {"group": groups, "task": names}
    more = {
        name: kind
        for name, kind in kinds.items()
        if name in pairs.columns and name not in chosen_columns
    }
    frame = parse(pairs, more).frame.select(pl.col("item").cast(pl.String), *more)
    frame = frame.unique("item", keep="first", maintain_order=True)  # of rows by criteria
    if chosen is not None:
        frame = frame.join(chosen, on="item", how="left")
    return frame if frame.width > 1 else None


def _refuse_to_lose(path: Path, store: LabelStore) -> None:
    """Refuse a file with labels that the store does not have: they would be gone."""
    import polars as pl

    from btdagg.votes.source import table_if_any

    existing = table_if_any(path)
    if existing is None or not {"item", "label"} <= set(existing.columns):
        return
    key = ("item", "rater", "criterion")
    missing = [pl.lit(None).alias(name) for name in key if name not in existing.columns]
    existing = existing.with_columns(missing).select(pl.col(key).cast(pl.String))
    kept = {(answer.item, answer.rater, answer.criterion) for answer in store.answers()}
    for item, rater, criterion in existing.iter_rows():
        if (item, rater, criterion or "") not in kept:
            raise InputError(
                f"output is {path}, which has a label of item {item!r} by {rater} that is not in "
                f"{store.name}; use the store that it came from, or another output",
                argument="output",
            )
