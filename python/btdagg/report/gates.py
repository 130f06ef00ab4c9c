"""Release gates as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from btdagg.questions.gate import gates_table
from btdagg.report.table import ReportTable, in_markdown


def gates_in_markdown(gates: Sequence[Mapping[str, Any]]) -> str:
    """Return their table, and below it what each found with its remarks."""
    if not gates:
        return "### Release gates\n\nNo release gate was run.\n"
    lines = [f"- **{in_markdown(gate['gate'])}**: {in_markdown(gate['message'])}" for gate in gates]
    return "\n".join([ReportTable.of(gates_table(gates)).markdown(), *lines, ""])
