"""What the theme leaves undone in the pages that Sphinx has written.

A keyboard reaches what scrolls, landmarks and headings have names and levels, and figures are dark
where the page is.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

# What colours of our figures become on a dark page.
_DARK = {
    "#ffffff": "#131416", "#f4f4f4": "#24272b", "#dddddd": "#4b4e54", "#bbbbbb": "#5c6066",
    "#777777": "#a0a4aa", "#333333": "#cfd0d0", "#000000": "#cfd0d0",
    "#0072b2": "#4aa8e8", "#d55e00": "#f08a4b",
}  # fmt: skip
_COLOUR = re.compile("|".join(_DARK))
_FIGURE = re.compile(r'<img( alt="[^"]*") src="((?:\.\./)*_images/\w+)\.svg"[^>]*>')
_BOTH = r'<img class="only-light"\1 src="\2.svg"><img class="only-dark"\1 src="\2-dark.svg">'
_MENDED = (
    (re.compile(r'(?<=<div class="highlight"><pre)(?=[ >])'), ' tabindex="0"'),
    (re.compile(r'(?<=class="table-wrapper)([^"]*")'), r'\1 tabindex="0"'),
    (re.compile(r'(?<=<p class="caption" role="heading")'), ' aria-level="2"'),
    (re.compile(r'(?<=<aside class="sidebar-drawer")'), ' aria-label="Pages"'),
    (re.compile(r'(?<=<aside class="toc-drawer)([^"]*")'), r'\1 aria-label="On this page"'),
    (re.compile(r'(?<=<div class="math")|(?<=<div style="overflow-x: auto")'), ' tabindex="0"'),
    (re.compile(r'<th class="(head[^"]*)"><p></p></th>'), r'<td class="\1"></td>'),
    (re.compile(rf"<p>({_FIGURE.pattern})"), r'<p tabindex="0">\1'),
    (_FIGURE, _BOTH),
)


def finish_pages(app: Sphinx, error: Exception | None) -> None:
    """Mend every page, and draw the dark figures."""
    if error is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    for figure in (site / "_images").glob("*.svg"):
        drawn = figure.read_text(encoding="utf-8")
        dark = _COLOUR.sub(lambda found: _DARK[found[0]], drawn)
        figure.with_name(f"{figure.stem}-dark.svg").write_text(dark, encoding="utf-8")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for pattern, mended in _MENDED:
            text = pattern.sub(mended, text)
        page.write_text(text, encoding="utf-8")
