"""Groups of options, outputs, and names of options in errors, the same for every command."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from btdagg._util.errors import InputError
from btdagg._util.files import TABLE_SUFFIXES

if TYPE_CHECKING:
    from btdagg.project import Project

_OPTIONS = {
    "n": "-n",
    "where": "--filter",
    "columns": "--set ",
    "words": "--set words.",
    "order": "--set orders.",
    "scale": "--set votes.scale=",
    "label_scale": "--set labels.scale=",
    "grades": "--set labels.scale=",
    "covariates": "--covariates ",
    **{name: f"--set {name}=" for name in ("a", "b", "full_margin", "panel")},
    **{name: f"--set {name}=" for name in ("population", "raters", "strength")},
    "format": "--set format=",
    "scorer": "--set scorer=",
    "template": "--set judge.template=",
    "epsilon": "--stop epsilon",
    "price": "--stop price",
    "budget": "--stop budget",
}
"""Options of arguments that no parameter of the command is called like."""


_PANELS = {
    **dict.fromkeys(("filters", "keys", "known"), "Data"),
    **dict.fromkeys(
        ("disagreements", "export", "json", "junit", "output", "report", "store"), "Output"
    ),
    **dict.fromkeys(("summary", "to_label"), "Output"),
}
"""Where the help lists options, by their parameters."""


@dataclass(frozen=True)
class CommandLine:
    """A command and what was typed, which a parameter of this type, or a field of a group, gets."""

    context: typer.Context

    @cached_property
    def project(self) -> Project:
        """The project file of --project, or the one in the working directory; else an empty one."""
        from btdagg._util.wording import in_line
        from btdagg.project import FILE, Project

        if self.named_project is None and not os.path.exists(FILE):
            return Project()
        project = Project.load(self.named_project)
        print(f"project: {in_line(str(project.path))}", file=sys.stderr)
        return project

    @property
    def named_project(self) -> str | None:
        """The file of --project."""
        named: str | None = self.context.find_root().params.get("project")
        return named

    def files(self, *but: str) -> list[str]:
        """Return texts that could name a file, but of some parameters, and files of the project."""
        values = [value for name, value in self.context.params.items() if name not in but]
        texts = [text for v in values for text in (v if isinstance(v, list) else [v])]
        project = self.project.files if "keys" in self.context.params else []
        return [*(os.fspath(text) for text in texts if isinstance(text, str | Path)), *project]

    def is_given(self, name: str) -> bool:
        """Whether a parameter was given on the command line (or by the environment)."""
        source = self.context.get_parameter_source(name)
        return source is not None and source.name != "DEFAULT"


@dataclass(frozen=True)
class Written:
    """Marks a parameter whose file the command writes, and never reads: checked before the work."""

    suffixes: tuple[str, ...] = ()

    def check(self, argument: str, path: Path | None, reads: list[str], *, is_typed: bool) -> None:
        """Check that the file can be written, and that its name says in which format."""
        if path is None:
            return
        if self.suffixes and path.suffix.lower() not in self.suffixes:
            expected = f"a name in {', '.join(self.suffixes)}"
            raise InputError(argument=argument, got=str(path), expected=expected)
        from btdagg._util.outputs import require_file, require_no_link

        if not is_typed:
            require_no_link(path)
        require_file(argument, path, reads=reads)


FILE, TABLE = Written(), Written(TABLE_SUFFIXES)


def with_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command each field of its dataclasses, such as `Reading`, as an option."""
    # Its outputs are checked first; an `InputError` names options in place of arguments.
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if group is CommandLine:
            groups[parameter.name] = CommandLine
        elif is_dataclass(group):
            groups[parameter.name] = group
            hints = get_type_hints(group, include_extras=True)
            options += (
                inspect.Parameter(flag.name, keyword, annotation=hints[flag.name])
                if flag.default is MISSING
                else inspect.Parameter(
                    flag.name, keyword, default=flag.default, annotation=hints[flag.name]
                )
                for flag in fields(group)
                if hints[flag.name] is not CommandLine
            )
        else:
            options.append(parameter.replace(kind=keyword))
    outputs: dict[str, Written] = {}
    for option in options:
        for mark in getattr(option.annotation, "__metadata__", ()):
            if isinstance(mark, Written):
                outputs[option.name] = mark
            elif mark.rich_help_panel is None:
                mark.rich_help_panel = _PANELS.get(option.name)

    @wraps(command)
    def called(context: typer.Context, **values: Any) -> Any:
        typed = CommandLine(context)
        try:
            for name, mark in outputs.items():
                mark.check(name, values[name], typed.files(name), is_typed=typed.is_given(name))
            made: dict[str, Any] = {}
            for name, group in groups.items():
                group_values = {f.name: values.pop(f.name, typed) for f in fields(group)}
                made[name] = typed if group is CommandLine else group(**group_values)
            values |= made
            return command(**values)
        except InputError as error:
            raise InputError(error.in_options(partial(_option_of, context.command))) from error

    called.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in options}
    return called


def name_of(parameter: Any) -> str:
    """Return how the help calls an option or a positional argument."""
    is_option = parameter.param_type_name == "option"
    return str(parameter.opts[0] if is_option else parameter.metavar)


def _option_of(command: Any, argument: str) -> str | None:
    for parameter in command.params:
        if parameter.name == argument:
            return name_of(parameter)
    option = _OPTIONS.get(argument)
    if option is None:
        return None
    if command.name == "import":  # of one table, whose keys need not name it
        option = option.replace("votes.", "")
    flags = {name for parameter in command.params for name in parameter.opts}
    return option if option.partition(" ")[0] in flags else None
