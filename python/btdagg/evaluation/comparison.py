"""Aggregators side by side on the same random splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg.aggregators import Aggregator, Davidson, MajorityVote
from btdagg.evaluation.fitting import quiet_fit
from btdagg.evaluation.intervals import Interval, mean_interval
from btdagg.evaluation.protocol import DEFAULT, Protocol
from btdagg.evaluation.ranking import Ranking, SplitTest, pvalues_over_splits, rank
from btdagg.evidence import Evidence
from btdagg.validation import as_groups, as_labels, as_whole_counts, same_length

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class MethodScores:
    """Scores of one aggregator on the evaluation set of each split.

    Attributes
    ----------
    name : str
        The aggregator.
    mae, accuracy : (n_splits,) arrays
        Mean absolute error and pairwise accuracy.
    tie_share : (n_splits,) array
        Share of items decided a tie.
    constant : (n_splits,) array of bool
        Whether every item got the same label.
    """

    name: str
    mae: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    tie_share: NDArray[np.float64]
    constant: NDArray[np.bool_]

    @property
    def mae_interval(self) -> Interval:
        """Mean MAE over splits with its 95% interval."""
        return mean_interval(self.mae)

    @property
    def accuracy_interval(self) -> Interval:
        """Mean pairwise accuracy over splits with its 95% interval."""
        return mean_interval(self.accuracy)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found.

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
    mae_pvalues, accuracy_pvalues : (n_splits, m, m) arrays
        P-values of every two methods on each split: of absolute errors, and of wrong labels.
    test : SplitTest
        How they were found and are combined.
    """

    methods: tuple[MethodScores, ...]
    n_items: int
    n_calibration: float
    gold_tie_share: float
    mae_pvalues: NDArray[np.float64]
    accuracy_pvalues: NDArray[np.float64]
    test: SplitTest

    @cached_property
    def mae_ranking(self) -> Ranking:
        """Methods ranked by mean absolute error."""
        losses = np.array([method.mae.mean() for method in self.methods])
        return rank(losses, self.mae_pvalues, self.test)

    @cached_property
    def accuracy_ranking(self) -> Ranking:
        """Methods ranked by pairwise accuracy."""
        losses = np.array([-method.accuracy.mean() for method in self.methods])
        return rank(losses, self.accuracy_pvalues, self.test)


def compare(
    counts: ArrayLike | Evidence,
    labels: ArrayLike,
    aggregators: Sequence[Aggregator] | None = None,
    *,
    groups: ArrayLike | None = None,
    protocol: Protocol = DEFAULT,
    progress: Callable[[], object] | None = None,
) -> Comparison:
    """Score aggregators on random splits: fit on the calibration set, decide the rest.

    Every two of them are tested against each other on each split.

    Parameters
    ----------
    counts : (n, 3) array of non-negative integers, or Evidence
        Votes per item in label order: minus, tie, plus; with what else aggregators ask for.
    labels : (n,) array of -1, 0, 1
        Gold labels.
    aggregators : sequence of Aggregator, optional
        Davidson and majority vote unless given.
    groups : (n,) array, optional
        What items share, such as their prompt. They are split together, and their errors change
        sign together.
    protocol : Protocol
        At least two splits.
    progress : callable, optional
        Called after each split.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range, all labels are the same, a set would have no
        items, or an aggregator asks for more than there is.

    References
    ----------
    The paper's experimental setup and its tables of MAE and pairwise accuracy.
    """
    evidence, gold = Evidence.of(counts), as_labels(labels)
    whole = as_whole_counts(evidence.counts)
    # Where there is no more than counts, aggregators are handed a plain array of them.
    rows = whole if evidence.is_plain else evidence
    same_length("labels", len(gold), "counts", len(rows))
    protocol.require_intervals()
    n_splits = protocol.splitter.n_splits
    methods = (Davidson(), MajorityVote()) if aggregators is None else tuple(aggregators)
    if not methods:
        raise InputError("aggregators is empty, want at least one")
    test = protocol.test or SplitTest()
    group = None if groups is None else as_groups(groups, "items", len(rows))
    tie_share = np.empty((len(methods), n_splits))
    constant = np.empty((len(methods), n_splits), dtype=np.bool_)
    sizes, losses, shared = [], [], []
    splits = protocol.splitter.draw(len(rows), groups)
    if (gold == gold[0]).all():
        raise InputError(f"all {len(gold)} labels are {gold[0]}, want at least two different ones")
    for number, (calibration, evaluation) in enumerate(splits):
        sizes.append(len(calibration))
        decided = np.stack(
            [decisions_on(method, rows, gold, calibration, evaluation) for method in methods]
        )
        tie_share[:, number] = (decided == 0).mean(axis=1)
        constant[:, number] = (decided == decided[:, :1]).all(axis=1)
        losses.append(np.abs(decided - gold[evaluation]))
        if group is not None:
            shared.append(group[evaluation])
        if progress is not None:
            progress()
    wrong = [errors > 0 for errors in losses]
    mae = np.stack([errors.mean(axis=1) for errors in losses], axis=1)
    accuracy = np.stack([(errors == 0).mean(axis=1) for errors in losses], axis=1)
    pvalues = [
        pvalues_over_splits(several, shared or None, test, protocol.splitter.seed)
        for several in (losses, wrong)
    ]
    return Comparison(
        tuple(
            MethodScores(
                method.name,
                mae=mae[place],
                accuracy=accuracy[place],
                tie_share=tie_share[place],
                constant=constant[place],
            )
            for place, method in enumerate(methods)
        ),
        n_items=len(rows),
        n_calibration=float(np.mean(sizes)),
        gold_tie_share=float(np.mean(gold == 0)),
        mae_pvalues=pvalues[0],
        accuracy_pvalues=pvalues[1],
        test=test,
    )


def decisions_on(
    method: Aggregator,
    rows: NDArray[Any] | Evidence,
    labels: NDArray[np.int8],
    calibration: NDArray[np.intp],
    evaluation: NDArray[np.intp],
) -> NDArray[np.int8]:
    """Fit to the items of one set and return the labels of those of another.

    Parameters
    ----------
    method : Aggregator
    rows : (n, 3) array or Evidence
        What all items are decided by.
    labels : (n,) array of -1, 0, 1
        Their gold labels.
    calibration, evaluation : arrays of indices
        The items of either set.

    Returns
    -------
    (len(evaluation),) array of int8

    Raises
    ------
    InputError
        If the aggregator asks for more than there is.
    """
    # What a reader needs of the warnings is in `constant`.
    return quiet_fit(method, rows[calibration], labels[calibration]).decide(rows[evaluation])
