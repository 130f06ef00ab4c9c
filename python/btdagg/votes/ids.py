"""Ids of items: columns and indexes that have them, and ids that look alike but differ."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial, reduce
from itertools import islice
from typing import Any

from btdagg import remarks
from btdagg.remarks import Remark
from btdagg.votes.schema import ITEM

ID_COLUMNS = {"item", *ITEM.names}
_MANY = 100_000  # ids that are looked at
_FORMS: dict[str, Callable[[str], str]] = {
    "the Unicode form of their letters (NFC or NFD)": partial(unicodedata.normalize, "NFKC"),
    "case": str.casefold,
    "blanks": lambda text: re.sub(r"\s+", "", text),
    "invisible characters": lambda text: "".join(
        sign for sign in text if unicodedata.category(sign) not in ("Cf", "Cc")
    ),
    "leading zeros": lambda text: re.sub(r"(?<![\d.])0+(?=\d)", "", text),
    "a decimal point": lambda text: re.sub(r"^(\d+)\.0+$", r"\1", text),
}
"""Forms of ids that do not show a difference, by its name."""


def index_has_ids(index: Any) -> bool:
    """Whether an index of pandas has ids: it is called `item`, `id` or `item_id`, or holds texts.

    An index of numbers without such a name is, or was, that of row numbers.
    """
    names = {str(name).strip().lower() for name in index.names}
    is_text = index.nlevels == 1 and index.dtype.kind not in "biufMm"
    return not names.isdisjoint(ID_COLUMNS) or is_text


def like_ids(ids: Iterable[Any], others: Iterable[Any] | None = None) -> Remark | None:
    """Say how ids of two tables, or of one, differ in what is hard to see; None if none do.

    Of two tables the ids are those that do not match.
    """
    by_form: dict[str, str] = {}
    pairs = []
    for text in map(str, islice(ids, _MANY)):
        first = by_form.setdefault(_plain(text), text)
        if others is None and first != text:
            pairs.append((first, text))
    for text in map(str, () if others is None else others):
        if (alike := by_form.get(_plain(text))) is not None:
            pairs.append((alike, text))
    if not pairs:
        return None
    first, second = pairs[0]
    how = (name for name, form in _FORMS.items() if form(first) == form(second))
    return remarks.similar_ids(len(pairs), next(how, "how they are written"), first, second)


def _plain(text: str) -> str:
    return reduce(lambda form, simpler: simpler(form), _FORMS.values(), text)
