"""Scores as curves over the number of votes, or of labels calibrated on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.readable import readable
from btdagg.evaluation.intervals import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation.cells import Cell, MethodScores
    from btdagg.evaluation.parts import Key


@readable
@dataclass(frozen=True, eq=False)
class Curve:
    """Scores of one aggregator at each of k points, split by split.

    Attributes
    ----------
    name : str
        The aggregator.
    points : tuple of MethodScores
    """

    name: str
    points: tuple[MethodScores, ...]

    @property
    def mae(self) -> NDArray[np.float64]:
        """Mean absolute error on the evaluation set: (k, n_splits) array."""
        return np.stack([point.mae for point in self.points])

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Pairwise accuracy on the evaluation set: (k, n_splits) array."""
        return np.stack([point.accuracy for point in self.points])

    @property
    def mae_intervals(self) -> tuple[Interval, ...]:
        """Mean MAE over splits with its 95% interval, at each point."""
        return tuple(point.mae_interval for point in self.points)

    @property
    def accuracy_intervals(self) -> tuple[Interval, ...]:
        """Mean pairwise accuracy over splits with its 95% interval, at each point."""
        return tuple(point.accuracy_interval for point in self.points)


@readable
@dataclass(frozen=True, eq=False)
class Sweep:
    """One figure's worth of curves.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that votes are grouped by.
    cells : tuple of Cell
        One for each point.
    """

    key: Key
    cells: tuple[Cell, ...]

    @property
    def points(self) -> tuple[int, ...]:
        """Votes per item, or labels calibrated on, as asked for."""
        found = (cell.n_votes if cell.n_labels is None else cell.n_labels for cell in self.cells)
        return tuple(point for point in found if point is not None)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """One per aggregator, in the order given."""
        by_method = zip(*(cell.comparison.methods for cell in self.cells), strict=True)
        return tuple(Curve(points[0].name, points) for points in by_method)

    @property
    def n_items(self) -> int:
        """Labelled items."""
        return self.cells[0].comparison.n_items

    @property
    def n_calibration(self) -> NDArray[np.float64]:
        """Mean number of items calibrated on at each point; groups make it vary."""
        return np.array([cell.comparison.n_calibration for cell in self.cells])

    @property
    def n_evaluation(self) -> NDArray[np.float64]:
        """Mean number of items evaluated on at each point."""
        return np.array([cell.comparison.n_evaluation for cell in self.cells])

    @property
    def n_short(self) -> NDArray[np.int64]:
        """Items with fewer votes than asked for, which keep those they have."""
        return np.array([cell.n_short for cell in self.cells])
