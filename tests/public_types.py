"""What type checkers see of the public names; `make lint` runs it on the cache of its mypy."""

import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON = Path(__file__).parents[1] / "python"
PACKAGES = [
    ".".join(stub.parent.relative_to(PYTHON).parts) for stub in PYTHON.rglob("__init__.pyi")
]


def main():
    names = [f"{p}.{n}" for p in PACKAGES for n in importlib.import_module(p).__all__]
    lines = [*(f"import {package}" for package in PACKAGES), *map("reveal_type({})".format, names)]
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "names.py")
        asked.write_text("\n".join(lines))
        done = subprocess.run(
            [sys.executable, "-m", "mypy", str(asked)],
            cwd=PYTHON.parent, env=os.environ | {"MYPYPATH": str(PYTHON)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    seen = [line for line in done.stdout.splitlines() if "Revealed type is" in line]
    if len(seen) != len(names):
        sys.exit(done.stdout + done.stderr)
    unknown = [
        name for name, line in zip(names, seen, strict=True)
        if line.endswith(('is "object"', 'is "builtins.object"', 'is "Any"'))
    ]  # fmt: skip
    if unknown:
        sys.exit("type checkers do not see what these are: " + ", ".join(unknown))


if __name__ == "__main__":
    main()
