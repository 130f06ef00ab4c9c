"""The reference of Python: every public name, from its docstring, on a page for each topic.

A name that two packages have is described once, under the first of them; the others link to it.
Results, which functions return and nobody imports, are described where their package is.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType

from sphinx.pycode import ModuleAnalyzer

import btdagg
import btdagg.integrations

_NEIGHBOURS = tuple(one.name for one in pkgutil.iter_modules(btdagg.integrations.__path__))
MODULES = (
    "btdagg", "btdagg.pipeline", "btdagg.judge", "btdagg.formats", "btdagg.labelling",
    "btdagg.votes", "btdagg.methods", "btdagg.evaluation", "btdagg.estimates",
    "btdagg.online", "btdagg.model", "btdagg.report", "btdagg.serve", "btdagg.datasets",
    "btdagg.paper", "btdagg.integrations",
    *(f"btdagg.integrations.{name}" for name in btdagg.integrations.__all__ if name in _NEIGHBOURS),
)  # fmt: skip
"""The modules that people import, in the order of the reference."""

TOPICS = {
    "votes": "Votes and labels",
    "model": "Models",
    "methods": "Methods",
    "evaluation": "Evaluation",
    "estimates": "Estimates and gates",
    "online": "Fewer votes, streams and drift",
    "judge": "Asking a judge",
    "labelling": "Labels by people",
    "pipeline": "All steps at once",
    "report": "Reports",
    "serve": "Serving",
    "integrations": "Integrations",
    "datasets": "Simulated judges",
    "paper": "The paper",
    "btdagg": "The package",
}
"""Title of the page for each package, in the order of the reference."""


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
    return found | {_identity(value, full): full for full, value in _results().items()}


@cache
def _results() -> dict[str, type]:
    """Classes of values that public names return or hold, by where they are defined."""
    modules = [import_module(place) for place in MODULES]
    values = [getattr(module, name) for module in modules for name in names_of(module)]
    known, results = {_identity(value, "") for value in values}, {}
    classes = {
        name: value
        for module in [*sys.modules.values()]
        for name, value in [*vars(module).items()]
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and module.__name__.startswith("btdagg.")
        and topic(module.__name__, value) in TOPICS
        and (is_dataclass(value) or issubclass(value, tuple))
    }
    while values:
        for name in re.findall(r"\b[A-Z]\w+", " ".join(_types_of(values.pop()))):
            value = classes.get(name)
            if value is not None and _identity(value, "") not in known:
                known.add(_identity(value, ""))
                results[f"{value.__module__}.{name}"] = value
                values.append(value)
    return dict(sorted(results.items()))


def _types_of(value: object) -> Iterator[str]:
    """What a function returns, or what the public attributes and methods of a class are."""
    if inspect.isroutine(value):
        yield str(getattr(value, "__annotations__", {}).get("return", ""))
    elif inspect.isclass(value):
        for name, kind in vars(value).get("__annotations__", {}).items():
            yield "" if name.startswith("_") else str(kind)
        for name, member in vars(value).items():
            if not name.startswith("_"):
                own = (getattr(member, part, None) for part in ("fget", "func", "__func__"))
                yield from _types_of(next((part for part in own if part is not None), member))


def public_name(value: object, name: str) -> str | None:
    """The name under which the reference describes a value, if it does."""
    return _public().get(_identity(value, name))


def _identity(value: object, name: str) -> object:
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__module__, value.__qualname__
    return id(value), name


def topic(place: str, value: object) -> str:
    """The topic of a name that a module has: the package in which it is defined."""
    if place == "btdagg":
        place = str(getattr(value, "__module__", None) or place)
    package = [*place.split("."), "btdagg"][1]
    package = "estimates" if package in {"questions", "inference"} else package
    return package if package in TOPICS or package.startswith("_") else "btdagg"


def described_in(name: str) -> dict[str, list[tuple[str, object]]]:
    """Names and values that the page of a topic describes, by the module that it shows."""
    own = f"btdagg.{name}" if name != "btdagg" else name
    shown = {own: []} | {place: [] for place in MODULES if place.startswith(f"btdagg.{name}.")}
    for place in MODULES if name != "btdagg" else (own,):
        for exported in names_of(import_module(place)):
            value = getattr(import_module(place), exported)
            full = f"{place}.{exported}"
            if public_name(value, exported) == full and topic(place, value) == name:
                shown[own if place == "btdagg" else place].append((full, value))
    results = _results().items()
    shown[own] += [(full, value) for full, value in results if topic(full, value) == name]
    return shown


def write_reference(folder: Path) -> None:
    """Write a page for each topic, and one that lists them."""
    (folder / "python").mkdir()
    lines = ["# Python", "", "Every public class and function, by what it is for."]
    lines += ["", "| topic | what it holds |", "|---|---|"]
    for name, title in TOPICS.items():
        (folder / "python" / f"{name}.rst").write_text(page(name), encoding="utf-8")
        about = _doc(import_module(next(iter(described_in(name)))))
        lines.append(f"| [{title}](python/{name}.rst) | {' '.join(about.split())} |")
    lines += ["", "```{toctree}", ":hidden:", "", *(f"python/{name}" for name in TOPICS), "```"]
    (folder / "python.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def page(name: str) -> str:
    """The page of a topic: a table of all that it describes, and then each by its module."""
    shown = described_in(name)
    table = ""
    for full, value in chain.from_iterable(shown.values()):
        about = " ".join(_summary(full, value).split())
        table += f"   * - :py:obj:`{full}`\n     - {about}\n"
    text = f"{_headed(TOPICS[name], '=')}\n"
    for place, entries in shown.items():
        if place != next(iter(shown)):
            text += _headed(place, "-") + "\n"
        text += f".. automodule:: {place}\n   :no-members:\n\n"
        if table:
            text += f".. list-table::\n   :widths: 40 60\n\n{table}\n"
            table = ""
        text += "".join(_entry(full, value) for full, value in entries)
        here = {full for full, _ in entries}
        module = import_module(place)
        public = ((n, public_name(getattr(module, n), n)) for n in names_of(module))
        other = [f":py:obj:`{n} <{full}>`" for n, full in public if full not in here]
        if other:
            text += f"Also in ``{place}``: {', '.join(other)}.\n\n"
    return text


def plain(name: str) -> str:
    """The page of a topic as Markdown."""
    text = f"# {TOPICS[name]}\n"
    for place, entries in described_in(name).items():
        text += f"\n{inspect.getdoc(import_module(place))}\n"
        for full, value in entries:
            text += _plain(full, value, "##")
            for below in vars(value) if inspect.isclass(value) else ():
                if not below.startswith("_") and inspect.getdoc(getattr(value, below)):
                    text += _plain(f"{value.__name__}.{below}", getattr(value, below), "###")
    return text


def _plain(name: str, value: object, level: str) -> str:
    called = ""
    if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
        called = str(inspect.signature(value))
    about = _doc(value) if callable(value) or level == "###" else _summary(name, value)
    return f"\n{level} {name}\n\n```text\n{name}{called}\n\n{about}\n```\n"


def _summary(full: str, value: object) -> str:
    if inspect.isclass(value) or inspect.isroutine(value):
        return _doc(value).partition("\n\n")[0]
    return "\n".join(_about(full.rpartition(".")[2], value)).partition("\n\n")[0]


def _doc(value: object) -> str:
    return inspect.getdoc(value) or ""


def _entry(full: str, value: object) -> str:
    if inspect.isclass(value):
        return f".. autoclass:: {full}\n   :members:\n\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {full}\n\n"
    place, _, name = full.rpartition(".")
    about = "\n".join(f"   {line}" for line in _about(name, value))
    return f".. py:data:: {name}\n   :module: {place}\n\n{about}\n\n"


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
