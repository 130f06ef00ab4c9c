"""All items of a table of votes as arrays, with the labels that some of them have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.votes.join import JoinedItems, join, with_task
from btdagg.votes.labels import Labels, mean_remarks
from btdagg.votes.panel import panel_counts
from btdagg.votes.table import require
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


Remarked = TypeVar("Remarked", bound=Any)

_SHARES = ("share of B", "share of tie", "share of A")


@readable
class AllItems(NamedTuple):
    """Items with a row each, in the order of the votes, task by task.

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
    n_votes: int | None = None,
) -> AllItems:
    """Gather the items of votes, task by task, with their labels, groups and probabilities.

    Parameters
    ----------
    votes : Votes
    labels : Labels
        Rows without a label tell the groups and probabilities of their items; a column
        `probability` has the probability that an item was chosen to be labelled.
    by : str, optional
        Column of the votes, of which each item has one value.
    panel : str, optional
        Column that tells the judges of a panel apart.
    judges : sequence of str, optional
        Those of the panel, in this order; by default those of the column, by name.
    systems : tuple of str, optional
        Columns of the votes that name the systems whose responses are A and B.
    n_votes : int, optional
        Count only the first so many votes of each item.
    """
    import polars as pl

    votes = with_task(votes, labels)
    columns = [*([] if by is None else [by]), *(systems or ())]
    require(votes, columns)
    if panel is not None and judges is None:
        require(votes, [panel])
        judges = votes.values(panel).drop_nulls().unique().sort().to_list()
    tables, tallies, n_without_votes = [], [], 0
    for key, part in votes.partition(["task"] if "task" in votes.columns else []):
        counted: Any = part.counts(n_votes)
        if panel is not None:
            counted = panel_counts(part, judges=judges, column=panel, n_votes=n_votes)[:2]
        joined = join(part, labels, counted)
        tables.append(_facts(joined, part, labels.source, "".join(key), columns))
        tallies.append(joined.counts)
        n_without_votes += joined.n_without_votes
    rows = pl.concat(tables, how="vertical_relaxed")
    outcomes = rows.select(_SHARES).fill_null(float("nan")).to_numpy()
    n_labelled = int((~np.isnan(outcomes[:, 0])).sum())
    if n_labelled == 0:
        votes.labelled(labels, n_votes)  # says what the items of either begin with
    n_without_group = rows["group"].null_count()
    alone = pl.format(" {} {}", "task", "item")  # no group begins with a blank
    remarks = [*mean_remarks(outcomes[~np.isnan(outcomes[:, 0])])]
    if n_without_votes:
        remarks.append(f"{n_without_votes} labels of {labels.source} are of items without votes")
    if 0 < n_without_group < len(rows):
        remarks.append(
            f"{n_without_group} items have no group and are taken as one by themselves; rows of "
            "the labels with a group and an empty label tell it"
        )
    has_groups, has_probabilities = n_without_group < len(rows), "probability" in labels.columns
    return AllItems(
        np.concatenate(tallies),
        outcomes,
        _objects(rows.select(pl.coalesce("group", alone)))[:, 0] if has_groups else None,
        rows["probability"].fill_null(float("nan")).to_numpy() if has_probabilities else None,
        None if by is None else _objects(rows.select(f"{by} of votes"))[:, 0],
        None if systems is None else _objects(rows.select(f"{name} of votes" for name in systems)),
        tuple(remarks),
    )


def _facts(
    joined: JoinedItems, votes: Votes, source: str, task: str, columns: Sequence[str]
) -> pl.DataFrame:
    """Return items of one task with what votes and labels say of them."""
    import polars as pl

    told, empty = joined.told, pl.lit(None)
    own_group = ["group"] if "group" in votes.columns else []
    items = pl.Series("item", joined.ids.tolist())
    rows = facts_of(votes, items, [*own_group, *columns], required=columns)
    rows = rows.rename({name: f"{name} of votes" for name in rows.columns[1:]})
    rows = rows.with_columns(
        pl.col("item").cast(pl.String),
        *pl.DataFrame(joined.shares, list(_SHARES)),
        task=pl.lit(task),
        group=told["group"] if "group" in told else empty.cast(pl.String),
        probability=_numbers(told["probability"], source)
        if "probability" in told
        else empty.cast(pl.Float64),
    )
    return rows.with_columns(pl.coalesce("group", *(f"{name} of votes" for name in own_group)))


def facts_of(
    votes: Votes, items: pl.Series, columns: Sequence[str], required: Sequence[str] = ()
) -> pl.DataFrame:
    """Return what columns of the votes, one value for each item, say of items: text or null."""
    import polars as pl

    rows = items.alias("item").to_frame()
    for name in dict.fromkeys(columns):
        if name == "item":
            raise InputError(
                f"{votes.source}: column item is the name of items, expected a column that says "
                "something of items"
            )
        value = pl.col(name).cast(pl.String)
        values = votes.collect(votes.data.lazy().select("item", value).unique(maintain_order=True))
        values = values.drop_nulls()
        twice = values.filter(values["item"].is_duplicated())
        if twice.height:
            item = twice["item"][0]
            first, second = twice.filter(pl.col("item") == item)[name].sort()[:2]
            raise InputError(
                f"{votes.source}, column {name}: item {item!r} has {first!r} and {second!r}, "
                "expected a column that says something of items and not of their votes"
            )
        rows = rows.join(values, on="item", how="left", maintain_order="left")
        if name in required and rows[name].null_count():
            item = rows["item"][int(rows[name].is_null().arg_true()[0])]
            raise InputError(
                f"{votes.source}: item {item!r} has no {name}, expected one of every item, those "
                "without a label too"
            )
    return rows


def _numbers(values: pl.Series, source: str) -> pl.Series:
    """Return the probabilities that labels have, null where there is none."""
    import polars as pl

    numbers = values.cast(pl.Float64, strict=False)
    bad = values.filter(numbers.is_null() & values.is_not_null())
    if len(bad):
        expected = "a number above 0 and at most 1"
        raise InputError(source=source, column="probability", came=bad[0], expected=expected)
    return numbers


def _objects(rows: pl.DataFrame) -> NDArray[np.object_]:
    """Return columns of text as an array of str."""
    return np.stack([np.array(column.to_list(), dtype=object) for column in rows], axis=1)
