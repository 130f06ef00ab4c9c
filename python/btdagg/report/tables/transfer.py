"""Calibrated on one task, used on another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from btdagg.evaluation.intervals import mean_interval
from btdagg.report.table import Entry, ReportTable
from btdagg.report.tables.common import Record, spread
from btdagg.report.wording import SPLITS_NOTE, with_error

if TYPE_CHECKING:
    from btdagg.evaluation import Transfer


def transfer_table(found: Transfer) -> ReportTable:
    """Tabulate the change in MAE against each target's own calibration: sources in rows.

    The last row has the MAE of the own calibration.

    References
    ----------
    The paper's heat map of transferability.
    """
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for row, source in enumerate(found.tasks):
        cells = []
        for column, target in enumerate(found.tasks):
            change = found.change_interval(source, target)
            own = source == target
            cells.append(Entry("0" if own else with_error(change, signed=True), change.high < 0))
            records.append(
                {
                    "source": source,
                    "target": target,
                    **spread("mae", mean_interval(found.mae[row, column])),
                    **spread("change", change),
                    "n_splits": found.mae.shape[2],
                }
            )
        rows.append((Entry(source), *cells))
    own_mae = [mean_interval(found.mae[place, place]) for place in range(len(found.tasks))]
    rows.append((Entry("MAE, own calibration"), *(Entry(with_error(mae)) for mae in own_mae)))
    return ReportTable(
        "transfer",
        "Transfer of a calibration between tasks",
        "Change in MAE on the task of the column where the calibration is that of the task of the "
        f"row instead of its own: mean over {found.mae.shape[2]} random splits, {SPLITS_NOTE}. "
        "Below 0 the other calibration is better. Bold: its whole interval is below 0.",
        ("calibrated on", *found.tasks),
        tuple(rows),
        tuple(records),
    )
