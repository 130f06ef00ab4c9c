"""An evaluation as a table on the terminal, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from btdagg.cli.common import note, out
from btdagg.evaluation import Interval
from btdagg.evaluation.summary import Line, averages, lines, remarks

if TYPE_CHECKING:
    from btdagg.evaluation import Scores

_BESIDE = 3  # methods that go side by side in a table

# Columns of a terminal from which a table has room for its intervals.
_WIDE_ENOUGH = 100


def print_table(evaluation: Scores) -> None:
    """Print one line per cell, the averages, and what a reader should know.

    Where there are more methods than go side by side, there is a line for each of them.
    """
    methods = [method.name for method in evaluation.cells[0].comparison.methods]
    beside = len(methods) if len(methods) <= _BESIDE else 1
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for name in evaluation.by:
        table.add_column(Text(f"\n{name}"), overflow="fold")
    for name in ("votes", "items"):
        table.add_column(f"\n{name}", justify="right")
    if beside < len(methods):
        table.add_column("\nmethod", no_wrap=True)
    for name in methods[:beside]:
        table.add_column(Text(f"{name if beside > 1 else ''}\nMAE"), no_wrap=True)
        table.add_column("\naccuracy", no_wrap=True)
        if len(methods) > 1:
            table.add_column("\nrank", justify="right", no_wrap=True)
    rows = [*lines(evaluation), *averages(evaluation)]
    for first in range(0, len(rows), beside):
        table.add_row(*_cells(rows[first : first + beside], len(methods), beside < len(methods)))
    out.print(table)
    if len(methods) > 1:
        out.print(f"rank: clusters by MAE; {evaluation.cells[0].comparison.test.words}")
    if out.width < _WIDE_ENOUGH:
        note("the 95% intervals need a wider terminal, or --json")
    for remark in remarks(evaluation):
        note(remark)


def evaluation_as_json(evaluation: Scores, **settings: Any) -> dict[str, Any]:
    """Everything that `print_table` prints, as plain values."""
    return {
        "settings": {**settings, "test": evaluation.cells[0].comparison.test.words},
        "by": list(evaluation.by),
        "lines": [line.as_dict(evaluation.by) for line in lines(evaluation)],
        "averages": [line.as_dict(()) for line in averages(evaluation)],
        "remarks": remarks(evaluation),
    }


def _cells(several: list[Line], n_methods: int, named: bool) -> list[Text]:
    """One row of the table: the lines of methods of a cell that go side by side."""
    first = several[0]
    size = "" if first.n_items is None else str(first.n_items)
    budget = "all" if first.n_votes is None else str(first.n_votes)
    row = [Text(value) for value in (*first.key, budget, size)]
    if named:
        row.append(Text(first.method))
    for line in several:
        best = "green" if line.rank == 1 and n_methods > 1 else ""
        row += [Text(_with_error(line.mae), style=best), Text(_with_error(line.accuracy))]
        if n_methods > 1:
            row.append(Text("" if line.rank is None else str(line.rank), style=best))
    return row


def _with_error(interval: Interval) -> str:
    if out.width < _WIDE_ENOUGH:
        return f"{interval.mean:.3f}"
    half = f"{interval.high - interval.mean:.3f}".removeprefix("0")
    return f"{interval.mean:.3f} ±{half}"
