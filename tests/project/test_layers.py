"""Each layer imports only what stands below it; `make lint` checks it by the same contract."""

import ast
from pathlib import Path

import pytest

import btdagg
from btdagg._util.extensions import PARTS, provided

PACKAGE = Path(btdagg.__file__).parent
ROOT = Path(__file__).parents[2]
MODULES = sorted(PACKAGE.rglob("*.py"))


def imports_of(path):
    """Modules, and names of modules, that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def test_modules_are_imported_by_a_name_in_a_string_in_one_place():
    importing = ("importlib", "import_module"), ("importlib", None), ("pkgutil", "resolve_name")
    found = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if {*imports_of(path)} & {*importing} or "__import__" in path.read_text("utf-8")
    }
    assert found == {"_util/extensions.py"}
    lazy = [path for path in MODULES if ("lazy_loader", "attach_stub") in imports_of(path)]
    assert {path.name for path in lazy} == {"__init__.py"}


def test_the_whole_package_is_a_name_for_doors_alone():
    """Elsewhere it would reach any layer, unseen by the contract."""
    plain = {("btdagg", name) for name in ("_core", "__version__", "remarks")}
    above = "cli", "paper", "__main__.py"  # of paper the next test says what it imports
    found = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] not in above
        and {name for name in imports_of(path) if name[0] == "btdagg"} - plain
    }
    assert not found


def public_names():
    """Each public name as (package, name), as the stubs of the packages have them."""
    for stub in PACKAGE.rglob("__init__.pyi"):
        package = ".".join(("btdagg", *stub.parent.relative_to(PACKAGE).parts))
        yield from ((package, name) for _, name in imports_of(stub))


def private_imports(path):
    """What a file of paper/ or cli/paper/ imports from other rooms without a public name."""
    own = {"btdagg.paper", "btdagg._util"}  # errors, reprs, lazy imports: nothing of votes
    if "cli" in path.relative_to(PACKAGE).parts:
        own.add("btdagg.cli")
    return {
        (module, name)
        for module, name in imports_of(path)
        if module.partition(".")[0] == "btdagg" and ".".join(module.split(".")[:2]) not in own
    } - {*public_names()}


OF_PAPER = [path for path in MODULES if "paper" in path.relative_to(PACKAGE).parts[:2]]


@pytest.mark.parametrize("path", OF_PAPER, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_paper_is_written_with_public_names_alone(path):
    assert not private_imports(path)


@pytest.mark.parametrize("name", PARTS)
def test_parts_that_lower_layers_ask_for_are_there(name):
    assert provided(name)


# What promises still know of the inside, to be given up as these get public names.
KNOWN_INSIDE = {
    "btdagg._util.files._PIPE_SECONDS": "a pipe that nobody fills takes a minute",
    "btdagg._util.wording.visible": "names in what is printed",
    "btdagg.check.check": "the result of a command",
    "btdagg.judge.answers.AnswerFormat": "schemas of structured answers",
    "btdagg.judge.faults.EndpointError": "what a judge gives up by",
    "btdagg.serve.bodies": "an Arrow stream of columns",
    "btdagg.votes.orders.about_orders": "remarks have no codes yet",
}


def public_modules():
    stubs = [path.parent.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("__init__.pyi")]
    alone = "cli", "datasets.sums", "integrations.arrow", "integrations.inspect", "pipeline"
    alone += "estimates", "labelling", "reference", "remarks", "result", "serve"
    return {".".join(path.parts) for path in stubs} | {f"btdagg.{name}" for name in alone}


def test_promises_know_public_names_alone():
    """So that they survive any change inside."""
    public, inside = public_modules(), set()
    for path in (ROOT / "tests/promises").glob("*.py"):
        for module, name in imports_of(path):
            if module.partition(".")[0] != "btdagg" or module in public:
                continue
            inside |= {module, f"{module}.{name}"} & {*KNOWN_INSIDE} or {f"{path.name}: {module}"}
        inside |= {name for name in KNOWN_INSIDE if f'"{name}"' in path.read_text("utf-8")}
    assert inside == {*KNOWN_INSIDE}


OF_TABLES = {"Votes", "Labels", "Table", "read_votes", "read_labels", "CountsItself"}
OF_ARRAYS = "model", "methods", "inference", "online"


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in OF_ARRAYS],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_models_never_see_a_table(path):
    """They take `Items` and arrays, which `as_items` makes at the door."""
    names = {name for module, name in imports_of(path) if module.startswith("btdagg")}
    assert not names & OF_TABLES
    assert "facts.votes" not in path.read_text("utf-8")
