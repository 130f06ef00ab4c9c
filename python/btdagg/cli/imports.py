"""`btdagg import`: votes that other tools have collected, as a table or in a vote store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from btdagg._core import InputError
from btdagg._util.files import TABLE_SUFFIXES, write_table
from btdagg._util.outputs import require_file
from btdagg.cli.common import Json, files_read, note, out, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from btdagg.votes.formats import Imported, Stored


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
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write a table: .parquet, .csv, .tsv, .jsonl or .ndjson.",
            show_default=False,
            rich_help_panel="Output",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            "-s",
            help="Write into a vote store: a file (SQLite), or postgresql://user@host/database.",
            show_default=False,
            rich_help_panel="Output",
        ),
    ] = None,
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
        Literal["votes", "ratings", "labels"] | None,
        typer.Option(
            "--as",
            help="Write votes, ratings (one row per rater and item) or labels (what most say).",
            show_default="ratings where people voted, else votes",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Which scores, annotations or assertions, where a file has several.",
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
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            "-t",
            help="Template that the judge was asked by, for a store in which btdagg judge goes on.",
            show_default=False,
        ),
    ] = None,
    temperature: Annotated[
        str | None,
        typer.Option(
            help='With --template: a number, or "default" for the endpoint\'s own.',
            show_default="0.5",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Pairs that were judged (columns item, a, b), for a store that knows their texts.",
            show_default=False,
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
    from btdagg.votes.words import parse_words

    if output is None and store is None:
        raise InputError("want --output, a file to write, or --store, a vote store")
    for option, value in (("template", template), ("pairs", pairs)):
        if store is None and value is not None:
            raise InputError(f"--{option} wants --store")
    if template is None and temperature is not None:
        raise InputError("--temperature wants --template")
    if output is not None:
        if output.suffix.lower() not in TABLE_SUFFIXES:
            raise InputError(
                f"--output is {output}, expected a name in {', '.join(TABLE_SUFFIXES)}"
            )
        reads = [
            *files_read(context, "output"),
            *(file for place in files for file in files_in(place)),
        ]
        for place in filter(os.path.isdir, files):
            if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(place)):
                raise InputError(f"--output is {output}, in {place}, a folder that is read")
        require_file("--output", output, reads=reads)
    flipped = _pairs(flip_where, "--flip-where", split=False)
    if len({column for column, _ in flipped}) > 1:
        raise InputError("--flip-where names two columns, expected one")
    found = read(
        files,
        format,
        columns=dict(_pairs(columns, "--map")),
        words=parse_words(words or ()),
        flip_where=(flipped[0][0], [value for _, value in flipped]) if flipped else None,
        constants=dict(_pairs(constants, "--set", split=False)),
        kind=kind,
        name=name,
        custom_id=custom_id,
        answer_pattern=answer_pattern,
    )
    if not found.n_votes:
        listed = ", ".join(f"{n} {status}" for status, n in found.unread.items())
        raise InputError("; ".join([f"no vote could be read: {listed}", *found.remarks]))
    stored = None if store is None else _store(found, store, template, temperature, pairs)
    if output is not None:
        write_table(found.frame, output, output.suffix)
    _say(found, output, store, stored, json=json)


def _store(
    found: Imported, store: str, template: str | None, temperature: str | None, pairs: Path | None
) -> Stored:
    from btdagg.cli.judge_settings import parsed_temperature
    from btdagg.judge.judging import Judging
    from btdagg.judge.pairs import read_pairs
    from btdagg.votes.formats import store_votes

    judging = None
    if template is not None:
        given = Judging.temperature if temperature is None else parsed_temperature(temperature)
        judging = Judging("imported", template=template, temperature=given)
    texts = None if pairs is None else read_pairs(pairs)
    return store_votes(found, store, judging=judging, pairs=texts)


def _say(
    found: Imported, output: Path | None, store: str | None, stored: Stored | None, *, json: bool
) -> None:
    n_items = found.frame["item"].n_unique()
    if json:
        print_json(
            {
                "formats": list(found.formats),
                "kind": found.kind,
                f"n_{found.kind}": found.n_votes,
                "n_items": n_items,
                "unread": dict(found.unread),
                "remarks": list(found.remarks),
                "output": None if output is None else str(output),
                "store": None if stored is None else stored._asdict(),
            }
        )
        return
    who = f" of {n_items} items" if found.kind != "labels" else ""
    for column in ("judge", "rater"):
        if column in found.frame:
            n = found.frame[column].n_unique()
            who += f" by {n} {column}{'s' if n > 1 else ''}"
    wrote = [] if output is None else [f"wrote {output}"]
    if stored is not None:
        wrote.append(f"{store}: {stored.n_new} new samples, {stored.n_there} there already")
    out.print(
        f"{', '.join(found.formats)}: {found.n_votes} {found.kind}{who}; {'; '.join(wrote)}",
        soft_wrap=True,
    )
    if stored is not None and stored.n_elsewhere:
        note(f"left alone, since others are asking for them: {stored.n_elsewhere} samples")
    if found.unread:
        listed = ", ".join(f"{n} {status}" for status, n in found.unread.items())
        note(f"not read: {listed}; these are missing votes, not ties")
    for remark in found.remarks:
        note(remark)


def _pairs(
    given: Sequence[str] | None, option: str, *, split: bool = True
) -> list[tuple[str, str]]:
    """Parse NAME=VALUE texts, several of them separated by commas where `split`."""
    found: list[tuple[str, str]] = []
    for text in given or ():
        for one in text.split(",") if split else [text]:
            name, equals, value = (part.strip() for part in one.partition("="))
            if not (name and equals and value):
                raise InputError(f"{option} is {text!r}, expected NAME=VALUE")
            if split and name.lower() in dict(found):
                raise InputError(f"{option} names {name} twice")
            found.append((name.lower(), value))
    return found
