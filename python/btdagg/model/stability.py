"""Whether a decision survives the uncertainty of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from btdagg import _core
from btdagg._util.distinct import distinct_rows
from btdagg._util.validation import as_integer, as_whole_counts
from btdagg.model.intervals import Stability, as_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.davidson import DavidsonModel

# Decisions that are held at once.
_HELD = 1 << 24


def stability(
    model: DavidsonModel,
    thetas: NDArray[np.float64],
    counts: ArrayLike,
    *,
    level: float,
    n_threads: int,
) -> Stability:
    """Decide items under each row of `thetas` (beta, eta0, gamma); see `Bootstrap.stability`."""
    level, checked = as_level(level), as_whole_counts(counts)
    n_threads = as_integer(n_threads, "n_threads", 1)
    whole = checked.astype(np.uint64)
    first, place = distinct_rows(*whole.T)
    rows = np.ascontiguousarray(whole[first])
    found = np.empty((len(rows), 3))
    step = max(1, _HELD // len(thetas))
    for start in range(0, len(rows), step):
        part = np.ascontiguousarray(rows[start : start + step])
        decided = _core.decide_under(thetas, model.alpha, model.kappa, part, n_threads)
        for column, label in enumerate((-1, 0, 1)):
            found[start : start + step, column] = (decided == label).mean(axis=0)
    shares, labels = found[place], model.decide(checked)
    agreement = shares[np.arange(len(labels)), labels.astype(np.intp) + 1]
    return Stability(labels, shares, agreement, agreement >= level)
