"""`btdagg bias`: what the judge follows more, or less, than people do."""

from __future__ import annotations

from pathlib import Path

import btdagg
from btdagg.cli.common import (
    Json,
    LabelsFile,
    ReadingWithCovariates,
    VotesFile,
    what_is_pooled,
)
from btdagg.cli.estimate import about_drawing
from btdagg.cli.reporting import ReportOption, show_result


def bias(
    reading: ReadingWithCovariates,
    reporting: ReportOption,
    votes: VotesFile = None,
    labels: LabelsFile = None,
    json: Json = False,
) -> None:
    """Say what the judge favours more, or less, than people do.

    For the length, and for each column of --covariates, the command compares two slopes on the same
    items: that of people's labels and that of the judge's mean votes. If the data name systems, it
    also compares how the judge and people rate the responses of each system. A judge that is merely
    less decisive than people has smaller slopes throughout. The labelled items must be a random
    sample, such as btdagg choose draws. Positional bias needs no labels: btdagg evaluate --report
    shows it.

    Example: btdagg bias votes.csv labels.csv --covariates length
    """
    data = reading.data(votes, labels)
    folder = reporting.open(reading.project, f"Bias of {Path(data.votes.source).name}")
    items = data.votes.items(data.gold)
    found = btdagg.bias(items, covariates=reading.covariates or "auto")
    has_design = items.sampling.probabilities is not None or bool(items.is_labelled.all())
    remarks = what_is_pooled(data.votes, "takes", []) + about_drawing(data, has_design)
    show_result(found.with_remarks(remarks), folder, json=json)
