"""The syntax trees of the package's modules."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python" / "btdagg"


def module_of(path):
    parts = ("btdagg", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {module_of(path): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
