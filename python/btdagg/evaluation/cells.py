"""Cells of an evaluation: confusion matrices of methods, compared with one another.

Nothing here knows how many labels there are: a matrix has a row and a column for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Drawn
from btdagg._util.readable import readable
from btdagg.evaluation.metrics import Interval, mean_interval
from btdagg.evaluation.protocol import Loss, Score, absolute_error, signed_error
from btdagg.evaluation.significance import (
    combine_pvalues,
    holm,
    rank_clusters,
    statistically_tied,
)
from btdagg.votes.scale import PAIRS, Scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation.new_items import NewItems
    from btdagg.evaluation.parts import Key
    from btdagg.evaluation.protocol import GroupTest, SplitTest
    from btdagg.methods import Davidson
    from btdagg.methods.grades import CalibratedGrades


@readable
@dataclass(frozen=True, eq=False)
class MethodScores:
    """Scores of one aggregator on the evaluation set of each split.

    Attributes
    ----------
    name : str
        The aggregator.
    matrices : (n_splits, labels, labels) array
        Items by gold label (rows) and predicted label (columns), in label order.
    of_new_items : mapping of str to Interval, optional
        Scores on new items, ``"mae"``, ``"accuracy"``, ``"kappa"`` and ``"bias"``, where the method
        was cross-fitted.
    n_items : int, optional
        Items, where each was decided in several splits.
    loss : callable
        Whose mean is the MAE; see `Protocol`.
    labels : tuple of numbers
    """

    name: str
    matrices: NDArray[np.int64]
    of_new_items: Mapping[Score, Interval] | None = None
    n_items: int | None = None
    loss: Loss = absolute_error
    labels: tuple[float, ...] = (-1, 0, 1)

    @cached_property
    def mae(self) -> NDArray[np.float64]:
        """Mean absolute error, (n_splits,)."""
        return np.asarray((self.matrices * self.losses).sum(axis=(1, 2)) / self._n_items)

    @cached_property
    def accuracy(self) -> NDArray[np.float64]:
        """Pairwise accuracy, (n_splits,)."""
        return np.asarray(np.trace(self.matrices, axis1=1, axis2=2) / self._n_items)

    @cached_property
    def bias(self) -> NDArray[np.float64]:
        """Mean of predicted less gold labels, (n_splits,)."""
        away = signed_error(*self._pairs)
        return np.asarray((self.matrices * away).sum(axis=(1, 2)) / self._n_items)

    @cached_property
    def kappa(self) -> NDArray[np.float64]:
        """Quadratic-weighted kappa, (n_splits,); NaN where all labels of a split are alike.

        It is 0 where only those of one side are.
        """
        squares = signed_error(*self._pairs) ** 2
        shares = self.matrices / self._n_items[:, None, None]
        by_chance = shares.sum(axis=2)[:, :, None] * shares.sum(axis=1)[:, None]
        with np.errstate(invalid="ignore"):
            ratio = (shares * squares).sum(axis=(1, 2)) / (by_chance * squares).sum(axis=(1, 2))
        margins = np.stack([self.matrices.sum(axis=1), self.matrices.sum(axis=2)])
        is_alike = (np.count_nonzero(margins, axis=2) == 1).any(axis=0)
        return np.where(is_alike & ~np.isnan(ratio), 0.0, 1 - ratio)

    @property
    def losses(self) -> NDArray[Any]:
        """Loss by gold label (rows) and predicted label (columns)."""
        return self.loss(*self._pairs)

    @property
    def _pairs(self) -> list[NDArray[Any]]:
        return list(np.meshgrid(np.array(self.labels), np.array(self.labels), indexing="ij"))

    def interval(self, score: Score) -> Interval:
        """Score with its 95% interval: for new items where cross-fitted, else over splits."""
        return (
            self.of_new_items[score] if self.of_new_items else mean_interval(getattr(self, score))
        )

    @property
    def mae_interval(self) -> Interval:
        """MAE with its 95% interval; see `interval`."""
        return self.interval("mae")

    @property
    def accuracy_interval(self) -> Interval:
        """Accuracy with its 95% interval; see `interval`."""
        return self.interval("accuracy")

    @property
    def counts(self) -> NDArray[np.float64]:
        """Items by gold and predicted label: mean over splits, or over repetitions."""
        if self.n_items is not None:
            return np.asarray(self.matrices.sum(axis=0) * self.n_items / self.matrices.sum())
        return np.asarray(self.matrices.mean(axis=0))

    @property
    def percentages(self) -> NDArray[np.float64]:
        """`counts` in percent of their row; NaN where no item has the gold label."""
        total = self.counts.sum(axis=1, keepdims=True)
        return np.asarray(100 * self.counts / np.where(total > 0, total, np.nan))

    @property
    def predicted(self) -> NDArray[np.float64]:
        """Share of items given each label, mean over splits, in label order."""
        return self._shares(axis=1)

    @property
    def gold(self) -> NDArray[np.float64]:
        """Share of items that have each gold label, mean over splits, in label order."""
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
@dataclass(frozen=True, eq=False)
class Ranking:
    """Methods by one score.

    Attributes
    ----------
    pvalues : (m, m) array
        Of every two methods, over all splits, corrected where the test says so.
    ranks : (m,) array of int64
        Cluster of each method, 1 the best; see `btdagg.rank_clusters`.
    tied : (m,) array of bool
        Whether the method cannot be told from the best; see `btdagg.evaluation.statistically_tied`.
    """

    pvalues: NDArray[np.float64]
    ranks: NDArray[np.int64]
    tied: NDArray[np.bool_]


@readable
@dataclass(frozen=True, eq=False)
class MethodComparison(Drawn):
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
    tested : SplitTest, GroupTest or None
        How differences were tested, if they were.
    pvalues : dict of str to (n_splits, m, m) array
        P-values of each pair of m methods on each split, by the losses behind ``"mae"`` and
        ``"accuracy"``.
    new_items : NewItems or None
        Losses by item, where the methods were cross-fitted.
    baseline : int or None
        Place of majority vote among the methods, or of the mode of grades, if it is one of them.
    calibrated : int or None
        Place of the first method that calibrates a model and is quick to fit: the model that
        `Cell.fitted` has. The methods after it are there to be compared with.
    scale, label_scale : Scale
        Of the votes and of the labels.
    """

    methods: tuple[MethodScores, ...]
    n_items: int
    n_calibration: float
    gold_tie_share: float
    tested: SplitTest | GroupTest | None = None
    pvalues: Mapping[Score, NDArray[np.float64]] = field(default_factory=dict)
    new_items: NewItems | None = None
    baseline: int | None = None
    calibrated: int | None = None
    scale: Scale = PAIRS
    label_scale: Scale = PAIRS

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels, in label order."""
        return self.label_scale.names

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
        """Share of items of the evaluation sets that have each gold label."""
        return self.methods[0].gold

    @property
    def best_constant(self) -> tuple[int, float]:
        """The label that errs least as the answer to every item, by its place, and its MAE."""
        errors = self.gold @ self.methods[0].losses
        best = int(errors.argmin())
        return best, float(errors[best])

    @property
    def predicted(self) -> dict[str, NDArray[np.float64]]:
        """Share of those items given each label, by aggregator."""
        return {method.name: method.predicted for method in self.methods}

    @cached_property
    def mae_ranking(self) -> Ranking:
        """Methods ranked by mean absolute error."""
        losses = [method.mae_interval.mean for method in self.methods]
        return self._ranking("mae", losses)

    @cached_property
    def accuracy_ranking(self) -> Ranking:
        """Methods ranked by pairwise accuracy."""
        losses = [-method.accuracy_interval.mean for method in self.methods]
        return self._ranking("accuracy", losses)

    @property
    def test(self) -> SplitTest | GroupTest:
        """How differences were tested."""
        if self.tested is None:
            raise InputError("differences were not tested: the protocol has no test")
        return self.tested

    def _ranking(self, score: Score, losses: list[float]) -> Ranking:
        """Rank methods by their mean losses, of which lower ones are better."""
        test = self.test
        combined = combine_pvalues(self.pvalues[score], rule=test.rule)
        if test.correction == "holm":
            combined = holm(combined)
        ranks = rank_clusters(losses, combined, test.tau)
        return Ranking(combined, ranks, statistically_tied(losses, combined, test.tau))


@readable
@dataclass(frozen=True, eq=False)
class Cell:
    """One comparison, with its key and settings.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that votes are grouped by.
    comparison : MethodComparison
    n_votes : int or None
        Votes per item that were used; None for all.
    n_labels : int or None
        Number of labels to calibrate on, in a sweep over it.
    value : str
        In an ablation, the value of its column, such as the prompt template.
    fitted : Davidson, CalibratedGrades or None
        The first aggregator that is quick to fit and keeps a `Calibration`, fitted to all labelled
        items, to describe the judge. The scores do not use it.
    n_asked : int or None
        Votes per item that were asked for; items may have fewer.
    n_undecided, n_missing, n_empty : int
        Items of which a method has no decision; missing votes; items with missing votes only,
        which are decided without votes.
    """

    key: Key
    comparison: MethodComparison
    n_votes: int | None = None
    n_labels: int | None = None
    value: str = ""
    fitted: Davidson | CalibratedGrades | None = None
    n_asked: int | None = None
    n_undecided: int = 0
    n_missing: int = 0
    n_empty: int = 0


@readable
@dataclass(frozen=True, eq=False)
class Sweep:
    """Cells of one key, over the number of votes or of labels.

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
        points = (cell.n_votes if cell.n_labels is None else cell.n_labels for cell in self.cells)
        return tuple(point for point in points if point is not None)

    @property
    def curves(self) -> tuple[tuple[MethodScores, ...], ...]:
        """Scores of each aggregator at all points, in the order given."""
        return tuple(zip(*(cell.comparison.methods for cell in self.cells), strict=True))
