"""Statistics of items by name, each a function of sums over groups, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from btdagg._util.readable import readable
from btdagg.inference.estimate import jackknifed, numbers_of
from btdagg.inference.sample import sums_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.inference.intervals import Ends

    Floats: TypeAlias = NDArray[np.float64]


@readable
class Statistic(NamedTuple):
    """A number with its interval, and the items that it is of.

    Its ends are NaN if items, or groups, do not tell how far off it is.
    """

    value: float
    low: float
    high: float
    n_items: int

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name; NaN as None."""
        return numbers_of(self, *self._fields)


class Statistics:
    """Statistics of n items in groups, `named` as they are added.

    Parameters
    ----------
    groups : (n,) array of int
        Group of each item, from 0: errors are between groups.
    level : float
        Confidence level of the intervals.
    """

    def __init__(self, groups: NDArray[np.int64], level: float) -> None:
        self.named: dict[str, Statistic] = {}
        self._groups, self._level = groups, level

    def add_mean(self, name: str, values: Floats, counted: NDArray[np.bool_]) -> None:
        """Add the mean of (n,) values of the counted items, from 0 to 1, if there are any."""
        self.add_ratio(name, values, counted.astype(np.float64), counted)

    def add_ratio(self, name: str, part: Floats, whole: Floats, counted: NDArray[np.bool_]) -> None:
        """Add the sum of (n,) parts over that of wholes, of the counted items."""
        columns = np.column_stack([part, whole])
        self.add(name, columns, counted, lambda sums: sums[:, 0] / sums[:, 1])

    def add(
        self,
        name: str,
        columns: Floats,
        counted: NDArray[np.bool_],
        function: Callable[[Floats], Floats],
        ends: Ends = (0.0, 1.0),
    ) -> None:
        """Add a function of the sums of (n, m) columns over the counted items, if there are any.

        The function takes (k, m) sums and returns (k,) values between the ends; a NaN is left out.
        """
        if not counted.any():
            return
        n = int(self._groups.max()) + 1
        sums = sums_by(self._groups, np.where(counted[:, None], columns, 0.0), n)
        sizes = sums_by(self._groups, counted.astype(np.float64), n)
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = jackknifed(function, sums, sizes, ends)
        if math.isnan(estimate.value):
            return
        value, low, high = estimate.interval(self._level)
        low, high = (low, high) if estimate.has_spread else (math.nan, math.nan)
        self.named[name] = Statistic(value, low, high, int(counted.sum()))
