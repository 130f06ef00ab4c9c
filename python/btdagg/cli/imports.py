"""`btdagg import`: votes that other tools have collected, as a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from btdagg._core import InputError
from btdagg._util.files import write_table
from btdagg.cli.common import Json, files_read, note, out, print_json, table_to_write

if TYPE_CHECKING:
    from collections.abc import Sequence


def import_(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Files of other tools, or folders of them.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Write a table: .parquet, .csv, .tsv, .jsonl or .ndjson.",
            show_default=False,
        ),
    ],
    format: Annotated[
        str | None,
        typer.Option(
            help="Format of the files, such as openai-batch; a wrong one lists them all.",
            show_default="recognized by the content",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="NAME=COLUMN,...",
            help="Read any table: item=id,vote=winner. Further names: judge, order, sample, task, "
            "group, system_a, system_b, rater, label; answer for texts with a verdict, score (with "
            "group and system) for scores of responses, score_a and score_b for scores of both.",
            show_default=False,
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD=VOTE,...",
            help="What words mean: model_a=A,model_b=B,draw=tie,error=missing.",
            show_default=False,
        ),
    ] = None,
    flip_where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Turn the votes of these rows, which call A what was shown second: order=BA.",
            show_default=False,
        ),
    ] = None,
    constants: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Give a column one value in all rows, such as judge=gpt-5.4.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        Literal["votes", "ratings"] | None,
        typer.Option(
            "--as",
            help="Write votes, or ratings: one row per rater and item, as labels may be.",
            show_default="ratings where people voted, else votes",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Which scorer or assertions, where a file has several.",
            show_default=False,
        ),
    ] = None,
    custom_id: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="How ids of requests in a batch are made, such as '{item}-{order}-{sample}'.",
            show_default=False,
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
    json: Json = False,
) -> None:
    """Import votes that other tools have collected: batch outputs, judgments, tables.

    The format is recognized by the content. Votes are turned to A's point of view, where A is the
    first of two systems in alphabetical order, or what the file calls A. What cannot be read is
    counted by reason, and stays a missing vote; where nothing can be read, nothing is written.

    Example: btdagg import gpt-4_pair.jsonl -o votes.parquet
    """
    from btdagg.votes.formats import read
    from btdagg.votes.formats.content import files_in

    inside = [file for place in files for file in files_in(place)]
    table_to_write("--output", output, [*files_read(context, "output"), *inside])
    for place in filter(os.path.isdir, files):
        if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(place)):
            raise InputError(f"--output is {output}, in {place}, a folder that is read")
    flipped = _pairs(flip_where, "--flip-where", split=False)
    if len({column for column, _ in flipped}) > 1:
        raise InputError("--flip-where names two columns, expected one")
    imported = read(
        files,
        format,
        columns=dict(_pairs(columns, "--map")),
        words=dict(_pairs(words, "--words")),
        flip_where=(flipped[0][0], [value for _, value in flipped]) if flipped else None,
        constants=dict(_pairs(constants, "--set", split=False)),
        kind=kind,
        name=name,
        custom_id=custom_id,
        answer_pattern=answer_pattern,
    )
    unread = ", ".join(f"{n} {status}" for status, n in imported.unread.items())
    if not imported.n_votes:
        raise InputError("; ".join([f"no vote could be read: {unread}", *imported.remarks]))
    write_table(imported.frame, output, output.suffix)
    n_items = imported.frame["item"].n_unique()
    if json:
        print_json(
            {
                "formats": list(imported.formats),
                "kind": imported.kind,
                f"n_{imported.kind}": imported.n_votes,
                "n_items": n_items,
                "unread": dict(imported.unread),
                "remarks": list(imported.remarks),
                "output": str(output),
            }
        )
        return
    who = f" of {n_items} items" if imported.kind != "labels" else ""
    for column in ("judge", "rater"):
        if column in imported.frame:
            n = imported.frame[column].n_unique()
            who += f" by {n} {column}{'s' if n > 1 else ''}"
    formats = ", ".join(imported.formats)
    out.print(f"{formats}: {imported.n_votes} {imported.kind}{who}; wrote {output}", soft_wrap=True)
    if unread:
        note(f"not read: {unread}; these are missing votes, not ties")
    for remark in imported.remarks:
        note(remark)


def _pairs(
    texts: Sequence[str] | None, option: str, *, split: bool = True
) -> list[tuple[str, str]]:
    """Parse NAME=VALUE; where `split`, a text has pairs separated by commas, and names with =."""
    pairs = []
    for text in texts or ():
        for part in text.split(",") if split else [text]:
            name, equals, value = part.rpartition("=") if split else part.partition("=")
            if not (name.strip() and equals and value.strip()):
                raise InputError(f"{option} is {text!r}, expected NAME=VALUE")
            pairs.append((name.strip().lower(), value.strip()))
    return pairs
