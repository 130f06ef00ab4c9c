"""Groups of options, which a command takes as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command each field of its dataclasses, such as `VoteOptions`, as an option."""
    options: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    keyword = inspect.Parameter.KEYWORD_ONLY
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
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
    def called(**values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{flag.name: values.pop(flag.name) for flag in fields(group)})
        return command(**values)

    called.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in options}
    return called
