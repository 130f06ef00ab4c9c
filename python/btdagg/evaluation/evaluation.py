"""Score aggregators on the same splits: of arrays, or of tables part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict, Unpack, cast

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.evaluation.cells import Cell
from btdagg.evaluation.engine import cross_scores, quiet_fit, with_neighbours
from btdagg.evaluation.parts import (
    USUAL,
    LabelledItems,
    Part,
    neighbourhood,
    parts_of,
    require_columns,
)
from btdagg.evaluation.protocol import CROSS_FITTED, SPLITS, Protocol, RandomSplits
from btdagg.evaluation.scores import Scores
from btdagg.methods import Aggregator, Davidson
from btdagg.methods.base import decisions_of, is_written, needs_of
from btdagg.methods.registry import aggregators_or_usual
from btdagg.votes import Labels, Table, Votes
from btdagg.votes.evidence import Evidence
from btdagg.votes.join import labels_of, require_labels, scales_of, with_task
from btdagg.votes.scale import require_alike
from btdagg.votes.table import text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from btdagg.evaluation.parts import Key, Neighbourhood
    from btdagg.votes.scale import Scale

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


def evaluate(
    votes: Votes | ArrayLike | Evidence,
    labels: Labels | ArrayLike,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    groups: ArrayLike | None = None,
    n_votes: Sequence[int] | None = None,
    partial: Callable[[Scores], object] | None = None,
    **options: Unpack[Options],
) -> Scores:
    """Score aggregators on labelled items: fit to some of them, decide the others.

    Every pair of aggregators is tested for a difference, as the protocol says.

    Parameters
    ----------
    votes : Votes, (n, 3) or (n, judges, 3) array of non-negative numbers, PanelCounts or Evidence
        Long votes, or wide counts of one judge; or votes per item in label order: minus, tie, plus.
        Judges of an array are called ``"1"``, ``"2"`` and so on.
    labels : Labels, or (n,) array of -1, 0, 1
        Gold labels. Items of one `group` are split together. If only the labels have a column
        `task`, each item gets its task from there.
    scale, label_scale : Scale, optional
        Of arrays, the scale of votes, by default that of pairs, and that of labels where it is
        another: (n, J) numbers of votes for each point, and (n,) points.
    groups : (n,) array, optional
        Of arrays, what items share, such as their prompt. They are split and tested together.
    n_votes : sequence of int, optional
        Numbers of votes per item to compare at; the first votes of each item are used. By default
        all votes. The `sweeps` of the result are over these numbers.
    partial : callable, optional
        Called with the scores so far after each part but the last, so that an interrupted run can
        keep them.
    by : sequence of str, optional
        Columns that votes are grouped by: each of their values is evaluated separately. By default
        task and judge, if these columns exist; with a `Panel` among the aggregators by task.
        Arrays are evaluated as one.
    aggregators : sequence of Aggregator, optional
        By default `Davidson` with its weak prior, and majority vote; of grades those of
        `btdagg.methods.methods_of_grades`. The decisions of a `Decided` are read from its column;
        see `Votes.evidence`. Beside a `Panel`, which reads the column `judge`, the others decide by
        the votes of all judges together, and `n_votes` is of each judge.
    protocol : Protocol
        Cross-fitting by default; at least two splits.
    confidence : str, optional
        Column with the confidences of votes; by default `confidence`, if it exists.
    progress : callable, optional
        Called once with the number of splits to come; what it returns is called after each.
    neighbours : Votes, optional
        Votes of which the tasks and judges that `votes` does not have are neighbours too, for
        aggregators with such a prior. They are not scored.

    References
    ----------
    `NewItems` for cross-fitting; the paper's experimental setup for random splits.
    """
    protocol = options.get("protocol", CROSS_FITTED)
    if isinstance(votes, Votes) or isinstance(labels, Labels):
        require_labels(labels)
        scales_of(votes, labels, scale, label_scale)
        if groups is not None:
            raise InputError("groups is for arrays; a table of labels has a column group")
        points = [Point(number, None, protocol) for number in numbers_of_votes(n_votes)]
        return evaluate_at(points, cast("Votes", votes), cast("Labels", labels), options, partial)
    of_tables: dict[str, object] = {"n_votes": n_votes, **options}
    for name in ("n_votes", "by", "confidence", "neighbours"):
        if of_tables.get(name) is not None:
            raise InputError(f"{name} is for tables of votes and labels, and labels is an array")
    items = LabelledItems(cast("ArrayLike", votes), labels, groups, scale, label_scale)
    protocol.require_intervals()
    protocol.splitter.draw(len(items), groups)  # errors of the splits come first
    items.require_two_labels()
    scales = items.evidence.scale, items.label_scale
    methods = aggregators_or_usual(options.get("aggregators"), *scales)
    start = options.get("progress")
    step = None if start is None else start(protocol.splitter.n_splits)
    ((compared,),) = cross_scores([items], methods, protocol, progress=step)
    return Scores((), (Cell((), compared, fitted=_calibrated(methods, items, None)),))


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
    votes, labels
        See `evaluate`; a calibration set may have a few items more than asked for, since groups
        stay together.
    sizes : sequence of int
        Labels to calibrate on. The paper has 20, 40, ..., 200.
    n_votes : int, optional
        Votes per item: the first so many of each. By default all.
    **options
        `by`, `aggregators`, `confidence`, `protocol`, `progress` and `neighbours`; see `evaluate`.
        The paper's splits by default; nothing is tested.

    References
    ----------
    The paper's figures of MAE against the size of the calibration set.
    """
    n_votes = None if n_votes is None else as_integer(n_votes, "n_votes", 1)
    ascending = sorted(_distinct(sizes, "sizes"))
    protocol = options.get("protocol", SPLITS).untested
    splits = protocol.splitter
    if not isinstance(splits, RandomSplits):
        splits = RandomSplits(seed=splits.seed)
    points = []
    for size in ascending:
        splitter = replace(splits, share=None, size=size, reserve=ascending[-1])
        points.append(Point(n_votes, size, replace(protocol, splitter=splitter)))
    return evaluate_at(points, votes, labels, options)


def evaluate_at(
    points: Sequence[Point],
    votes: Votes,
    labels: Labels,
    options: Options,
    partial: Callable[[Scores], object] | None = None,
) -> Scores:
    """Compare aggregators at several points; the options' own protocol is not looked at."""
    for name in options.keys() - Options.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {name!r}")
    # Checked here, so that a bad argument is not reported as a fault of the data.
    points[0].protocol.require_intervals()
    if not isinstance(votes, Votes):
        raise InputError(f"votes is a {type(votes).__name__}, expected what read_votes returns")
    require_labels(labels)
    require_alike(votes.scale, labels.scale)
    methods = aggregators_or_usual(options.get("aggregators"), votes.scale, labels.scale)
    if not len(labels.ids):
        raise InputError(f"{labels.source}: no item has a label")
    votes = with_task(votes, labels)
    all_labels, labels = labels, labels_of(labels, votes)
    by = options.get("by")
    has_panel = any(needs_of(method).judges for method in methods)
    if by is None and has_panel:
        by = [name for name in USUAL if name in votes.columns and name != "judge"]
    columns, parts = parts_of(votes, labels, by)
    around: list[Part] = []
    if any(needs_of(method).neighbours for method in methods):
        neighbours, scored = options.get("neighbours"), {part.key for part in parts}
        beside = [] if neighbours is None else parts_of(neighbours, all_labels, columns)[1]
        around = [*parts, *(part for part in beside if part.key not in scored)]
    told = *_unmatched(votes, labels), _sharing(votes, labels)
    confidence = options.get("confidence")
    require_columns(votes, [point.n_votes for point in points], confidence, decisions_of(methods))
    start = options.get("progress")
    n_steps = len(parts) * sum(point.protocol.splitter.n_splits for point in points)
    step = None if start is None else start(n_steps)

    cells: list[Cell] = []
    skipped: list[tuple[Key, str]] = []

    def scores() -> Scores:
        return Scores(columns, tuple(cells), tuple(skipped), *told, about_data=labels.remarks)

    for number, part in enumerate(parts, 1):
        try:
            cells += _cells_of(part, points, methods, confidence, step, around)
        except InputError as error:
            if len(parts) == 1:
                raise
            # None of its points is shown then: averages are over the same parts for all.
            skipped.append((part.key, str(error)))
        if partial is not None and cells and number < len(parts):
            partial(scores())
    if not cells:
        key, reason = skipped[0]
        raise InputError(f"nothing could be evaluated; {' '.join(key)}: {reason}")
    return scores()


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
    for n_votes, of_number in groupby(points, lambda point: point.n_votes):
        try:
            has_panel = any(needs_of(method).judges for method in methods)
            names = decisions_of(methods)
            everything = part.labelled(n_votes, confidence, names, judges=has_panel)
            kept = everything.with_decisions(
                needs.decisions or "" for needs in map(needs_of, methods) if needs.some_decisions
            )
            items = everything if kept.all() or not kept.any() else everything.among(kept)
            if points[0].n_labels is None:  # a sweep over labels tells no methods apart
                part.require_comparable(items)
            around = neighbourhood(part, parts, n_votes, kept) if parts else None
            fitted = _calibrated(methods, items, around)
            # Of grades, items without a vote are left out.
            is_graded = not items.evidence.scale.mirrored
            everyone = part.votes.counts(n_votes)[1] if is_graded else items.evidence.counts
            most = int(items.evidence.counts.sum(axis=1).max())
            used = None if n_votes is None else min(n_votes, most)
            if used in {cell.n_votes for cell in cells}:
                continue  # as many were used at a smaller number, where items have no more
            for point in of_number:
                ((compared,),) = cross_scores(
                    [items], methods, point.protocol, progress=step, neighbourhood=around
                )
                cell = Cell(
                    part.key,
                    compared,
                    used,
                    point.n_labels,
                    n_asked=n_votes,
                    fitted=fitted,
                    n_undecided=len(everything) - len(items),
                    n_missing=part.votes.n_missing,
                    n_empty=int((everyone.sum(axis=1) == 0).sum()),
                )
                cells.append(cell)
        except InputError as error:
            if not cells:
                raise
            raise InputError(f"at {n_votes} votes: {error}") from None
    return cells


def numbers_of_votes(n_votes: Sequence[int] | None) -> list[int | None]:
    """Return distinct numbers of votes to evaluate at, in the order given; None alone for all."""
    return [None] if n_votes is None else list(_distinct(n_votes, "n_votes"))


def _distinct(numbers: Sequence[int], name: str) -> list[int]:
    """Return the different numbers of a sequence of positive ones, of which there has to be one."""
    if not isinstance(numbers, Iterable) or isinstance(numbers, str) or not len(numbers):
        expected = "a sequence of at least one number"
        raise InputError(argument=name, came=numbers, expected=expected)
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


def _sharing(votes: Table, labels: Labels) -> int:
    """Number of labelled items that share a prompt with another, and have no group that says so."""
    import polars as pl

    table = labels if "prompt" in labels.columns else votes
    if "group" in labels.columns or "prompt" not in table.columns:
        return 0
    key = [column for column in ("task", "item") if column in table.columns]
    prompts = table.frame.select(*key, "prompt").drop_nulls("prompt").unique()
    if table is not labels:
        ids = labels.frame.select(pl.col("item").cast(pl.String)).unique()
        prompts = prompts.with_columns(pl.col("item").cast(pl.String)).join(ids, on="item")
    shared = prompts.filter(pl.len().over([*key[:-1], "prompt"]) > 1)
    return shared["item"].n_unique()


def _unmatched(votes: Table, labels: Labels) -> tuple[int, int]:
    """Number of items without a label, and of labels whose item has no votes."""
    import polars as pl

    # Where the votes got their task from the labels, an unlabelled item has none: it counts too.
    in_both = "task" in votes.columns and "task" in labels.columns
    key = ["item", "task"] if in_both else ["item"]
    voted, labelled = (
        pl.DataFrame([text(table, column) for column in key]).unique() for table in (votes, labels)
    )
    return (
        voted.join(labelled, on=key, how="anti", nulls_equal=True).height,
        labelled.join(voted, on=key, how="anti", nulls_equal=True).height,
    )
