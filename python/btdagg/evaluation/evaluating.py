"""From votes and labels, as they were read, to a comparison for every task and judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.aggregators import Aggregator, Davidson, aggregators_or_usual, decisions_of
from btdagg.evaluation.engine import cross_scores, quiet_fit
from btdagg.evaluation.parts import labels_of, parts_of, require_columns, with_task
from btdagg.evaluation.protocol import DEFAULT, Protocol
from btdagg.labels import LabelledCounts, Labels
from btdagg.tables import Table, text
from btdagg.validation import as_integer
from btdagg.votes import VoteCounts, Votes

if TYPE_CHECKING:
    from btdagg.evaluation.scores import Comparison


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

    votes = with_task(votes, labels)
    labels = labels_of(labels, votes)
    chosen, parts = parts_of(votes, labels, by)
    n_unlabelled, n_without_votes = _unmatched(votes, labels)
    require_columns(votes, budgets, confidence, decided)
    step = (
        None
        if progress is None
        else progress(len(parts) * len(budgets) * protocol.splitter.n_splits)
    )
    cells, skipped = [], []
    for number, part in enumerate(parts, 1):
        of_part = []
        try:
            for budget in budgets:
                items, aligned = part.labelled(budget, confidence, decided)
                part.require_comparable(items)
                ((found,),) = cross_scores([items], methods, protocol, progress=step)
                of_part.append(_cell(part.key, budget, part.votes, aligned, found, methods))
        except InputError as error:
            if len(parts) == 1:
                raise
            # None of its numbers of votes is shown then: averages are over the same parts for all.
            at = f"at {budget} votes: " if len(budgets) > 1 and of_part else ""
            skipped.append((part.key, f"{at}{error}"))
        else:
            cells += of_part
        if partial is not None and cells and number < len(parts):
            partial(Evaluation(chosen, tuple(cells), tuple(skipped), n_unlabelled, n_without_votes))
    if not cells:
        key, reason = skipped[0]
        raise InputError(f"nothing could be evaluated; {' '.join(key)}: {reason}")
    return Evaluation(chosen, tuple(cells), tuple(skipped), n_unlabelled, n_without_votes)


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
