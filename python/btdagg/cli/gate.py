"""`btdagg gate`: whether a candidate is not worse than a baseline, with an exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import typer

from btdagg._util.errors import within
from btdagg._util.files import replace_file
from btdagg._util.wording import printable
from btdagg.cli.common import (
    FirstVotes,
    Json,
    LabelsFile,
    OwnModel,
    Reading,
    VotesFile,
    criteria_of,
    differences_said,
    model_or_panel,
    note,
    print_json,
    what_is_pooled,
)
from btdagg.cli.estimate import about_drawing
from btdagg.cli.flags import FILE
from btdagg.cli.reporting import print_table, say_answer
from btdagg.questions.gate import gate_properties, gates_table, not_worse
from btdagg.questions.looks import path_of_part
from btdagg.report.gates import gates_in_markdown
from btdagg.votes.table import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def gate(
    reading: Reading,
    candidate: Annotated[
        str,
        typer.Option(
            help="The version to release: a name from the columns system_a and system_b, from "
            "--set a=... and b=..., or for grades from the column system. Sides without a "
            "name are A and B.",
        ),
    ],
    baseline: Annotated[str, typer.Option(help="The version in use today, by its name.")],
    margin: Annotated[
        float,
        typer.Option(
            help="How much worse the candidate may be, in the net win rate (share of items on "
            "which people prefer the candidate minus share on which they prefer the "
            "baseline), or in --quantity."
        ),
    ],
    votes: VotesFile = None,
    labels: LabelsFile = None,
    level: Annotated[float, typer.Option(help="Confidence of each bound.")] = 0.95,
    quantity: Annotated[
        str | None,
        typer.Option(
            help='For grades: "mean grade" or "share >= 4".',
            show_default="mean grade; pass rate if there are two grades",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column of the votes, such as task: one gate for each of its values, and all must "
            "pass.",
            show_default="for grades criterion, if there are several",
        ),
    ] = None,
    model: OwnModel = None,
    n_votes: FirstVotes = None,
    sequential: Annotated[
        Path | None,
        typer.Option(
            help="Look after every label: bounds hold at all looks together. This file keeps what "
            "was counted from one look to the next; with --by each gate has one of its own.",
        ),
        FILE,
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(help="Write JUnit XML to this file."),
        FILE,
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            help="Write a table in Markdown to this file, for a pull request.",
        ),
        FILE,
    ] = None,
    json: Json = False,
) -> int:
    """Test that a candidate is at most a margin worse than a baseline.

    The exit status is 0 if labels and votes show it. It is 1 if the candidate is worse, or if there
    are too few labels to tell; the command then says how many it would take. The interval is that
    of btdagg estimate. It needs labels of a random sample of items, such as btdagg choose draws.
    With --sequential you may label a few items, look, and go on until there is an answer.

    Example: btdagg gate votes.csv labels.csv --candidate chat-new --baseline chat-old --margin 0.03
    """
    fitted = None if model is None else model_or_panel(model)
    data = reading.data(votes, labels, fitted)
    by = None if by is None else by.strip().lower()
    if by is None and criteria_of(data.votes):
        by = "criterion"
    if by == "criterion" and "task" in data.votes.columns:
        by = "task"
    parts = {f"{candidate} against {baseline}": data.votes}
    if by is not None:
        require(data.votes, [by])
        values = data.votes.values(by).drop_nulls().sort().to_list()
        parts = {value: data.votes.filter({by: [value]}) for value in values}
    settings: Any = {"margin": margin, "level": level, "quantity": quantity, "model": fitted}
    settings |= {"population": reading.population, "panel": reading.panel, "n_votes": n_votes}
    settings["covariates"] = reading.covariates_for(fitted)
    results = {}
    for name, part in parts.items():
        if sequential is not None:
            settings["sequential"] = sequential if by is None else path_of_part(sequential, name)
        with within("" if by is None else f"{by} {name}: "), differences_said():
            result = not_worse(part, data.gold, candidate=candidate, baseline=baseline, **settings)
        has_design = "probability" in data.gold.columns or result.n_labels == result.n_items
        remarks = what_is_pooled(part, "takes", [] if by is None else [by])
        results[name] = result.with_remarks(remarks + about_drawing(data, has_design))
    gates = [{"gate": name, **result.as_dict()} for name, result in results.items()]
    if summary is not None:
        replace_file(summary, gates_in_markdown(gates))
    if junit is not None:
        replace_file(junit, _in_junit(gates))
    note(*(f"wrote {path}" for path in (junit, summary) if path is not None))
    note(*dict.fromkeys(remark for result in results.values() for remark in result.remarks))
    if json:
        print_json(gates)
    else:
        say_answer(
            *(("" if by is None else f"{name}: ") + of.sentence() for name, of in results.items())
        )
        print_table(gates_table(gates))
    return int(not all(result.passed for result in results.values()))


def _in_junit(gates: Iterable[Mapping[str, Any]]) -> bytes:
    # A suite for each gate, since a test case has no properties there.
    root = Element("testsuites", name="btdagg gate")
    for gate in gates:
        name, outcome = printable(gate["gate"]), gate["outcome"]
        failed = outcome != "not worse"
        numbers: Any = {"tests": "1", "failures": str(int(failed)), "errors": "0", "skipped": "0"}
        suite = SubElement(root, "testsuite", name=name, **numbers)
        properties = SubElement(suite, "properties")
        for key, value in gate_properties(gate).items():
            value = printable(str(value))
            SubElement(properties, "property", name=key, value=value)
        case = SubElement(suite, "testcase", classname="btdagg.gate", name=name)
        if failed:
            SubElement(case, "failure", type=outcome, message=printable(gate["message"]))
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))
