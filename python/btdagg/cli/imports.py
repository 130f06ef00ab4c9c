"""`btdagg import`: votes that other tools have collected, as a table."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from btdagg._util.errors import InputError
from btdagg._util.files import write_table
from btdagg._util.outputs import require_file
from btdagg._util.wording import counted
from btdagg.cli.common import note, parse_pairs, say
from btdagg.cli.flags import TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    format: Annotated[
        str | None,
        typer.Option(
            help="Format of the files: openai-batch, fastchat, fastchat-scores, arena-hard, lmsys, "
            "promptfoo, deepeval, openai-evals, braintrust, langsmith, rewardbench, label-studio, "
            "argilla, inspect or table.",
            show_default="recognized by the content",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="NAME=COLUMN,...",
            help="Read any table: item=id,vote=winner. Further names: judge, order, sample, task, "
            "group, system_a, system_b, rater, label; answer for texts with a verdict, score for "
            "grades, or with group and system for scores to compare, score_a and score_b for "
            "scores of both, margin for the lead of A.",
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD=VOTE,...",
            help="What words mean: model_a=A,model_b=B,draw=tie,error=missing. Of grades: good=3.",
        ),
    ] = None,
    order: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD=ORDER,...",
            help="What the words of the column order mean: yes=BA,no=AB. The words first and "
            "second can then be said of votes: left=first,right=second.",
        ),
    ] = None,
    constants: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Give a column one value in all rows, such as judge=gpt-5.4.",
        ),
    ] = None,
    grades: Annotated[
        str | None,
        typer.Option(
            metavar="POINTS",
            help="Read scores as grades, not as pairs: 1-10, pass/fail or 0,0.5,1; x10 makes "
            "scores from 0 to 1 grades from 0 to 10.",
        ),
    ] = None,
    criteria: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=COLUMN,...",
            help="Columns with the grades by each criterion, or only their names.",
        ),
    ] = None,
    judges: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=COLUMN,...",
            help="Columns with the grades of each judge, or only their names.",
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
    from btdagg.votes.formats import read, read_grades
    from btdagg.votes.formats.content import files_in
    from btdagg.votes.scale import Scale, points_of

    require_file("output", output, reads=[file for place in files for file in files_in(place)])
    for place in filter(os.path.isdir, files):
        if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(place)):
            raise InputError(
                f"output is {output}, in {place}, a folder that is read", argument="output"
            )
    how: dict[str, Any] = {
        "columns": _by_name(columns, "columns"),
        "words": _by_name(words, "words"),
        "constants": {
            name.lower(): value for name, value in parse_pairs(constants, "constants", "NAME=VALUE")
        },
        "kind": kind,
        "answer_pattern": answer_pattern,
    }
    wide = {"criterion": _columns(criteria, "criteria"), "judge": _columns(judges, "judges")}
    wide = {name: named for name, named in wide.items() if named}
    if grades is None and not wide:
        imported = read(files, format, order=_by_name(order, "order"), **how)
    elif order:
        raise InputError(argument="order", came=order, expected="no orders of single responses")
    else:
        scale: Any = None
        if grades is not None and re.fullmatch(r"x[0-9]{1,3}", grades):
            scale = int(grades[1:])
        elif grades is not None:
            scale = Scale(points_of(grades, "grades"))
        how["columns"] |= wide
        imported = read_grades(files, format, scale=scale, **how)
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


def _columns(text: str | None, argument: str) -> dict[str, str]:
    """Parse NAME=COLUMN,... where a name alone is that of its column."""
    parts = [part if "=" in part else f"{part}={part}" for part in (text or "").split(",") if part]
    return dict(parse_pairs(parts, argument, "NAME=COLUMN"))


def _by_name(texts: Sequence[str] | None, argument: str) -> dict[str, str]:
    """Parse NAME=VALUE,NAME=VALUE texts, of which names may have a =."""
    values = {}
    for part in (part for text in texts or () for part in text.split(",")):
        name, equals, value = part.rpartition("=")
        if not (name.strip() and equals and value.strip()):
            raise InputError(argument=argument, came=part, expected="NAME=VALUE")
        values[name.strip().lower()] = value.strip()
    return values
