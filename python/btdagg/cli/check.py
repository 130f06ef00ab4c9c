"""`btdagg check`: what is in files, and what to do next."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from btdagg._util.errors import InputError
from btdagg._util.files import read_whole, replace_file
from btdagg._util.outputs import require_no_link
from btdagg.cli.common import Json, ProjectOption, note, print_json, say, say_in_words

if TYPE_CHECKING:
    from btdagg.check import Check


def check(
    reading: ProjectOption,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            help="Votes, labels, items or pairs: tables, vote stores, or files of other tools.",
            show_default="of btdagg.toml",
        ),
    ] = None,
    save: Annotated[
        bool,
        typer.Option(
            "--save",
            help="Write a project file, which tells the other commands how to read these files.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Write it anew, from these files alone, over a project file that differs.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Describe files, what is wrong with them, and what to do next.

    The command also lists the questions that the files can answer. Name votes, labels and data of
    items together to have them checked together. A table with columns of your own is read as far
    as its column names and words allow. What the files leave open is shown as "...", also in the
    project file that --save writes; the command says what to fill in, and --set answers it.

    Example: btdagg check votes.csv labels.csv
    """
    from btdagg.check import check as look
    from btdagg.project import FILE, Project, needs_a_name

    typed = reading.typed
    named = typed.named_project
    path = Path(named or FILE)
    is_new = save and (force or not path.exists())
    project = Project().with_keys(reading.keys or ()) if is_new else reading.project
    checked = look(files or (), project)
    if json:
        print_json(asdict(checked))
    else:
        for line in str(checked).split("\n"):  # a command is copied whole
            if not (save and line.startswith("Next")):
                (say if line.startswith("Next") else say_in_words)(line)
    if save:
        if named is None:
            require_no_link(path)
        _save(path, checked.project_in(os.fspath(path.parent) if named else ""), force=force)
        note(f"wrote {path}")
        is_named = named is not None or needs_a_name(files or ())
        _say_next(checked, path, f" --project {shlex.quote(str(path))}" if is_named else "", json)
    return 2 if checked.is_wrong else 0


def _say_next(checked: Check, path: Path, project: str, json: bool) -> None:
    if json:
        return
    if checked.missing:
        say(f"Next, fill in each ... in {path}:")
        for key, what in checked.missing.items():
            say(f"  {key}: {what}")
    elif checked.is_wrong:
        say("Next, mend what is wrong; btdagg check says whether all is well.")
    elif checked.questions:
        say("Next, by question:")
        for question, command in checked.questions.items():
            say(f"  {question}:", f"    {command}{project}")
    elif checked.next_with_project:
        say(f"Next: {checked.next_with_project}{project}")


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
