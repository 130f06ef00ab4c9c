"""`btdagg difference`: whether systems differ, by a table of their losses or scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from btdagg._util.errors import expect
from btdagg.cli.common import Json, ProjectOption
from btdagg.cli.reporting import ReportOption, show_result


def difference(
    project: ProjectOption,
    reporting: ReportOption,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Losses or scores: a column for each system (--systems), or a row for each item "
            "and system; .csv, .tsv, .jsonl or .parquet; - is standard input.",
        ),
    ],
    better: Annotated[
        Literal["lower", "higher"],
        typer.Option(help="Which values are better: lower losses, or higher scores."),
    ],
    systems: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Columns of the systems, or which of the systems to compare, with commas between "
            "them. Of two the first is compared with the second, of more all pairs.",
            show_default="all in the column system",
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Compare all systems with this one alone.")
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            help="Column of the losses or scores.",
            show_default="score, loss, value, grade or label",
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            help="Column of the systems.",
            show_default="system, method, model, version, experiment, run or judge",
        ),
    ] = None,
    item: Annotated[
        str | None, typer.Option(help="Column of the items.", show_default="item or id")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Column of what items have in common, such as a prompt: groups are independent, "
            "items of one need not be.",
            show_default="group, if there is one",
        ),
    ] = None,
    alternative: Annotated[
        Literal["two-sided", "less", "greater", "not-worse", "equivalent"],
        typer.Option(
            help="What is to be shown: the systems differ; the first is lower, or higher; it is "
            "not worse by more than --margin; they differ by less than it."
        ),
    ] = "two-sided",
    margin: Annotated[float, typer.Option(help="Of not-worse and equivalent.")] = 0.0,
    correction: Annotated[
        Literal["max-t", "holm", "benjamini-hochberg", "none"] | None,
        typer.Option(
            help="How p-values allow for the number of differences.",
            show_default="max-t for all pairs, holm for others",
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level.")] = 0.95,
    json: Json = False,
) -> None:
    """Say whether the difference between systems is real.

    It takes losses or scores by item, such as an experiment platform exports. Items of both systems
    are compared in pairs, by a permutation test and the interval that agrees with it.

    Example: btdagg difference scores.csv --systems new,old --better higher
    """
    from btdagg.questions.difference import difference as of_two
    from btdagg.questions.difference import differences
    from btdagg.votes.scores import read_scores
    from btdagg.votes.source import read_table

    folder = reporting.open(project.project, f"Differences in {Path(table).name}")
    source = read_table(table, [])
    named = None if systems is None else [name.strip() for name in systems.split(",")]
    good = named is None or len({*named}) == len(named) > 1
    expect(good, "systems", systems, "two names or more, each once")
    are_columns = named is not None and any(name in source.columns for name in named)
    scores = read_scores(
        source,
        systems=named if are_columns else None,
        value=value,
        system=system,
        item=item,
        group=group,
    )
    scores = scores.shared(*(named or ()))
    how: Any = {"groups": scores.groups, "better": better, "level": level, "margin": margin}
    how["alternative"] = (
        alternative.replace("-", " ") if alternative == "not-worse" else alternative
    )
    found: Any
    if len(scores.names) == 2 and against is None:
        expect(correction in (None, "none"), "correction", correction, "none of one difference")
        found = of_two(*scores.values, names=scores.names, **how)
    else:
        values = dict(zip(scores.names, scores.values, strict=True))
        found = differences(values, against=against, correction=correction, **how)
    show_result(found.with_remarks(scores.remarks), folder, json=json)
