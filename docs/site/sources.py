"""The pages of the site: those of the repository, with links between them that hold in both.

Pages are read on GitHub as well, so they link to files of the repository. Here such a link becomes
one to the page of the site that shows the file, or else to the file on GitHub. The groups of the
front page are the navigation.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/btdagg/btdagg"
SITE = "https://btdagg.github.io/btdagg/"
FRONT = "index.md"

# Pages that lie elsewhere in the repository, where people look for them.
_ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "DESIGN.md": "design.md",
    "CHANGELOG.md": "changelog.md",
    "benches/README.md": "benchmarks.md",
    "rust/btdagg/README.md": "rust-crate.md",
    "examples/votes_to_win_rate.ipynb": "notebook.ipynb",
}
_CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"`[^`\n]*`|(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_PAGE_LINK = re.compile(
    r'\[([^\[\]]+)\]\(([^():#]+\.(?:md|ipynb))\)|<a href="([^"#]+)\.html">([^<]+)</a>'
)


def pages() -> dict[str, str]:
    """File in the site's source of every page, by its file in the repository."""
    own = {f"docs/{file.name}": file.name for file in sorted((ROOT / "docs").glob("*.md"))}
    return own | _ELSEWHERE


def write_pages(folder: Path) -> None:
    """Write the source of all pages, which their files alone determine, and what they show."""
    shutil.copytree(ROOT / "docs/figures", folder / "figures")
    for file, page in pages().items():
        text = (ROOT / file).read_text(encoding="utf-8")
        if page.endswith(".md"):
            text = relinked(text, file)
        if page == "rust-crate.md":  # on crates.io it is btdagg alone
            text = text.replace("# btdagg\n", "# The Rust crate\n", 1)
        if page == FRONT:
            text += navigation(text)
        (folder / page).write_text(text, encoding="utf-8")


def relinked(text: str, file: str) -> str:
    """A page with links as they are in the site; `file` is its place in the repository."""
    page = pages()[file]

    def one(found: re.Match[str]) -> str:
        image, words, link = found.groups()
        if link is None:  # code
            return found[0]
        if link.startswith(SITE):  # a page that is not in the repository
            return f'<a href="{_from(page, link.removeprefix(SITE))}">{words}</a>'
        if link.startswith("#") or ":" in link:
            return found[0]
        path, hash_, anchor = link.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
        return f"{image}[{words}]({_target(path, page)}{hash_}{anchor})"

    parts, end = [], 0
    for code in _CODE.finditer(text):
        parts += [_LINK.sub(one, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join(parts) + _LINK.sub(one, text[end:])


def _target(path: str, page: str) -> str:
    """Where a page of the site links to for a file of the repository."""
    if path in pages():
        return _from(page, pages()[path])
    if path.startswith("docs/figures/"):
        return _from(page, path.removeprefix("docs/"))
    if not (ROOT / path).exists():
        return path  # which Sphinx reports
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{path}"


def _from(page: str, other: str) -> str:
    return posixpath.relpath(other, posixpath.dirname(page) or os.curdir)


def navigation(front: str) -> str:
    """Tables of contents, one for each group of the front page that links to pages."""
    known: set[str] = set()
    said = []
    for group in re.split(r"^## ", front, flags=re.MULTILINE)[1:]:
        title, _, text = group.partition("\n")
        lines = []
        for words, page, built, built_words in _PAGE_LINK.findall(text):
            name = posixpath.splitext(page)[0] or built
            if name not in known and not name.startswith(("rust/", "report/")):  # no page of Sphinx
                known.add(name)
                lines.append(f"{words or built_words} <{name}>")
        if lines:
            said += ["", "```{toctree}", ":hidden:", f":caption: {title}", "", *lines, "```"]
    return "\n".join(said) + "\n"
