"""Scores against the number of votes, and against the number of labels calibrated on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg.aggregators import aggregators_or_usual, decisions_of
from btdagg.evaluation.engine import cross_scores
from btdagg.evaluation.evaluating import budgets_of, evaluate
from btdagg.evaluation.intervals import Interval, mean_interval
from btdagg.evaluation.items import LabelledItems
from btdagg.evaluation.parts import Key, parts_of, require_columns
from btdagg.evaluation.protocol import DEFAULT, Protocol
from btdagg.validation import as_integer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.aggregators import Aggregator
    from btdagg.evaluation.scores import Comparison
    from btdagg.evidence import Evidence
    from btdagg.labels import Labels
    from btdagg.votes import VoteCounts, Votes


@dataclass(frozen=True, eq=False)
class Curve:
    """Scores of one aggregator at each of k points, split by split.

    Attributes
    ----------
    name : str
        The aggregator.
    mae, accuracy : (k, n_splits) arrays
        Mean absolute error and pairwise accuracy on the evaluation set.
    """

    name: str
    mae: NDArray[np.float64]
    accuracy: NDArray[np.float64]

    @property
    def mae_intervals(self) -> tuple[Interval, ...]:
        """Mean MAE over splits with its 95% interval, at each point."""
        return tuple(mean_interval(point) for point in self.mae)

    @property
    def accuracy_intervals(self) -> tuple[Interval, ...]:
        """Mean pairwise accuracy over splits with its 95% interval, at each point."""
        return tuple(mean_interval(point) for point in self.accuracy)


@dataclass(frozen=True, eq=False)
class Sweep:
    """One figure's worth of curves.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that were gone by.
    points : tuple of int
        Votes per item, or labels calibrated on, as asked for.
    curves : tuple of Curve
        One per aggregator, in the order given.
    n_items : int
        Labelled items.
    n_calibration, n_evaluation : (k,) arrays
        Mean number of items of either set at each point; groups that stay together make it vary.
    n_short : (k,) array of int64
        Items with fewer votes than asked for, which keep those they have.
    """

    key: Key
    points: tuple[int, ...]
    curves: tuple[Curve, ...]
    n_items: int
    n_calibration: NDArray[np.float64]
    n_evaluation: NDArray[np.float64]
    n_short: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sweeps:
    """What a sweep found.

    Attributes
    ----------
    by : tuple of str
        Columns that were gone by.
    sweeps : tuple of Sweep
        One per value of those columns.
    skipped : tuple of (key, reason)
        Values of those columns that could not be evaluated.
    """

    by: tuple[str, ...]
    sweeps: tuple[Sweep, ...]
    skipped: tuple[tuple[Key, str], ...]


def sweep_votes(
    votes: Votes,
    labels: Labels,
    n_votes: Sequence[int],
    *,
    by: Sequence[str] | None = None,
    aggregators: Sequence[Aggregator] | None = None,
    confidence: str | None = None,
    protocol: Protocol = DEFAULT,
    progress: Callable[[int], Callable[[], object]] | None = None,
) -> Sweeps:
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
    by, aggregators, confidence, protocol, progress
        See `evaluate`.

    Returns
    -------
    Sweeps
        Points are the numbers of votes.

    Raises
    ------
    InputError
        If `n_votes` is no sequence of positive integers, and where `evaluate` raises one.

    References
    ----------
    The paper's figure of aggregation methods against n.
    """
    budgets = budgets_of(_sequence(n_votes, "n_votes"))
    found = evaluate(
        votes,
        labels,
        by=by,
        n_votes=n_votes,
        aggregators=aggregators,
        confidence=confidence,
        protocol=protocol,
        progress=progress,
    )
    sweeps = []
    for key in dict.fromkeys(cell.key for cell in found.cells):
        cells = [cell for cell in found.cells if cell.key == key]
        if len(cells) < len(budgets):
            continue  # what failed on the way is among those skipped
        points = tuple(budget for budget in budgets if budget is not None)
        n_short = np.array([cell.n_short for cell in cells])
        sweeps.append(_sweep(key, points, [cell.comparison for cell in cells], n_short))
    return Sweeps(found.by, tuple(sweeps), found.skipped)


def sweep_calibration(
    votes: Votes | VoteCounts,
    labels: Labels,
    sizes: Sequence[int],
    *,
    n_votes: int | None = None,
    by: Sequence[str] | None = None,
    aggregators: Sequence[Aggregator] | None = None,
    confidence: str | None = None,
    protocol: Protocol = DEFAULT,
    progress: Callable[[int], Callable[[], object]] | None = None,
) -> Sweeps:
    """Score aggregators calibrated on more and more labels, on a fixed evaluation set.

    In each split the items that the largest size leaves are the evaluation set, for every size.
    A smaller calibration set is part of a larger one.

    Parameters
    ----------
    votes : Votes or VoteCounts
        Long votes, or wide counts of one judge.
    labels : Labels
        Gold labels; items that share a `group` are split together, so that a calibration set may
        have a few items more than asked for.
    sizes : sequence of int
        Labels to calibrate on. The paper has 20, 40, ..., 200.
    n_votes : int, optional
        Votes per item: the first so many of each. All unless given.
    by, aggregators, confidence, protocol, progress
        See `evaluate`. The share or size that is calibrated on is not looked at.

    Returns
    -------
    Sweeps
        Points are the sizes, in ascending order.

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
    sizes = _ascending(sizes)
    protocol.require_intervals()
    methods = aggregators_or_usual(aggregators)
    decided = decisions_of(methods)
    chosen, parts = parts_of(votes, labels, by)
    require_columns(votes, [budget], confidence, decided)
    step = (
        None if progress is None else progress(len(parts) * len(sizes) * protocol.splitter.n_splits)
    )
    sweeps, skipped = [], []
    for part in parts:
        try:
            items, aligned = part.labelled(budget, confidence, decided)
            sweep = calibration_curves(
                items.evidence,
                items.labels,
                sizes,
                methods,
                groups=items.groups,
                protocol=protocol,
                progress=step,
            )
            n_short = 0 if budget is None else int((aligned.counts.sum(axis=1) < budget).sum())
            sweeps.append(replace(sweep, key=part.key, n_short=np.full(len(sizes), n_short)))
        except InputError as error:
            if len(parts) == 1:
                raise
            skipped.append((part.key, str(error)))
    if not sweeps:
        key, reason = skipped[0]
        raise InputError(f"nothing could be evaluated; {' '.join(key)}: {reason}")
    return Sweeps(chosen, tuple(sweeps), tuple(skipped))


def calibration_curves(
    counts: ArrayLike | Evidence,
    labels: ArrayLike,
    sizes: Sequence[int],
    aggregators: Sequence[Aggregator] | None = None,
    *,
    groups: ArrayLike | None = None,
    protocol: Protocol = DEFAULT,
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
    items = LabelledItems(counts, labels, groups)
    points, methods = _ascending(sizes), aggregators_or_usual(aggregators)
    protocol.require_intervals()
    compared = [
        cross_scores([items], methods, Protocol(splitter, None), progress=progress)[0][0]
        for splitter in protocol.splitter.nested(points)
    ]
    return _sweep((), points, compared, np.zeros(len(points), dtype=np.int64))


def _sweep(
    key: Key, points: tuple[int, ...], compared: Sequence[Comparison], n_short: NDArray[np.int64]
) -> Sweep:
    """Put what was compared at each point in a row."""
    return Sweep(
        key,
        points,
        tuple(
            Curve(
                several[0].name,
                np.stack([method.mae for method in several]),
                np.stack([method.accuracy for method in several]),
            )
            for several in zip(*(one.methods for one in compared), strict=True)
        ),
        compared[0].n_items,
        np.array([one.n_calibration for one in compared]),
        np.array([one.n_evaluation for one in compared]),
        n_short,
    )


def _sequence(numbers: Sequence[int], name: str) -> Sequence[int]:
    if not isinstance(numbers, Iterable) or isinstance(numbers, str):
        raise InputError(f"{name} is {numbers!r}, want a sequence of numbers")
    if not len(numbers):
        raise InputError(f"{name} is empty, want at least one number")
    return numbers


def _ascending(sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({as_integer(size, "sizes", 1) for size in _sequence(sizes, "sizes")}))
