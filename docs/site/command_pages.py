"""The reference of the command line, from the commands themselves.

Typer brings its own copy of Click, so extensions that read Click's commands do not know these.
"""

from __future__ import annotations

import re
from pathlib import Path

import typer

from btdagg.cli.app import COMMANDS, app

_EXAMPLE = "Example: "
_COMMAND = rf"(?:\bbtdagg (?:{'|'.join(COMMANDS)})\b ?)"
_OPTION = r"(?:(?<![\w-])--?[a-z][\w-]*)"
_CODE = re.compile(rf"`[^`]*`|{_COMMAND}{_OPTION}|{_COMMAND}(?<! )|{_OPTION}")
_HEAD = """# Commands

`btdagg COMMAND --help` prints what this page and those below say. [What commands write, print and
return](../commands.md) holds for all of them.

| command | what it does |
|---|---|
"""


def write_commands(folder: Path) -> None:
    """Write a page for each command, and one that lists them."""
    group = typer.main.get_command(app)
    (folder / "commands").mkdir()
    head, pages = _HEAD, []
    for name in COMMANDS:
        command = group.get_command(None, name)
        (folder / "commands" / f"{name}.md").write_text(page(name, command), encoding="utf-8")
        head += f"| [btdagg&nbsp;{name}](commands/{name}.md) | {_paragraphs(command.help)[0]} |\n"
        pages.append(f"commands/{name}")
    head += f"\n{_paragraphs(group.help)[1]}\n\n" + _toctree(pages)
    (folder / "commands.md").write_text(head, encoding="utf-8")


def page(name: str, command: object) -> str:
    """The page of a command, with those below it."""
    text = entry(f"btdagg {name}", command, "#")
    for below, one in getattr(command, "commands", {}).items():
        text += "\n" + entry(f"btdagg {name} {below}", one, "##")
    return text


def entry(name: str, command: object, level: str) -> str:
    """What a command does, how it is called, and its arguments and options."""
    context = typer.Context(command, info_name=name)
    usage = command.get_usage(context).removeprefix("Usage: ")
    said = [f"{level} {name}", _fenced("text", usage), f"```{{program}} {name}\n```"]
    for paragraph in _paragraphs(command.help):
        example = paragraph.removeprefix(_EXAMPLE)
        said.append(_fenced("console", example) if example != paragraph else _marked(paragraph))
    shown = [one for one in command.params if not one.hidden and one.name != "help"]
    for kind in ("argument", "option"):
        some = [one for one in shown if one.param_type_name == kind]
        if some:
            said.append(f"{level}# {kind.capitalize()}s")
            said += [_parameter(one, context) for one in some]
    return "\n\n".join(said) + "\n"


def _parameter(parameter: object, context: typer.Context) -> str:
    names, about = parameter.get_help_record(context)
    names = names.replace(" / ", ", ")
    about, _, extra = about.partition("  [")
    said = _marked(about)
    if extra:
        default = extra.removesuffix("]")
        key, colon, value = default.partition(": ")
        said += f" {key.capitalize()}: {_code(value)}." if colon else f" {key.capitalize()}."
    return f"````{{option}} {names}\n\n{said}\n````"


def _code(value: str) -> str:
    """A default, or words in brackets that describe it."""
    return value[1:-1] if value.startswith("(") and value.endswith(")") else f"`{value}`"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(one.split()) for one in text.split("\n\n")]


def _marked(text: str) -> str:
    """Commands and options in a text as code."""
    escaped = text.replace("*", r"\*").replace("<", "&lt;")
    return _CODE.sub(lambda found: found[0] if found[0][0] == "`" else f"`{found[0]}`", escaped)


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _toctree(pages: list[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```", ""])
