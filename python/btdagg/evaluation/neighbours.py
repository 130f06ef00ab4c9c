"""Neighbours of a part in an evaluation: the other parts, without what is held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg.model.prior import Neighbour, Prior, fit_prior

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from btdagg.evaluation.items import LabelledItems


class Neighbourhood:
    """What the other parts of an evaluation may tell of one.

    Parameters
    ----------
    own : (n,) array of str
        What each item of the part belongs to: its group, or itself.
    others : mapping of str to (LabelledItems, (m,) array of str)
        The other parts, with what their items belong to.
    """

    def __init__(
        self,
        own: NDArray[Any],
        others: Mapping[str, tuple[LabelledItems, NDArray[Any]]],
    ) -> None:
        numbers: dict[str, int] = {}
        self._own = _numbered(own, numbers)
        n_own = len(numbers)
        self._parts: list[tuple[str, LabelledItems, NDArray[np.intp]]] = []
        self._untouched: dict[str, Neighbour] = {}  # those that share nothing with the part
        for name, (items, belong) in others.items():
            found = _numbered(belong, numbers)
            self._parts.append((name, items, found))
            if (found >= n_own).all():
                self._untouched[name] = _neighbour(items, np.ones(len(items), dtype=np.bool_))
        self._n_names = len(numbers)

    def prior(self, held_out: NDArray[np.intp]) -> Prior | None:
        """Return the prior of the others without the items, or groups, that are held out.

        None where nothing is left of them.
        """
        left_out = np.zeros(self._n_names, dtype=np.bool_)
        left_out[self._own[held_out]] = True
        found = {}
        for name, items, numbers in self._parts:
            if name in self._untouched:
                found[name] = self._untouched[name]
                continue
            kept = ~left_out[numbers]
            if kept.any():
                found[name] = _neighbour(items, kept)
        return Prior(found) if found else None


def _numbered(names: NDArray[Any], known: dict[str, int]) -> NDArray[np.intp]:
    """Numbers of names, of which new ones get the next."""
    listed = [known.setdefault(str(name), len(known)) for name in names.tolist()]
    return np.array(listed, dtype=np.intp)


def _neighbour(items: LabelledItems, kept: NDArray[np.bool_]) -> Neighbour:
    prior = fit_prior([(items.evidence.counts[kept], items.labels[kept])])
    return next(iter(prior.neighbours.values()))
