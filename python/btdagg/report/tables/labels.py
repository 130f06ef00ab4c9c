"""Gold against predicted labels: confusion matrices and distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg.report.table import PivotCell, ReportTable
from btdagg.report.tables.common import evaluated_on
from btdagg.report.wording import LABEL_NAMES, MISSING, fixed, percent, stem

if TYPE_CHECKING:
    from btdagg.evaluation import Comparison, LabelledItems


def confusion_table(task: str, found: Comparison) -> ReportTable:
    """Tabulate, for each method and gold label, how often each label is predicted.

    Parameters
    ----------
    task : str
        What the labels are of.
    found : Comparison

    References
    ----------
    The paper's figures of confusion matrices.
    """

    def cells() -> Iterator[PivotCell]:
        for number, method in enumerate(found.methods):
            counts, percentages = method.counts.tolist(), method.percentages.tolist()
            for gold, label in enumerate(LABEL_NAMES):
                for predicted, name in enumerate(LABEL_NAMES):
                    count, share = counts[gold][predicted], percentages[gold][predicted]
                    record = {
                        "task": task,
                        "method": method.name,
                        "gold": gold - 1,
                        "predicted": predicted - 1,
                        "count": count,
                        "percent_of_gold": share,
                        "n_splits": found.n_splits,
                    }
                    text = f"{count:,.0f} ({fixed(share, 1)}%)"
                    yield PivotCell(
                        (method.name, label),
                        f"predicted {name}",
                        text if math.isfinite(share) else MISSING,
                        gold == predicted,
                        record,
                        number,
                    )
                total = f"{sum(counts[gold]):,.0f}"
                yield PivotCell((method.name, label), "items", total, place=number)

    return ReportTable.pivot(
        stem("confusion", task),
        f"Confusion matrices: {task}",
        "Items of the evaluation set with the gold label of the row that are given the label of "
        f"the column: mean over {evaluated_on([found])}, and percent of the row. Bold: correct.",
        ("method", "gold"),
        cells(),
    )


def distribution_table(task: str, found: Comparison) -> ReportTable:
    """Tabulate how often each label is gold, and how often each method gives it.

    Parameters
    ----------
    task : str
        What the labels are of.
    found : Comparison

    References
    ----------
    The paper's figures of label distributions.
    """
    # Of the same items, so that counts of all methods have one total.
    sources = [("gold", found.gold, found.methods[0].counts.sum(axis=1))]
    sources += [
        (method.name, method.predicted, method.counts.sum(axis=0)) for method in found.methods
    ]

    def cells() -> Iterator[PivotCell]:
        for number, (source, shares, counts) in enumerate(sources):
            for label, (name, count) in enumerate(zip(LABEL_NAMES, counts.tolist(), strict=True)):
                record = {
                    "task": task,
                    "source": "method" if number else "gold",
                    "method": source if number else None,
                    "label": label - 1,
                    "count": count,
                    "share": float(shares[label]),
                    "n_splits": found.n_splits,
                }
                yield PivotCell((source,), name, f"{count:,.0f}", False, record, number)
            yield from _percentages((source,), shares.tolist(), number)

    return ReportTable.pivot(
        stem("labels", task),
        f"Label distributions: {task}",
        f"Items of the evaluation set by label: means over {evaluated_on([found])}.",
        ("labels",),
        cells(),
    )


def gold_table(tasks: Mapping[str, LabelledItems]) -> ReportTable:
    """Tabulate the gold labels of every task.

    Parameters
    ----------
    tasks : mapping of str to LabelledItems
        See `btdagg.evaluation.labelled_tasks`.

    Raises
    ------
    InputError
        If there is no task.

    References
    ----------
    The paper's table of ground truth vote distributions.
    """
    if not tasks:
        raise InputError("tasks is empty, expected at least one")

    def cells() -> Iterator[PivotCell]:
        for task, items in tasks.items():
            counts = np.bincount(items.labels + 1, minlength=3).tolist()
            shares = [count / len(items) for count in counts]
            yield PivotCell((task,), "items", str(len(items)))
            for label, name in enumerate(LABEL_NAMES):
                own = {"label": label - 1, "count": counts[label], "share": shares[label]}
                yield PivotCell((task,), name, str(counts[label]), False, {"task": task, **own})
            yield from _percentages((task,), shares)

    return ReportTable.pivot(
        "gold-labels",
        "Gold labels",
        "Labelled items that have votes, by gold label.",
        ("task",),
        cells(),
    )


def _percentages(
    label: tuple[str, ...], shares: list[float], place: int = 0
) -> Iterator[PivotCell]:
    for name, share in zip(LABEL_NAMES, shares, strict=True):
        yield PivotCell(label, f"{name} (%)", percent(share), place=place)
