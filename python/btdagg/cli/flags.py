"""Groups of options, which a command takes as one value, and names of options in its errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from typing import Any, get_type_hints

import typer

from btdagg._core import InputError

_OPTIONS = {
    "n": "-n",
    "scale": "--grades",
    "label_scale": "--label-grades",
    "epsilon": "--stop epsilon",
    "price": "--stop price",
    "budget": "--stop budget",
    # Files in a user's own words are imported.
    "words": "btdagg import --words",
    "order": "btdagg import --order",
}
"""Options of arguments that no parameter of the command is called like."""


def with_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command each field of its dataclasses, such as `VoteOptions`, as an option.

    An `InputError` then names the command's options, where it names arguments of the library.
    """
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    groups: dict[str, Any] = {}
    takes_context = False
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if group is typer.Context:
            takes_context = True
            continue
        if not is_dataclass(group):
            options.append(parameter.replace(kind=keyword))
            continue
        groups[parameter.name] = group
        hints = get_type_hints(group, include_extras=True)
        options += (
            inspect.Parameter(flag.name, keyword, default=flag.default, annotation=hints[flag.name])
            for flag in fields(group)
        )

    @wraps(command)
    def called(context: typer.Context, **values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{flag.name: values.pop(flag.name) for flag in fields(group)})
        if takes_context:
            values["context"] = context
        try:
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
    """Return the option of a command, or its positional argument, that gives an argument."""
    for parameter in command.params:
        if parameter.name == argument:
            return name_of(parameter)
    option = _OPTIONS.get(argument)
    if option is None or option.startswith("btdagg"):
        return option
    own = {name for parameter in command.params for name in parameter.opts}
    return option if option.partition(" ")[0] in own else None
