"""From votes and labels, as they were read, to a comparison for every task and judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from btdagg._core import InputError
from btdagg.aggregators import Aggregator, Davidson, aggregators_or_usual, decisions_of
from btdagg.evaluation.comparison import compare
from btdagg.evaluation.engine import quiet_fit
from btdagg.evaluation.protocol import DEFAULT, Protocol
from btdagg.labels import LabelledCounts, Labels, align
from btdagg.tables import Table, require, text
from btdagg.tallies import column_of_decisions
from btdagg.validation import as_integer
from btdagg.votes import VoteCounts, Votes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from btdagg.evaluation.scores import Comparison
    from btdagg.evidence import Evidence

AnyVotes = TypeVar("AnyVotes", bound=Votes | VoteCounts)

USUAL = ("task", "judge")


@dataclass(frozen=True, eq=False)
class Cell:
    """One comparison.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that the evaluation goes by.
    n_votes : int or None
        Votes per item that were used; None for all.
    comparison : Comparison
        The scores.
    fitted : Davidson or None
        The first Davidson aggregator that was compared, fitted to all labelled items, for what it
        says of the judge. The scores do not use it.
    n_unlabelled, n_without_votes, n_missing, n_short, n_empty : int
        Items left out because they have no label, labels left out because their item has no
        votes, votes that are missing, items with fewer votes than `n_votes`, and items all of
        whose votes are missing, which are decided without any.
    """

    key: tuple[str, ...]
    n_votes: int | None
    comparison: Comparison
    fitted: Davidson | None
    n_unlabelled: int
    n_without_votes: int
    n_missing: int
    n_short: int
    n_empty: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What `evaluate` found.

    Attributes
    ----------
    by : tuple of str
        Columns that the evaluation goes by.
    cells : tuple of Cell
        One per value of those columns and number of votes.
    skipped : tuple of (key, reason)
        Values of those columns that could not be evaluated.
    n_unlabelled, n_without_votes : int
        Items that have votes, of whatever judge, but no label, and labels of the same tasks whose
        item has no votes at all.
    """

    by: tuple[str, ...]
    cells: tuple[Cell, ...]
    skipped: tuple[tuple[tuple[str, ...], str], ...]
    n_unlabelled: int
    n_without_votes: int


def evaluate(
    votes: Votes | VoteCounts,
    labels: Labels,
    *,
    by: Sequence[str] | None = None,
    n_votes: Sequence[int] | None = None,
    aggregators: Sequence[Aggregator] | None = None,
    confidence: str | None = None,
    protocol: Protocol = DEFAULT,
    progress: Callable[[int], Callable[[], object]] | None = None,
    partial: Callable[[Evaluation], object] | None = None,
) -> Evaluation:
    """Compare aggregators on votes and labels as they were read.

    Parameters
    ----------
    votes : Votes or VoteCounts
        Long votes, or wide counts of one judge.
    labels : Labels
        Gold labels. Items that share a `group` are split together. Where only the labels say the
        task of an item, it is taken from there.
    by : sequence of str, optional
        Columns of the votes; each of their values is evaluated by itself. Task and judge, where
        there are such columns, unless given.
    n_votes : sequence of int, optional
        Numbers of votes per item to compare at: the first so many of each item. All votes unless
        given.
    aggregators : sequence of Aggregator, optional
        See `compare`. The decisions that a `Decided` among them stands for are read from its
        column, or with `n_votes` from its column for that number; see `Votes.evidence`.
    confidence : str, optional
        Column of the confidences of votes; `confidence`, where there is one, unless given.
    protocol : Protocol
        At least two splits.
    progress : callable, optional
        Called once with the number of splits to come; what it returns is called after each.
    partial : callable, optional
        Called with what is found so far, after each value of those columns but the last: who
        interrupts long work keeps it.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If a column is not there, `n_votes` is given for counts, an argument is out of range, or
        nothing could be evaluated; the message says why.
    """
    budgets = budgets_of(n_votes)
    # Looked at here, so that what is wrong with an argument is not taken for a fault of the data.
    protocol.require_intervals()
    methods = aggregators_or_usual(aggregators)
    if not isinstance(votes, Votes | VoteCounts):
        raise InputError(f"votes is a {type(votes).__name__}, want what read_votes returns")
    decided = decisions_of(methods)
    if not len(labels.ids):
        raise InputError(f"{labels.source}: no item has a label")

    votes, labels = with_task(votes, labels), labels_of(labels, votes)
    chosen, parts = parts_of(votes, by, n_votes)
    n_unlabelled, n_without_votes = _unmatched(votes, labels)
    _require_columns(votes, budgets, confidence, decided)
    step = (
        None
        if progress is None
        else progress(len(parts) * len(budgets) * protocol.splitter.n_splits)
    )
    cells, skipped = [], []
    for number, (key, part) in enumerate(parts, 1):
        of_part = []
        try:
            known = labels_of(labels, part)
            for budget in budgets:
                ids, evidence = evidence_of(part, budget, confidence, decided)
                items = align(ids, evidence.counts, known)
                require_enough(items.counts, items.labels, known.source, part.source)
                comparison = compare(
                    evidence[items.rows],
                    items.labels,
                    methods,
                    groups=items.groups,
                    protocol=protocol,
                    progress=step,
                )
                of_part.append(_cell(key, budget, part, items, comparison, methods))
        except InputError as error:
            if len(parts) == 1:
                raise
            # None of its numbers of votes is shown then: averages are over the same parts for all.
            at = f"at {budget} votes: " if len(budgets) > 1 and of_part else ""
            skipped.append((key, f"{at}{error}"))
        else:
            cells += of_part
        if partial is not None and cells and number < len(parts):
            partial(Evaluation(chosen, tuple(cells), tuple(skipped), n_unlabelled, n_without_votes))
    if not cells:
        key, reason = skipped[0]
        raise InputError(f"nothing could be evaluated; {' '.join(key)}: {reason}")
    return Evaluation(chosen, tuple(cells), tuple(skipped), n_unlabelled, n_without_votes)


def require_enough(
    counts: NDArray[Any], labels: NDArray[np.int8], label_source: str, vote_source: str
) -> None:
    """Refuse labelled items that cannot be split or told apart, naming the file.

    Raises
    ------
    InputError
        If there is one item, all labels are the same, or no item has a vote.
    """
    n = len(labels)
    if n < 2:
        raise InputError(f"{label_source}: {n} item with votes has a label, want at least 2")
    if (labels == labels[0]).all():
        raise InputError(
            f"{label_source}: all {n} labels are {labels[0]}, want at least two different ones"
        )
    if not counts.any():
        raise InputError(f"{vote_source}: none of the {n} labelled items has a vote")


def _require_columns(
    votes: Votes | VoteCounts,
    budgets: Sequence[int | None],
    confidence: str | None,
    decided: Sequence[str],
) -> None:
    """Refuse what is not there at once, not part by part."""
    if confidence is not None:
        if isinstance(votes, VoteCounts):
            raise InputError(f"{votes.source}: confidence wants single votes, and these are counts")
        require(votes, [confidence])
    require(votes, [column_of_decisions(name, n) for n in budgets for name in decided])


def labels_of(labels: Labels, votes: Table) -> Labels:
    """Return the labels of the tasks of some votes, where both say the task; else all.

    Raises
    ------
    InputError
        If there is no label of such a task.
    """
    if "task" not in labels.columns or "task" not in votes.columns:
        return labels
    known = set(text(labels, "task"))
    tasks = [task for task in text(votes, "task").unique(maintain_order=True) if task is not None]
    # One task without labels is an error of its own; of several it is seen when its turn comes.
    return labels.filter({"task": [task for task in tasks if task in known] or tasks})


def budgets_of(n_votes: Sequence[int] | None) -> list[int | None]:
    """Return distinct numbers of votes to evaluate at, in the order given; None alone for all.

    Raises
    ------
    InputError
        If it is no sequence, is empty, or holds anything else.
    """
    if n_votes is None:
        return [None]
    if not isinstance(n_votes, Iterable):
        raise InputError(f"n_votes is {n_votes!r}, want a sequence of numbers, such as [4, 8]")
    if not len(n_votes):
        raise InputError("n_votes is empty, want at least one number")
    return list(dict.fromkeys(as_integer(number, "n_votes", 1) for number in n_votes))


def parts_of(
    votes: Votes | VoteCounts, by: Sequence[str] | None, n_votes: Sequence[int] | None
) -> tuple[tuple[str, ...], list[tuple[tuple[str, ...], Votes | VoteCounts]]]:
    """Return the columns to go by, and the votes of each of their values.

    Raises
    ------
    InputError
        If there is no such column, or `n_votes` is given for counts.
    """
    if isinstance(votes, VoteCounts) and n_votes is not None:
        raise InputError(f"{votes.source}: n_votes wants single votes, and these are counts")
    if isinstance(by, str):
        raise InputError(f"by is {by!r}, want a sequence of column names")
    usual = [column for column in USUAL if column in votes.columns]
    chosen = tuple(dict.fromkeys(usual if by is None else by))
    parts: list[tuple[tuple[str, ...], Votes | VoteCounts]] = list(votes.partition(chosen))
    if "task" in chosen:
        place = chosen.index("task")
        parts = [(key, part) for key, part in parts if key[place]] or parts
    return chosen, parts


def _cell(
    key: tuple[str, ...],
    budget: int | None,
    part: Votes | VoteCounts,
    items: LabelledCounts,
    comparison: Comparison,
    methods: Sequence[Aggregator],
) -> Cell:
    davidson = next((method for method in methods if isinstance(method, Davidson)), None)
    if davidson is not None:
        davidson = quiet_fit(davidson, items.counts, items.labels)  # which keeps the warnings
    short = 0 if budget is None else int((items.counts.sum(axis=1) < budget).sum())
    return Cell(
        key,
        budget,
        comparison,
        davidson,
        items.n_unlabelled,
        items.n_without_votes,
        part.n_missing if isinstance(part, Votes) else 0,
        short,
        int((items.counts.sum(axis=1) == 0).sum()),
    )


def evidence_of(
    part: Votes | VoteCounts, budget: int | None, confidence: str | None, decided: Sequence[str]
) -> tuple[NDArray[Any], Evidence]:
    """Return the items of some votes or counts, and what they are decided by."""
    if isinstance(part, VoteCounts):
        return part.evidence(decisions=decided)
    return part.evidence(budget, confidence=confidence, decisions=decided)


def with_task(votes: AnyVotes, labels: Labels) -> AnyVotes:
    """Return votes with the task of their item, where the labels know it and the votes do not.

    Raises
    ------
    InputError
        If an item has labels in several tasks.
    """
    if isinstance(votes, VoteCounts) or "task" in votes.columns or "task" not in labels.columns:
        return votes
    items = text(labels, "item")
    if items.is_duplicated().any():
        item = items.filter(items.is_duplicated())[0]
        raise InputError(
            f"{labels.source}: item {item!r} has labels in several tasks, and the votes do not say "
            "theirs"
        )
    task = dict(zip(items, text(labels, "task"), strict=True))
    column = text(votes, "item").replace_strict(task, default=None).alias("task")
    return replace(votes, frame=votes.frame.with_columns(column))


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
