"""`btdagg import`: votes that other tools have collected, as a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from btdagg._util.errors import InputError
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
            help="How any table is read, as in btdagg.toml: item=id,vote=winner; further names "
            "are judge, order, sample, task, group, system_a, system_b, rater, label; answer for "
            "texts with a verdict, score for grades, or with group and system for scores to "
            "compare, score_a and score_b for scores of both, margin for the lead of A. "
            "words.model_a=A, words.draw=tie, words.error=missing or of grades words.good=3 say "
            "what words mean, and orders.yes=BA those of the column order, after which words may "
            "be first and second. constants.judge=gpt-5.4 gives all rows one value. scale=1-10 "
            "(pass/fail or 0,0.5,1) reads scores as grades, and x10 makes scores from 0 to 1 "
            "grades from 0 to 10; criteria.tone=COLUMN and judges.ada=COLUMN are columns of the "
            "grades by a criterion or judge. format, else recognized by the content, is "
            "openai-batch, fastchat, fastchat-scores, arena-hard, lmsys, promptfoo, deepeval, "
            "openai-evals, braintrust, langsmith, rewardbench, label-studio, argilla, inspect, "
            "table or one of an installed package; scorer is whose scores are taken of inspect, or "
            "which metric of promptfoo. Repeat for more.",
        ),
    ] = None,
    kind: Annotated[
        Literal["votes", "ratings", "labels"] | None,
        typer.Option(
            "--as",
            help="Write votes; ratings, one row per rater and item, as labels may be; or labels.",
            show_default="ratings where people voted, else votes",
        ),
    ] = None,
    answer_pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="Where the verdict is in texts: a regular expression with one group, such as "
            "'^Pick: (A|B)$'. The last match counts.",
            show_default="tags, JSON, labels such as Verdict: A, a last line",
        ),
    ] = None,
) -> None:
    """Import votes that other tools have collected: batch outputs, judgments, tables.

    The format is recognized by the content. Votes are turned to A's point of view, where A is the
    first of two systems in alphabetical order, or what the file calls A. What cannot be read is
    counted by reason, and stays a missing vote; where nothing can be read, nothing is written.

    Example: btdagg import gpt-4_pair.jsonl -o votes.parquet
    """
    from btdagg.project import Project
    from btdagg.votes.formats.content import files_in

    require_file("output", output, reads=[file for place in files for file in files_in(place)])
    for place in filter(os.path.isdir, files):
        if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(place)):
            raise InputError(
                f"output is {output}, in {place}, a folder that is read", argument="output"
            )
    project = Project().with_keys(keys or ())
    how: Any = {"kind": kind, "answer_pattern": answer_pattern}
    imported = project.imported(files, project.keys.get("format"), **how)
    unread = ", ".join(f"{n} {status}" for status, n in imported.unread.items())
    if not imported.n_votes:
        raise InputError("; ".join([f"no vote could be read: {unread}", *imported.remarks]))
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
        note(f"not read: {unread}; these are missing {missing}")
    note(*imported.remarks)
