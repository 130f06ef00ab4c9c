"""`btdagg estimate`: shares of labels and win rates over all items, with intervals that hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import btdagg
from btdagg.cli.common import (
    Columns,
    Filters,
    FirstVotes,
    Force,
    Json,
    LabelsFile,
    VotesFile,
    at_least,
    files_read,
    filtered,
    model_or_panel,
    note,
    out,
    print_json,
    single_votes,
    tables_of,
    what_is_pooled,
)
from btdagg.cli.reporting import (
    ReportOption,
    names,
    open_report,
    print_report_table,
    refuse_report,
    say_where,
)
from btdagg.estimates.items import all_items, with_remarks
from btdagg.estimates.prediction_powered import estimate_items
from btdagg.estimates.to_label import COLUMNS, with_design
from btdagg.report.sections import write_estimates, write_systems
from btdagg.report.tables.estimates import (
    difference_fields,
    differences_table,
    estimates_table,
    fields_of,
    system_fields,
    systems_table,
)
from btdagg.votes.join import with_task
from btdagg.votes.source import read_table

if TYPE_CHECKING:
    from btdagg.estimates import Estimates, SystemEstimates
    from btdagg.votes import Labels, Votes


_MOST_COMPARED = 8  # values of a column whose differences are printed


def estimate(
    context: typer.Context,
    votes: VotesFile,
    labels: LabelsFile,
    filters: Filters = None,
    columns: Columns = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column of the votes, such as task or language: also estimate for the items of "
            "each of its values, and compare these.",
            show_default=False,
        ),
    ] = None,
    panel: Annotated[
        str | None,
        typer.Option(
            help="Column whose values are the judges of a panel, such as judge. Otherwise the "
            "votes of several judges are pooled.",
            show_default=False,
        ),
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,COLUMN",
            help="Columns of the votes that name the systems whose responses are A and B, such as "
            "system_a,system_b: rank the systems.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="With --systems: compare with this one.", show_default=False),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A model, or a panel, that was calibrated on other labels than these.",
            show_default="calibrated on these labels, each item without its group",
        ),
    ] = None,
    drawn: Annotated[
        Path | None,
        typer.Option(
            help="The file of btdagg choose by which the labelled items were drawn, where the "
            "labels are in another: it has the probabilities.",
            show_default=False,
        ),
    ] = None,
    n_votes: FirstVotes = None,
    width: Annotated[
        float | None,
        typer.Option(
            help="Say how many labels would make the interval of the net win rate so wide.",
            show_default=False,
        ),
    ] = None,
    report: ReportOption = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Estimate how often A wins, B wins and both tie over all items, from labels of some.

    The items with a label measure how the judge's votes err, and the votes of the other items make
    the interval narrower. It holds for new items of the kind whatever the judge is worth, if the
    labelled items were drawn by chance, as btdagg choose draws them. Items without a row among the
    labels, or with an empty label, are those without a label. Errors are by group if the labels
    (also rows with an empty label) or the votes have a column group.

    Example: btdagg estimate votes.parquet labels.csv --filter judge=gpt-5.4 --by task
    """
    at_least(n_votes, "-n", 1)
    refuse_report(report, reads := files_read(context, "report"), force)
    if baseline is not None and systems is None:
        raise btdagg.InputError("--baseline is for --systems")
    for option, value in {"--by": by, "--width": width}.items():
        if value is not None and systems is not None:
            raise btdagg.InputError(f"{option} is given with --systems, expected one of the two")
    raw_votes, raw_labels = tables_of(columns, votes, labels)
    gold = btdagg.read_labels(raw_labels)
    n_not_labelled = 0
    if drawn is not None:
        gold, n_not_labelled = with_design(gold, read_table(drawn, []))
    elif set(COLUMNS) - {"task", "group"} <= set(gold.columns):
        n_not_labelled = gold.n_missing
    table = filtered(with_task(btdagg.read_votes(raw_votes), gold), filters)
    single_votes(table, n_votes)
    by, panel = (None if name is None else name.strip().lower() for name in (by, panel))
    fitted = None if model is None else model_or_panel(model)
    judges = None
    if isinstance(fitted, btdagg.PanelModel):
        panel, judges = panel or "judge", fitted.judges
    items = all_items(
        table,
        gold,
        by=by,
        panel=panel,
        judges=judges,
        systems=_columns_of_systems(systems),
        n_votes=n_votes,
    )
    pooled = [name for name in (by, panel) if name is not None]
    remarks = what_is_pooled(table, "takes", pooled)
    if n_not_labelled:
        remarks.append(
            f"{n_not_labelled} items of {drawn or gold.source} were drawn and have no label; if "
            "people left out those that were hard, the labels are no sample of all items"
        )
    if items.probabilities is None and np.isnan(items.outcomes).any():
        remarks.append(
            f"{gold.source} does not say how its items were drawn, and they are taken as a simple "
            "random sample; btdagg choose draws one"
        )
    if items.systems is not None:
        ranked = btdagg.estimate_systems(
            items.counts,
            items.outcomes,
            *items.systems.T,
            groups=items.groups,
            probabilities=items.probabilities,
            baseline=baseline,
            model=fitted,
        )
        ranked = with_remarks(ranked, (*remarks, *items.remarks))
        for remark in ranked.remarks:
            note(remark)
        _show_systems(ranked, json=json)
        if report is not None:
            title = f"Systems of {Path(table.source).name}"
            with open_report(report, title, context, reads, force) as folder:
                write_systems(folder, ranked)
            say_where(report)
        return
    found = with_remarks(estimate_items(items, model=fitted), remarks)
    enough = None if width is None else found.labels_for(width)
    for remark in found.remarks:
        note(remark)
    if json:
        known: dict[str, Any] = {}
        if width is not None:
            known = {"width": width, "labels_for": enough}
        print_json({**estimates_as_json(found), **known})
    else:
        _show(found, by)
        if width is not None:
            out.print(_labels_for(found, width, enough), soft_wrap=True)
    if report is not None:
        title = f"Estimates of {Path(table.source).name}"
        with open_report(report, title, context, reads, force) as folder:
            write_estimates(folder, found, by)
        say_where(report)


def over_all_items(votes: Votes, labels: Labels, *, as_many: bool = False) -> Estimates | None:
    """Estimate over all items for another command, and print remarks; None where it cannot.

    Parameters
    ----------
    votes : Votes
    labels : Labels
    as_many : bool
        Use the first votes of each item, as many as there are of every item, so that labelled and
        other items are judged alike.
    """
    try:
        items = all_items(votes, labels)
        if as_many:
            fewest = max(int(items.counts.sum(axis=-1).min()), 1)
            items = all_items(votes, labels, n_votes=fewest)
        found = estimate_items(items)
    except btdagg.InputError as error:
        note(f"no win rate over all items: {error}")
        return None
    remarks = what_is_pooled(votes, "takes", ["task"], missing=False)
    if items.probabilities is not None:
        remarks.append("the win rate is by the column probability of the labels")
    found = with_remarks(found, remarks)
    # With a label on every item there is no judge in it.
    for remark in found.remarks if found.n_labels < found.n_items else items.remarks:
        note(f"win rate: {remark}")
    return found


def win_rate_line(found: Estimates) -> str:
    """Say in a line how often A wins."""
    rate, tie = found.estimates["win rate"], found.estimates["tie"]
    items = f"{found.n_items:,} items by {found.n_labels:,} labels"
    if found.n_labels < found.n_items:
        items += " and the votes"
    return (
        f"win rate of A, ties as half, over {items}: {rate.value:.3f} "
        f"({rate.low:.3f} to {rate.high:.3f}); ties {tie.value:.3f} ({tie.low:.3f} to "
        f"{tie.high:.3f})"
    )


def _show(found: Estimates, by: str | None) -> None:
    print_report_table(estimates_table(found, by))
    if by is not None and len(found.by) <= _MOST_COMPARED:
        differences = differences_table(found, by)
        if differences is not None:
            print_report_table(differences)
    elif by is not None:
        note(f"differences of {len(found.by)} values of {by} are in --json and --report")
    out.print(win_rate_line(found), soft_wrap=True)


def _labels_for(found: Estimates, width: float, n_labels: int | None) -> str:
    if n_labels is None:
        enough = f"more than labels of all {found.n_items:,} items"
    else:
        more = n_labels - found.n_labels
        enough = f"about {n_labels:,} labels{f', {more:,} more' if more > 0 else ''}"
    return f"net win rate: an interval {width:g} wide takes {enough}"


def estimates_as_json(found: Estimates) -> dict[str, Any]:
    """Return everything that is estimated as plain values."""
    return {
        "n_items": found.n_items,
        "n_labels": found.n_labels,
        "n_groups": found.n_groups,
        "level": found.level,
        "estimates": {name: fields_of(one) for name, one in found.estimates.items()},
        "by": {
            str(value): {name: fields_of(one) for name, one in of.items()}
            for value, of in found.by.items()
        },
        "differences": [
            {"first": str(first), "second": str(second), "quantity": name, **difference_fields(one)}
            for (first, second), of in found.differences.items()
            for name, one in of.items()
        ],
        "remarks": list(found.remarks),
    }


def _columns_of_systems(option: str | None) -> tuple[str, str] | None:
    """Parse --systems."""
    if option is None:
        return None
    columns = names(option, "--systems")
    if len(columns) != 2 or columns[0] == columns[1]:
        raise btdagg.InputError(
            f"--systems is {option!r}, expected the two columns that name the systems of A and "
            "B, such as system_a,system_b"
        )
    return columns[0], columns[1]


def _show_systems(ranked: SystemEstimates, *, json: bool) -> None:
    """Print systems from the strongest to the weakest, as a table or as JSON."""
    if json:
        print_json(_systems_as_json(ranked))
        return
    print_report_table(systems_table(ranked))
    first = [str(name) for name, one in ranked.systems.items() if one.is_tied]
    best = f"{first[0]} is the strongest" if len(first) == 1 else f"{len(first)} may be strongest"
    out.print(f"{best}: {', '.join(first)}" if len(first) > 1 else best, soft_wrap=True)


def _systems_as_json(ranked: SystemEstimates) -> dict[str, Any]:
    """Return everything that is estimated as plain values."""
    nu = ranked.tie_parameter
    ends = [None if end != end else end for end in (nu.low, nu.high)]
    return {
        "n_items": ranked.n_items,
        "n_labels": ranked.n_labels,
        "n_groups": ranked.n_groups,
        "level": ranked.level,
        "baseline": ranked.baseline,
        "systems": [system_fields(str(name), one) for name, one in ranked.systems.items()],
        "tie_parameter": {"value": nu.estimate, "low": ends[0], "high": ends[1]},
        "pvalues": ranked.pvalues.tolist(),
        "weight": ranked.weight,
        "remarks": list(ranked.remarks),
    }
