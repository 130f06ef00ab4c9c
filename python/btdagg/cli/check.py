"""`btdagg check`: what is in files, and what to do next."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from btdagg._util.errors import InputError
from btdagg._util.files import read_whole, replace_file
from btdagg._util.outputs import require_no_link
from btdagg.cli.common import Json, note, print_json, say, say_in_words
from btdagg.cli.flags import CommandLine
from btdagg.project import FILE, needs_a_name


def check(
    typed: CommandLine,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Votes, labels or pairs: tables, vote stores, or files of other tools.",
        ),
    ],
    save: Annotated[
        bool,
        typer.Option(
            "--save",
            help="Write a project file, which tells the other commands how to read these files.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a project file that differs.")
    ] = False,
    json: Json = False,
) -> int:
    """Describe files, what is wrong with them, and what to do next.

    The command also lists the questions that the files can answer. Name votes and labels together
    to have them checked together. A table with columns of your own is read as far as its column
    names and words allow. What the files leave open is shown as "...", also in the project file
    that --save writes; the command says what to fill in.

    Example: btdagg check votes.csv labels.csv
    """
    from btdagg.check import check as look

    checked = look(files)
    if json:
        print_json(asdict(checked))
    else:
        for line in str(checked).split("\n"):  # a command is copied whole
            if not (save and line.startswith("Next")):
                (say if line.startswith("Next") else say_in_words)(line)
    if save:
        path, text = Path(typed.named_project or FILE), checked.project
        if typed.named_project is None:
            require_no_link(path)
        _save(path, text, force=force)
        note(f"wrote {path}")
        is_named = typed.named_project is not None or needs_a_name(files)
        project = f" --project {shlex.quote(str(path))}" if is_named else ""
        step = "" if checked.questions else checked.next_with_project
        step = step and f"{step}{project}"
        if checked.missing and not json:
            say(f"Next, fill in each ... in {path}:")
            for key, what in checked.missing.items():
                say(f"  {key}: {what}")
        elif step and not json:
            say(f"Next: {step}")
        elif not json:
            say("Next, by question:")
            for question, command in checked.questions.items():
                say(f"  {question}:", f"    {command}{project}")
    return 2 if any(file.problems for file in checked.files) else 0


def _save(path: Path, text: str, *, force: bool) -> None:
    """Write a project file; one that somebody has edited is shown, and kept unless forced."""
    before = read_whole(path).decode(errors="replace") if path.exists() else text
    if before != text and not force:
        for line in unified_diff(
            before.splitlines(), text.splitlines(), str(path), "as written now", lineterm=""
        ):
            say(line)
        raise InputError(f"{path} exists and differs; --force replaces it")
    replace_file(path, text)
