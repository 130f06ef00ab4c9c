"""How numbers and texts are written for people."""

from __future__ import annotations

import hashlib
import math
import re
import textwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Half a character; control characters; what is no XML; and what turns the order of letters around,
# so that a name could be read as another, or as the text about it.
_UNPRINTABLE = re.compile(
    "[\ud800-\udfff\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]"
)
# What CI servers take for commands: "::" where a line begins, and "##[" or "##vso[" anywhere.
_COMMAND = re.compile(r"(?m)^[ \t]*:(?=:)|##(?=\[|vso\[|teamcity\[)")

MISSING = "–"


def fixed(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Write a number with so many decimals; a zero has no sign, and what is no number a dash."""
    if not math.isfinite(value):
        return MISSING
    text = f"{abs(value):.{digits}f}"
    if not text.strip("0."):
        return text
    sign = "−" if value < 0 else "+" if signed else ""
    return sign + text


def percent(share: float, digits: int = 1, *, signed: bool = False) -> str:
    written = fixed(100 * share, digits, signed=signed)
    return written if written == MISSING else f"{written}%"


def pvalue(value: float) -> str:
    """Write a p-value, which is never zero."""
    return "<0.001" if value < 0.0005 else fixed(value)


def counted(number: int, thing: str) -> str:
    """Write a number of things, as of 1 item or 2 items."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def shown(text: str, instead: str = "�") -> str:
    """Text with something else in place of what neither XML nor a reader can take."""
    return _UNPRINTABLE.sub(instead, text)


def visible(text: str) -> str:
    """Text for a terminal: escapes in place of what it or a CI server would act on, or hide."""
    text = _COMMAND.sub(lambda match: match[0][:-1] + f"\\x{ord(match[0][-1]):02x}", text)
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def in_line(text: str) -> str:
    """Text as a line of its own on a terminal: a line feed in a name begins no other line."""
    return visible(text).replace("\n", "\\n")


def in_lines(texts: Iterable[str]) -> str:
    """Write each text as a line."""
    return "\n".join(map(in_line, texts))


def printable(text: str) -> str:
    """Text on one line, without what neither XML nor a reader can take."""
    return shown(" ".join(text.split()))


def stem(*parts: str) -> str:
    """File stem made from texts: lower-case words, hyphens, a hash for lost characters."""
    whole = "-".join(parts)
    plain = re.sub(r"[^a-z0-9.]+", "-", whole.lower()).strip("-.")[:60].rstrip("-.")
    if plain == whole:
        return plain
    digest = hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:6]
    return f"{plain}-{digest}" if plain else digest


def wrapped(names: Iterable[str], width: int, lines: int = 2) -> dict[str, str]:
    """Names wrapped to so many lines and letters, cut or numbered, and still different."""
    texts: dict[str, str] = {}
    uses: dict[str, int] = {}
    for name in dict.fromkeys(names):
        parts = textwrap.wrap(printable(name), width, max_lines=lines, placeholder="…")
        text = "\n".join(parts)
        uses[text] = uses.get(text, 0) + 1
        texts[name] = text if uses[text] == 1 else f"{text} ({uses[text]})"
    return texts
