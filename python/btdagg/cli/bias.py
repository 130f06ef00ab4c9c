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
from btdagg.estimates.prediction_powered import with_remarks
from btdagg.report.sections import write_bias
from btdagg.report.tables import judge_bias_table
from btdagg.votes.sides import columns_of_systems


def bias(
    reading: ReadingWithCovariates,
    reporting: ReportOption,
    votes: VotesFile = None,
    labels: LabelsFile = None,
    json: Json = False,
) -> None:
    """Say what the judge favours: what its votes follow more, or less, than people's labels.

    For the length, and each column of --covariates, it compares two slopes, of people's labels and
    of the judge's mean votes on the same items. Where the data name systems it also compares what
    the judge gives to the responses of each with what people do. A judge that is merely less
    decisive than people follows all that they follow less strongly. Labels must be of items that
    were drawn by chance, as btdagg choose draws them.

    Which of two positions a judge favours needs no labels: btdagg evaluate --report has it.

    Example: btdagg bias votes.csv labels.csv --covariates length
    """
    data = reading.data(votes, labels)
    folder = reporting.open(reading.project, f"Bias of {Path(data.votes.source).name}")
    named = columns_of_systems(data.votes)
    items = data.votes.items(data.gold, **named)
    found = btdagg.bias(items, covariates=reading.covariates or "auto")
    has_design = items.probabilities is not None or bool(items.is_labelled.all())
    remarks = what_is_pooled(data.votes, "takes", []) + about_drawing(data, has_design)
    found = with_remarks(found, remarks)
    show_result(found, judge_bias_table(found), write_bias, folder, json=json)
