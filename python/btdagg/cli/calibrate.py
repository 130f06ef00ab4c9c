"""`btdagg calibrate`: fit a model to votes and labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import btdagg
from btdagg._util.outputs import require_file
from btdagg.cli.common import (
    Columns,
    Filters,
    FirstVotes,
    Json,
    VotesFile,
    at_least,
    files_read,
    filtered,
    is_given,
    model_or_panel,
    note,
    out,
    print_json,
    provenance_of,
    single_votes,
    tables_of,
    what_is_pooled,
)
from btdagg.cli.prior import (
    PriorOption,
    chosen_prior,
    neighbours_in,
    neighbours_of,
    posterior_as_json,
    what_was_done,
)
from btdagg.model.calibration_set import PARAMETERS
from btdagg.votes.join import with_task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from btdagg.votes import Votes
    from btdagg.votes.histogram import Histogram
    from btdagg.votes.join import LabelledCounts


def calibrate(
    context: typer.Context,
    votes: VotesFile,
    labels: Annotated[
        Path | None,
        typer.Argument(
            metavar="LABELS",
            help="Gold labels (columns item, label; optional group, task). Left out if VOTES is a "
            "histogram of btdagg sql --labels.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Write the model to this JSON file.", rich_help_panel="Output"
        ),
    ] = Path("model.json"),
    filters: Filters = None,
    columns: Columns = None,
    n_votes: FirstVotes = None,
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals", help="Print bootstrap intervals of the parameters and the MAE."
        ),
    ] = False,
    refits: Annotated[
        Path | None,
        typer.Option(
            help="Write the refits to this JSON file, for btdagg decide --refits.",
            show_default=False,
        ),
    ] = None,
    prior: PriorOption = None,
    json: Json = False,
) -> None:
    """Fit the model to the votes of labelled items and write it as JSON.

    Ten labelled items are enough if the files hold other tasks or judges, a few dozen otherwise.
    All votes that pass the filters are pooled, so filter for one judge and one task; the others are
    then neighbours. --intervals and --refits refit the model to items drawn with replacement (whole
    groups, if the labels have groups).

    A histogram of btdagg sql --labels, which has counts and labels, stands for both files.

    Example: btdagg calibrate votes.csv labels.csv --filter judge=gpt-5.4 -o model.json
    """
    at_least(n_votes, "-n", 1)
    if refits is not None and refits.resolve() == output.resolve():
        raise btdagg.InputError(f"--refits is {refits}, the file of the model")
    reads = files_read(context, "output", "refits")
    require_file("--output", output, reads=reads)
    if output.exists() and not is_given(context, "output"):
        try:
            model_or_panel(output)
        except btdagg.InputError:
            raise btdagg.InputError(
                f"{output} exists and holds no model; name the file to write by --output"
            ) from None
    if refits is not None:
        require_file("--refits", refits, reads=reads)
    with_others = prior in (None, "neighbours")
    if labels is None:
        given = _of_histogram(votes, columns, filters, n_votes, with_others)
    else:
        given = _of_items(votes, labels, columns, filters, n_votes, with_others)
    table, items, others = given
    known = chosen_prior(prior, others)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)  # printed below
        calibration = btdagg.calibrate(
            items.counts, items.labels, prior=known, provenance=provenance_of(table, n_votes)
        )
    sure = None
    if intervals or refits is not None:
        sure = btdagg.bootstrap(
            items.counts,
            items.labels,
            groups=items.groups,
            prior=known,
        )
    calibration.model.save(output)
    if sure is not None and refits is not None:
        sure.save(refits)
    remarks = [*what_is_pooled(table, "fits"), *items.remarks]
    if sure is not None and labels is None:
        remarks.append(
            "a histogram has no groups: intervals take items as independent of each other"
        )
    for remark in remarks:
        note(remark)
    for warning in calibration.warnings:
        note(f"warning: {warning}")
    done = what_was_done(known, prior, calibration)
    if json:
        print_json(
            {
                **_without_posterior(calibration),
                **({"posterior": posterior_as_json(calibration), "prior": done} if known else {}),
                "nu": calibration.model.nu,
                "n_unlabelled": items.n_unlabelled,
                "n_without_votes": items.n_without_votes,
                "n_missing": table.n_missing,
                "remarks": remarks,
                "output": str(output),
                **({} if sure is None else {"intervals": _as_json(sure)}),
            }
        )
        return
    model = calibration.model
    out.print(
        f"beta {model.beta:.4g}, nu {model.nu:.4g}, gamma {model.gamma:.4g}; "
        f"DRPS {calibration.drps:.4f} on {calibration.n_labels} labelled items"
    )
    if prior != "none":
        out.print(done, soft_wrap=True)
    if items.n_unlabelled or items.n_without_votes:
        out.print(
            f"left out: {items.n_unlabelled} items without a label, "
            f"{items.n_without_votes} labels without votes"
        )
    if sure is not None:
        units = "items" if items.groups is None else "groups"
        out.print(
            f"{sure.level:.0%} intervals from {len(sure.parameters)} refits to {sure.n_units} "
            f"resampled {units}:"
        )
        for name in (*PARAMETERS, "mae"):
            out.print(f"  {name.upper() if name == 'mae' else name} {getattr(sure, name)}")
    files = output if refits is None else f"{output} and {refits}"
    out.print(f"wrote {files}", soft_wrap=True)


class _FromHistogram(NamedTuple):
    """Items that have votes and a label, and how many have one of them only."""

    counts: NDArray[Any]
    labels: NDArray[np.int8]
    groups: NDArray[np.object_] | None
    n_unlabelled: int
    n_without_votes: int
    remarks: tuple[str, ...] = ()


class _FittedTo(NamedTuple):
    """What a model is fitted to, and counts and labels of its neighbours by name."""

    table: Votes | Histogram
    items: _FromHistogram | LabelledCounts
    others: dict[str, tuple[object, object]] | None


def _of_items(
    votes: str,
    labels: Path,
    columns: Sequence[str] | None,
    filters: Sequence[str] | None,
    n_votes: int | None,
    with_others: bool,
) -> _FittedTo:
    raw_votes, raw_labels = tables_of(columns, votes, labels)
    gold = btdagg.read_labels(raw_labels)
    everything = with_task(btdagg.read_votes(raw_votes), gold)
    table = filtered(everything, filters)
    single_votes(table, n_votes)
    items = table.labelled(gold, n_votes)
    others = neighbours_of(everything, table, gold, n_votes) if with_others else None
    return _FittedTo(table, items, others)


def _of_histogram(
    place: str,
    columns: Sequence[str] | None,
    filters: Sequence[str] | None,
    n_votes: int | None,
    with_others: bool,
) -> _FittedTo:
    (raw,) = tables_of(columns, place)
    if "number" not in raw.columns:
        raise btdagg.InputError(
            f"LABELS is missing: {raw.source} has no column 'number', which a histogram of btdagg "
            "sql --labels has"
        )
    if n_votes is not None:
        raise btdagg.InputError(f"-n is for single votes, and {raw.source} is a histogram")
    everything = btdagg.votes.read_histogram(raw)
    table = filtered(everything, filters)
    items = _FromHistogram(*table.items(), None, table.n_unlabelled, 0)
    others = neighbours_in(everything, table) if with_others else None
    return _FittedTo(table, items, others)


def _as_json(sure: btdagg.model.Bootstrap) -> dict[str, Any]:
    return {
        "level": sure.level,
        "n_refits": len(sure.parameters),
        "n_units": sure.n_units,
        **{name: getattr(sure, name)._asdict() for name in (*PARAMETERS, "mae")},
    }


def _without_posterior(calibration: btdagg.Calibration) -> dict[str, Any]:
    fields = asdict(replace(calibration, posterior=None))
    del fields["posterior"]
    return fields
