"""An evaluation as a table on the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from btdagg.cli.common import note, out
from btdagg.evaluation import Interval
from btdagg.evaluation.summary import Line, averages, lines, remarks
from btdagg.report.table import Entry

if TYPE_CHECKING:
    from btdagg.evaluation import Scores

_BESIDE = 3  # methods that go side by side in a table


def print_table(evaluation: Scores) -> None:
    """Print one line per cell, the averages, and remarks.

    If there are too many methods to go side by side, or the terminal is too narrow, each method
    gets a line.
    """
    methods = [method.name for method in evaluation.cells[0].comparison.methods]
    header, rows = _table(evaluation, methods, len(methods))
    if len(methods) > _BESIDE or not out.fits(header, rows):
        header, rows = _table(evaluation, methods, 1)
    n_labels = len(evaluation.by) + ("method" in header)
    out.print_rows(header, rows, n_labels)
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
    ranked = f"rank: clusters by MAE; {first.test.words}; " if len(methods) > 1 else ""
    out.print(f"{ranked}{how}", soft_wrap=True)
    for remark in remarks(evaluation):
        note(remark)


def _table(
    evaluation: Scores, methods: Sequence[str], beside: int
) -> tuple[list[str], list[list[Entry]]]:
    """Return header and rows of a table with `beside` methods side by side."""
    named = beside < len(methods)
    ranks = ["rank"] if len(methods) > 1 else []
    header = [*evaluation.by, *(["method"] if named else []), "votes", "items"]
    first = evaluation.cells[0].comparison
    differs = [
        first.new_items is not None
        and first.baseline is not None
        and (named or k != first.baseline)
        for k in range(beside)
    ]
    for name, less in zip(methods, differs, strict=False):
        more = ["less majority"] if less else []
        header += [f"{name}\nMAE" if beside > 1 else "MAE", *more, "accuracy", *ranks]
    shown = [*lines(evaluation), *averages(evaluation)]
    parts = (shown[at : at + beside] for at in range(0, len(shown), beside))
    return header, [_cells(part, differs, len(methods), named) for part in parts]


def evaluation_as_json(evaluation: Scores, **settings: Any) -> dict[str, Any]:
    """Return everything that `print_table` prints as plain values."""
    return {
        "settings": {**settings, "test": evaluation.cells[0].comparison.test.words},
        "by": list(evaluation.by),
        "lines": [line.as_dict(evaluation.by) for line in lines(evaluation)],
        "averages": [line.as_dict(()) for line in averages(evaluation)],
        "remarks": remarks(evaluation),
    }


def _cells(
    several: Sequence[Line], differs: Sequence[bool], n_methods: int, named: bool
) -> list[Entry]:
    """Return one row of the table: the lines of the methods that go side by side."""
    first = several[0]
    size = "" if first.n_items is None else str(first.n_items)
    budget = "all" if first.n_votes is None else str(first.n_votes)
    method = [first.method] if named else []
    row = [Entry(value) for value in (*first.key, *method, budget, size)]
    for line, less in zip(several, differs, strict=True):
        best = line.rank == 1 and n_methods > 1
        row.append(Entry(_with_error(line.mae), best))
        if less:
            difference = line.mae_less_majority
            row.append(Entry("" if difference is None else _with_error(difference, signed=True)))
        row.append(Entry(_with_error(line.accuracy)))
        if n_methods > 1:
            row.append(Entry("" if line.rank is None else str(line.rank), best))
    return row


def _with_error(interval: Interval, signed: bool = False) -> str:
    # At 0 or 1 an interval ends on one side: the other is what it may be off by.
    half = f"{max(interval.high - interval.mean, interval.mean - interval.low):.3f}"
    half = half.removeprefix("0")
    return f"{interval.mean:{'+' if signed else ''}.3f} ±{half}"
