"""Score aggregators on the same splits: of arrays, or of tables part by part."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, cast

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, forbid
from btdagg._util.lazy import pl
from btdagg._util.validation import as_integer, as_list
from btdagg.evaluation.engine import cross_scores, quiet_fit, with_neighbours
from btdagg.evaluation.parts import (
    USUAL,
    Neighbourhood,
    belonging,
    labelled_parts,
    parts_of,
    require_columns,
    require_comparable,
    require_splits,
)
from btdagg.evaluation.protocol import CROSS_FITTED, Protocol, RandomSplits
from btdagg.evaluation.scores import Scores
from btdagg.methods import Aggregator
from btdagg.methods.base import decisions_of, is_written, needs_of
from btdagg.methods.registry import aggregators_or_usual
from btdagg.remarks import Remark
from btdagg.votes import Table
from btdagg.votes.by_id import as_items, as_tables
from btdagg.votes.items import Items
from btdagg.votes.join import join, labels_of, remarks_on_raters, require_labels, with_task
from btdagg.votes.labels import Labels
from btdagg.votes.orders import about_orders
from btdagg.votes.scale import scales_of
from btdagg.votes.table import text
from btdagg.votes.verdicts import about_words
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.evaluation.cells import Cell
    from btdagg.evaluation.parts import Key
    from btdagg.methods import Calibrated
    from btdagg.votes.scale import Scale

_MUCH_LARGER = 1.05  # a calibration set than the one that was asked for

Start: TypeAlias = Callable[[int], Callable[[], object]]
"""Called once with the number of splits to come; what it returns is called after each."""


class Options(TypedDict, total=False):
    """Options of all evaluations of votes and labels; see `evaluate`."""

    by: Sequence[str] | None
    aggregators: Sequence[Aggregator | str] | None
    confidence: str | None
    protocol: Protocol
    progress: Start | None
    neighbours: Votes | None


def evaluate(
    votes: Votes | ArrayLike | Items,
    labels: Labels | ArrayLike | None = None,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    groups: ArrayLike | None = None,
    covariates: Any = None,
    n_votes: Sequence[int] | None = None,
    n_labels: Sequence[int] | None = None,
    partial: Callable[[Scores], object] | None = None,
    **options: Unpack[Options],
) -> Scores:
    """Score aggregators on labelled items: fit to some of them, decide the others.

    Every pair of aggregators is tested for a difference, as the protocol says.

    Parameters
    ----------
    votes : Votes, (n, 3) or (n, judges, 3) array of non-negative numbers, or Items
        Votes, or wide counts in label order: minus, tie, plus. Judges of an array are called
        ``"1"``, ``"2"`` and so on.
    labels : Labels, or (n,) array of -1, 0, 1
        Gold labels; None with items that hold their own. Items of one `group` are split together.
        If only the labels have a column `task`, each item gets its task from there.
    scale, label_scale : Scale, optional
        For arrays, the scale of votes, by default that of pairs, and that of labels where it is
        another: (n, J) numbers of votes for each point, and (n,) points.
    groups : (n,) array, optional
        For arrays, the group of each item, such as its prompt. They are split and tested together.
    covariates : optional
        Covariates of `Calibrated`, as in `btdagg.votes.Items.with_covariates`; of arrays
        columns.
    n_votes : sequence of int, optional
        Numbers of votes per item to compare at, the first ones; by default all.
    n_labels : sequence of int, optional
        Numbers of labels to calibrate on, compared over random splits (the paper's, unless the
        protocol has others) without a test. Within a split all are scored on the items that the
        largest leaves, and a smaller calibration set is part of a larger; groups stay together, so
        that a set may have a few items more. The paper has 20, 40, ..., 200.
    partial : callable, optional
        Called with the scores so far after each part but the last, to keep if interrupted.
    by : sequence of str, optional
        Columns by whose values votes are evaluated separately; by default task and judge, if they
        exist, and with a panel task. Arrays are evaluated as one.
    aggregators : sequence of Aggregator or of their names, optional
        By default `Calibrated` with its weak prior, and majority vote; of grades also the median,
        the mean, `Isotonic` and a constant. A `Decided` is read from its column, see `Votes.items`.
        Beside a panel (`Calibrated` with judges) the others decide by the votes of all judges, and
        `n_votes` is of each judge.
    protocol : Protocol
        Cross-fitting by default; at least two splits.
    confidence : str, optional
        Column with the confidences of votes; by default `confidence`, if it exists.
    progress : callable, optional
        Called once with the number of splits to come; what it returns is called after each.
    neighbours : Votes, optional
        Votes whose other tasks and judges are neighbours too, and are not scored.

    References
    ----------
    `NewItems` for cross-fitting; the paper's experimental setup for random splits, and its figures
    of MAE against the size of the calibration set.
    """
    for name in options.keys() - Options.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {name!r}")
    votes, labels = as_tables(votes, labels, scale, label_scale)
    if isinstance(votes, Items) and labels is None:
        if covariates is not None:
            votes, covariates = votes.with_covariates(covariates), None
        votes = votes.labelled().by_row()
        labels, groups, label_scale = votes.label, votes.group, votes.label_scale
    of_arrays = not isinstance(votes, Votes) and not isinstance(labels, Labels)
    if not of_arrays:
        require_labels(labels)
        forbid(groups is not None, "groups is for arrays; in a table of labels, use a column group")
    scales = scales_of(votes, labels, scale, label_scale)
    methods = aggregators_or_usual(options.get("aggregators"), *scales)
    protocol, start = options.get("protocol", CROSS_FITTED), options.get("progress")
    # Checked here, so that a bad argument is not reported as a fault of the data.
    protocol.require_intervals()
    numbers = [None] if n_votes is None else _distinct(n_votes, "n_votes")
    protocols = _protocols(protocol, n_labels)
    n_splits = sum(of.splitter.n_splits for of in protocols.values())
    if of_arrays:
        for name, value in {"n_votes": n_votes, **options}.items():
            if value is not None and name in ("n_votes", "by", "confidence", "neighbours"):
                got = "these are items" if isinstance(votes, Items) else "labels is an array"
                raise InputError(f"{name} is for tables of votes and labels, but {got}")
        items = as_items(votes, labels, groups, scale=scales[0], label_scale=scales[1])
        items = items if covariates is None else items.with_covariates(covariates)
        require_splits(items, protocol.splitter)  # errors of the splits come first
        items.require_two_labels()
        step = None if start is None else start(n_splits)
        of_items = tuple(_cells(items, methods, protocols, step, None))
        return Scores((), of_items, about_data=tuple(_larger_than_asked(of_items, protocols)))
    if not isinstance(votes, Votes):
        raise InputError(f"votes is a {type(votes).__name__}, expected votes from read_votes")
    everything = cast("Labels", labels)
    forbid(not len(everything.ids), f"{everything.source}: no item has a label")
    votes = with_task(votes, everything)
    gold, by = labels_of(everything, votes), options.get("by")
    judges = any(needs_of(method).judges for method in methods)
    if by is None and judges:
        by = [name for name in USUAL if name in votes.columns and name != "judge"]
    columns, parts = parts_of(votes, gold, by)

    @functools.cache
    def around(n_votes: int | None) -> dict[Key, tuple[Items, NDArray[Any]]]:
        if not any(needs_of(method).neighbours for method in methods):
            return {}
        near, neighbours = (
            {} if table is None else labelled_parts(table, everything, columns, n_votes)
            for table in (votes, options.get("neighbours"))
        )
        near |= {key: items for key, items in neighbours.items() if key not in parts}
        return {key: (items, belonging(items)) for key, items in near.items()}

    item_counts = *_unmatched(votes, gold), _sharing(votes, gold)
    needed: dict[str, Any] = {"confidence": options.get("confidence")}
    needed["decisions"] = decisions_of(methods)
    require_columns(votes, numbers, **needed)
    for number in numbers:
        votes.refuse_beyond(number, "judge" if judges else None)
    if judges:  # whose items have nothing but counts
        needed = {"panel": "judge"}
    step = None if start is None else start(len(parts) * len(numbers) * n_splits)

    cells: list[Cell] = []
    skipped: list[tuple[Key, str]] = []
    errors: list[InputError] = []

    about_labels = *remarks_on_raters(gold, votes), *about_words(votes), *about_orders(votes, gold)

    def scores() -> Scores:
        about_data = (*about_labels, *_larger_than_asked(cells, protocols))
        return Scores(columns, tuple(cells), tuple(skipped), *item_counts, about_data=about_data)

    for place, (key, part) in enumerate(parts.items(), 1):
        try:
            joined = functools.partial(_joined, part, gold, covariates, **needed)
            how = gold.source, numbers, methods, protocols, step, around
            of_part, lacking = _of_part(key, part, joined, *how)
            cells += of_part
            skipped += [(key, str(error)) for error in lacking]
        except InputError as error:
            if len(parts) == 1:
                raise
            # None of its points is shown then: averages are over the same parts for all.
            skipped.append((key, str(error)))
            errors.append(error)
        if partial is not None and cells and place < len(parts):
            partial(scores())
    if not cells:
        raise errors[0].within(f"no part could be evaluated; {' '.join(skipped[0][0])}: ")
    return scores()


def _joined(
    votes: Votes, labels: Labels, covariates: Any, n_votes: int | None = None, **needed: Any
) -> Items:
    if covariates is None:
        return votes.labelled(labels, n_votes, **needed)
    items: Items = join(votes.items(n_votes=n_votes, **needed), labels)
    labelled: Items = items.with_covariates(covariates, is_table=True).labelled()
    labelled.require_votes(n_votes)
    return labelled


def _protocols(protocol: Protocol, n_labels: Sequence[int] | None) -> dict[int | None, Protocol]:
    if n_labels is None:
        return {None: protocol}
    sizes, splitter = sorted(_distinct(n_labels, "n_labels")), protocol.splitter
    if not isinstance(splitter, RandomSplits):
        splitter = RandomSplits(seed=splitter.seed)
    splitter = replace(splitter, share=None, reserve=sizes[-1])
    return {
        size: replace(protocol, splitter=replace(splitter, size=size), test=None) for size in sizes
    }


def _distinct(numbers: Sequence[int], name: str) -> list[int]:
    listed = as_list(numbers, name, "a sequence of at least one number")
    return list(dict.fromkeys(as_integer(number, name, 1) for number in listed))


def _of_part(
    key: Key,
    votes: Votes,
    joined: Callable[[int | None], Items],
    source: str,
    numbers: Sequence[int | None],
    methods: Sequence[Aggregator],
    protocols: Mapping[int | None, Protocol],
    step: Callable[[], object] | None,
    around: Callable[[int | None], Mapping[Key, tuple[Items, NDArray[Any]]]],
) -> tuple[list[Cell], list[InputError]]:
    """Score a part at each number of votes; return the errors of those that no item has, too."""
    cells: list[Cell] = []
    lacking: list[InputError] = []
    decided = [of.decisions or "" for of in map(needs_of, methods) if of.some_decisions]
    for n_votes in numbers:
        try:
            everything = joined(n_votes)
            kept = everything.with_decisions(decided)
            items = everything if kept.all() or not kept.any() else everything[kept]
            if None in protocols:  # a sweep over labels tells no methods apart
                require_comparable(items, source)
            near = {" ".join(map(repr, k)): of for k, of in around(n_votes).items() if k != key}
            neighbours = Neighbourhood(belonging(items), near) if near else None
            # Of grades, items without a vote are left out.
            is_paired = items.scale.mirrored
            everyone = items.pooled if is_paired else votes.counts(n_votes)[1]
            cells += [
                replace(
                    cell,
                    key=key,
                    n_votes=n_votes,
                    n_undecided=len(everything) - len(items),
                    n_missing=votes.n_missing,
                    n_empty=int((everyone.sum(axis=1) == 0).sum()),
                )
                for cell in _cells(items, methods, protocols, step, neighbours)
            ]
        except InputError as error:
            if error.argument == "n_votes":
                lacking.append(error)
            elif not cells:
                raise
            else:
                raise error.within(f"at {n_votes} votes: ") from None
    if not cells:
        raise lacking[0]
    return cells, lacking


def _cells(
    items: Items,
    methods: Sequence[Aggregator],
    protocols: Mapping[int | None, Protocol],
    step: Callable[[], object] | None,
    around: Neighbourhood | None,
) -> Iterator[Cell]:
    fitted, nothing = None, np.arange(0)
    for method in with_neighbours(methods, around.prior(nothing) if around else None):
        if fitted is None and is_written(method):
            fitted = cast("Calibrated", quiet_fit(method, items.pooled, items.label))
    for n_labels, protocol in protocols.items():
        ((cell,),) = cross_scores([items], methods, protocol, progress=step, neighbourhood=around)
        yield replace(cell, n_labels=n_labels, fitted=fitted)


def _larger_than_asked(
    cells: Iterable[Cell], protocols: Mapping[int | None, Protocol]
) -> Iterator[Remark]:
    """Say where whole groups make calibration sets larger than asked for."""
    for cell in cells:
        splitter = protocols[cell.n_labels].splitter
        asked = splitter.size_of(cell.n_items) if isinstance(splitter, RandomSplits) else None
        if asked is not None and cell.n_calibration > _MUCH_LARGER * asked:
            larger = remarks.larger_sets(cell.n_calibration, asked)
            yield larger.within(" ".join(cell.key))


def _sharing(votes: Table, labels: Labels) -> int:
    """Number of labelled items that share a prompt with another, and have no group that says so."""
    table = labels if "prompt" in labels.columns else votes
    if "group" in {*labels.columns, *votes.columns} or "prompt" not in table.columns:
        return 0
    key = [column for column in ("task", "item") if column in table.columns]
    prompts = table.frame.select(*key, "prompt").drop_nulls("prompt").unique()
    if table is not labels:
        ids = labels.frame.select(pl.col("item").cast(pl.String)).unique()
        prompts = prompts.with_columns(pl.col("item").cast(pl.String)).join(ids, on="item")
    shared = prompts.filter(pl.len().over([*key[:-1], "prompt"]) > 1)
    return shared["item"].n_unique()


def _unmatched(votes: Table, labels: Labels) -> tuple[int, int]:
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
