"""A method that is one function, such as those that installed packages add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg._util.errors import expect
from btdagg._util.readable import Readable
from btdagg.methods.base import OnScale, fitted
from btdagg.methods.majority import RoundedMedian
from btdagg.votes.by_id import as_items

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class FunctionMethod(OnScale, Readable):
    """A function of labelled and new counts as a method.

    Parameters
    ----------
    function : callable
        Takes `counts` (n, J) and `labels` (n,) of the calibration set, `new_counts` (m, J), `scale`
        and `label_scale`, and returns an expected label of each new item, (m,), or probabilities
        of the points of `label_scale`, (m, K). Every item has votes.
    name : str
        In tables.

    Examples
    --------
    >>> def mean(counts, labels, new_counts, scale, label_scale):
    ...     means = new_counts @ scale.floats / new_counts.sum(axis=1)
    ...     return scale.rescaled(means, label_scale)
    >>> FunctionMethod(mean, "mean").fit([[0, 1, 3]], [1]).decide([[0, 1, 3], [2, 1, 1]])
    array([1, 0], dtype=int8)
    """

    function: Callable[..., Any]
    name: str
    calibration_set: tuple[NDArray[Any], NDArray[Any]] | None = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Keep counts (n, J) and labels (n,) for the function, and return itself."""
        items = as_items(counts, labels, scale=self.scale, label_scale=self.label_scale)
        votes = self._checked(items.pooled)
        has_votes = votes.any(axis=1)
        kept = votes[has_votes], items.label[has_votes]
        object.__setattr__(self, "calibration_set", kept)
        return self

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,): nearest to the expected one, or the median by probabilities.

        Half way, the label nearer the middle. Without votes an item is in the middle of two sides.
        """
        calibration_set = fitted(self.calibration_set, self.name)
        votes = self._checked(counts)
        has_votes = votes.any(axis=1)
        rows, shape = votes[has_votes], (int(has_votes.sum()), len(self.label_scale.points))
        answer = self.function(*calibration_set, rows, self.scale, self.label_scale)
        values = np.asarray(answer, dtype=np.float64)
        is_good = values.shape in (shape[:1], shape) and np.isfinite(values).all()
        expected = f"{shape[:1]} expected labels or {shape} probabilities, all of them finite"
        expect(is_good, f"what {self.name} returns", values, expected)
        if values.ndim == 2:
            values = RoundedMedian(scale=self.label_scale)._statistic(values)
        middle = np.full(len(votes), self.label_scale.middle)
        middle[has_votes] = values
        return self._nearest(middle)
