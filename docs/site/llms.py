"""Each page as Markdown beside it, `llms.txt` that lists them, and `llms-full.txt`: their text.

The format is that of llmstxt.org. Groups are those of the navigation.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

from python_pages import plain
from sources import SITE

_END = re.compile(r"(?<=[.?!])\s+")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def write_llms(app: Sphinx, error: Exception | None) -> None:
    """Write these files beside the pages."""
    if error is not None or app.builder.name != "html":
        return
    env = app.env
    root = env.get_doctree(env.config.root_doc)
    lines = [f"# {_title(app, env.config.root_doc)}", "", f"> {_first_sentence(root)}"]
    full = [_text(app, env.config.root_doc)]
    Path(app.outdir, "index.md").write_text(full[0], encoding="utf-8")
    for tree in root.findall(addnodes.toctree):
        lines += ["", f"## {tree['caption']}", ""]
        for _, name in tree["entries"]:
            for page in (name, *_below(app, name)):
                about = _first_sentence(env.get_doctree(page))
                lines.append(f"- [{_title(app, page)}]({SITE}{page}.md): {about}")
                text = _text(app, page)
                Path(app.outdir, f"{page}.md").write_text(text, encoding="utf-8")
                if not page.startswith("reference/"):
                    full.append(text)
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path(app.outdir, "llms-full.txt").write_text("\n".join(full), encoding="utf-8")


def _below(app: Sphinx, name: str) -> list[str]:
    return app.env.toctree_includes.get(name, [])


def _title(app: Sphinx, name: str) -> str:
    return app.env.titles[name].astext()


def _first_sentence(tree: nodes.document) -> str:
    """That of the first paragraph that is no item of a list, and does not lead to an example."""
    for one in tree.findall(nodes.paragraph):
        said = _END.split(one.astext().replace("\n", " "))[0]
        if isinstance(one.parent, nodes.section) and not said.endswith(":"):
            return said
    raise SphinxError(f"{tree['source']} has no sentence that says what it is about")


def _text(app: Sphinx, name: str) -> str:
    """A page as Markdown, without what readers do not see."""
    file = Path(app.env.doc2path(name))
    if file.suffix == ".rst":
        return plain(file.stem)
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        cells = ((cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"])
        return "\n\n".join(s if kind != "code" else f"```python\n{s}\n```" for kind, s in cells)
    return _COMMENT.sub("", text)
