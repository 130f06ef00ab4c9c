"""Neighbours of a part in an evaluation: the other parts, without what is held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg.fit.prior import Neighbour, Prior, fit_prior

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
        self._own = own
        self._others = others
        self._untouched: dict[str, Neighbour] = {}  # those that share nothing with the part
        for name, (items, belong) in others.items():
            if not np.isin(belong, own).any():
                self._untouched[name] = _neighbour(items, np.ones(len(items), dtype=np.bool_))

    def prior(self, held_out: NDArray[np.intp]) -> Prior | None:
        """Return the prior of the others without the items, or groups, that are held out.

        None where nothing is left of them.
        """
        left_out = np.unique(self._own[held_out])
        found = {}
        for name, (items, belong) in self._others.items():
            if name in self._untouched:
                found[name] = self._untouched[name]
                continue
            kept = ~np.isin(belong, left_out)
            if kept.any():
                found[name] = _neighbour(items, kept)
        return Prior(found) if found else None


def _neighbour(items: LabelledItems, kept: NDArray[np.bool_]) -> Neighbour:
    prior = fit_prior([(items.evidence.counts[kept], items.labels[kept])])
    return next(iter(prior.neighbours.values()))
