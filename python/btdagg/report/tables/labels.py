"""Gold against predicted labels: confusion matrices and distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg.report.table import Entry, ReportTable
from btdagg.report.tables.common import Record, plain
from btdagg.report.wording import LABEL_NAMES, MISSING, counted, fixed, percent, stem

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
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for method in found.methods:
        counts, percentages = method.counts.tolist(), method.percentages.tolist()
        for gold, name in enumerate(LABEL_NAMES):
            cells = [
                Entry(
                    f"{fixed(count, 1)} ({fixed(share, 1)}%)" if math.isfinite(share) else MISSING,
                    gold == p,
                )
                for p, (count, share) in enumerate(
                    zip(counts[gold], percentages[gold], strict=True)
                )
            ]
            rows.append((*plain(method.name, name), *cells, Entry(fixed(sum(counts[gold]), 1))))
            records += [
                {
                    "task": task,
                    "method": method.name,
                    "gold": gold - 1,
                    "predicted": predicted - 1,
                    "count": counts[gold][predicted],
                    "percent_of_gold": percentages[gold][predicted],
                    "n_splits": len(method.matrices),
                }
                for predicted in range(3)
            ]
    return ReportTable(
        stem("confusion", task),
        f"Confusion matrices: {task}",
        "Items of the evaluation set with the gold label of the row that are given the label of "
        f"the column: mean over {_splits(found)}, and percent of the row. Bold: correct.",
        ("method", "gold", *(f"predicted {name}" for name in LABEL_NAMES), "items"),
        tuple(rows),
        tuple(records),
        n_label_columns=2,
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
    sources += [(m.name, m.predicted, m.counts.sum(axis=0)) for m in found.methods]
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for number, (name, shares, counts) in enumerate(sources):
        rows.append(
            plain(
                name,
                *(fixed(count, 1) for count in counts.tolist()),
                *(percent(share) for share in shares.tolist()),
            )
        )
        records += [
            {
                "task": task,
                "source": "gold" if number == 0 else "method",
                "method": None if number == 0 else name,
                "label": label - 1,
                "count": float(counts[label]),
                "share": float(shares[label]),
                "n_splits": len(found.methods[0].matrices),
            }
            for label in range(3)
        ]
    return ReportTable(
        stem("labels", task),
        f"Label distributions: {task}",
        f"Items of the evaluation set by label: means over {_splits(found)}.",
        ("labels", *LABEL_NAMES, *(f"{name} (%)" for name in LABEL_NAMES)),
        tuple(rows),
        tuple(records),
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
        raise InputError("tasks is empty, want at least one")
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for task, items in tasks.items():
        counts = np.bincount(items.labels + 1, minlength=3).tolist()
        shares = [count / len(items) for count in counts]
        rows.append(plain(task, str(len(items)), *map(str, counts), *map(percent, shares)))
        records += [
            {"task": task, "label": label - 1, "count": counts[label], "share": shares[label]}
            for label in range(3)
        ]
    return ReportTable(
        "gold-labels",
        "Gold labels",
        "Labelled items that have votes, by gold label.",
        ("task", "items", *LABEL_NAMES, *(f"{name} (%)" for name in LABEL_NAMES)),
        tuple(rows),
        tuple(records),
    )


def _splits(found: Comparison) -> str:
    return counted(len(found.methods[0].matrices), "random split")
