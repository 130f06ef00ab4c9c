"""Cells of an evaluation: methods on the same splits of the same items, by confusion matrices."""
# Nothing here knows how many labels there are: a matrix has a row and a column for each.

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from btdagg._util.display import Drawn
from btdagg._util.errors import InputError
from btdagg._util.readable import Readable, readable
from btdagg.evaluation.protocol import Loss, Score, absolute_error, combine_pvalues, signed_error
from btdagg.inference.intervals import mean_interval
from btdagg.inference.significance import benjamini_hochberg as benjamini_hochberg
from btdagg.inference.significance import holm as holm
from btdagg.inference.significance import rank_clusters, statistically_tied
from btdagg.result import Interval
from btdagg.votes.scale import PAIRS, PAIRWISE, POINTWISE, Mode, Scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation.new_items import NewItems
    from btdagg.evaluation.parts import Key
    from btdagg.evaluation.protocol import GroupTest, SplitTest
    from btdagg.methods import Calibrated


_SCORES: dict[Mode, tuple[Score, ...]] = {
    PAIRWISE: ("mae", "accuracy"),
    POINTWISE: ("mae", "accuracy", "kappa", "bias"),
}


@dataclass(frozen=True, eq=False)
class MethodScores(Readable):
    """Scores of one aggregator on the evaluation set of each split.

    Attributes
    ----------
    name : str
        The aggregator.
    matrices : (n_splits, labels, labels) array
        Items by gold label (rows) and predicted label (columns), in label order.
    of_new_items : mapping of str to Interval, optional
        Where cross-fitted, ``"mae"``, ``"accuracy"``, ``"kappa"`` and ``"bias"`` on new items.
    n_items : int, optional
        Items, where each was decided in several splits.
    loss : callable
        Loss of each label, whose mean is the MAE; see `Protocol`.
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
        return self._mean(self.losses)

    @cached_property
    def accuracy(self) -> NDArray[np.float64]:
        """Pairwise accuracy, (n_splits,)."""
        return self._mean(np.eye(len(self.labels)))

    @cached_property
    def bias(self) -> NDArray[np.float64]:
        """Mean of predicted less gold labels, (n_splits,)."""
        return self._mean(signed_error(*self._pairs))

    @cached_property
    def kappa(self) -> NDArray[np.float64]:
        """Quadratic-weighted kappa, (n_splits,); NaN where all labels of a split are alike.

        It is 0 where only those of one side are.
        """
        squares = signed_error(*self._pairs) ** 2
        gold, predicted = self.matrices.sum(axis=2), self.matrices.sum(axis=1)
        by_chance = predicted[:, None] * gold[:, :, None] / gold.sum(axis=1)[:, None, None]
        with np.errstate(invalid="ignore"):
            ratio = (self.matrices * squares).sum(axis=(1, 2)) / (by_chance * squares).sum((1, 2))
        is_alike = (np.count_nonzero([gold, predicted], axis=2) == 1).any(axis=0)
        return np.where(is_alike & ~np.isnan(ratio), 0.0, 1 - ratio)

    @property
    def losses(self) -> NDArray[Any]:
        """Loss by gold label (rows) and predicted label (columns)."""
        return self.loss(*self._pairs)

    def interval(self, score: Score = "mae") -> Interval:
        """Score with its 95% interval: for new items where cross-fitted, else over splits."""
        new = self.of_new_items
        return mean_interval(getattr(self, score)) if new is None else new[score]

    @property
    def counts(self) -> NDArray[np.float64]:
        """Items by gold and predicted label: mean over splits, or over repetitions."""
        n = self.matrices.sum(axis=(1, 2)).mean() if self.n_items is None else self.n_items
        return np.asarray(self.matrices.sum(axis=0) * n / self.matrices.sum())

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
        counts = self.matrices.sum(axis=axis)
        if self.of_new_items is not None:
            counts = counts.sum(axis=0, keepdims=True)
        return np.asarray((counts / counts.sum(axis=1, keepdims=True)).mean(axis=0))

    def _mean(self, values: NDArray[Any]) -> NDArray[np.float64]:
        total = (self.matrices * values).sum(axis=(1, 2))
        return np.asarray(total / self.matrices.sum(axis=(1, 2)))

    @property
    def _pairs(self) -> list[NDArray[Any]]:
        return list(np.meshgrid(np.array(self.labels), np.array(self.labels), indexing="ij"))


@readable
class Ranking(NamedTuple):
    """Methods by one score.

    Attributes
    ----------
    pvalues : (m, m) array
        P-values of every two methods, over all splits, corrected where the test says so.
    ranks : (m,) array of int64
        Cluster of each method, 1 the best; see `btdagg.rank_clusters`.
    tied : (m,) array of bool
        Whether the method cannot be told from the best; see `statistically_tied`.
    """

    pvalues: NDArray[np.float64]
    ranks: NDArray[np.int64]
    tied: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Cell(Drawn, Readable):
    """Aggregators on the same splits of the same items: of one key, at one number of votes.

    Attributes
    ----------
    methods : tuple of MethodScores
        In the order in which the aggregators were given.
    n_items : int
        Labelled items.
    n_calibration : float
        Mean number of items calibrated on; groups that stay together make it vary.
    key : tuple of str
        Values of the columns that votes are grouped by.
    n_votes, n_labels : int or None
        Votes per item that were used, None for all; labels to calibrate on, in a sweep over them.
    value : str
        In an ablation, the value of its column, such as the prompt template.
    fitted : Calibrated or None
        The method `calibrated`, fitted to all labelled items, to describe the judge.
    n_undecided, n_missing, n_empty : int
        Items that a method did not decide; missing votes; items with missing votes only, which are
        decided without votes.
    test : SplitTest, GroupTest or None
        How differences were tested, if they were.
    pvalues : dict of str to (n_splits, m, m) array
        P-values of each pair of m methods on each split, by ``"mae"`` and ``"accuracy"``.
    new_items : NewItems or None
        Losses by item, where the methods were cross-fitted.
    baseline, calibrated : int or None
        Places among the methods of the first plain vote, such as majority, and of the first that
        calibrates a model and is quick to fit.
    scale, label_scale : Scale
        Scales of the votes and of the labels.
    items : Items
        The labelled items, without the table that their votes are from.
    """

    methods: tuple[MethodScores, ...]
    n_items: int
    n_calibration: float
    key: Key = ()
    n_votes: int | None = None
    n_labels: int | None = None
    value: str = ""
    fitted: Calibrated | None = None
    n_undecided: int = 0
    n_missing: int = 0
    n_empty: int = 0
    test: SplitTest | GroupTest | None = None
    pvalues: Mapping[Score, NDArray[np.float64]] = field(default_factory=dict)
    new_items: NewItems | None = None
    baseline: int | None = None
    calibrated: int | None = None
    scale: Scale = PAIRS
    label_scale: Scale = PAIRS
    items: Any = field(default=None, repr=False)

    def difference(self, first: int, second: int, score: Score = "mae") -> Interval:
        """Score of a method less that of another, with its 95% interval, as each of them has."""
        if self.new_items is not None:
            return self.new_items.difference(first, second, score)
        of_first, of_second = (getattr(self.methods[place], score) for place in (first, second))
        return mean_interval(of_first - of_second)

    def among(self, names: Container[str]) -> Cell:
        """Return a cell of some of its methods, without tests."""
        methods = tuple(method for method in self.methods if method.name in names)
        return replace(self, methods=methods, test=None, new_items=None)

    @property
    def main(self) -> Cell:
        """The model that is written and the plain vote, of all methods."""
        places = {place for place in (self.calibrated, self.baseline) if place is not None}
        return self.among([self.methods[place].name for place in places or {0}])

    def less_constant(self, place: int) -> Interval:
        """MAE of a cross-fitted method less that of `best_constant`, with its 95% interval."""
        new_items, method = cast("NewItems", self.new_items), self.methods[place]
        value = self.label_scale.values[self.errors_of_constants.argmin()]
        loss = method.loss(self.items.label, np.full(self.n_items, value))[None].astype(float)
        of_method = new_items.losses["mae"]
        of_refits = np.full((1, of_method.of_refits.shape[1]), loss.mean())
        constant = of_method._replace(of_items=loss, of_refits=of_refits, written=loss)
        both = replace(new_items, losses={"mae": of_method}).joined(
            replace(new_items, losses={"mae": constant}), with_written=True
        )
        return both.difference(place, -1)

    @property
    def point(self) -> int | None:
        """Labels calibrated on, in a sweep over them, else votes per item."""
        return self.n_votes if self.n_labels is None else self.n_labels

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
    def errors_of_constants(self) -> NDArray[np.float64]:
        """MAE of each label as the answer to every item, in label order."""
        return np.asarray(self.gold @ self.methods[0].losses)

    @property
    def best_constant(self) -> tuple[str, float]:
        """The label that errs least as the answer to every item, by its name, and its MAE."""
        errors = self.errors_of_constants
        return self.label_scale.names[errors.argmin()], float(errors.min())

    @property
    def scores(self) -> tuple[Score, ...]:
        """Scores that tables have: of grades, kappa and bias too."""
        return _SCORES[self.scale.mode]

    @property
    def tested(self) -> SplitTest | GroupTest:
        """How differences were tested; an `InputError` if they were not."""
        if self.test is None:
            raise InputError("differences were not tested: the protocol has no test")
        return self.test

    @cached_property
    def rankings(self) -> dict[Score, Ranking]:
        """Methods ranked by mean absolute error and by accuracy."""
        test, rankings = self.tested, {}
        for score, of_splits in self.pvalues.items():
            means = [method.interval(score).mean for method in self.methods]
            losses = means if score == "mae" else [-mean for mean in means]
            pvalues = combine_pvalues(of_splits, rule=test.rule)
            if test.correction == "holm":
                pvalues = holm(pvalues)
            ranks = rank_clusters(losses, pvalues, test.tau)
            tied = statistically_tied(losses, pvalues, test.tau)
            rankings[score] = Ranking(pvalues, ranks, tied)
        return rankings

    @property
    def best(self) -> MethodScores:
        """The method with the least mean absolute error, the first of several."""
        return min(self.methods, key=lambda method: method.interval().mean)

    def sentence(self) -> str:
        """Return which methods have the least error, and what calibration is worth."""
        errors = np.array([method.interval().mean for method in self.methods])
        order, n = errors.argsort(kind="stable"), len(errors)
        is_first = np.zeros(n, bool) if self.test is None else self.rankings["mae"].tied.copy()
        is_first[order[0]] = True
        first = [f"{self.methods[k].name} (MAE {errors[k]:.3f})" for k in order if is_first[k]]
        if len(first) == 1:
            text = f"{first[0]}" + (f" has the lowest error of {n} methods" if n > 1 else "")
        elif (self.rankings["mae"].pvalues[np.ix_(is_first, is_first)] < self.tested.tau).any():
            text = f"{first[0]} has the lowest error of {n} methods, but not significantly lower "
            text += f"than {', '.join(first[1:])}"
        else:
            which = f"the {n} methods" if len(first) == n else f"the best of {n} methods"
            text = f"{which} do not differ significantly: {'; '.join(first)}"
        plain, calibrated = self.baseline, self.calibrated
        if plain is None or calibrated is None or plain == calibrated:
            return text
        more, level = self.difference(plain, calibrated), "95% interval over these splits"
        if self.new_items is not None:
            confidence = self._level(plain, calibrated)
            more = self.new_items.difference(plain, calibrated, level=confidence)
            level = f"{100 * confidence:.4g}% interval"
        return (
            f"{text}. MAE of {self.methods[plain].name} minus that of "
            f"{self.methods[calibrated].name}: "
            f"{more.mean:z.3f} ({level} {more.low:z.3f} to {more.high:z.3f})"
        )

    def _level(self, first: int, second: int) -> float:
        """Level at which the interval of a difference excludes 0 where the test is significant."""
        if self.test is None:
            return 0.95
        alone = combine_pvalues(self.pvalues["mae"], rule=self.test.rule)[first, second]
        corrected = self.rankings["mae"].pvalues[first, second]
        return float(1 - self.test.tau * alone / corrected)

    @cached_property
    def lines(self) -> tuple[dict[str, Any], ...]:
        """Values in tables for each method, by name: numbers, and scores as `Interval`.

        Clusters by MAE (``rank``) and by accuracy (``accuracy_rank``), 1 the best, and whether the
        MAE cannot be told from the best (``tied``), if tested; the MAE less that of the baseline
        (``mae_less_majority``), if cross-fitted.
        """
        lines = []
        for place, method in enumerate(self.methods):
            line: dict[str, Any] = {"key": self.key, "n_votes": self.n_votes}
            if self.n_labels is not None:
                line["n_labels"] = self.n_labels
            line |= {"n_items": self.n_items, "method": method.name}
            line |= {score: method.interval(score) for score in self.scores}
            if self.test is not None:
                mae, accuracy = self.rankings["mae"], self.rankings["accuracy"]
                line |= {"rank": int(mae.ranks[place]), "tied": bool(mae.tied[place])}
                line["accuracy_rank"] = int(accuracy.ranks[place])
            if self.new_items is not None and self.baseline not in (None, place):
                line["mae_less_majority"] = self.difference(place, self.baseline)
            for name in ("n_calibration", "n_evaluation", "n_splits"):
                line[name] = getattr(self, name)
            lines.append(line)
        return tuple(lines)
