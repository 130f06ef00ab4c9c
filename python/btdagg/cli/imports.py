"""`btdagg import`: votes that other tools have collected, as a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from btdagg._util.errors import forbid
from btdagg._util.files import write_table
from btdagg._util.outputs import require_file
from btdagg._util.wording import counted
from btdagg.cli.common import note, say
from btdagg.cli.flags import TABLE


def import_(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Files of other tools, or folders of them.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Write a table: .parquet, .csv, .tsv, .jsonl or .ndjson.",
        ),
        TABLE,
    ],
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="How to read any table, as in btdagg.toml. Columns: item=id,vote=winner; also "
            "judge, order, sample, task, group, system_a, system_b, rater, label; answer "
            "(texts with a verdict), score (grades, or with group and system scores to "
            "compare), score_a and score_b (scores of both sides), margin (the lead of A). "
            "Words: words.model_a=A, words.draw=tie, words.error=missing, for grades "
            "words.good=3; orders.yes=BA for the column order, and then words may also mean "
            "first and second. constants.judge=gpt-5.4 gives all rows the same value. "
            "scale=1-10 (or pass/fail, or 0,0.5,1) reads scores as grades; scale=x10 turns "
            "scores from 0 to 1 into grades from 0 to 10. criteria.tone=COLUMN and "
            "judges.ada=COLUMN name the columns with the grades of a criterion or a judge. "
            "format=NAME replaces recognition by content: openai-batch, anthropic-batch, "
            "gemini-batch, bedrock-batch, alpaca-eval, fastchat, fastchat-scores, arena-hard, "
            "lmsys, promptfoo, deepeval, openai-evals, braintrust, langsmith, rewardbench, "
            "label-studio, argilla, inspect, table or the format of an installed package. "
            "scorer=NAME picks the scorer of inspect, or the metric of promptfoo. Repeat for "
            "more keys.",
        ),
    ] = None,
    kind: Annotated[
        Literal["votes", "ratings", "labels"] | None,
        typer.Option(
            "--as",
            help="What to write: votes; ratings (one row per rater and item); or labels.",
            show_default="ratings where people voted, else votes",
        ),
    ] = None,
    answer_pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="Regular expression that finds the verdict in texts, with one group, such as "
            "'^Pick: (A|B)$'. The last match counts.",
            show_default="tags, JSON, labels such as Verdict: A, a last line",
        ),
    ] = None,
) -> None:
    """Import votes that other tools have collected: batch outputs, judgments, tables.

    The format is recognized by the content. A is the side that the file calls A, or else the system
    that comes first in the alphabet. Verdicts that cannot be read become missing votes and are
    counted by reason. If none can be read, nothing is written.

    Example: btdagg import gpt-4_pair.jsonl -o votes.parquet
    """
    from btdagg.formats.content import files_in
    from btdagg.project import Project
    from btdagg.votes.orders import about_orders
    from btdagg.votes.table import Table, listing

    require_file("output", output, reads=[file for place in files for file in files_in(place)])
    for place in filter(os.path.isdir, files):
        forbid(
            Path(os.path.realpath(output)).is_relative_to(os.path.realpath(place)),
            f"output is {output}, which lies in the input folder {place}",
            "output",
        )
    project = Project().with_keys(keys or ())
    how: Any = {"kind": kind, "answer_pattern": answer_pattern}
    names_label = kind is None and ("labels" in project.keys or "label" in project.keys)
    table = "labels" if kind == "labels" or names_label else "votes"
    scale = project.said(table, "scale")
    forbid(
        isinstance(scale, dict),
        "import takes one scale, not one per criterion: leave it out, and give the scales to the "
        "commands that read the file, such as --set votes.scale.NAME=1-5",
        "scale",
    )
    imported = project.imported(files, project.said(table, "format"), table, **how)
    unread = ", ".join(f"{n} {status}" for status, n in imported.unread.items())
    forbid(
        not imported.n_votes,
        "; ".join([f"no vote could be read; reasons: {unread}", *imported.remarks]),
    )
    write_table(imported.frame, output, output.suffix)
    n_items = imported.frame["item"].n_unique()
    who = f" of {n_items} items" if imported.kind != "labels" else ""
    for column in ("judge", "rater"):
        if column in imported.frame:
            who += f" by {counted(imported.frame[column].n_unique(), column)}"
    formats = ", ".join(imported.formats)
    say(f"{formats}: {imported.n_votes} {imported.kind}{who}; wrote {output}")
    if unread:
        missing = "votes, not ties" if "vote" in imported.frame else imported.kind
        note(f"could not be read, and count as missing {missing}: {unread}")
    if imported.left_out:
        note(f"left out: {listing(imported.left_out)}")
    note(*imported.remarks, *about_orders(Table(imported.frame, str(output))))
