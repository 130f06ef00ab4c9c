"""`btdagg estimate`: win rates, or mean grades, over all items, with intervals that hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import btdagg
from btdagg import remarks
from btdagg._util.errors import InputError, expect
from btdagg.cli.common import (
    Data,
    FirstVotes,
    Json,
    LabelsFile,
    OwnModel,
    ReadingWithCovariates,
    VotesFile,
    criteria_of,
    differences_said,
    model_or_panel,
    note,
    say,
    what_is_pooled,
)
from btdagg.cli.reporting import ReportOption, names, show_result
from btdagg.estimates import change
from btdagg.questions.choose import REQUIRED
from btdagg.remarks import Remark

if TYPE_CHECKING:
    from btdagg.questions.estimate import Estimates
    from btdagg.votes.items import Items
    from btdagg.votes.labels import Labels
    from btdagg.votes.votes import Votes


def estimate(
    reading: ReadingWithCovariates,
    reporting: ReportOption,
    votes: VotesFile = None,
    labels: LabelsFile = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column of the votes, such as task, criterion, system or language: also estimate "
            "for each of its values, and compare them.",
            show_default="for grades criterion, if there are several",
        ),
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,COLUMN",
            help="Rank the systems: the columns of the votes that name the systems of A and B, "
            "such as system_a,system_b; for grades one column, such as system; auto means "
            "these names.",
        ),
    ] = None,
    model: OwnModel = None,
    n_votes: FirstVotes = None,
    width: Annotated[
        float | None,
        typer.Option(
            help="Say how many labels an interval of this width takes, for the net win rate or the "
            "mean grade.",
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="VOTES",
            help="Votes of an earlier period, perhaps by another judge; LABELS has items of both "
            "periods. Says how people's mean changed, how far votes moved from it, and, if some "
            "items are in both files, whether the judge changed.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Estimate how often A wins, or the mean grade, over all items, from labels of some.

    Labelled items show how the judge errs; the votes of the other items make the interval narrower.
    The interval is for new items of the same kind, or with --set population=finite for these items.
    It is valid whatever the judge is worth, provided the labelled items are a random sample, such
    as btdagg choose draws. An item counts as unlabelled if it has no row among the labels, or an
    empty label. If labels or votes have a column group, standard errors are clustered by group.

    Example: btdagg estimate votes.parquet labels.csv --filter judge=gpt-5.4 --by task
    """
    alone = {"by": by, "width": width}
    for option, value in alone.items():
        if value is not None and systems is not None:
            raise InputError(f"{option} and --systems cannot be combined", argument=option)
    if before is not None:
        options: dict[str, Any] = {**alone, "systems": systems, "model": model}
        options |= {"covariates": reading.known, "panel": reading.panel}
        for option, got in options.items():
            expect(got is None, option, got, "none with --before")
        project = reading.project
        places = [("votes", before), ("votes", project.place("votes", votes))]
        *of_votes, gold = project.read(*places, ("labels", project.place("labels", labels)))
        periods = [reading.data_of([table, gold]) for table in of_votes]
        folder = reporting.open(reading.project, f"Change to {Path(periods[1].votes.source).name}")
        two = [_of_period(period, n_votes) for period in periods]
        found = change(*two, population=reading.population)
        remarks = [text for period in periods for text in what_is_pooled(period.votes, "takes", [])]
        show_result(found.with_remarks(dict.fromkeys(remarks)), folder, json=json)
        return
    fitted = None if model is None else model_or_panel(model)
    data = reading.data(votes, labels, fitted)
    columns = _columns_of_systems(systems, len(data.votes.scale.systems))
    title = f"{'Systems' if systems else 'Estimates'} of {Path(data.votes.source).name}"
    folder = reporting.open(reading.project, title)
    by, panel = None if by is None else by.strip().lower(), reading.panel
    population = reading.population
    if by is None and not columns and criteria_of(data.votes):
        by = "criterion"
    items = data.votes.items(
        data.gold,
        by=by,
        panel=panel,
        judges=() if fitted is None else fitted.judges,
        systems=columns or None,
        n_votes=n_votes,
    )
    if (known := reading.covariates_for(fitted)) is not None:
        items = items.with_covariates(known, model=fitted)
    pooled = [name for name in (by, panel or "judge" * bool(items.judges)) if name]
    pooled += ["task"] if by == "criterion" else []
    has_design = items.sampling.probabilities is not None or bool(items.is_labelled.all())
    remarks = what_is_pooled(data.votes, "takes", pooled) + about_drawing(data, has_design)
    if columns:
        with differences_said():
            ranked = btdagg.estimate_systems(items, population=population, model=fitted)
        show_result(ranked.with_remarks(remarks), folder, json=json)
        return
    with differences_said():
        estimates = btdagg.estimate(items, model=fitted, population=population)
        estimates = estimates.with_remarks(remarks)
    if width is None:
        show_result(estimates, folder, json=json)
        return
    enough = estimates.labels_for(width)
    show_result(estimates, folder, json=json, width=width, labels_for=enough)
    if not json:
        say(_labels_for(estimates, width, enough))


def about_drawing(data: Data, has_design: bool) -> list[Remark]:
    """Return remarks on how the labelled items were drawn."""
    about = []
    gold = data.gold
    if gold.n_missing and {*REQUIRED} <= {*gold.columns}:
        about.append(remarks.undecided_labels(gold.n_missing, gold.source))
    if not has_design:
        about.append(remarks.unknown_draw(gold.source))
    return about


def over_all_items(
    votes: Votes, labels: Labels, n_parts: int, *, as_many: bool = False
) -> Estimates | None:
    """Estimate over all items for another command, and print remarks; None where it cannot."""
    # Criteria are not averaged. With ``as_many`` all items have as many (first) votes.
    name = votes.scale.measure.name
    if n_parts > 1 and votes.scale.mode.criteria:
        return None
    try:
        items = votes.items(labels)
        if as_many:
            fewest = max(int(items.counts.sum(axis=-1).min()), 1)
            items = votes.items(labels, n_votes=fewest)
        estimates = btdagg.estimate(items)
    except InputError as error:
        note(f"{name} over all items not estimated: {error}")
        return None
    # How strong they are is said beside the scores of the same votes.
    about = what_is_pooled(votes.signs(), "takes", ["task"], missing=False)
    if items.sampling.probabilities is not None:
        about.append(remarks.weighted_estimate(name))
    estimates = estimates.with_remarks(about)
    # With a label on every item there is no judge in it.
    all_labelled = estimates.n_labels == estimates.n_items
    for remark in items.origin.remarks if all_labelled else estimates.remarks:
        note(f"{name}: {remark}")
    return estimates


def _of_period(data: Data, n_votes: int | None) -> Items:
    ids, labelled = data.votes.values("item"), data.gold.frame["item"]
    has_labels = len({*map(str, ids)} & {*map(str, labelled)}) > 0
    return data.votes.items(data.gold if has_labels else None, n_votes=n_votes)


def _labels_for(estimates: Estimates, width: float, n_labels: int | None) -> str:
    n_items, beyond = estimates.n_items, ""
    if n_labels is None:
        least = estimates.width_with(n_items)
        n_labels = math.ceil(n_items * (least / width) ** 2)
        beyond = f"; labels on all {n_items:,} items give one {least:.3g} wide"
    more = n_labels - estimates.n_labels
    enough = f"about {n_labels:,} labels{f', {more:,} more' if more > 0 else ''}{beyond}"
    return f"{estimates.main}: an interval {width:g} wide takes {enough}"


def _columns_of_systems(option: str | None, n: int) -> Any:
    columns = names(option, "systems") or ()
    if [*columns] == ["auto"]:
        return ("system_a", "system_b") if n == 2 else ("system",)
    if columns and (len(columns) != n or len(set(columns)) != n):
        expected = "the column that names the system of each grade, such as system"
        if n == 2:
            expected = "the two columns that name the systems of A and B, such as system_a,system_b"
        raise InputError(argument="systems", got=option, expected=expected)
    return tuple(columns)
