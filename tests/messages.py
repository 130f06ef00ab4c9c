"""Every sentence of the package that a user can meet: `python tests/messages.py` writes them anew.

They are read off the code: texts in errors and in their expectations, help of options and commands,
and other texts of three words or more (remarks, reports, notes). A field of an f-string is
{expression}. tests/project/messages.txt has them, so that a wording is reviewed in a diff.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SNAPSHOT = ROOT / "tests/project/messages.txt"
PACKAGE = ROOT / "python/btdagg"
ERRORS = re.compile(r"(^|\.)(BadParameter|\w*Error)$")
SAID = {
    "expect": (2, 3),
    "forbid": (1,),
    "given": (2,),
    "require_rows": (3,),
    "shaped": (3,),
    "of_kind": (3,),
    "reworded": (1,),
    "within": (0,),
}  # texts of checks
WORDS = re.compile(r"[A-Za-z]{2,}\S* \S+ \S+")  # three words
NOT_READ = {"reference.py", "report/style.py", "judge/store/database.py"}


def text_of(node: ast.expr) -> str:
    """A text as written, with {expression} for each field of an f-string."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    fields = (
        f"{{{ast.unparse(part.value)}}}"
        if isinstance(part, ast.FormattedValue)
        else str(getattr(part, "value", ""))
        for part in getattr(node, "values", ())
    )
    return "".join(fields)


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def texts(node: ast.AST, in_error: bool = False):
    """The sentences below a node; texts of one or two words count in an error alone."""
    if is_text(node):
        text = text_of(node)
        if (in_error and re.search("[a-z]{2}", text)) or WORDS.search(text):
            yield text
    said = []
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        in_error = in_error or bool(ERRORS.search(name))
        said = [
            node.args[place]
            for place in SAID.get(name.rpartition(".")[2], ())
            if place < len(node.args)
        ]
    for child in ast.iter_child_nodes(node):
        inner = (in_error or child in said) and not isinstance(child, ast.Compare | ast.Subscript)
        is_name = is_text(node) and is_text(child)  # a piece of the text above
        is_format = isinstance(node, ast.FormattedValue) and child is node.format_spec
        if not is_name and not is_format:
            yield from texts(child, inner and not is_argument(child))


def is_argument(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg in ("argument", "column", "source")


def without_docstrings(tree: ast.Module, keep: bool) -> None:
    """Drop docstrings; `keep` those of commands, which are their help."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        is_command = keep and isinstance(node, ast.FunctionDef) and node in tree.body
        is_command = is_command and "btdagg " in (ast.get_docstring(node) or "")
        node.body = [
            child
            for child in body
            if is_command or not (isinstance(child, ast.Expr) and is_text(child.value))
        ]


def sentences() -> list[str]:
    """Lines `file: sentence`, sorted, each once."""
    lines = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name in NOT_READ:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        without_docstrings(tree, keep=name.startswith("cli/"))
        lines |= {f"{name}: {' '.join(text.split())}" for text in texts(tree)}
    return sorted(lines)


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(sentences()) + "\n", encoding="utf-8")
