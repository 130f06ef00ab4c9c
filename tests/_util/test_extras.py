"""Libraries that are not installed: what is said, and which extra it names."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from btdagg import DavidsonModel
from btdagg._util.extras import _PACKAGES, MissingExtraError, needs
from commands import WITHOUT, ended, one_line

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "btdagg"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Servers, other tools and what only developers need: not for everybody's desk.
NOT_IN_ALL = {"inspect", "langfuse", "mlflow", "opentelemetry", "phoenix", "postgres", "pytest",
              "docs", "test", "integrations", "lint"}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: a model, votes, labels and pairs."""
    monkeypatch.chdir(tmp_path)
    items = [f"q{k}" for k in range(40)]
    pl.DataFrame({"item": items * 2, "vote": [1, 0, -1, 1] * 20}).write_csv("votes.csv")
    pl.DataFrame({"item": items, "label": [1, 0, -1, 1] * 10}).write_csv("labels.csv")
    pl.DataFrame({"item": items, "prompt": "p", "a": "x", "b": "y"}).write_ndjson("pairs.jsonl")
    DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8).save("model.json")
    return tmp_path


BEYOND_CLI = ["sqlalchemy", "pydantic_ai", "openai", "anthropic", "google", "httpx2", "psycopg",
              "jinja2",
              "matplotlib", "sklearn", "fastapi", "starlette", "anyio", "uvicorn",
              "prometheus_client", "pyarrow"]  # fmt: skip
NEIGHBOURS = ["httpx", "inspect_ai", "langfuse", "mlflow", "opentelemetry", "phoenix"]
LABELLING = ["sqlalchemy", "fastapi", "pydantic", "uvicorn", "krippendorff", "nh3"]
EVALUATE = "evaluate votes.csv labels.csv --splits 2"


@pytest.mark.parametrize(
    ("line", "missing", "extra"),
    [
        ("judge pairs.jsonl --model m -n 2", BEYOND_CLI, "judge"),
        ("judge pairs.jsonl --model m -n 2", ["openai"], "judge"),
        ("judge pairs.jsonl --model anthropic:m -n 2", ["anthropic"], "anthropic"),
        ("judge pairs.jsonl --model google:m -n 2", ["google"], "google"),
        ("judge pairs.jsonl --model m -n 2 --dry-run", ["sqlalchemy"], "judge"),
        ("run pairs.jsonl --labels labels.csv --model m -n 2", ["sqlalchemy"], "judge"),
        ("votes x.db", BEYOND_CLI, "judge"),
        ("import log.eval -o new.csv", ["inspect_ai"], "inspect"),
        ("import votes.csv -s x.db --set judge=j --set order=AB", BEYOND_CLI, "judge"),
        ("import votes.csv -o new.csv", ["polars"], "tables"),
        ("votes postgresql://localhost/votes", ["psycopg"], "postgres"),
        (f"{EVALUATE} --report out", BEYOND_CLI, "report"),
        (f"{EVALUATE} --report out", ["jinja2"], "report"),
        (f"{EVALUATE} --methods isotonic", BEYOND_CLI, "isotonic"),
        ("serve model.json", BEYOND_CLI, "serve"),
        *(("serve model.json", [name], "serve") for name in BEYOND_CLI[10:]),
        ("label pairs.jsonl -o human.csv", [*BEYOND_CLI, *LABELLING], "label"),
        *(("label pairs.jsonl -o human.csv", [name], "label") for name in LABELLING),
        ("--help", ["typer"], "cli"),
        ("--help", ["rich"], "cli"),
        (EVALUATE, ["polars"], "tables"),
        (EVALUATE, ["narwhals"], "tables"),
    ],
)
def test_a_missing_library_is_named_with_the_extra_that_brings_it(folder, line, missing, extra):
    before = WITHOUT.format(modules=missing)
    message = one_line(*ended(*line.split(), before=before))
    names = "|".join(missing).replace("sklearn", "scikit-learn").replace("google", "google-genai")
    names = names.replace("inspect_ai", "inspect-ai")
    assert re.search(rf" needs ({names}): pip install 'btdagg\[{extra}\]'$", message)


@pytest.mark.parametrize(
    "module",
    [
        "labelling",
        "serve",
        "serve.arrow",
        "judge.store",
        "judge.store.export",
        "report.folder",
        "report.page",
    ],
)
def test_so_it_is_where_python_imports_them(module):
    code = WITHOUT.format(modules=BEYOND_CLI) + f"import btdagg.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    extra = {"labelling": "label"}.get(module, module.partition(".")[0])
    last = done.stderr.splitlines()[-1]
    assert last.startswith("btdagg._util.extras.MissingExtraError: ")
    assert last.endswith(f"pip install 'btdagg[{extra}]'")


def test_a_neighbour_that_is_missing_is_named_with_its_extra():
    model = "btdagg.DavidsonModel(1, 1, 1)"
    lines = {
        "sklearn": "btdagg.integrations.sklearn.DavidsonClassifier",
        "inspect": "btdagg.integrations.inspect.calibrated",
        "arrow": f"btdagg.integrations.arrow.BatchDecider({model}).schema(None)",
        "langfuse": "btdagg.integrations.langfuse.read",
        "mlflow": "btdagg.integrations.mlflow.read",
        "opentelemetry": "btdagg.integrations.opentelemetry.emit",
        "phoenix": "btdagg.integrations.phoenix.read",
    }
    for extra, line in lines.items():
        code = WITHOUT.format(modules=[*BEYOND_CLI, *NEIGHBOURS]) + f"import btdagg; {line}"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        last = done.stderr.splitlines()[-1]
        assert last.startswith("btdagg._util.extras.MissingExtraError: ")
        assert last.endswith(f"pip install 'btdagg[{extra}]'")


def test_no_neighbour_is_imported_before_it_is_named():
    before = WITHOUT.format(modules=NEIGHBOURS)
    assert ended("--help", before=before)[0] == 0
    code = before + "import btdagg.integrations.annotations; print(btdagg.integrations.__all__)"
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_a_module_of_our_own_that_is_missing_is_a_bug():
    with pytest.raises(ModuleNotFoundError, match=r"btdagg\.nothing"), needs("cli", "x"):
        import btdagg.nothing  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name") as caught, needs("cli", "x"):
        from polars import nothing  # noqa: F401
    assert not isinstance(caught.value, MissingExtraError)


@pytest.mark.parametrize(
    "package", ["btdagg", "btdagg.evaluation", "btdagg.report", "btdagg.judge"]
)
def test_a_package_has_the_names_that_it_lists_and_imports_no_extra_for_the_list(package):
    check = f"""
import {package} as package
assert "polars" not in sys.modules and len(package.__all__) == len(set(package.__all__)) > 10
assert set(package.__all__) <= set(dir(package)) | {{"ReportFolder"}}
"""
    without = WITHOUT.format(modules=[*BEYOND_CLI, "typer", "rich"])
    subprocess.run([sys.executable, "-c", without + check], check=True)
    found = importlib.import_module(package)
    assert all(hasattr(found, name) for name in found.__all__)


def test_a_command_imports_what_it_needs_and_no_other(folder):
    check = """
import atexit
atexit.register(lambda: print(*sorted(m for m in sys.modules if m.startswith("btdagg."))))
"""
    status, out, _ = ended("decide", "model.json", "votes.csv", "-o", "decided.csv",
                           before="import sys" + check)  # fmt: skip
    assert status == 0
    loaded = out.splitlines()[-1].split()
    for other in ("judge", "evaluation", "online", "serve", "uncertainty", "report.figures"):
        assert f"btdagg.{other}" not in loaded
    assert "btdagg.cli.decide" in loaded
    assert "btdagg.cli.evaluate" not in loaded


def test_packages_are_there_as_soon_as_they_are_named():
    check = "import btdagg; print(btdagg.online.fit_votes.__name__, btdagg.report.__name__)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fit_votes", "btdagg.report"]


@cache
def brought_by(extra):
    """Distributions that an extra names, and those of the extras that it names."""
    found = set()
    for need in EXTRAS[extra]:
        name, inner = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", need).groups()
        if name == "btdagg":
            found.update(*map(brought_by, inner.split(",")))
        else:
            found.add(name)
    return found


def guarded(tree):
    """Name of the extra, and the imports, of each `with needs(...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            for item in node.items:
                match item.context_expr:
                    case ast.Call(func=ast.Name(id="needs"), args=[ast.Constant(value=extra), _]):
                        yield extra, set(imports(node))


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def outside(module, seen):
    """Modules of others that importing a module imports, by way of ours too."""
    if module.partition(".")[0] != "btdagg":
        return {module.partition(".")[0]} - sys.stdlib_module_names
    path = PACKAGE.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if module in seen or not path.exists():
        return set()
    seen.add(module)
    # What stands in a function, or is for types alone, is not imported yet.
    at_once = [node for node in ast.parse(path.read_text()).body
               if isinstance(node, ast.Import | ast.ImportFrom | ast.With)]  # fmt: skip
    return set().union(*(outside(name, seen) for node in at_once for name in imports(node)))


GUARDED = [
    pytest.param(extra, modules, id=f"{path.relative_to(PACKAGE)}-{extra}")
    for path in sorted(PACKAGE.rglob("*.py"))
    for extra, modules in guarded(ast.parse(path.read_text()))
]


@pytest.mark.parametrize(("extra", "modules"), GUARDED)
def test_the_extra_that_a_message_names_brings_what_is_imported(extra, modules):
    wanted = set().union(*(outside(module, set()) for module in modules))
    brought = brought_by(extra) | {"lazy-loader", "numpy", "scipy"}
    assert {_PACKAGES.get(name, name).replace("_", "-") for name in wanted} <= brought


def test_no_page_or_message_names_an_extra_that_does_not_exist():
    assert len(GUARDED) > 25
    assert {extra for case in GUARDED for extra in case.values[:1]} <= EXTRAS.keys()
    texts = [*PACKAGE.rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md",
             ROOT / "pyproject.toml", *(ROOT / "examples").rglob("*.yml")]  # fmt: skip
    for path in texts:
        for named in re.findall(r"(?:btdagg|\.)\[([a-z0-9, -]+)\]", path.read_text()):
            assert set(re.split(", *", named)) <= EXTRAS.keys(), path


def test_all_is_every_extra_but_servers_and_other_tools():
    everything = set().union(*map(brought_by, EXTRAS.keys() - NOT_IN_ALL - {"all"}))
    assert brought_by("all") == everything
