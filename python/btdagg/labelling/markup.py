"""Texts of models as inert HTML: Markdown, plain text and differences."""
# Nothing can be clicked or loaded, and no tag of a text becomes a tag. The result of Markdown is
# cleaned again by another library, and the page's policy runs no script but its own.

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Iterable, Sequence

import nh3
from markdown_it import MarkdownIt

from btdagg._util.wording import visible

# Characters beyond which a text is shown as it is, and words beyond which lines are compared:
# both take time that grows faster than the text.
_LONGEST = 100_000
_MOST_WORDS = 4_000

_TAGS = {"p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li"}
_TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}
# Links and images stay text: what a rater judges is what was written, and nothing leaves the page.
# A line ends where it ended for the judge.
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 20})
_MARKDOWN.enable(["table", "strikethrough"]).disable(["link", "image", "autolink", "reference"])
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


def markdown(text: str) -> str:
    """Text as HTML by CommonMark, with tables; without links, images, tags and attributes."""
    if len(text) > _LONGEST:
        return plain(text)
    made = _MARKDOWN.render(_shown(text))
    # Headings of a text are no headings of the page.
    made = re.sub(r"<h[1-6]>", "<p><strong>", made)
    made = re.sub(r"</h[1-6]>", "</strong></p>", made)
    return nh3.clean(made, tags=_TAGS, attributes={"ol": {"start"}}, url_schemes=set())


def plain(text: str) -> str:
    """Text as it is."""
    return f"<pre>{html.escape(_shown(text))}</pre>"


def differences(first: str, second: str) -> tuple[str, str]:
    """Two texts with marks around what the other does not have: words, or lines of long ones."""
    texts = (_shown(first), _shown(second))
    parts = [_WORDS.findall(text) for text in texts]
    if max(map(len, parts)) > _MOST_WORDS:
        parts = [_LINES.findall(text) for text in texts]
    matcher = difflib.SequenceMatcher(None, parts[0], parts[1])
    same = matcher.get_matching_blocks()
    return (
        _marked(parts[0], [(block.a, block.a + block.size) for block in same]),
        _marked(parts[1], [(block.b, block.b + block.size) for block in same]),
    )


def _shown(text: str) -> str:
    """Text with escapes for what a reader would not see, or that turns the order of letters."""
    return visible(text.replace("\r\n", "\n"))


def _marked(parts: Sequence[str], same: Iterable[tuple[int, int]]) -> str:
    out, end = [], 0
    for start, stop in same:
        if start > end:
            out.append(f"<mark>{html.escape(''.join(parts[end:start]))}</mark>")
        out.append(html.escape("".join(parts[start:stop])))
        end = stop
    return f"<pre>{''.join(out)}</pre>"
