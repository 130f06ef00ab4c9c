"""Which items raters are shown, in which order, and which response comes first."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg._util.errors import shown

if TYPE_CHECKING:
    from btdagg.judge.pairs import Pair, Pairs

_KEY = 16  # hexadecimal digits by which the page names an item


class Assignment:
    """The items to be labelled: the same for all raters, with sides that differ.

    The order is that of a hash of the seed and the item's id, so it is random, the first items are
    a simple random sample of all, and pairs that are added later change no place of two others.

    Parameters
    ----------
    pairs : Pairs
    items : sequence of str, optional
        Items to be labelled, in this order; unless given all, in a random one.
    n_items : int, optional
        Only the first so many.
    seed : int
        Of the order and the sides.

    Attributes
    ----------
    items : list of str
    pairs : Pairs

    Raises
    ------
    InputError
        If an item is no pair, or there are fewer than `n_items`.
    """

    def __init__(
        self,
        pairs: Pairs,
        items: Sequence[str] | None = None,
        n_items: int | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self.pairs, self._seed = pairs, seed
        self._rows = {item: row for row, item in enumerate(map(str, pairs.frame["item"]))}
        if items is None:
            items = sorted(self._rows, key=self.key)
        unknown = next((item for item in items if item not in self._rows), None)
        if unknown is not None:
            raise InputError(f"item {shown(unknown)} is to be labelled, and is no pair")
        if n_items is not None and n_items > len(items):
            raise InputError(f"n_items is {n_items}, and there are {len(items)} items to label")
        self.items = list(items)[:n_items]
        self._of_key = {self.key(item): item for item in self.items}
        self._places = {item: place for place, item in enumerate(self.items)}

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: str) -> bool:
        return item in self._places

    def pair(self, item: str) -> Pair:
        """The texts of an item."""
        return self.pairs[self._rows[item]]

    def place(self, item: str) -> int:
        """Where an item is among those to be labelled, from 0."""
        return self._places[item]

    def is_pair(self, item: str) -> bool:
        """Whether an item is a pair, to be labelled or not."""
        return item in self._rows

    def key(self, item: str) -> str:
        """What the page calls an item: ids may tell whose responses they are."""
        return self._digest("item", item).hex()[:_KEY]

    def item(self, key: str) -> str | None:
        """The item that the page calls so, if there is one."""
        return self._of_key.get(key)

    def sides(self, item: str, rater: str) -> str:
        """``AB`` if a rater sees A first, else ``BA``."""
        return "BA" if self._digest("sides", rater, item)[0] & 1 else "AB"

    def _digest(self, *parts: str) -> bytes:
        return hashlib.sha256("\0".join((str(self._seed), *parts)).encode()).digest()


def texts_digest(pair: Pair) -> str:
    """Digest of what raters see of a pair."""
    parts = (pair.prompt, pair.reference, pair.a, pair.b)
    sizes = ",".join(str(len(part)) for part in parts)
    return hashlib.sha256("\0".join((sizes, *parts)).encode(errors="surrogatepass")).hexdigest()
