"""What comes in, against what the model in use was fitted to."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from btdagg.provenance import Provenance
    from btdagg.serve.items import Items

# Items after which votes that are fewer than the model was fitted for are no accident.
_ENOUGH = 1000
# Differences that are logged of one model: judges can have any number of names.
_MOST_LOGGED = 20

_log = logging.getLogger("btdagg.serve")


class ProvenanceCheck:
    """Items of one model, compared with what it was fitted to.

    More votes of an item, and votes of another judge, are seen in a request, and its answer says
    so. Fewer votes are seen in many: a request may be about one item that misses votes.
    """

    def __init__(self, provenance: Provenance | None) -> None:
        self.provenance = provenance
        self._lock = threading.Lock()
        self._logged: set[str] = set()
        self._n_items = self._most = 0

    def differences(self, items: Items) -> tuple[str, ...]:
        """Say where items differ; log what was not logged before."""
        if self.provenance is None or not len(items.counts):
            return ()
        found = self.provenance.differences(items.counts, items.votes, fewer=False)
        most = int(np.sum(items.counts, axis=1, dtype=np.float64).max())
        with self._lock:
            self._n_items += len(items.counts)
            self._most = max(self._most, most)
            for text in (*found, *self._fewer()):
                if text not in self._logged and len(self._logged) < _MOST_LOGGED:
                    self._logged.add(text)
                    _log.warning("%s", ascii(text)[1:-1])
        return found

    def _fewer(self) -> tuple[str, ...]:
        n_votes = None if self.provenance is None else self.provenance.n_votes
        if n_votes is None or self._n_items < _ENOUGH or self._most >= n_votes:
            return ()
        return (
            f"no item of {_ENOUGH} or more has had {n_votes} votes, which the model was fitted for",
        )
