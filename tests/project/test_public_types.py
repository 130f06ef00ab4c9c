"""What type checkers see of the public names."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = (
    "btdagg",
    "btdagg.methods",
    "btdagg.datasets",
    "btdagg.estimates",
    "btdagg.evaluation",
    "btdagg.votes.formats",
    "btdagg.integrations",
    "btdagg.judge",
    "btdagg.labelling",
    "btdagg.online",
    "btdagg.report",
    "btdagg.report.figures",
    "btdagg.report.tables",
    "btdagg.serve",
    "btdagg.votes",
    "btdagg.model",
)


def public_names(package):
    listed = getattr(package, "__all__", None)
    return listed or [name for name, value in vars(package).items() if inspect.isfunction(value)]


@pytest.mark.soak
def test_type_checkers_see_every_public_name(tmp_path):
    names = [f"{p}.{n}" for p in PACKAGES for n in public_names(importlib.import_module(p))]
    lines = [f"import {package}" for package in PACKAGES]
    (tmp_path / "names.py").write_text(
        "\n".join([*lines, *(f"reveal_type({name})" for name in names)])
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", root / "pyproject.toml",
         tmp_path / "names.py"],
        cwd=root, env={"MYPYPATH": str(root / "python"), "PATH": ""}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    seen = [line for line in done.stdout.splitlines() if "Revealed type is" in line]
    assert len(seen) == len(names), done.stdout + done.stderr
    unknown = [
        name for name, line in zip(names, seen, strict=True)
        if line.endswith(('is "object"', 'is "builtins.object"', 'is "Any"'))
    ]  # fmt: skip
    assert unknown == []
