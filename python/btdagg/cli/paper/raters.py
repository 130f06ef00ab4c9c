"""`btdagg paper raters`: score each human rater, and a judge, against the other raters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import btdagg
from btdagg.cli.common import (
    Columns,
    Filters,
    Force,
    Json,
    at_least,
    files_read,
    note,
    parse_filters,
    print_json,
    progress_bar,
    tables_of,
)
from btdagg.cli.reporting import (
    ReportOption,
    numbers,
    open_report,
    print_report_table,
    refuse_report,
    say_where,
)
from btdagg.evaluation import CrossFit, Protocol, RandomSplits
from btdagg.methods import by_name
from btdagg.paper import leave_one_rater_out
from btdagg.paper.raters import LeaveOneOut
from btdagg.paper.tables import raters_table
from btdagg.votes.table import require

if TYPE_CHECKING:
    from btdagg.evaluation import Splitter
    from btdagg.paper import Ratings
    from btdagg.votes import Votes


def raters(
    context: typer.Context,
    ratings: Annotated[
        Path,
        typer.Argument(
            metavar="RATINGS",
            help="Votes of human raters (columns item, rater, vote): .csv, .tsv, .jsonl (each "
            "also .gz) or .parquet; - is standard input.",
            show_default=False,
        ),
    ],
    votes: Annotated[
        str | None,
        typer.Argument(
            metavar="VOTES",
            help="Votes or counts of one judge on the same items. Without them only raters are "
            "compared.",
            show_default=False,
        ),
    ] = None,
    filters: Filters = None,
    columns: Columns = None,
    method: Annotated[
        str,
        typer.Option(help="Method that turns the judge's votes into labels; see btdagg evaluate."),
    ] = "weak",
    shared: Annotated[
        Literal["tie", "drop"],
        typer.Option(
            help="If two labels share the most votes of the other raters: call the item a tie, or "
            "drop it."
        ),
    ] = "tie",
    n_votes: Annotated[
        str | None,
        typer.Option(
            "-n",
            help="Numbers of the judge's votes per item, separated by commas.",
            show_default="all",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Column of the ratings that groups items, such as by source text.",
            show_default=False,
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(
            help="Calibrate on so many random splits, as in the paper, which has 100.",
            show_default="cross-validation, as btdagg evaluate",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the splits.")] = 0,
    report: ReportOption = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Score every human rater, and a judge, against the majority vote of the other raters.

    Each rater in turn is left out, and the majority vote of the others is the gold label. The judge
    is cross-fitted on these labels, and judge and rater are scored on items that it was not
    calibrated on. A --filter applies to the ratings and to the judge's votes, whichever have the
    column.

    Example: btdagg paper raters ratings.csv votes.parquet --filter judge=gpt-5.4 --report out
    """
    at_least(splits, "--splits", 2)
    splitter: Splitter = CrossFit(seed=seed)
    if splits is not None:
        splitter = RandomSplits(n_splits=splits, seed=seed)
    if votes is None and n_votes is not None:
        raise btdagg.InputError("-n is of the votes of a judge, and none are given")
    asked = numbers(n_votes, "-n", "4,12")
    group = None if group is None else group.strip().lower()
    budgets: list[int | None] = [None] if asked is None else [*asked]
    raw = tables_of(columns, ratings, *([] if votes is None else [votes]))
    known, table = _filtered(
        btdagg.paper.read_ratings(raw[0]),
        None if votes is None else btdagg.read_votes(raw[1]),
        filters,
    )
    if table is not None:
        table.refuse_of_counts(**{"-n": asked})
    (aggregator,) = by_name([method])
    found: dict[int | None, LeaveOneOut] = {}
    refuse_report(report, reads := files_read(context, "report"), force)
    with progress_bar("comparing") as progress:
        step = progress(len(known.raters) * len(budgets))
        for budget in budgets:
            found[budget] = leave_one_rater_out(
                known,
                table,
                aggregator,
                shared=shared,
                n_votes=budget,
                group=group,
                protocol=Protocol(splitter, None),
                progress=step,
            )
    counts = known.counts()
    n_disputed = int(((counts > 0).sum(axis=1) > 1).sum())
    remarks = []
    if n_disputed:
        rule = "a tie where labels share the most" if shared == "tie" else "or none"
        remarks.append(
            f"raters disagree on {n_disputed} of {int((counts.sum(axis=1) > 1).sum())} items that "
            f"several rated: gold is the label of most of the other raters, {rule}"
        )
    for remark in remarks:
        note(remark)
    several = {budget: one for budget, one in found.items() if budget is not None}
    printed = raters_table(several or found[None], shared)
    if json:
        print_json({"raters": list(printed.records), "remarks": remarks})
    else:
        print_report_table(printed)
    if report is not None:
        title = f"Raters of {Path(known.source).name}"
        with open_report(report, title, context, reads, force) as folder:
            folder.section(
                "raters",
                "Whether the judge is as good as a human rater" if votes else "How raters agree",
                "Every rater against the majority vote of the others.",
            )
            folder.add(printed)
            for remark in remarks:
                folder.remark(remark)
        say_where(report)


def _filtered(
    ratings: Ratings, votes: Votes | None, filters: Sequence[str] | None
) -> tuple[Ratings, Votes | None]:
    """Filter ratings and votes, each by the columns that it has."""
    wanted = parse_filters(filters)
    unknown = set(wanted) - set(ratings.columns) - set(() if votes is None else votes.columns)
    require(ratings if votes is None else votes, sorted(unknown))
    mine = {column: value for column, value in wanted.items() if column in ratings.columns}
    ratings = ratings.filter(mine) if mine else ratings
    if votes is not None:
        theirs = {column: value for column, value in wanted.items() if column in votes.columns}
        votes = votes.filter(theirs) if theirs else votes
    return ratings, votes
