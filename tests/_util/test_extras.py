"""Libraries that are not installed: what is said, and which extra it names."""

import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from btdagg import DavidsonModel
from btdagg._util.extras import MissingExtraError, needs
from commands import WITHOUT, ended, one_line

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Servers, other tools and what only developers need: not for everybody's desk.
NOT_IN_ALL = {"inspect", "langfuse", "mlflow", "opentelemetry", "phoenix", "postgres", "pytest",
              "benchmark", "docs", "test", "integrations", "lint"}  # fmt: skip


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
LABELLING = ["sqlalchemy", "fastapi", "uvicorn", "nh3"]
EVALUATE = "evaluate votes.csv labels.csv"


@pytest.mark.parametrize(
    ("line", "missing", "extra"),
    [
        ("judge pairs.jsonl --model m -n 2", BEYOND_CLI, "judge"),
        ("judge pairs.jsonl --model anthropic:m -n 2", ["anthropic"], "anthropic"),
        ("import log.eval -o new.csv", ["inspect_ai"], "inspect"),
        ("votes postgresql://localhost/votes", ["psycopg"], "postgres"),
        (f"{EVALUATE} --report out", ["jinja2"], "report"),
        ("serve model.json", BEYOND_CLI, "serve"),
        ("label pairs.jsonl -o human.csv", [*BEYOND_CLI, *LABELLING], "label"),
        ("--help", ["typer"], "cli"),
        (EVALUATE, ["polars"], "tables"),
    ],
)
def test_a_missing_library_is_named_with_the_extra_that_brings_it(folder, line, missing, extra):
    before = WITHOUT.format(modules=missing)
    message = one_line(*ended(*line.split(), before=before))
    names = "|".join(missing).replace("sklearn", "scikit-learn").replace("google", "google-genai")
    names = names.replace("inspect_ai", "inspect-ai")
    assert re.search(rf" needs ({names}): pip install 'btdagg\[{extra}\]'$", message)


def test_a_neighbour_that_is_missing_is_named_with_its_extra():
    model = "btdagg.DavidsonModel(1, 1, 1)"
    lines = {
        "sklearn": "btdagg.integrations.sklearn.VoteClassifier",
        "inspect": "btdagg.integrations.inspect.calibrated",
        "arrow": f"btdagg.integrations.arrow.BatchDecider({model})(None)",
        "langfuse": "btdagg.integrations.langfuse.read",
        "mlflow": "btdagg.integrations.mlflow.read",
        "opentelemetry": "btdagg.integrations.opentelemetry.emit",
        "phoenix": "btdagg.integrations.phoenix.read",
    }
    code = WITHOUT.format(modules=[*BEYOND_CLI, *NEIGHBOURS]) + "import btdagg\n"
    for line in lines.values():
        code += f"try: {line}\nexcept btdagg._util.extras.MissingExtraError as e: print(e)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for extra, message in zip(lines, done.stdout.splitlines(), strict=True):
        assert message.endswith(f"pip install 'btdagg[{extra}]'")


def test_a_module_of_our_own_that_is_missing_is_a_bug():
    with pytest.raises(ModuleNotFoundError, match=r"btdagg\.nothing"), needs("cli", "x"):
        import btdagg.nothing  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name") as caught, needs("cli", "x"):
        from polars import nothing  # noqa: F401
    assert not isinstance(caught.value, MissingExtraError)


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


def test_all_is_every_extra_but_servers_and_other_tools():
    everything = set().union(*map(brought_by, EXTRAS.keys() - NOT_IN_ALL - {"all"}))
    assert brought_by("all") == everything
