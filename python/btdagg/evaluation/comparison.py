"""Compare aggregators on the same splits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict, cast

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.evaluation.cells import Cell
from btdagg.evaluation.engine import cross_scores, quiet_fit, with_neighbours
from btdagg.evaluation.items import LabelledItems
from btdagg.evaluation.parts import Part, neighbourhood, parts_of, require_columns
from btdagg.evaluation.protocol import CROSS_FITTED, FEW_SPLITS, Protocol
from btdagg.evaluation.scores import Scores
from btdagg.methods import Aggregator, Davidson
from btdagg.methods.base import decisions_of, is_written, needs_of
from btdagg.methods.registry import aggregators_or_usual
from btdagg.votes import Labels, Table, Votes
from btdagg.votes.evidence import Evidence
from btdagg.votes.join import labels_of, with_task
from btdagg.votes.table import text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from btdagg.evaluation.cells import Comparison
    from btdagg.evaluation.neighbours import Neighbourhood
    from btdagg.evaluation.parts import Key

Start: TypeAlias = Callable[[int], Callable[[], object]]
"""Called once with the number of splits to come; what it returns is called after each."""


class Options(TypedDict, total=False):
    """What all evaluations of votes and labels take; see `evaluate`."""

    by: Sequence[str] | None
    aggregators: Sequence[Aggregator] | None
    confidence: str | None
    protocol: Protocol
    progress: Start | None
    neighbours: Votes | None


class Point(NamedTuple):
    """One number of votes, or of labels calibrated on, at which every part is evaluated."""

    n_votes: int | None
    n_labels: int | None
    protocol: Protocol


def compare(
    counts: ArrayLike | Evidence,
    labels: ArrayLike,
    aggregators: Sequence[Aggregator] | None = None,
    *,
    groups: ArrayLike | None = None,
    protocol: Protocol = CROSS_FITTED,
    progress: Callable[[], object] | None = None,
) -> Comparison:
    """Score aggregators on labelled items: fit to some of them, decide the others.

    Every pair of aggregators is tested for a difference, as the protocol says.

    Parameters
    ----------
    counts : (n, 3) array of non-negative integers, or Evidence
        Votes per item in label order: minus, tie, plus; with what else aggregators ask for.
    labels : (n,) array of -1, 0, 1
        Gold labels.
    aggregators : sequence of Aggregator, optional
        Davidson and majority vote unless given.
    groups : (n,) array, optional
        What items share, such as their prompt. They are split together, and tested together.
    protocol : Protocol
        Cross-fitting unless given; at least two splits.
    progress : callable, optional
        Called after each split.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range, all labels are the same, a set would have no
        items, or an aggregator needs something that is missing.

    References
    ----------
    `NewItems` for cross-fitting; the paper's experimental setup for random splits.
    """
    items = LabelledItems(counts, labels, groups)
    protocol.require_intervals()
    protocol.splitter.draw(len(items), groups)  # errors of the splits come first
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
    """Count predicted labels by gold label on the evaluation sets.

    Parameters
    ----------
    items : LabelledItems
        Votes and labels of n items.
    aggregators : sequence of Aggregator, optional
        Davidson and majority vote unless given.
    protocol : Protocol
        By default the paper's 20 splits. Nothing is tested.
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


def evaluate(
    votes: Votes,
    labels: Labels,
    *,
    by: Sequence[str] | None = None,
    n_votes: Sequence[int] | None = None,
    aggregators: Sequence[Aggregator] | None = None,
    confidence: str | None = None,
    protocol: Protocol = CROSS_FITTED,
    progress: Start | None = None,
    neighbours: Votes | None = None,
    partial: Callable[[Scores], object] | None = None,
) -> Scores:
    """Compare aggregators on tables of votes and labels.

    Parameters
    ----------
    votes : Votes
        Long votes, or wide counts of one judge.
    labels : Labels
        Gold labels. Items of one `group` are split together. If only the labels have a column
        `task`, each item gets its task from there.
    by : sequence of str, optional
        Columns that votes are grouped by: each of their values is evaluated separately. By default
        task and judge, if these columns exist.
    n_votes : sequence of int, optional
        Numbers of votes per item to compare at; the first votes of each item are used. By default
        all votes.
    aggregators : sequence of Aggregator, optional
        See `compare`. The decisions of a `Decided` are read from its column, or with `n_votes` from
        its column for that number; see `Votes.evidence`.
    confidence : str, optional
        Column with the confidences of votes; by default `confidence`, if it exists.
    protocol : Protocol
        At least two splits.
    progress : callable, optional
        Called once with the number of splits to come; what it returns is called after each.
    neighbours : Votes, optional
        Votes of which the tasks and judges that `votes` does not have are neighbours too, for
        aggregators with such a prior. They are not scored.
    partial : callable, optional
        Called with the scores so far after each part but the last, so that an interrupted run can
        keep them.

    Returns
    -------
    Scores

    Raises
    ------
    InputError
        If a column is missing, `n_votes` is given for counts, an argument is out of range, or
        nothing could be evaluated; the message says why.
    """
    points = [Point(number, None, protocol) for number in numbers_of_votes(n_votes)]
    options = Options(
        by=by,
        aggregators=aggregators,
        confidence=confidence,
        progress=progress,
        neighbours=neighbours,
    )
    return evaluate_at(points, votes, labels, options, partial)


def evaluate_at(
    points: Sequence[Point],
    votes: Votes,
    labels: Labels,
    options: Options,
    partial: Callable[[Scores], object] | None = None,
    regrouped: Callable[[Sequence[Part]], Sequence[Part]] | None = None,
) -> Scores:
    """Compare aggregators at several points; the options' own protocol is not looked at.

    `regrouped` makes other parts of those of the votes, such as those of a panel.
    """
    # Checked here, so that a bad argument is not reported as a fault of the data.
    points[0].protocol.require_intervals()
    methods = aggregators_or_usual(options.get("aggregators"))
    if not isinstance(votes, Votes):
        raise InputError(f"votes is a {type(votes).__name__}, expected what read_votes returns")
    if not len(labels.ids):
        raise InputError(f"{labels.source}: no item has a label")
    votes = with_task(votes, labels)
    all_labels, labels = labels, labels_of(labels, votes)
    columns, several = parts_of(votes, labels, options.get("by"))
    parts = several if regrouped is None else regrouped(several)
    around: list[Part] = []
    if any(needs_of(method).neighbours for method in methods):
        around = [*parts, *_beside(parts, columns, options.get("neighbours"), all_labels)]
    told = *_unmatched(votes, labels), _sharing(votes, labels)
    confidence = options.get("confidence")
    n_votes = [point.n_votes for point in points]
    require_columns(votes, n_votes, confidence, decisions_of(methods))
    start = options.get("progress")
    n_steps = len(parts) * sum(point.protocol.splitter.n_splits for point in points)
    step = None if start is None else start(n_steps)

    cells: list[Cell] = []
    skipped: list[tuple[Key, str]] = []
    for number, part in enumerate(parts, 1):
        try:
            cells += _cells_of(part, points, methods, confidence, step, around)
        except InputError as error:
            if len(parts) == 1:
                raise
            # None of its points is shown then: averages are over the same parts for all.
            skipped.append((part.key, str(error)))
        if partial is not None and cells and number < len(parts):
            partial(Scores(columns, tuple(cells), tuple(skipped), *told, about_data=labels.remarks))
    if not cells:
        key, reason = skipped[0]
        raise InputError(f"nothing could be evaluated; {' '.join(key)}: {reason}")
    return Scores(columns, tuple(cells), tuple(skipped), *told, about_data=labels.remarks)


def _beside(
    parts: Sequence[Part], columns: Key, neighbours: Votes | None, labels: Labels
) -> list[Part]:
    """Return the parts of `neighbours` that are not among those scored."""
    if neighbours is None:
        return []
    scored = {part.key for part in parts}
    return [one for one in parts_of(neighbours, labels, columns)[1] if one.key not in scored]


def _cells_of(
    part: Part,
    points: Sequence[Point],
    methods: Sequence[Aggregator],
    confidence: str | None,
    step: Callable[[], object] | None,
    parts: Sequence[Part],
) -> list[Cell]:
    """Compare aggregators on one part, at every point; the others of `parts` are its neighbours."""
    cells: list[Cell] = []
    for n_votes, several in groupby(points, lambda point: point.n_votes):
        try:
            everything, aligned = part.labelled(n_votes, confidence, decisions_of(methods))
            kept = everything.with_decisions(
                needs_of(one).decisions or "" for one in methods if needs_of(one).some_decisions
            )
            items = everything if kept.all() or not kept.any() else everything.among(kept)
            if points[0].n_labels is None:  # a sweep over labels tells no methods apart
                part.require_comparable(items)
            n_found = items.evidence.counts.sum(axis=1)
            around = [neighbourhood(part, parts, n_votes, kept)] if parts else None
            fitted = _calibrated(methods, items, around[0] if around else None)
            used = None if n_votes is None else min(n_votes, _most_votes(items))
            if used in {cell.n_votes for cell in cells}:
                continue  # as many were used at a smaller number, where items have no more
            for point in several:
                ((found,),) = cross_scores(
                    [items],
                    methods,
                    point.protocol,
                    progress=step,
                    neighbourhoods=around,
                )
                cell = Cell(
                    part.key,
                    found,
                    used,
                    point.n_labels,
                    n_asked=n_votes,
                    fitted=fitted,
                    n_unlabelled=aligned.n_unlabelled,
                    n_without_votes=aligned.n_without_votes,
                    n_undecided=len(everything) - len(items),
                    n_missing=part.votes.n_missing,
                    n_short=int((n_found < (n_votes or 0)).sum()),
                    n_empty=int((n_found == 0).sum()),
                )
                cells.append(cell)
        except InputError as error:
            if not cells:
                raise
            raise InputError(f"at {n_votes} votes: {error}") from None
    return cells


def numbers_of_votes(n_votes: Sequence[int] | None) -> list[int | None]:
    """Return distinct numbers of votes to evaluate at, in the order given; None alone for all.

    Raises
    ------
    InputError
        If it is no sequence, is empty, or holds anything else.
    """
    return [None] if n_votes is None else list(distinct(n_votes, "n_votes"))


def distinct(numbers: Sequence[int], name: str) -> list[int]:
    """Return the different numbers of a sequence of positive ones.

    Raises
    ------
    InputError
        If it is no sequence, is empty, or holds anything else.
    """
    if not isinstance(numbers, Iterable) or isinstance(numbers, str):
        raise InputError(f"{name} is {numbers!r}, expected a sequence of numbers")
    if not len(numbers):
        raise InputError(f"{name} is empty, expected at least one number")
    return list(dict.fromkeys(as_integer(number, name, 1) for number in numbers))


def _calibrated(
    methods: Sequence[Aggregator], items: LabelledItems, around: Neighbourhood | None
) -> Davidson | None:
    """Fit to all items the first method that is quick to fit and keeps its calibration."""
    nothing = np.arange(0)
    for method in with_neighbours(methods, around.prior(nothing) if around else None):
        if is_written(method):
            return cast("Davidson", quiet_fit(method, items.evidence.counts, items.labels))
    return None


def _most_votes(items: LabelledItems) -> int:
    """Most votes of an item; of a panel, of one of its judges."""
    by_judge = items.evidence.by_judge.values()
    several = by_judge or [items.evidence.counts]
    return max(int(counts.sum(axis=1).max()) for counts in several)


def _sharing(votes: Table, labels: Labels) -> int:
    """Number of labelled items that share a prompt with another, and have no group that says so."""
    import polars as pl

    if "group" in labels.columns:
        return 0
    known = labels if "prompt" in labels.columns else votes
    if "prompt" not in known.columns:
        return 0
    key = [column for column in ("task", "item") if column in known.columns]
    prompts = known.frame.select(*key, "prompt").drop_nulls("prompt").unique()
    if known is not labels:
        ids = labels.frame.select(pl.col("item").cast(pl.String)).unique()
        prompts = prompts.with_columns(pl.col("item").cast(pl.String)).join(ids, on="item")
    shared = prompts.filter(pl.len().over([*key[:-1], "prompt"]) > 1)
    return shared["item"].n_unique()


def _unmatched(votes: Table, labels: Labels) -> tuple[int, int]:
    """Number of items without a label, and of labels whose item has no votes."""
    import polars as pl

    # Where the votes got their task from the labels, an unlabelled item has none: it counts too.
    key = ["item"]
    if "task" in votes.columns and "task" in labels.columns:
        key.append("task")
    voted, labelled = (
        pl.DataFrame([text(table, column) for column in key]).unique() for table in (votes, labels)
    )
    return (
        voted.join(labelled, on=key, how="anti", nulls_equal=True).height,
        labelled.join(voted, on=key, how="anti", nulls_equal=True).height,
    )
