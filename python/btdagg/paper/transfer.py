"""Calibrated on one task, used on another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.evaluation.engine import cross_scores
from btdagg.evaluation.metrics import Interval, mean_interval
from btdagg.evaluation.parts import LabelledItems
from btdagg.evaluation.protocol import CROSS_FITTED, Protocol
from btdagg.methods import Aggregator, Davidson

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation.new_items import NewItems


@readable
@dataclass(frozen=True, eq=False)
class Transfer:
    """Errors of the calibration of every task on every task.

    Attributes
    ----------
    tasks : tuple of str
        The tasks, in the order in which they were given: sources in rows, targets in columns.
    mae : (n_tasks, n_tasks, n_splits) array
        Mean absolute error on the evaluation set of the target in each split.
    new_items : tuple of tuples of NewItems, optional
        Losses by source and target, where the tasks were cross-fitted.
    """

    tasks: tuple[str, ...]
    mae: NDArray[np.float64]
    new_items: tuple[tuple[NewItems, ...], ...] | None = None

    @property
    def changes(self) -> NDArray[np.float64]:
        """MAE less that of the target's own calibration, by split: (n_tasks, n_tasks, n_splits)."""
        own = self.mae[np.arange(len(self.tasks)), np.arange(len(self.tasks))]
        return np.asarray(self.mae - own)

    @property
    def change(self) -> NDArray[np.float64]:
        """Mean change, (n_tasks, n_tasks): below 0 the source is the better one.

        The diagonal is 0.
        """
        return np.array(
            [
                [self.change_interval(row, column).mean for column in self.tasks]
                for row in self.tasks
            ]
        )

    def mae_interval(self, source: str, target: str) -> Interval:
        """MAE with its 95% interval: for new items where cross-fitted, else over splits."""
        row, column = self.tasks.index(source), self.tasks.index(target)
        if self.new_items is None:
            return mean_interval(self.mae[row, column])
        return self.new_items[row][column].interval(0)

    def change_interval(self, source: str, target: str) -> Interval:
        """Mean change with its 95% interval, as `mae_interval`."""
        row, column = self.tasks.index(source), self.tasks.index(target)
        if self.new_items is None:
            return mean_interval(self.changes[row, column])
        return self.new_items[row][column].beside(self.new_items[column][column]).difference(0, 1)


def transfer_matrix(
    tasks: Mapping[str, LabelledItems],
    aggregator: Aggregator | None = None,
    *,
    protocol: Protocol = CROSS_FITTED,
    progress: Callable[[], object] | None = None,
) -> Transfer:
    """Score every task's calibration on every task.

    In split k every task has a calibration and an evaluation set of its own. The aggregator is
    fitted to the calibration set of the source and decides the evaluation set of the target, which
    is the one that the target's own calibration is scored on too, so changes are paired.

    Parameters
    ----------
    tasks : mapping of str to LabelledItems
        At least two; see `labelled_tasks`. They are taken to have no item in common: one that is in
        two tasks may be calibrated on in one and evaluated in the other.
    aggregator : Aggregator, optional
        Davidson unless given.
    protocol : Protocol
        How each task is split, at least twice; cross-fitting unless given.
    progress : callable, optional
        Called after each split.

    The paper's section on transferability and its heat map.
    """
    if len(tasks) < 2:
        raise InputError(f"tasks has {len(tasks)}, expected at least two")
    protocol.require_intervals()
    method: Aggregator = Davidson() if aggregator is None else aggregator
    for name, items in tasks.items():
        try:
            items.require_splits(protocol.splitter)
        except InputError as error:
            raise InputError(f"task {name!r}: {error}") from None
    rows = cross_scores(list(tasks.values()), [method], protocol.untested, progress=progress)
    mae = np.array([[target.methods[0].mae for target in source] for source in rows])
    new_items = tuple(
        tuple(target.new_items for target in source if target.new_items is not None)
        for source in rows
    )
    return Transfer(tuple(tasks), mae, new_items if all(new_items) else None)
