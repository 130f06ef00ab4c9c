"""How numbers and names are written in tables and figures."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from btdagg.evaluation.intervals import Interval

# Half a character; control characters; noncharacters, which are no XML; and what turns the order of
# letters around, so that a name could be read as another, or as the text about it.
_NONCHARACTERS = "".join(
    chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
_UNPRINTABLE = re.compile(
    "[\ud800-\udfff\x00-\x08\x0b-\x1f\x7f-\x9f"
    f"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef{_NONCHARACTERS}]"
)

MISSING = "–"

LABEL_NAMES = ("B", "tie", "A")
"""Labels in label order, by the response that is better."""

SPLITS_NOTE = "± is half of the 95% interval of the mean over splits"
NEW_ITEMS_NOTE = "± is half of the 95% interval for new items, or new groups of items"


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
    """Write a share in percent."""
    written = fixed(100 * share, digits, signed=signed)
    return written if written == MISSING else f"{written}%"


def with_error(interval: Interval | None, digits: int = 3, *, signed: bool = False) -> str:
    """Write a mean and half the width of its interval; the longer half of one that is cut off."""
    if interval is None or not math.isfinite(interval.mean):
        return MISSING
    half = fixed(_half(interval), digits).removeprefix("0")
    return f"{fixed(interval.mean, digits, signed=signed)} ±{half}"


def _half(interval: Interval) -> float:
    return max(interval.high - interval.mean, interval.mean - interval.low)


def percent_with_error(interval: Interval | None, *, signed: bool = False) -> str:
    """Write a share and half the width of its interval, in percent."""
    if interval is None or not math.isfinite(interval.mean):
        return MISSING
    half = fixed(100 * _half(interval), 1)
    return f"{percent(interval.mean, signed=signed)} ±{half}"


def pvalue(value: float) -> str:
    """Write a p-value, which is never zero."""
    return "<0.001" if value < 0.0005 else fixed(value)


def counted(number: int, one: str, many: str | None = None) -> str:
    """Write a number of things."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def votes_of(n_votes: int | None) -> str:
    """Write a number of votes per item, where None is all."""
    return "all" if n_votes is None else str(n_votes)


def key_of(key: Sequence[str]) -> str:
    """Write the values of the columns that a result goes by."""
    return ", ".join(key) if key else "all"


def not_evaluated(keys: Iterable[Sequence[str]]) -> str:
    """Name what could not be evaluated, as the end of a note."""
    names = list(dict.fromkeys(key_of(key) for key in keys))
    return f" Not evaluated: {'; '.join(names)}." if names else ""


def shown(text: str, instead: str = "�") -> str:
    """Text with something else in place of what neither XML nor a reader can take."""
    return _UNPRINTABLE.sub(instead, text)


def visible(text: str) -> str:
    """Text for a terminal: escapes in place of what it would act on, or nobody would see."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable(text: str) -> str:
    """Text on one line, without what neither XML nor a reader can take."""
    return shown(" ".join(text.split()))


def stem(*parts: str) -> str:
    """File stem made from texts: lower-case words and hyphens, and different for different texts.

    What cannot be kept is made up for by the start of a hash.
    """
    whole = "-".join(parts)
    plain = re.sub(r"[^a-z0-9.]+", "-", whole.lower()).strip("-.")[:60].rstrip("-.")
    if plain == whole:
        return plain
    digest = hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:6]
    return f"{plain}-{digest}" if plain else digest
