"""The wheel of `make wheel` in a new environment: small, whole, enough for a page of the docs.

BTDAGG_WHEEL names another wheel. The new environment gets what a user gets, `btdagg[all]`, and
DuckDB for `pages.py`; programs on its PATH are those below, and no compiler is among them.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PAGE = "docs/tutorial.md"
PROGRAMS = ["awk", "bash", "cat", "cp", "curl", "cut", "env", "grep", "head", "jq", "ls", "mkdir",
            "mv", "rm", "sed", "sh", "sleep", "sort", "tail", "wc"]  # fmt: skip
COMPILERS = ["cc", "gcc", "clang", "ld", "make", "cargo", "rustc", "zig"]

RUN = """
import sys
from pathlib import Path

import btdagg
from pages import ROOT, Runner, blocks
from simulated_judge import SimulatedJudge

assert Path(btdagg.__file__).is_relative_to(sys.prefix), btdagg.__file__
judge = SimulatedJudge(ROOT)
page = ROOT / sys.argv[1]
folder = ROOT / "work"
folder.mkdir()
runner = Runner(page.name, folder, judge.url)
try:
    for block in blocks(page.read_text(encoding="utf-8")):
        runner.run(block)
finally:
    runner.close()
    judge.stop()
"""

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def wheel():
    if named := os.environ.get("BTDAGG_WHEEL"):
        return Path(named).resolve()
    found = sorted((ROOT / "dist").glob("*.whl"))
    if not found:
        if os.environ.get("CI") == "true":
            pytest.fail("no wheel in dist/: make wheel")
        pytest.skip("no wheel in dist/: make wheel")
    return found[-1]


@pytest.fixture(scope="module")
def alone(tmp_path_factory, wheel):
    """Folder with an environment that has the wheel, and what runs a page of the docs."""
    folder = tmp_path_factory.mktemp("alone")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    programs = folder / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("figures"))
    (folder / "tests").mkdir()
    for name in ("extension.py", "pages.py", "simulated_judge.py", "trace_servers.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests")
    (folder / "tests" / "run.py").write_text(RUN)
    python = folder / "env/bin/python"
    if uv := shutil.which("uv", path=Path(sys.executable).parent):  # takes a third of the time
        command = [uv, "pip", "install", "--quiet", "--python", python]
    else:
        command = [sys.executable, "-m", "pip", "--quiet", "--python", python, "install"]
    wanted = ["--only-binary", ":all:", f"btdagg[all] @ {wheel.as_uri()}", "duckdb"]
    subprocess.run([*command, *wanted], check=True)
    return folder


def in_it(folder, *arguments):
    """Run Python of the environment, which finds neither compilers nor the checkout."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PYTHON", "CARGO", "RUST", "CC"))}  # fmt: skip
    environment["PATH"] = os.pathsep.join([str(folder / "env/bin"), str(folder / "programs")])
    assert not [name for name in COMPILERS if shutil.which(name, path=environment["PATH"])]
    return subprocess.run(
        [folder / "env/bin/python", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_the_wheel_is_small_and_for_every_python_since_3_11(wheel):
    assert wheel.stat().st_size < 3_000_000
    name, _, tags = wheel.stem.split("-", 2)
    assert name == "btdagg"
    assert tags.startswith("cp311-abi3-")


def test_the_wheel_has_types_license_and_a_list_of_what_is_compiled_in(wheel):
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        (bill,) = (name for name in names if name.endswith(".cyclonedx.json"))
        parts = {part["name"] for part in json.loads(archive.read(bill))["components"]}
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    assert {"pyo3", "numpy", "rustc-hash"} <= parts <= {package["name"] for package in locked}
    assert {"btdagg/py.typed", "btdagg/_core.pyi"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    modules = {f"btdagg/{file.relative_to(ROOT / 'python/btdagg').as_posix()}"
               for file in (ROOT / "python/btdagg").rglob("*.py")}  # fmt: skip
    assert modules <= set(names)


def test_a_page_of_the_docs_runs_where_there_is_no_compiler(alone):
    done = in_it(alone, "tests/run.py", PAGE)
    assert done.returncode == 0, done.stderr
