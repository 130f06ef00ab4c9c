"""Shares and win rates over all items; systems by their strengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from btdagg._util.wording import MISSING, counted, fixed, pvalue
from btdagg.estimates.population import NET
from btdagg.report.table import Entry, ReportTable, Row, in_markdown

if TYPE_CHECKING:
    from btdagg.estimates import Certificate
    from btdagg.estimates.change import Change
    from btdagg.estimates.mean import MeanEstimate
    from btdagg.estimates.prediction_powered import Estimates
    from btdagg.estimates.systems import SystemEstimates
    from btdagg.model.intervals import ParameterInterval


_MOST_PAIRS = 8  # that a note names


def estimates_table(estimates: Estimates, by: str | None = None) -> ReportTable:
    """Tabulate estimates of all items, and of those with each value of a column, named `by`."""
    of, named = "of", estimates.sides.named
    rows = [_row_of(named(name), name, mean) for name, mean in estimates.estimates.items()]
    if estimates.by:
        of = by or "value"
        parts = {"all items": estimates.estimates}
        parts |= {str(value): part for value, part in estimates.by.items()}
        rows = [_row_of_part(of, *part, estimates) for part in parts.items()]
    title = "Mean grade and shares" if _of_grades(estimates) else "Shares of labels and win rates"
    return ReportTable.of_rows("estimates", title, _note(estimates), (of,), rows)


def _of_grades(estimates: Estimates) -> bool:
    return "win rate" not in estimates.estimates


def _row_of(label: str, quantity: str, estimate: MeanEstimate) -> Row:
    alone = estimate.labels_only
    cells: dict[str, str | Entry] = {
        "estimate": Entry(fixed(estimate.value), True),
        "interval": interval_of(estimate),
    }
    if alone is not None:
        cells |= {"labels alone": fixed(alone.value), "their interval": interval_of(alone)}
    cells["worth in labels"] = _worth(estimate)
    return Row((label,), cells, [{"quantity": quantity, **estimate.as_dict()}])


def _row_of_part(
    by: str, value: str, estimates: Mapping[str, MeanEstimate], whole: Estimates
) -> Row:
    # The win rate is half of one more than the net win rate.
    shown = {name: estimate for name, estimate in estimates.items() if name != "win rate"}
    named = whole.sides.named
    cells = {named(name): f"{fixed(of.value)} ({interval_of(of)})" for name, of in shown.items()}
    cells["worth in labels"] = _worth(estimates[whole.main])
    records = [{by: value, "quantity": name, **of.as_dict()} for name, of in shown.items()]
    return Row((value,), cells, records)


def _note(estimates: Estimates) -> str:
    grouped = estimates.n_groups != estimates.n_labels
    groups = f" in {counted(estimates.n_groups, 'group')}" if grouped else ""
    of_main = f" (of the {estimates.main})" if estimates.by else ""
    what, (a, b) = "", estimates.sides
    if not _of_grades(estimates):
        what = (
            f" Net win rate: {a} minus {b}; win rate: ties count as half. Each is estimated "
            "separately, so shares add up to 1 only roughly."
        )
    of = "of these items" if estimates.population == "finite" else "for new items of the same kind"
    return (
        f"{counted(estimates.n_items, 'item')}, {estimates.n_labels:,} of them with a "
        f"label{groups}. {100 * estimates.level:.3g}% intervals {of}, valid whatever the judge is "
        f"worth.{what} Worth in labels: number of labels that would give as narrow an interval "
        f"without votes{of_main}."
    )


def change_table(found: Change) -> ReportTable:
    """Tabulate the change of people, of votes, and of the judge between two periods."""
    parts = {
        "people": found.people,
        "votes": None,
        "votes less people": found.apart,
        f"the judge, on {found.n_anchors:,} items judged in both": found.judge,
    }

    def rows() -> Iterator[Row]:
        for name, change in parts.items():
            if name == "votes":
                cells = {"change": f"{found.votes:+z.3f}", "p": ""}
                yield Row((name,), cells, [{"value": found.votes}])
            elif change is not None:
                text = f"{change.value:+z.3f} ({change.low:+z.3f} to {change.high:+z.3f})"
                entry = Entry(text, change.low > 0 or change.high < 0)
                yield Row(
                    (name,), {"change": entry, "p": pvalue(change.pvalue)}, [change.as_dict()]
                )

    note = (
        f"Change of {found.quantity} from {found.names[0]} to {found.names[1]}, with "
        f"{100 * found.level:.3g}% intervals; bold: the interval excludes 0. Votes less people: by "
        "how much they moved apart, which a judge that is the same can do too, if it is more or "
        "less decisive than people or the mix of items changed."
    )
    return ReportTable.of_rows("change", "What changed", note, ("of",), rows())


def differences_table(estimates: Estimates, by: str) -> ReportTable | None:
    """Tabulate differences of the main quantity; None where no two values have enough labels."""
    if not estimates.differences:
        return None

    def rows() -> Iterator[Row]:
        for (first, second), differences in estimates.differences.items():
            net = differences[estimates.main]
            yield Row(
                (str(first), str(second)),
                {
                    "difference": Entry(fixed(net.value, signed=True), True),
                    "interval": f"{fixed(net.low, signed=True)} to {fixed(net.high, signed=True)}",
                    "p": MISSING if math.isnan(net.pvalue) else pvalue(net.pvalue),
                },
                [{by: first, f"less_{by}": second, **net.as_dict()}],
            )

    return ReportTable.of_rows(
        "differences",
        f"Differences of {estimates.main}s by {by}",
        f"For every two values of {by}. The {100 * estimates.level:.3g}% intervals are "
        "simultaneous, and p is corrected for the number of pairs (both by Bonferroni).",
        (by, "less"),
        rows(),
    )


def interval_of(estimate: MeanEstimate) -> str:
    """Return both ends of an interval as text."""
    return f"{fixed(estimate.low)} to {fixed(estimate.high)}"


def _worth(estimate: MeanEstimate) -> str:
    labels = estimate.effective_labels
    return MISSING if math.isnan(labels) else f"{labels:,.0f}"


def systems_table(systems: SystemEstimates) -> ReportTable:
    """Tabulate systems from the best to the worst."""

    def rows() -> Iterator[Row]:
        for name, system in systems.systems.items():
            mean = system.mean
            cells: dict[str, str | Entry] = {
                "rank": str(system.rank),
                "items": f"{system.n_items:,}",
                "labels": f"{system.n_labels:,}",
                systems.quantity: MISSING if mean is None or math.isnan(mean.value) else str(mean),
            }
            if system.strength is not None:
                cells["strength"] = _strength(system.strength)
            yield Row((str(name),), cells, [systems.record(name)])

    of = "of these items" if systems.population == "finite" else "for new items of the same kind"
    title, what = f"Systems by {systems.quantity}", ""
    if systems.tie_parameter is not None:
        against = "" if systems.baseline is None else f" against {systems.baseline}"
        title = "Systems by strength"
        what = (
            f" Win rate{against}: over the items of the system, ties count as half. Strength: log "
            "odds of a win against a loss by the Davidson model, which accounts for the opponents; "
            f"tie parameter {fixed(systems.tie_parameter.estimate)}."
        )
    return ReportTable.of_rows(
        "systems",
        title,
        f"{counted(systems.n_items, 'item')}, {systems.n_labels:,} of them with a label.{what} "
        f"{_not_told(systems)} {100 * systems.level:.3g}% intervals {of}, each by itself.",
        ("system",),
        rows(),
    )


def _not_told(systems: SystemEstimates) -> str:
    # Say which pairs of systems the labels tell apart, or which not: whichever is shorter.
    pairs = [*combinations(map(str, systems.systems), 2)]
    tied = [" and ".join(pair) for pair in systems.not_told_apart]
    apart = [" and ".join(pair) for pair in pairs if pair not in systems.not_told_apart]
    if not tied or not apart:
        return "All differ significantly." if not tied else "None differ significantly."
    if len(apart) < len(tied):
        return f"Only these pairs differ significantly: {_some(apart)}."
    return f"No significant difference: {_some(tied)}."


def _some(pairs: list[str]) -> str:
    left = len(pairs) - _MOST_PAIRS
    return "; ".join(pairs[:_MOST_PAIRS]) + f"; and {left} more pairs" * (left > 0)


def _strength(interval: ParameterInterval) -> str:
    estimate, low, high = (
        fixed(value, signed=True) for value in (interval.estimate, interval.low, interval.high)
    )
    if math.isnan(interval.low) or interval.low == interval.high:
        return estimate
    return f"{estimate} ({low} to {high})"


def certificate_table(certificate: Certificate) -> ReportTable:
    """Tabulate how often the surest items agree with people, and which of them are certified."""
    rows = [
        Row(
            (f"{100 * point.coverage:.3g}%",),
            {
                "agreement": Entry(fixed(point.agreement), point.coverage <= certificate.coverage),
                "lower bound": fixed(point.low),
                "labels": f"{point.n_labels:,}",
                "least confidence": fixed(point.threshold),
            },
            [point._asdict()],
        )
        for point in certificate.curve
    ]
    note = (
        f"{certificate.answer.capitalize()}. Each bound ({100 * certificate.confidence:.4g}%) is "
        "valid for a row chosen in advance, not for one picked from this table."
    )
    title = "Agreement with people of the most certain items"
    return ReportTable.of_rows("certificate", title, note, ("surest",), rows)


def gates_table(gates: Sequence[Mapping[str, Any]]) -> ReportTable:
    """Tabulate release gates: what `NonInferiority.as_dict` returns of each, and its name."""

    def rows() -> Iterator[Row]:
        for gate in gates:
            cells: dict[str, str | Entry] = {"outcome": Entry(gate["outcome"], True)}
            if "estimate" in gate:
                numbers = ("estimate", "lower", "upper")
                cells |= {name: fixed(gate[name], signed=True) for name in numbers}
                cells |= {"margin": f"{gate['margin']:g}", "labels": f"{gate['n_labels']:,}"}
            yield Row((gate["gate"],), cells, [gate])

    quantities = {gate["quantity"] for gate in gates if "quantity" in gate}
    of = " or ".join(
        f"the {quantity} minus that of the baseline" for quantity in sorted(quantities)
    )
    if NET in quantities or not quantities:
        of = f"the {NET} of the candidate (wins minus losses)"
    note = (
        f"Estimate: {of}. Lower and upper are one-sided bounds. A gate passes if lower is above "
        "minus the margin."
    )
    columns = ("outcome", "estimate", "lower", "upper", "margin", "labels")
    return ReportTable.of_rows("gates", "Release gates", note, ("gate",), rows(), columns)


def gates_in_markdown(gates: Sequence[Mapping[str, Any]]) -> str:
    """Return their table, and below it what each found with its remarks."""
    if not gates:
        return "### Release gates\n\nNo release gate was run.\n"
    lines = [f"- **{in_markdown(gate['gate'])}**: {in_markdown(gate['message'])}" for gate in gates]
    return "\n".join([gates_table(gates).markdown(), *lines, ""])
