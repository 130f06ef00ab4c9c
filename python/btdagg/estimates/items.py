"""All items of a table of votes, with the labels that some of them have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.votes.join import labels_of, matching, with_task
from btdagg.votes.labels import Labels, mean_remarks
from btdagg.votes.panel import panel_counts
from btdagg.votes.table import counts_of, require
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


Remarked = TypeVar("Remarked", bound=Any)


@readable
class AllItems(NamedTuple):
    """Items with a row each, in the order of the votes, part by part.

    Attributes
    ----------
    counts : (N, 3) or (N, judges, 3) array of int64
    outcomes : (N, 3) array of float
        Shares of the raters of each item for B, tie and A: of one rater 0 and 1; NaN where there is
        no label.
    groups : (N,) array of str, or None
        An item of which no group is known is one by itself.
    probabilities : (N,) array of float, or None
        NaN where there is none.
    by : (N,) array of str, or None
    systems : (N, 2) array of str, or None
        Whose responses are A and B.
    remarks : tuple of str
        What was left out, and what was assumed.
    """

    counts: NDArray[np.int64]
    outcomes: NDArray[np.float64]
    groups: NDArray[np.object_] | None
    probabilities: NDArray[np.float64] | None
    by: NDArray[np.object_] | None
    systems: NDArray[np.object_] | None
    remarks: tuple[str, ...]


def with_remarks(estimates: Remarked, remarks: Iterable[str]) -> Remarked:
    """Return a result with more remarks, which are about its data, before its own."""
    return replace(estimates, remarks=(*remarks, *estimates.remarks))


def all_items(
    votes: Votes,
    labels: Labels,
    *,
    by: str | None = None,
    panel: str | None = None,
    judges: Sequence[str] | None = None,
    systems: tuple[str, str] | None = None,
    probability: str | None = None,
    n_votes: int | None = None,
) -> AllItems:
    """Gather the items of votes, task by task, with their labels, groups and probabilities.

    Parameters
    ----------
    votes : Votes
    labels : Labels
        Rows without a label tell the groups and probabilities of their items.
    by : str, optional
        Column of the votes, of which each item has one value.
    panel : str, optional
        Column that tells the judges of a panel apart.
    judges : sequence of str, optional
        Those of the panel, in this order; unless given those of the column, by name.
    systems : tuple of str, optional
        Columns of the votes that name the systems whose responses are A and B.
    probability : str, optional
        Column of the labels with the probability that an item was chosen to be labelled; unless
        given `probability`, if there is one.
    n_votes : int, optional
        Count only the first so many votes of each item.
    """
    votes = with_task(votes, labels)
    columns = ["task"] if "task" in votes.columns else []
    told = [*([] if by is None else [by]), *(systems or ())]
    for name in {"vote", "item"}.intersection(told):
        argument = "by is" if name == by else "systems has"
        raise InputError(f"{argument} {name!r}, expected a column that says something of items")
    require(votes, told)
    if probability is not None:
        require(labels, [probability])
    elif "probability" in labels.columns:
        probability = "probability"
    if panel is not None and judges is None:
        judges = _judges(votes, panel)
    parts = [
        _part(part, labels, judges, panel, told, probability, n_votes)
        for _, part in votes.partition(columns)
    ]
    n_labelled = sum(part.n_labels for part in parts)
    if n_labelled == 0:
        votes.labelled(labels, n_votes)  # says what the items of either begin with
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _WHOLE}
    has_groups = any(part.has_groups for part in parts)
    columns_told = whole["told"].T
    return AllItems(
        whole["counts"],
        whole["outcomes"],
        whole["groups"] if has_groups else None,
        whole["probabilities"] if probability is not None else None,
        columns_told[0] if by is not None else None,
        columns_told[-2:].T if systems else None,
        _remarks(
            labels.source,
            whole["outcomes"],
            max(len(labels_of(labels, votes).ids) - n_labelled, 0),
            sum(part.n_without_group for part in parts) if has_groups else 0,
        ),
    )


def _remarks(
    source: str, outcomes: NDArray[np.float64], n_without_votes: int, n_without_group: int
) -> tuple[str, ...]:
    """Say what was left out, and what was assumed."""
    remarks = [*mean_remarks(outcomes[~np.isnan(outcomes[:, 0])])]
    if n_without_votes:
        remarks.append(f"{n_without_votes} labels of {source} are of items without votes")
    if n_without_group:
        remarks.append(
            f"{n_without_group} items have no group and are taken as one by themselves; rows of "
            "the labels with a group and an empty label tell it"
        )
    return tuple(remarks)


_WHOLE = ("counts", "outcomes", "groups", "probabilities", "told")


class _TaskItems(NamedTuple):
    counts: NDArray[np.int64]
    outcomes: NDArray[np.float64]
    groups: NDArray[np.object_]
    probabilities: NDArray[np.float64]
    told: NDArray[np.object_]
    n_labels: int
    has_groups: bool
    n_without_group: int


def _part(
    votes: Votes,
    labels: Labels,
    judges: Sequence[str] | None,
    panel: str | None,
    told: Sequence[str],
    probability: str | None,
    n_votes: int | None,
) -> _TaskItems:
    import polars as pl

    if panel is None:
        rows = votes.tally(n_votes)
        items, counts = rows["item"], counts_of(rows)
    else:
        found = panel_counts(votes, judges=judges, column=panel, n_votes=n_votes)
        items, counts = pl.Series("item", found.ids.tolist()), found.counts
    known = _rows_of(labels, votes)
    here, there = matching(items, known)
    rows_there = known.frame[there]
    n = len(items)

    def spread(values: pl.Series, empty: Any, kind: type) -> NDArray[Any]:
        whole: NDArray[Any] = np.full(n, empty, dtype=kind)
        whole[here] = values.to_numpy()
        return whole

    nan = float("nan")
    outcomes = np.full((n, 3), nan)
    outcomes[here] = known.shares[there]
    chance = np.full(n, nan)
    if probability is not None:
        chance = spread(_numbers(rows_there, probability, labels.source), nan, np.float64)
    group = np.full(n, None, dtype=object)
    if "group" in rows_there.columns:
        group = spread(rows_there["group"], None, np.object_)
    if "group" in votes.columns:
        group = np.where(group == None, values_of(votes, items, "group"), group)  # noqa: E711
    single = np.array([one is None for one in group], dtype=np.bool_)
    task = votes.values("task").to_list()[0] if "task" in votes.columns else ""
    if single.any():
        names = items.cast(pl.String).to_list()
        group[single] = [group_of_one(names[int(row)], task) for row in np.flatnonzero(single)]
    values = [every_value(values_of(votes, items, name), name, items, votes) for name in told]
    named = np.stack(values, axis=1) if told else np.empty((n, 0), dtype=object)
    n_labels = int((~np.isnan(outcomes[:, 0])).sum())
    return _TaskItems(
        counts, outcomes, group, chance, named, n_labels, not single.all(), int(single.sum())
    )


def group_of_one(item: str, task: str = "") -> str:
    """Name the group of an item that is one by itself.

    It begins with a blank, which names of groups do not, so that no other group has it.
    """
    return f" {task} {item}"


def _rows_of(labels: Labels, votes: Votes) -> Labels:
    """All rows of the labels that are of the task of some votes, those without a label too."""
    try:
        labels = labels_of(labels, votes)
    except InputError:  # another task may have labels
        none = labels.frame.clear()
        return Labels(none, labels.source, unlabelled=none)
    frame = labels.frame.vstack(labels.unlabelled)
    return Labels(frame, labels.source, unlabelled=frame.clear())


def values_of(votes: Votes, items: pl.Series, column: str) -> NDArray[np.object_]:
    """Return the value that each item has in a column of the votes, or None."""
    import polars as pl

    wanted = pl.col(column).cast(pl.String)
    known = votes.collect(
        votes.data.lazy().select("item", wanted).unique(maintain_order=True)
    ).drop_nulls()
    twice = known.filter(known["item"].is_duplicated())
    if twice.height:
        item = twice["item"][0]
        values = twice.filter(pl.col("item") == item)[column].sort()
        raise InputError(
            f"{votes.source}, column {column}: item {item!r} has {values[0]!r} and {values[1]!r}, "
            "expected a column that says something of items and not of their votes"
        )
    found = items.to_frame("item").join(known, on="item", how="left", maintain_order="left")
    return np.array(found[column].to_list(), dtype=object)


def every_value(
    values: NDArray[np.object_], column: str, items: pl.Series, votes: Votes
) -> NDArray[np.object_]:
    """Check that every item has a value in a column of the votes."""
    empty = [row for row, value in enumerate(values.tolist()) if value is None]
    if empty:
        raise InputError(
            f"{votes.source}: item {items[empty[0]]!r} has no {column}, expected one of every "
            "item, those without a label too"
        )
    return values


def _numbers(rows: pl.DataFrame, column: str, source: str) -> pl.Series:
    """Return a column of the labels as numbers, NaN where it is empty."""
    import polars as pl

    numbers = rows[column].cast(pl.Float64, strict=False)
    bad = rows.filter(numbers.is_null() & rows[column].is_not_null())
    if bad.height:
        raise InputError(
            f"{source}, column {column}: item {bad['item'][0]!r} has {bad[column][0]!r}, "
            "expected a "
            "number above 0 and at most 1"
        )
    return numbers.fill_null(float("nan"))


def _judges(votes: Votes, panel: str) -> list[str]:
    require(votes, [panel])
    found: list[str] = votes.values(panel).drop_nulls().unique().sort().to_list()
    return found
