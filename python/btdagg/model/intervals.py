"""An estimate with its interval, and decisions with their stability."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.readable import readable
from btdagg._util.validation import as_checked_counts, as_number, distinct_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@readable
class ParameterInterval(NamedTuple):
    """An estimate and its interval. If there is none, its ends are NaN and `note` says why."""

    estimate: float
    low: float
    high: float
    note: str = ""

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.estimate:.4g} (no interval: {self.note})"
        remark = f" ({self.note})" if self.note else ""
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]{remark}"


@readable
class Stability(NamedTuple):
    """Decisions of items and what becomes of them under other parameters.

    Attributes
    ----------
    labels : (n,) array of int8
        Decisions of the model.
    shares : (n, 3) array of float64
        Share of the refits, or of a posterior, that decides -1, 0 and +1.
    agreement : (n,) array of float64
        Share that decides as the model does.
    stable : (n,) array of bool
        Whether that is at least the level asked for.
    """

    labels: NDArray[np.int8]
    shares: NDArray[np.float64]
    agreement: NDArray[np.float64]
    stable: NDArray[np.bool_]


def stability_of(labels: NDArray[np.int8], level: float, shares: NDArray[np.float64]) -> Stability:
    """Return how stable decisions are, given the shares of the labels of each item."""
    agreement = shares[np.arange(len(labels)), labels.astype(np.intp) + 1]
    return Stability(labels, shares, agreement, agreement >= as_level(level))


def distinct_items(
    counts: ArrayLike, offsets: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, NDArray[np.intp]]:
    """Return distinct rows of counts and offsets, (n,) or (n, d), and where each item's are."""
    checked = as_checked_counts(counts)
    known: Any = [] if offsets is None else offsets.reshape(len(checked), -1).T
    first, place = distinct_rows(*checked.T, *known)
    rows = np.ascontiguousarray(checked[first], dtype=np.float64)
    return rows, None if offsets is None else offsets[first], place


def as_level(level: float, name: str = "level") -> float:
    """Return a number above 0 and below 1."""
    return as_number(level, name, above=0, below=1)
