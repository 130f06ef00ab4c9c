"""An evaluation as a table on the terminal, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from btdagg.cli.common import note, out
from btdagg.evaluation import Interval
from btdagg.evaluation.scores import averages, lines
from btdagg.report.table import Entry
from btdagg.report.wording import votes_of

if TYPE_CHECKING:
    from btdagg.evaluation import Scores


def print_table(evaluation: Scores) -> None:
    """Print a line for each method in each cell, the averages, and remarks."""
    header, rows = _table(evaluation)
    out.print_rows(header, rows, len(evaluation.by) + 3)
    first = evaluation.cells[0].comparison
    labels = "label" if evaluation.n_calibration == "1" else "labels"
    how = (
        f"models calibrated on {evaluation.n_calibration} {labels} in each of {first.n_splits} "
        "random splits; ±: half of the 95% interval of the mean over splits, not one for new items"
    )
    if first.new_items is not None:
        how = (
            f"each item decided by models calibrated on {evaluation.n_calibration} other {labels}; "
            "±: half of the 95% interval for new items, or new groups of items"
        )
    ranked = f"rank: clusters by MAE; {first.test.words}; " if len(first.methods) > 1 else ""
    out.print(f"{ranked}{how}", soft_wrap=True)
    for remark in evaluation.remarks:
        note(remark)


def _table(evaluation: Scores) -> tuple[list[str], list[list[Entry]]]:
    first = evaluation.cells[0].comparison
    less = first.new_items is not None and first.baseline is not None
    several = len(first.methods) > 1
    header = [*evaluation.by, "votes", "items", "method", "MAE"]
    header += [*(["less majority"] if less else []), "accuracy", *(["rank"] if several else [])]
    rows = []
    for line in (*lines(evaluation), *averages(evaluation)):
        best = line.rank == 1 and several
        size = "" if line.n_items is None else str(line.n_items)
        row = [Entry(text) for text in (*line.key, votes_of(line.n_votes), size, line.method)]
        row.append(Entry(_with_error(line.mae), best))
        if less:
            difference = line.mae_less_majority
            row.append(Entry("" if difference is None else _with_error(difference, signed=True)))
        row.append(Entry(_with_error(line.accuracy)))
        if several:
            row.append(Entry("" if line.rank is None else str(line.rank), best))
        rows.append(row)
    return header, rows


def evaluation_as_json(evaluation: Scores, **settings: Any) -> dict[str, Any]:
    """Return everything that `print_table` prints as plain values."""
    return {
        "settings": {**settings, "test": evaluation.cells[0].comparison.test.words},
        "by": list(evaluation.by),
        "lines": [line.as_dict(evaluation.by) for line in lines(evaluation)],
        "averages": [line.as_dict(()) for line in averages(evaluation)],
        "remarks": list(evaluation.remarks),
    }


def _with_error(interval: Interval, signed: bool = False) -> str:
    # At 0 or 1 an interval ends on one side: the other is what it may be off by.
    half = f"{max(interval.high - interval.mean, interval.mean - interval.low):.3f}"
    half = half.removeprefix("0")
    return f"{interval.mean:{'+' if signed else ''}.3f} ±{half}"
