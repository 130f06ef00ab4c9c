"""Mean votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from btdagg.validation import as_whole_counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def mean_votes(counts: ArrayLike) -> NDArray[np.float64]:
    """Return the mean vote of each item, (n,); 0 of one without votes."""
    minus, tie, plus = as_whole_counts(counts).T.astype(np.float64)
    return np.asarray((plus - minus) / np.maximum(minus + tie + plus, 1))
