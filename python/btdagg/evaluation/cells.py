"""One comparison of methods: a confusion matrix per method and split, and its scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Drawn
from btdagg._util.readable import readable
from btdagg.evaluation.intervals import Interval, mean_interval
from btdagg.evaluation.ranking import GroupTest, Ranking, SplitTest, rank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation.new_items import NewItems
    from btdagg.evaluation.parts import Key
    from btdagg.methods import Davidson

ERRORS = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
"""Absolute error by gold label and predicted label."""


@readable
@dataclass(frozen=True, eq=False)
class MethodScores:
    """Scores of one aggregator on the evaluation set of each split.

    Attributes
    ----------
    name : str
        The aggregator.
    matrices : (n_splits, 3, 3) array
        Items by gold label (rows) and predicted label (columns), in label order.
    of_new_items : tuple of Interval, optional
        MAE and accuracy on new items, where the method was cross-fitted.
    n_items : int, optional
        Items, where each was decided in several splits.
    """

    name: str
    matrices: NDArray[np.int64]
    of_new_items: tuple[Interval, Interval] | None = None
    n_items: int | None = None

    @cached_property
    def mae(self) -> NDArray[np.float64]:
        """Mean absolute error, (n_splits,)."""
        return np.asarray((self.matrices * ERRORS).sum(axis=(1, 2)) / self._n_items)

    @cached_property
    def accuracy(self) -> NDArray[np.float64]:
        """Pairwise accuracy, (n_splits,)."""
        return np.asarray(np.trace(self.matrices, axis1=1, axis2=2) / self._n_items)

    @property
    def tie_share(self) -> NDArray[np.float64]:
        """Share of items decided a tie, (n_splits,)."""
        return np.asarray(self.matrices[:, :, 1].sum(axis=1) / self._n_items)

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Whether every item got the same label, (n_splits,)."""
        return np.asarray((self.matrices.sum(axis=1) > 0).sum(axis=1) == 1)

    @property
    def mean_mae(self) -> float:
        """Mean absolute error: over items where cross-fitted, else over splits."""
        return float(self.of_new_items[0].mean if self.of_new_items else self.mae.mean())

    @property
    def mean_accuracy(self) -> float:
        """Pairwise accuracy, as `mean_mae`."""
        return float(self.of_new_items[1].mean if self.of_new_items else self.accuracy.mean())

    @property
    def mae_interval(self) -> Interval:
        """MAE with its 95% interval: for new items where cross-fitted, else of a mean of splits."""
        return self.of_new_items[0] if self.of_new_items else mean_interval(self.mae)

    @property
    def accuracy_interval(self) -> Interval:
        """Pairwise accuracy with its 95% interval, as `mae_interval`."""
        return self.of_new_items[1] if self.of_new_items else mean_interval(self.accuracy)

    @property
    def counts(self) -> NDArray[np.float64]:
        """Items by gold and predicted label, (3, 3): mean over splits, or over repetitions."""
        if self.n_items is not None:
            return np.asarray(self.matrices.sum(axis=0) * self.n_items / self.matrices.sum())
        return np.asarray(self.matrices.mean(axis=0))

    @property
    def percentages(self) -> NDArray[np.float64]:
        """`counts` in percent of their row: (3, 3) array; NaN where no item has the gold label."""
        total = self.counts.sum(axis=1, keepdims=True)
        return np.asarray(100 * self.counts / np.where(total > 0, total, np.nan))

    @property
    def predicted(self) -> NDArray[np.float64]:
        """Share of items given each label, mean over splits: (3,) array in label order."""
        return self._shares(axis=1)

    @property
    def gold(self) -> NDArray[np.float64]:
        """Share of items that have each gold label, mean over splits: (3,) array in label order."""
        return self._shares(axis=2)

    def _shares(self, axis: int) -> NDArray[np.float64]:
        """Shares of labels: of items where cross-fitted, else of each split, averaged."""
        counts = self.matrices.sum(axis=axis)
        if self.of_new_items is not None:
            counts = counts.sum(axis=0, keepdims=True)
        return np.asarray((counts / counts.sum(axis=1, keepdims=True)).mean(axis=0))

    @property
    def _n_items(self) -> NDArray[np.int64]:
        return np.asarray(self.matrices.sum(axis=(1, 2)))


@readable
class Tested(NamedTuple):
    """How differences were tested, and the p-values of each pair of m methods on each split.

    Attributes
    ----------
    test : SplitTest or GroupTest
    mae, accuracy : (n_splits, m, m) arrays
        P-values of absolute errors, and of wrong labels.
    """

    test: SplitTest | GroupTest
    mae: NDArray[np.float64]
    accuracy: NDArray[np.float64]


@readable
@dataclass(frozen=True, eq=False)
class Comparison(Drawn):
    """Aggregators on the same splits of the same items.

    Attributes
    ----------
    methods : tuple of MethodScores
        In the order in which the aggregators were given.
    n_items : int
        Labelled items.
    n_calibration : float
        Mean number of items calibrated on; groups that stay together make it vary.
    gold_tie_share : float
        Share of gold labels that are ties.
    tested : Tested or None
        P-values, if differences were tested.
    new_items : NewItems or None
        Losses by item, where the methods were cross-fitted.
    baseline : int or None
        Place of majority vote among the methods, if it is one of them.
    calibrated : int or None
        Place of the first method that calibrates a model and is quick to fit: the model that
        `Cell.fitted` has. The methods after it are there to be compared with.
    """

    methods: tuple[MethodScores, ...]
    n_items: int
    n_calibration: float
    gold_tie_share: float
    tested: Tested | None = None
    new_items: NewItems | None = None
    baseline: int | None = None
    calibrated: int | None = None

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return len(self.methods[0].matrices)

    @property
    def n_evaluation(self) -> float:
        """Mean number of items evaluated on."""
        return float(self.methods[0].matrices.sum(axis=(1, 2)).mean())

    @property
    def gold(self) -> NDArray[np.float64]:
        """Share of items of the evaluation sets that have each gold label: (3,) array."""
        return self.methods[0].gold

    @property
    def best_constant(self) -> tuple[int, float]:
        """The label (-1, 0, 1) that errs least as the answer to every item, and its MAE."""
        errors = self.gold @ ERRORS
        best = int(errors.argmin())
        return best - 1, float(errors[best])

    @property
    def predicted(self) -> dict[str, NDArray[np.float64]]:
        """Share of those items given each label, (3,), by aggregator."""
        return {method.name: method.predicted for method in self.methods}

    @property
    def test(self) -> SplitTest | GroupTest:
        """How differences were tested."""
        return self._tested.test

    @property
    def mae_pvalues(self) -> NDArray[np.float64]:
        """P-values of absolute errors on each split, (n_splits, m, m)."""
        return self._tested.mae

    @property
    def accuracy_pvalues(self) -> NDArray[np.float64]:
        """P-values of wrong labels on each split, (n_splits, m, m)."""
        return self._tested.accuracy

    @cached_property
    def mae_ranking(self) -> Ranking:
        """Methods ranked by mean absolute error."""
        losses = np.array([method.mean_mae for method in self.methods])
        return rank(losses, self.mae_pvalues, self.test)

    @cached_property
    def accuracy_ranking(self) -> Ranking:
        """Methods ranked by pairwise accuracy."""
        losses = np.array([-method.mean_accuracy for method in self.methods])
        return rank(losses, self.accuracy_pvalues, self.test)

    @property
    def _tested(self) -> Tested:
        if self.tested is None:
            raise InputError("differences were not tested: the protocol has no test")
        return self.tested


@readable
@dataclass(frozen=True, eq=False)
class Cell:
    """One comparison, with its key and settings.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that votes are grouped by.
    comparison : Comparison
    n_votes : int or None
        Votes per item that were used; None for all.
    n_labels : int or None
        Number of labels to calibrate on, in a sweep over it.
    value : str
        In an ablation, the value of its column, such as the prompt template.
    fitted : Davidson or None
        The first aggregator that is quick to fit and keeps a `Calibration`, as Davidson does,
        fitted to all labelled items, to describe the judge. The scores do not use it.
    n_asked : int or None
        Votes per item that were asked for, of which no item may have so many.
    n_unlabelled, n_without_votes, n_undecided, n_missing, n_short, n_empty : int
        Items left out because they have no label; labels left out because their item has no votes;
        items left out because a method has no decision of them; missing votes; items with fewer
        than `n_votes` votes, of which all are used; items with missing votes only, which are
        decided without votes.
    """

    key: Key
    comparison: Comparison
    n_votes: int | None = None
    n_labels: int | None = None
    value: str = ""
    fitted: Davidson | None = None
    n_asked: int | None = None
    n_unlabelled: int = 0
    n_without_votes: int = 0
    n_undecided: int = 0
    n_missing: int = 0
    n_short: int = 0
    n_empty: int = 0
