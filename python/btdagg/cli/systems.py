"""`btdagg estimate --systems`: many systems, ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from btdagg._core import InputError
from btdagg.cli.common import out, print_json
from btdagg.cli.reporting import names, print_report_table
from btdagg.report.tables.estimates import system_fields, systems_table

if TYPE_CHECKING:
    from btdagg.estimates import SystemEstimates


def columns_of_systems(option: str | None) -> tuple[str, str] | None:
    """Parse --systems.

    Raises
    ------
    InputError
        If it is not two names of columns.
    """
    if option is None:
        return None
    columns = names(option, "--systems")
    if len(columns) != 2 or columns[0] == columns[1]:
        raise InputError(
            f"--systems is {option!r}, expected the two columns that name the systems of A and "
            "B, such "
            "as system_a,system_b"
        )
    return columns[0], columns[1]


def show_systems(found: SystemEstimates, *, json: bool) -> None:
    """Print systems from the strongest to the weakest, as a table or as JSON."""
    if json:
        print_json(systems_as_json(found))
        return
    print_report_table(systems_table(found))
    first = [str(name) for name, one in found.systems.items() if one.is_tied]
    best = f"{first[0]} is the strongest" if len(first) == 1 else f"{len(first)} may be strongest"
    out.print(f"{best}: {', '.join(first)}" if len(first) > 1 else best, soft_wrap=True)


def systems_as_json(found: SystemEstimates) -> dict[str, Any]:
    """Return everything that is estimated as plain values."""
    nu = found.tie_parameter
    ends = [None if end != end else end for end in (nu.low, nu.high)]
    return {
        "n_items": found.n_items,
        "n_labels": found.n_labels,
        "n_groups": found.n_groups,
        "level": found.level,
        "baseline": found.baseline,
        "systems": [system_fields(str(name), one) for name, one in found.systems.items()],
        "tie_parameter": {"value": nu.estimate, "low": ends[0], "high": ends[1]},
        "pvalues": found.pvalues.tolist(),
        "weight": found.weight,
        "remarks": list(found.remarks),
    }
