"""Aggregators side by side on the same splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from btdagg.aggregators import Aggregator, aggregators_or_usual
from btdagg.evaluation.engine import cross_scores
from btdagg.evaluation.items import LabelledItems
from btdagg.evaluation.protocol import DEFAULT, FEW_SPLITS, Protocol
from btdagg.evidence import Evidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from btdagg.evaluation.scores import Comparison


def compare(
    counts: ArrayLike | Evidence,
    labels: ArrayLike,
    aggregators: Sequence[Aggregator] | None = None,
    *,
    groups: ArrayLike | None = None,
    protocol: Protocol = DEFAULT,
    progress: Callable[[], object] | None = None,
) -> Comparison:
    """Score aggregators on splits of labelled items: fit on the calibration set, decide the rest.

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
    items = LabelledItems(counts, labels, groups)
    protocol.require_intervals()
    protocol.splitter.draw(len(items), groups)  # what is wrong of the splits comes first
    items.require_two_labels()
    methods = aggregators_or_usual(aggregators)
    ((found,),) = cross_scores([items], methods, protocol, progress=progress)
    return found


def label_distributions(
    items: LabelledItems,
    aggregators: Sequence[Aggregator] | None = None,
    *,
    protocol: Protocol = FEW_SPLITS,
    progress: Callable[[], object] | None = None,
) -> Comparison:
    """Count gold against predicted labels on the evaluation sets.

    Parameters
    ----------
    items : LabelledItems
        Votes and labels of n items.
    aggregators : sequence of Aggregator, optional
        Davidson and majority vote unless given.
    protocol : Protocol
        The paper's 20 splits unless given. Nothing is tested.
    progress : callable, optional
        Called after each split.

    Returns
    -------
    Comparison
        Its methods have the confusion matrices.

    Raises
    ------
    InputError
        If a set would have no items, or an aggregator asks for more than there is.

    References
    ----------
    The paper's appendix on confusion matrices.
    """
    methods = aggregators_or_usual(aggregators)
    ((found,),) = cross_scores([items], methods, protocol.untested, progress=progress)
    return found
