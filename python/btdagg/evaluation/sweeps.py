"""Scores against the number of votes, and against the number of labels calibrated on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from btdagg._util.validation import as_integer
from btdagg.evaluation.cells import Cell
from btdagg.evaluation.comparison import Options, Point, distinct, evaluate_at
from btdagg.evaluation.curves import Sweep
from btdagg.evaluation.engine import cross_scores
from btdagg.evaluation.items import LabelledItems
from btdagg.evaluation.protocol import CROSS_FITTED, SPLITS, Protocol
from btdagg.methods import Aggregator
from btdagg.methods.registry import aggregators_or_usual

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from btdagg.evaluation.scores import Scores
    from btdagg.votes import Labels, Votes
    from btdagg.votes.evidence import Evidence


def sweep_votes(
    votes: Votes, labels: Labels, n_votes: Sequence[int], **options: Unpack[Options]
) -> Scores:
    """Score aggregators at several numbers of votes per item, on the same items and splits.

    Parameters
    ----------
    votes : Votes
        Long votes. With a column `order` the votes are taken from either order in turn, so that an
        even number is half of each; see `Votes.counts`.
    labels : Labels
        Gold labels; items that share a `group` are split together.
    n_votes : sequence of int
        Votes per item: the first so many of each. The paper has up to 20.
    **options
        `by`, `aggregators`, `confidence`, `protocol`, `progress` and `neighbours`; see `evaluate`.
        Nothing is tested.

    Returns
    -------
    Scores
        Its `sweeps` are over the numbers of votes.

    Raises
    ------
    InputError
        If `n_votes` is no sequence of positive integers, and where `evaluate` raises one.

    References
    ----------
    The paper's figure of aggregation methods against n.
    """
    protocol = options.get("protocol", CROSS_FITTED).untested
    numbers = distinct(n_votes, "n_votes")
    return evaluate_at([Point(n, None, protocol) for n in numbers], votes, labels, options)


def sweep_calibration(
    votes: Votes,
    labels: Labels,
    sizes: Sequence[int],
    *,
    n_votes: int | None = None,
    **options: Unpack[Options],
) -> Scores:
    """Score aggregators calibrated on more and more labels, on a fixed evaluation set.

    In each split the items that the largest size leaves are the evaluation set, for every size.
    A smaller calibration set is part of a larger one.

    Parameters
    ----------
    votes : Votes
        Long votes, or wide counts of one judge.
    labels : Labels
        Gold labels; items that share a `group` are split together, so that a calibration set may
        have a few items more than asked for.
    sizes : sequence of int
        Labels to calibrate on. The paper has 20, 40, ..., 200.
    n_votes : int, optional
        Votes per item: the first so many of each. All unless given.
    **options
        `by`, `aggregators`, `confidence`, `protocol`, `progress` and `neighbours`; see `evaluate`.
        The share or size that the protocol calibrates on is not looked at, and nothing is tested.

    Returns
    -------
    Scores
        Its `sweeps` are over the sizes, in ascending order.

    Raises
    ------
    InputError
        If a size is not positive or leaves nothing to evaluate, a column is not there, an argument
        is out of range, or nothing could be evaluated; the message says why.

    References
    ----------
    The paper's figures of MAE against the size of the calibration set.
    """
    budget = None if n_votes is None else as_integer(n_votes, "n_votes", 1)
    points = _nested(sizes, options.get("protocol", SPLITS), budget)
    return evaluate_at(points, votes, labels, options)


def calibration_curves(
    counts: ArrayLike | Evidence,
    labels: ArrayLike,
    sizes: Sequence[int],
    aggregators: Sequence[Aggregator] | None = None,
    *,
    groups: ArrayLike | None = None,
    protocol: Protocol = SPLITS,
    progress: Callable[[], object] | None = None,
) -> Sweep:
    """Score aggregators as `sweep_calibration` does, on arrays.

    Parameters
    ----------
    counts : (n, 3) array of non-negative integers, or Evidence
        Votes per item in label order: minus, tie, plus; with what else aggregators ask for.
    labels : (n,) array of -1, 0, 1
        Gold labels.
    sizes, aggregators
        See `sweep_calibration`.
    groups, protocol
        See `compare`. The share or size that is calibrated on is not looked at.
    progress : callable, optional
        Called after each split of each size.

    Returns
    -------
    Sweep

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range, or nothing would be left to evaluate.
    """
    items, methods = LabelledItems(counts, labels, groups), aggregators_or_usual(aggregators)
    protocol.require_intervals()
    cells = []
    for _, size, nested in _nested(sizes, protocol):
        ((found,),) = cross_scores([items], methods, nested, progress=progress)
        cells.append(Cell((), found, n_labels=size))
    return Sweep((), tuple(cells))


def _nested(sizes: Sequence[int], protocol: Protocol, n_votes: int | None = None) -> list[Point]:
    """Return a point for each size, in ascending order, whose evaluation sets are the same."""
    ascending = sorted(distinct(sizes, "sizes"))
    return [
        Point(n_votes, size, Protocol(splitter, None))
        for size, splitter in zip(ascending, protocol.splitter.nested(ascending), strict=True)
    ]
