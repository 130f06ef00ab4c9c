"""Which items raters are shown, in which order, and which response comes first."""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from btdagg._util.errors import InputError, forbid, shown
from btdagg.votes.scale import PAIRS, Scale

if TYPE_CHECKING:
    from btdagg.judge.pairs import Pair, Pairs

_KEY = 16  # hexadecimal digits by which the page names an item


class Assignment:
    """The items to be labelled: the same for all raters, with sides that differ.

    The order is by a hash of the seed and the item's id: random, so that the first items are a
    simple random sample, and stable when pairs are added.

    Parameters
    ----------
    pairs : Pairs
        Or single responses, with a scale. Rows of an item differ in their criterion.
    items : sequence of str, optional
        Items to be labelled, in this order; unless given all, in a random one.
    n_items : int, optional
        Only the first so many.
    scale : Scale, optional
        Scale of the grades of single responses.
    criteria : mapping of str to collection of str, optional
        Criteria of each item; by default all.
    seed : int
        Seed of the order and the sides.

    Attributes
    ----------
    items : list of str
    pairs : Pairs
    scale : Scale or None

    Raises
    ------
    InputError
        If an item is no pair, there are fewer than `n_items`, or single responses have no scale.
    """

    def __init__(
        self,
        pairs: Pairs,
        items: Sequence[str] | None = None,
        n_items: int | None = None,
        *,
        scale: Scale = PAIRS,
        criteria: Mapping[str, Collection[str]] | None = None,
        seed: int = 0,
    ) -> None:
        self.pairs, self.scale, self._seed = pairs, scale, seed
        is_single = "response" in pairs.columns
        if is_single != ("response" in scale.mode.responses):
            got = "missing" if is_single else scale.points
            expected = (
                "a scale for single responses" if is_single else "none, since these are pairs"
            )
            raise InputError(f"grades is {got}, expected {expected}", argument="grades")
        names = pairs.frame["criterion"] if "criterion" in pairs.columns else itertools.repeat("")
        self._rows: dict[str, dict[str, int]] = defaultdict(dict)
        for row, (item, name) in enumerate(zip(map(str, pairs.frame["item"]), names)):  # noqa: B905
            if criteria is None or item not in criteria or name in criteria[item]:
                self._rows[item][name] = row
        if items is None:
            items = sorted(self._rows, key=self.key)
        unknown = next((item for item in items if item not in self._rows), None)
        if unknown is not None:
            raise InputError(f"item {shown(unknown)} is to be labelled, but is not among the pairs")
        forbid(
            n_items is not None and n_items > len(items),
            f"n_items is {n_items}, but there are only {len(items)} items to label",
        )
        self.items = list(items)[:n_items]
        self._of_key = {self.key(item): item for item in self.items}
        self._places = {item: place for place, item in enumerate(self.items)}

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: str) -> bool:
        return item in self._places

    def criteria(self, item: str) -> Collection[str]:
        """By which an item is to be labelled; an empty name where there are none."""
        return self._rows[item].keys() if item in self._rows else ()

    def pair(self, item: str, criterion: str | None = None) -> Pair:
        """The texts of an item, and the rubric of a criterion."""
        rows = self._rows[item]
        return self.pairs[rows[next(iter(rows)) if criterion is None else criterion]]

    def place(self, item: str) -> int:
        """Where an item is among those to be labelled, from 0."""
        return self._places[item]

    def key(self, item: str) -> str:
        """Name of an item on the page: ids may tell who wrote the responses."""
        return self._digest("item", item).hex()[:_KEY]

    def item(self, key: str) -> str | None:
        """The item that the page calls so, if there is one."""
        return self._of_key.get(key)

    def sides(self, item: str, rater: str) -> str:
        """``AB`` if a rater sees A first, else ``BA``; of single responses AB."""
        orders = self.scale.mode.orders
        return str(orders[self._digest("sides", rater, item)[0] % len(orders)])

    def _digest(self, *parts: str) -> bytes:
        return hashlib.sha256("\0".join((str(self._seed), *parts)).encode()).digest()
