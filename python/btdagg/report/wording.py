"""How numbers and names are written in tables and figures."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from btdagg._core import InputError

if TYPE_CHECKING:
    from btdagg.estimates import Estimates
    from btdagg.evaluation import Scores
    from btdagg.evaluation.cells import Cell
    from btdagg.evaluation.metrics import Interval

# Half a character; control characters; what is no XML; and what turns the order of letters around,
# so that a name could be read as another, or as the text about it.
_UNPRINTABLE = re.compile(
    "[\ud800-\udfff\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)

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
    """Write a share in percent."""
    written = fixed(100 * share, digits, signed=signed)
    return written if written == MISSING else f"{written}%"


def with_error(interval: Interval | None, *, signed: bool = False, in_percent: bool = False) -> str:
    """Write a mean and half the width of its interval; the longer half of one that is cut off."""
    if interval is None or not math.isfinite(interval.mean):
        return MISSING
    half = max(interval.high - interval.mean, interval.mean - interval.low)
    if in_percent:
        return f"{percent(interval.mean, signed=signed)} ±{fixed(100 * half, 1)}"
    return f"{fixed(interval.mean, signed=signed)} ±{fixed(half).removeprefix('0')}"


def pvalue(value: float) -> str:
    """Write a p-value, which is never zero."""
    return "<0.001" if value < 0.0005 else fixed(value)


def counted(number: int, thing: str) -> str:
    """Write a number of things, as of 1 item or 2 items."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def main_quantity(estimates: Estimates) -> str:
    """Name what estimates answer first: the win rate, pass rate or mean grade."""
    names = ("win rate", "pass rate", estimates.main)
    return next(name for name in names if name in estimates.estimates)


def answer_of(estimates: Estimates, *, has_votes: bool = True) -> str:
    """Say in a line how often A wins, or what the mean grade is."""
    n_items, is_finite = estimates.n_items, estimates.population == "finite"
    items = f"of these {counted(n_items, 'item')}" if is_finite else "of new items like these"
    items += f", by {counted(estimates.n_labels, 'label')}"
    if has_votes and estimates.n_labels < n_items:
        items += " and the votes" if is_finite else f" and the votes of {counted(n_items, 'item')}"
    name = main_quantity(estimates)
    if name != "win rate":
        return f"{name} {items}: {estimates.estimates[name]}"
    _, tie, *_ = estimates.estimates.values()  # shares of both sides, and of ties between them
    rate, ties = (
        f"{percent(of.value)} ({level}{percent(of.low)} to {percent(of.high)})"
        for level, of in (
            (f"{100 * estimates.level:.3g}% interval ", estimates.estimates[name]),
            ("", tie),
        )
    )
    return f"{estimates.sides.a} wins {rate}, ties as half, {items}; ties {ties}"


def next_step(estimates: Estimates) -> str:
    """Say what the answer is enough for, or how many labels would be."""
    name = main_quantity(estimates)
    of, (a, b) = estimates.estimates[name], estimates.sides
    if name != "win rate":
        what = "make this interval half as wide"
        width = of.high - of.low
        n_labels = estimates.labels_for(width / 2, name) if width > 0 else None
    elif not of.low <= 0.5 <= of.high:
        better, other = (a, b) if of.low > 0.5 else (b, a)
        return f"{better} is better than {other}: the interval does not hold 50%."
    else:
        what = f"tell whether {a} or {b} is better, if the share stays as it is"
        n_labels = estimates.labels_to_tell(0.5, name)
    if n_labels is None:
        return f"Labels of all {estimates.n_items:,} items would not {what}: get more items."
    more = max(n_labels - estimates.n_labels, 1)
    return f"About {n_labels:,} labels, {more:,} more, would {what}."


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


class Basis(NamedTuple):
    """What means are over, and what stands behind their ±, in words."""

    over: str
    error: str


def basis_of(cells: Iterable[Cell]) -> Basis:
    """Say what the means of cells are over."""
    cells = list(cells)
    if all(cell.methods[0].of_new_items is not None for cell in cells):
        return Basis(
            "the folds of a cross-validation by group",
            "± is half of the 95% interval for new items, or new groups of items",
        )
    return Basis(
        random_splits(cell.n_splits for cell in cells),
        "± is half of the 95% interval of the mean over splits",
    )


def random_splits(numbers: Iterable[int]) -> str:
    """Write how many splits there are, one number or from the least to the most."""
    numbers = list(numbers)
    low, high = min(numbers), max(numbers)
    return f"{low} random splits" if low == high else f"{low} to {high} random splits"


class SweptOver(NamedTuple):
    """What a sweep goes over: its stem, its field, in words, on an axis, and what to add."""

    name: str
    field: str
    words: str
    axis: str
    note: str


def swept_over(scores: Scores) -> SweptOver:
    """Say what a sweep goes over: the number of votes, or of labels."""
    if not scores.cells:
        raise InputError("there is no sweep: nothing could be evaluated")
    if scores.cells[0].n_labels is None:
        return SweptOver("votes", "n_votes", "votes", "votes per item", "")
    same = " The items evaluated on are the same for every number."
    what = "labels calibrated on"
    return SweptOver("calibration", "n_labels", what, what, same)


def shown(text: str, instead: str = "�") -> str:
    """Text with something else in place of what neither XML nor a reader can take."""
    return _UNPRINTABLE.sub(instead, text)


def visible(text: str) -> str:
    """Text for a terminal: escapes in place of what it would act on, or nobody would see."""
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


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
