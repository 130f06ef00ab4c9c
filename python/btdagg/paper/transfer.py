"""Calibrated on one task, used on another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.errors import forbid, within
from btdagg._util.readable import Readable
from btdagg.evaluation import CROSS_FITTED, cross_scores
from btdagg.methods import Calibrated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg import Protocol
    from btdagg.evaluation import Cell, Interval
    from btdagg.methods import Aggregator
    from btdagg.votes import Items


@dataclass(frozen=True, eq=False)
class Transfer(Readable):
    """Errors of the calibration of every task on every task.

    Attributes
    ----------
    tasks : tuple of str
        The tasks, in the order in which they were given: sources in rows, targets in columns.
    compared : tuple of tuples of Cell
        The aggregator's scores by source and target.
    """

    tasks: tuple[str, ...]
    compared: tuple[tuple[Cell, ...], ...]

    @property
    def mae(self) -> NDArray[np.float64]:
        """MAE on the evaluation set of the target by split: (n_tasks, n_tasks, n_splits) array."""
        return np.array([[target.methods[0].mae for target in row] for row in self.compared])

    @property
    def change(self) -> NDArray[np.float64]:
        """Mean change, (n_tasks, n_tasks), 0 on the diagonal: below 0 the source is the better."""
        return np.array(
            [
                [self.change_interval(row, column).mean for column in self.tasks]
                for row in self.tasks
            ]
        )

    def mae_interval(self, source: str, target: str) -> Interval:
        """MAE with its 95% interval: for new items where cross-fitted, else over splits."""
        return self._of(source, target).methods[0].interval()

    def change_interval(self, source: str, target: str) -> Interval:
        """Mean change with its 95% interval, as `mae_interval`."""
        moved, own = self._of(source, target), self._of(target, target)
        new_items = moved.new_items and own.new_items and moved.new_items.joined(own.new_items)
        both = replace(own, methods=(*moved.methods, *own.methods), new_items=new_items)
        return both.difference(0, 1)

    def _of(self, source: str, target: str) -> Cell:
        return self.compared[self.tasks.index(source)][self.tasks.index(target)]


def transfer_matrix(
    tasks: Mapping[str, Items],
    aggregator: Aggregator | None = None,
    *,
    protocol: Protocol = CROSS_FITTED,
    progress: Callable[[], object] | None = None,
) -> Transfer:
    """Score every task's calibration on every task.

    In each split the aggregator is fitted to the calibration set of the source and decides the
    evaluation set of the target, on which the target's own calibration is scored too: changes are
    paired.

    Parameters
    ----------
    tasks : mapping of str to Items
        At least two, such as ``votes.items(labels).labelled().parts("task")``, without common
        items: one in two tasks may be calibrated on in one and evaluated in the other.
    aggregator : Aggregator, optional
        By default the paper's fit.
    protocol : Protocol
        At least two splits of each task, by default cross-fitting.
    progress : callable, optional
        Called after each split.

    The paper's section on transferability and its heat map.
    """
    forbid(len(tasks) < 2, f"tasks has {len(tasks)}, expected at least two")
    protocol.require_intervals()
    method: Aggregator = Calibrated(prior=None) if aggregator is None else aggregator
    for name, items in tasks.items():
        with within(f"task {name!r}: "):
            list(protocol.splitter.draw(len(items), items.group, items.content))
    rows = cross_scores(list(tasks.values()), [method], protocol.untested, progress=progress)
    return Transfer(tuple(tasks), tuple(map(tuple, rows)))
