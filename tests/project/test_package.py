"""The package as a whole: what imports what, what is called what, and what it needs."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


PACKAGE = Path(__file__).parents[2] / "python" / "btdagg"


def module_of(path):
    parts = ("btdagg", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def trees():
    """The syntax trees of the package's modules, which only one worker has to make."""
    return {module_of(path): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


def imported_by(tree):
    """Modules that a module imports anywhere, for types alone included, and the names it takes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def as_module(name):
    """The module of the package that a name is, or is of."""
    if name == "btdagg._core" or name.startswith("btdagg._core."):
        return None
    return name if name in trees() else name.rpartition(".")[0]


def test_no_module_imports_itself_by_way_of_others():
    graph = {
        module: {as_module(name) for name in imported_by(tree)} & trees().keys() - {module}
        for module, tree in trees().items()
    }
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_a_class_has_its_name_to_itself():
    places = defaultdict(list)
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


# What a table of items has as columns, arrays are given one by one.
COLUMNS_OF_ITEMS = {
    *("counts", "labels", "groups", "probabilities", "least_probability", "units", "strata"),
    *("by", "system_a", "system_b", "scale", "label_scale"),
}


def test_no_function_has_more_than_ten_parameters():
    """Those of commands are options, and typer has no other way to declare one.

    The scale of labels goes with that of votes.
    """
    found = []
    for module, tree in trees().items():
        if module.startswith("btdagg.cli"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                names = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
                if len({*names} - {"self", "cls"} - COLUMNS_OF_ITEMS) > 10:
                    found.append(f"{module}.{node.name}: {', '.join(names)}")
    assert found == []


def test_what_is_imported_is_a_declared_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = chain(project["dependencies"], *project["optional-dependencies"].values())
    declared = {re.match(r"[\w-]+", need)[0].lower().replace("-", "_") for need in wanted}
    other_names = {
        "botocore": "boto3",
        "google": "google_genai",
        "markdown_it": "markdown_it_py",
        "opentelemetry": "opentelemetry_api",
        "pydantic_ai": "pydantic_ai_slim",
        "pydantic_core": "pydantic",
        "phoenix": "arize_phoenix_client",
        "sklearn": "scikit_learn",
    }
    found = {name.partition(".")[0] for tree in trees().values() for name in imported_by(tree)}
    foreign = found - sys.stdlib_module_names - {"btdagg"}
    assert {name for name in foreign if other_names.get(name, name) not in declared} == set()
