"""Whether every link, image, script and anchor of a folder of HTML leads to something in it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Anchors of a page, and what it refers to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.targets.add(value)


def broken_links(folder: Path) -> list[str]:
    """What pages refer to but the folder does not have: "page: target", in order."""
    folder = folder.resolve()
    pages = {file: _Page(file) for file in folder.rglob("*.html")}
    return [
        f"{file.relative_to(folder)}: {target}"
        for file, page in sorted(pages.items())
        for target in sorted(page.targets)
        if not _leads(folder, file, target, pages)
    ]


def _leads(folder: Path, file: Path, target: str, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return True
    path = unquote(parts.path)
    to = (file.parent / path).resolve() if path else file
    if not (to.is_file() and to.is_relative_to(folder)):
        return False
    anchor = unquote(parts.fragment)
    # Scripts of rustdoc read other fragments, which are no anchors.
    is_rustdoc = to.relative_to(folder).parts[0] == "rust"
    return not anchor or to not in pages or is_rustdoc or anchor in pages[to].anchors
