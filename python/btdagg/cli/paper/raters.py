"""`btdagg paper raters`: score each human rater, and a judge, against the other raters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from btdagg import InputError
from btdagg.cli.common import Json, Signs, Splits, progress_bar
from btdagg.cli.reporting import (
    ReportOption,
    numbers_of_votes,
    protocol_of,
    show_exhibits,
)
from btdagg.methods import by_name
from btdagg.paper import leave_one_rater_out, read_ratings
from btdagg.paper.tables import raters_table


def raters(
    selection: Signs,
    reporting: ReportOption,
    ratings: Annotated[
        Path | None,
        typer.Argument(
            metavar="RATINGS",
            help="Votes of human raters (columns item, rater, vote; optional group, whose items "
            "stay together): .csv, .tsv, .jsonl (each also .gz) or .parquet; - is standard input.",
            show_default="labels of btdagg.toml",
        ),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Argument(
            metavar="VOTES",
            help="Votes or counts of one judge on the same items; without them only raters are "
            "compared.",
            show_default="of btdagg.toml, if it has any",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="Method that turns the judge's votes into labels; see btdagg evaluate."),
    ] = "davidson",
    n_votes: Annotated[
        str | None,
        typer.Option(
            "-n",
            help="Numbers of the judge's votes per item, separated by commas.",
            show_default="all",
        ),
    ] = None,
    splits: Splits = None,
    json: Json = False,
) -> None:
    """Score every human rater, and a judge, against the majority vote of the other raters.

    Each rater in turn is left out, and the majority vote of the others is the gold label (a tie if
    several labels have the most votes). The judge is cross-fitted on these labels; judge and rater
    are scored on held-out items. --filter applies to the ratings, to the judge's votes, or to both,
    depending on which have the column.

    Example: btdagg paper raters ratings.csv votes.parquet --filter judge=gpt-5.4 --report out
    """
    project = selection.project
    ratings = project.place("labels", ratings)
    if votes is None and project.file("votes") is not None:
        votes = project.place("votes")
    if votes is None and n_votes is not None:
        raise InputError(
            "n_votes needs the votes of a judge, and none are given", argument="n_votes"
        )
    budgets = numbers_of_votes(n_votes)
    sources = (("labels", ratings), ("votes", votes))
    raw_ratings, *raw_votes = selection.filtered(*project.read(*sources))
    sheet = read_ratings(raw_ratings, words=project.how_labelled["words"])
    table = selection.votes(raw_votes[0]) if raw_votes else None
    if table is not None:
        table.refuse_of_counts(n_votes=budgets)
    (aggregator,) = by_name([method])
    folder = reporting.open(project, f"Raters of {Path(sheet.source).name}")
    n_used: list[int | None] = [None] if budgets is None else [*budgets]
    with progress_bar("comparing") as progress:
        step = progress(len(sheet.raters) * len(n_used))
        scores = [
            leave_one_rater_out(
                sheet,
                table,
                aggregator,
                n_votes=n,
                group="group" if "group" in sheet.columns else None,
                protocol=protocol_of(splits),
                progress=step,
            )
            for n in n_used
        ]
    printed = raters_table(dict(zip(n_used, scores, strict=True)))
    n_raters = sheet.counts()
    n_disputed = int(((n_raters > 0).sum(axis=1) > 1).sum())
    remarks = []
    if n_disputed:
        remarks.append(
            f"raters disagree on {n_disputed} of {int((n_raters.sum(axis=1) > 1).sum())} items "
            "with several raters; gold is the label of most of the other raters, or a tie if "
            "several labels have the most votes"
        )
    show_exhibits(
        [printed],
        folder,
        "raters",
        "Whether the judge is as good as a human rater" if votes else "How raters agree",
        "Every rater against the majority vote of the others.",
        json=json,
        remarks=remarks,
    )
