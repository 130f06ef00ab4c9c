"""Which labels are taken for which, and how often each is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg.aggregators import Aggregator, Davidson, MajorityVote
from btdagg.evaluation.fitting import quiet_fit
from btdagg.evaluation.protocol import FEW_SPLITS, Protocol
from btdagg.evaluation.tasks import LabelledItems
from btdagg.metrics import confusion_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion matrices of one aggregator.

    Attributes
    ----------
    name : str
        The aggregator.
    matrices : (n_splits, 3, 3) array
        Items of the evaluation set of each split by gold label (rows) and predicted label
        (columns), in label order.
    """

    name: str
    matrices: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.float64]:
        """Mean number of items over splits: (3, 3) array."""
        return np.asarray(self.matrices.mean(axis=0))

    @property
    def percentages(self) -> NDArray[np.float64]:
        """`counts` in percent of their row: (3, 3) array; NaN where no item has the gold label."""
        total = self.counts.sum(axis=1, keepdims=True)
        return np.asarray(100 * self.counts / np.where(total > 0, total, np.nan))

    @property
    def predicted(self) -> NDArray[np.float64]:
        """Share of items given each label, mean over splits: (3,) array in label order."""
        return _shares(self.matrices.sum(axis=1))

    @property
    def gold(self) -> NDArray[np.float64]:
        """Share of items that have each gold label, mean over splits: (3,) array in label order."""
        return _shares(self.matrices.sum(axis=2))


@dataclass(frozen=True, eq=False)
class Distributions:
    """What `label_distributions` found.

    Attributes
    ----------
    methods : tuple of Confusion
        In the order in which the aggregators were given.
    """

    methods: tuple[Confusion, ...]

    @property
    def gold(self) -> NDArray[np.float64]:
        """Share of items of the evaluation sets that have each gold label: (3,) array."""
        return self.methods[0].gold

    @property
    def predicted(self) -> dict[str, NDArray[np.float64]]:
        """Share of those items given each label, (3,), by aggregator."""
        return {method.name: method.predicted for method in self.methods}


def label_distributions(
    items: LabelledItems,
    aggregators: Sequence[Aggregator] | None = None,
    *,
    protocol: Protocol = FEW_SPLITS,
    progress: Callable[[], object] | None = None,
) -> Distributions:
    """Count gold against predicted labels on the evaluation sets of random splits.

    Parameters
    ----------
    items : LabelledItems
        Votes and labels of n items.
    aggregators : sequence of Aggregator, optional
        Davidson and majority vote unless given.
    protocol : Protocol
        The paper's 20 splits unless given.
    progress : callable, optional
        Called after each split.

    Returns
    -------
    Distributions

    Raises
    ------
    InputError
        If an argument is out of range, a set would have no items, or an aggregator asks for more
        than there is.

    References
    ----------
    The paper's appendix on confusion matrices.
    """
    n_splits = protocol.splitter.n_splits
    methods = (Davidson(), MajorityVote()) if aggregators is None else tuple(aggregators)
    if not methods:
        raise InputError("aggregators is empty, want at least one")
    splits = protocol.splitter.draw(len(items), items.groups)
    matrices = np.empty((len(methods), n_splits, 3, 3), dtype=np.int64)
    for number, (chosen, left) in enumerate(splits):
        for place, method in enumerate(methods):
            fitted = quiet_fit(method, items.rows[chosen], items.labels[chosen])
            matrices[place, number] = confusion_matrix(
                items.labels[left], fitted.decide(items.rows[left])
            )
        if progress is not None:
            progress()
    return Distributions(
        tuple(
            Confusion(method.name, found) for method, found in zip(methods, matrices, strict=True)
        )
    )


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shares of labels in each split, (n_splits, 3), averaged over splits."""
    return np.asarray((counts / counts.sum(axis=1, keepdims=True)).mean(axis=0))
