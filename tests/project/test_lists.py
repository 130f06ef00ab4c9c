"""Our entries for the lists of other projects have what these ask for, and say what is true."""

import re
import tomllib
from importlib import import_module

from pages import ROOT

# Categories that docs/extensions/generate.py of Inspect knows.
INSPECTS = {"Sandboxes", "Analysis", "Frameworks", "Tooling"}


def test_the_entry_for_inspect():
    text = (ROOT / "examples/inspect/extension.yml").read_text(encoding="utf-8")
    entry = dict(re.findall(r"^[- ] (\w+): (.+)$", text, re.MULTILINE))
    assert list(entry) == ["name", "description", "author", "categories"]
    link = re.fullmatch(r'"\[btdagg\]\(https://\S+/blob/main/(\S+)\)"', entry["name"])
    assert (ROOT / link[1]).exists()
    assert set(re.findall(r'"(\w+)"', entry["categories"])) <= INSPECTS


def test_the_entry_for_mlflow():
    text = (ROOT / "examples/mlflow/plugin.mdx").read_text(encoding="utf-8")
    (extra,) = re.findall(r"pip install 'btdagg\[(\w+)\]'", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extra in project["optional-dependencies"]
    (code,) = re.findall(r"```python\n(.+?)```", text, re.DOTALL)
    compile(code, "plugin.mdx", "exec")
    (names,) = re.findall(r"annotations import (.+)", code)
    annotations = import_module("btdagg.integrations.annotations")
    assert all(hasattr(annotations, name) for name in names.split(", "))
    # docs/traces.md runs the same against a server.
    page = (ROOT / "docs/traces.md").read_text(encoding="utf-8")
    assert all(line.partition("  #")[0] in page for line in code.splitlines()[5:-1])
