"""What type checkers see of the public names."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [
    ".".join(stub.parent.relative_to(ROOT / "python").parts)
    for stub in (ROOT / "python").rglob("__init__.pyi")
]


@pytest.mark.soak
def test_type_checkers_see_every_public_name(tmp_path):
    names = [f"{p}.{n}" for p in PACKAGES for n in importlib.import_module(p).__all__]
    lines = [f"import {package}" for package in PACKAGES]
    (tmp_path / "names.py").write_text(
        "\n".join([*lines, *(f"reveal_type({name})" for name in names)])
    )
    # Types of other packages are left out: reading these is most of what it would take.
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nfollow_imports = skip\n[mypy-btdagg.*]\nfollow_imports = silent\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "names.py"],
        cwd=tmp_path, env={"MYPYPATH": str(ROOT / "python"), "PATH": ""}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    seen = [line for line in done.stdout.splitlines() if "Revealed type is" in line]
    assert len(seen) == len(names), done.stdout + done.stderr
    unknown = [
        name for name, line in zip(names, seen, strict=True)
        if line.endswith(('is "object"', 'is "builtins.object"', 'is "Any"'))
    ]  # fmt: skip
    assert unknown == []
