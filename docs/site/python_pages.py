"""The reference of Python: every public name of every public module, from its docstring.

A name that two packages have is described once, in the first of them; the others link to it.
"""

from __future__ import annotations

import inspect
import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sphinx.pycode import ModuleAnalyzer

import btdagg
import btdagg.integrations

_NEIGHBOURS = tuple(one.name for one in pkgutil.iter_modules(btdagg.integrations.__path__))
MODULES = (
    "btdagg", "btdagg.pipeline", "btdagg.judge", "btdagg.votes.formats", "btdagg.labelling",
    "btdagg.votes", "btdagg.methods", "btdagg.evaluation", "btdagg.estimates",
    "btdagg.online", "btdagg.model", "btdagg.report", "btdagg.serve", "btdagg.datasets",
    "btdagg.paper", "btdagg.integrations",
    *(f"btdagg.integrations.{name}" for name in btdagg.integrations.__all__ if name in _NEIGHBOURS),
)  # fmt: skip
"""The modules that people import, in the order of the reference."""

# What stands first in a long list: the groups are the modules in which names are defined.
_FIRST = ("votes", "model", "methods", "evaluation", "estimates")


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module that are not modules themselves."""
    declared = getattr(module, "__all__", None)
    if declared is None:
        declared = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    return [name for name in declared if not inspect.ismodule(getattr(module, name))]


@cache
def _public() -> dict[object, str]:
    """The name under which the reference describes a value: that of the first module with it."""
    found: dict[object, str] = {}
    for place in MODULES:
        module = import_module(place)
        for name in names_of(module):
            found.setdefault(_identity(getattr(module, name), name), f"{place}.{name}")
    return found


def public_name(value: object, name: str) -> str | None:
    """The name under which the reference describes a value, if it does."""
    return _public().get(_identity(value, name))


def _identity(value: object, name: str) -> object:
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__module__, value.__qualname__
    return id(value), name


def write_reference(folder: Path) -> None:
    """Write a page for each public module, and one that lists them."""
    (folder / "python").mkdir()
    lines = ["# Python", "", "Every public class and function, by the module that people import."]
    lines += ["", "| module | what it holds |", "|---|---|"]
    for place in MODULES:
        text = page(place)
        (folder / "python" / f"{place}.rst").write_text(text, encoding="utf-8")
        about = (import_module(place).__doc__ or "").strip().partition("\n\n")[0]
        lines.append(f"| [{place}](python/{place}.rst) | {' '.join(about.split())} |")
    lines += ["", "```{toctree}", ":hidden:", "", *(f"python/{place}" for place in MODULES), "```"]
    (folder / "python.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def page(place: str) -> str:
    """The page of a module."""
    module = import_module(place)
    text = f"{_headed(place, '=')}\n.. automodule:: {place}\n   :no-members:\n\n"
    groups: dict[str, list[str]] = {}
    elsewhere = []
    for name in names_of(module):
        value = getattr(module, name)
        described = public_name(value, name)
        if described == f"{place}.{name}":
            groups.setdefault(_group(value, place), []).append(name)
        else:
            elsewhere.append(f":py:obj:`{name} <{described}>`")
    order = sorted(groups, key=lambda one: (_FIRST.index(one) if one in _FIRST else 99, one))
    for group in order:
        if len(order) > 1:
            text += _headed(group.capitalize() or "Other", "-") + "\n"
        text += "".join(_entry(place, name, getattr(module, name)) for name in groups[group])
    if elsewhere:
        text += f"{_headed('Described elsewhere', '-')}\n{', '.join(elsewhere)}\n"
    return text


def _group(value: object, place: str) -> str:
    """The module in which a value is defined, on the first page; other pages have no groups."""
    defined = getattr(value, "__module__", None) or ""
    if place != "btdagg" or not defined.startswith("btdagg."):
        return ""
    return defined.split(".")[1].lstrip("_")


def _entry(place: str, name: str, value: object) -> str:
    if inspect.isclass(value):
        return f".. autoclass:: {place}.{name}\n   :members:\n\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {place}.{name}\n\n"
    about = "\n".join(f"   {line}" for line in _about(name, value))
    return f".. py:data:: {name}\n\n{about}\n\n"


def _about(name: str, value: object) -> list[str]:
    """What stands below the assignment of a constant, in whichever module that is."""
    if name == "__version__":  # assigned by Rust
        return ["The version of the package."]
    for module in (one.name for one in pkgutil.walk_packages(btdagg.__path__, "btdagg.")):
        if module.startswith(("btdagg.integrations.", "btdagg.cli", "btdagg._")):
            continue
        if vars(import_module(module)).get(name) is value:
            said = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
            if said:
                return said
    raise LookupError(f"{name} has no description below its assignment")


def _headed(title: str, line: str) -> str:
    return f"{title}\n{line * len(title)}\n"
