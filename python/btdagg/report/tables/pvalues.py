"""P-values of every two methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from btdagg.evaluation.summary import record
from btdagg.report.table import Entry, ReportTable
from btdagg.report.tables.common import Record, plain, where
from btdagg.report.wording import pvalue, votes_of

if TYPE_CHECKING:
    from btdagg.evaluation import Scores


def pvalue_table(evaluation: Scores) -> ReportTable:
    """Tabulate the p-values of every two methods in every cell, of MAE and of accuracy."""
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for cell in evaluation.cells:
        found = cell.comparison
        names = [method.name for method in found.methods]
        for one in range(len(names)):
            for other in range(one + 1, len(names)):
                mae = float(found.mae_ranking.pvalues[one, other])
                accuracy = float(found.accuracy_ranking.pvalues[one, other])
                label = plain(*cell.key, votes_of(cell.n_votes), names[one], names[other])
                rows.append(
                    (*label, *(Entry(pvalue(p), p < found.test.tau) for p in (mae, accuracy)))
                )
                records.append(
                    record(
                        where(evaluation.by, cell.key),
                        {
                            "n_votes": cell.n_votes,
                            "method": names[one],
                            "other": names[other],
                            "mae_pvalue": mae,
                            "accuracy_pvalue": accuracy,
                        },
                    )
                )
    test = evaluation.cells[0].comparison.test.words
    return ReportTable(
        "pvalues",
        "P-values of every two methods",
        f"{test[0].upper()}{test[1:]}. Bold: below that level.",
        (*evaluation.by, "votes", "method", "other", "p (MAE)", "p (accuracy)"),
        tuple(rows),
        tuple(records),
        n_label_columns=len(evaluation.by) + 3,
    )
