"""Items joined with their labels: whoever needs both, from tables, gets them here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, forbid, of_kind
from btdagg._util.lazy import pl
from btdagg._util.validation import (
    as_counts,
    same_index,
    same_length,
    shaped,
    unmasked,
)
from btdagg.remarks import Remark
from btdagg.votes.ids import like_ids
from btdagg.votes.items import Draw, Items
from btdagg.votes.labels import Labels, rater_remarks
from btdagg.votes.scale import PAIRS, require_alike
from btdagg.votes.table import AnyTable, Table, as_text, listing, text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_DESIGNED = {"stratum", "probability", "design", "seed"}  # columns of a sample by strata
_FEWEST = 10  # labels by which nobody is for B


def on_sides(parts: Sequence[Items]) -> tuple[Remark, ...]:
    """Say where pairs may be single responses: no label, and no vote on them, is for B."""
    items = [part.labelled() for part in parts if part.is_labelled.any()]
    labels = {label for part in items for label in part.label.tolist()}
    are_pairs = all(part.scale == part.label_scale == PAIRS for part in items)
    is_one_sided = labels == {0, 1} and not any(part.pooled[:, 0].any() for part in items)
    if not are_pairs or not is_one_sided or sum(map(len, items)) < _FEWEST:
        return ()
    return (remarks.one_sided(),)


def join(counted: Items, labels: Labels, *, drawn: bool = False) -> Items:
    """Join items that have votes with their labels, by task and item where both have tasks.

    Parameters
    ----------
    counted : Items
        Items with their votes; those that no model can decide, and criteria without any label, are
        left out.
    labels : Labels
        Items without one of these keep no label.
    drawn : bool
        Whether to estimate from the labels: those with probability 0, which were chosen for a look,
        are left out then, and columns say how the others were drawn.
    """
    require_labels(labels)
    require_alike(counted.scale, labels.scale)
    labels, n_looks = _drawn_by_chance(labels) if drawn else (labels, 0)
    has_votes = counted.scale.decidable(counted.pooled)
    everything, counted = counted, counted if has_votes.all() else counted[has_votes]
    all_rows, n_labels = pl.concat([labels.frame, labels.unlabelled]), len(labels.frame)
    place = _places(counted, labels, all_rows)
    is_labelled = (place < n_labels).fill_null(value=False).to_numpy()
    n_without_votes = n_labels - place.filter(is_labelled).n_unique()
    bare = _bare_tasks(counted, is_labelled)
    about: list[Remark] = []
    if not has_votes.all():
        n_empty = int((~has_votes & ~_of_tasks(everything, bare)).sum())
        about += [remarks.unreadable_items(n_empty)] if n_empty else []
    if bare:
        about.append(remarks.tasks_without_labels(bare))
        kept = ~_of_tasks(counted, bare)
        counted, place = counted[kept], place.filter(kept)
    if n_looks:
        about.append(remarks.reviewed_labels(n_looks, labels.source))
    shares = np.full((len(all_rows) + 1, len(labels.scale.points)), np.nan)
    shares[:n_labels] = labels.shares
    rows = all_rows.select(pl.all().gather(place))
    is_found = n_without_votes < n_labels
    no_labels = counted.origin.no_labels if is_found else _why_no_label(counted, labels)
    joined = replace(
        counted,
        labels=shares[place.fill_null(len(all_rows)).to_numpy()],
        label_scale=labels.scale,
        facts=counted.facts.with_label_rows(rows),
        origin=replace(
            counted.origin,
            n_without_votes=n_without_votes,
            remarks=(*counted.origin.remarks, *about),
            raters=labels.raters,
            no_labels=no_labels,
        ),
    )
    group, units = _groups_and_units(joined, rows, labels.source)
    sampling = Draw(units=units)
    # Else the column is of the looks alone.
    has_probability = not n_looks or labels.frame["probability"].count() > 0
    if drawn and has_probability and "probability" in rows.columns:
        stratum = rows["stratum"].cast(pl.String) if {*rows.columns} >= _DESIGNED else None
        sampling = sampling._replace(
            probabilities=_numbers(rows["probability"], labels.source),
            strata=None if stratum is None else np.array(stratum.to_list(), dtype=object),
        )
    if drawn:
        sampling = sampling._replace(least_probability=_least_probability(labels))
    return replace(joined, group=group, sampling=sampling)


def _bare_tasks(items: Items, is_labelled: NDArray[np.bool_]) -> list[str]:
    """Return the criteria of which no item has a label; pairs keep all their tasks."""
    if items.scale.mirrored or "task" not in items.facts or not is_labelled.any():
        return []
    tasks = items.facts["task"].tolist()
    labelled = {task for task, has_label in zip(tasks, is_labelled, strict=True) if has_label}
    return [task for task in dict.fromkeys(tasks) if task not in labelled]


def _of_tasks(items: Items, tasks: list[str]) -> NDArray[np.bool_]:
    return np.isin(items.facts["task"], tasks) if tasks else np.zeros(len(items), dtype=np.bool_)


def _places(counted: Items, labels: Labels, rows: pl.DataFrame) -> pl.Series:
    """Return the number of the label's row of each item, or null."""
    n_labels, is_integer = len(labels.frame), counted.ids.dtype.kind in "iu"
    is_text = is_integer != rows["item"].dtype.is_integer()
    kind = None if is_integer else pl.String
    ids = pl.Series(counted.ids if is_integer else [*map(str, counted.ids)], dtype=kind)
    voted, named = (pl.DataFrame({"item": _names(of, is_text)}) for of in (ids, rows["item"]))
    tasks = pl.Series("task", counted.facts.get("task", []), dtype=pl.String)
    is_twice = voted.hstack([tasks] if len(tasks) else []).is_duplicated().any()
    forbid(is_twice, "ids has an item twice, expected every item once", "ids")
    of_votes = counted.column("task") if "task" in rows.columns else None
    if of_votes is not None:
        voted, named = voted.with_columns(task=of_votes), named.with_columns(rows["task"])
    is_repeated = named[:n_labels].is_duplicated()
    if is_repeated.any():
        item = named[:n_labels].filter(is_repeated)["item"][0]
        raise InputError(
            f"{labels.source}: item {item!r} has labels in several tasks; filter by task first"
        )
    key = named.columns
    named = named.with_row_index("place").unique(key, keep="first")
    return voted.join(named, on=key, how="left", maintain_order="left")["place"]


def _groups_and_units(items: Items, rows: pl.DataFrame, source: str) -> tuple[Any, Any]:
    """Return the group of each item, and the unit that was drawn, or None where they are unknown.

    The group is the labels', else the votes', else the item alone.
    """
    names = items.unit_names
    alone = pl.Series(names.tolist(), dtype=pl.String)
    is_shared = alone.is_duplicated().any()
    if is_shared and "task" not in rows.columns:
        raise InputError(
            f"{source} has no column criterion or task, expected one, since {items.origin.source} "
            "has several for an item"
        )
    group = pl.Series([None] * len(rows), dtype=pl.String)
    group = rows["group"] if "group" in rows.columns else group
    if group.null_count() and (voted := items.facts.voted("group", items.id_frame)) is not None:
        group = group.fill_null(voted.str.strip_chars().replace("", None))
    is_known = group.null_count() < len(group)
    groups = np.array(group.fill_null(alone).to_list(), dtype=object)
    drawn = {*rows["unit"].drop_nulls()} if "unit" in rows.columns else set()
    units = groups if drawn == {"group"} else None
    units = names if not is_known or drawn == {"item"} else units
    return groups if is_known or is_shared else None, units


def align(ids: ArrayLike, counts: ArrayLike, labels: Labels) -> Items:
    """Join counts and labels by item.

    Parameters
    ----------
    ids : (n,) array of integers or str
        Items that have votes. Ids that are integers here and text in the labels, or the reverse,
        are compared as text, without spaces around it.
    counts : (n, 3) array of integers
        Their votes in label order: minus, tie, plus; in a data frame, columns with these names.
    labels : Labels

    Returns
    -------
    Items
        Items that also have a label, in the order of `ids`.
    """
    same_index(ids=ids, counts=counts)
    ids, counts = np.asarray(unmasked(ids, "ids")), as_counts(counts)
    shaped(ids, "ids", (), "one dimension")
    same_length("counts", len(counts), "ids", len(ids))
    return join(Items(counts=counts, ids=ids), labels).labelled()


def require_labels(labels: object) -> None:
    """Check that labels are a table."""
    of_kind(labels, Labels, "labels", "labels from read_labels")


def labels_of(labels: Labels, votes: Table) -> Labels:
    """Return the labels of the tasks of some votes, if both have tasks; else all labels."""
    if "task" not in labels.columns or "task" not in votes.columns:
        return labels
    is_of_task = pl.col("task").is_in(votes.values("task").drop_nulls().to_list())
    parts = labels.frame.filter(is_of_task), labels.unlabelled.filter(is_of_task)
    return replace(labels, data=parts[0], unlabelled=parts[1])


def remarks_on_raters(labels: Labels, votes: Table) -> tuple[Remark, ...]:
    """Return the remarks on the raters of the items that have votes."""
    key = [c for c in ("item", "task") if c in labels.columns and c in votes.columns]
    voted = pl.DataFrame([text(votes, column).str.strip_chars() for column in key]).unique()
    names = [pl.col(column).cast(pl.String).str.strip_chars() for column in key]
    how: Any = {"left_on": names, "right_on": key, "how": "semi"}
    parts = labels.frame.join(voted, **how), labels.unlabelled.join(voted, **how)
    return replace(labels, data=parts[0], unlabelled=parts[1]).remarks


def with_task(votes: AnyTable, labels: Labels) -> AnyTable:
    """Return votes with a column `task` from the labels, if only the labels have one."""
    require_labels(labels)
    if "task" in votes.columns or "task" not in labels.columns:
        return votes
    items, tasks = text(labels, "item"), text(labels, "task")
    if items.is_duplicated().any():
        item = items.filter(items.is_duplicated())[0]
        raise InputError(
            f"{labels.source}: item {item!r} has labels in several tasks, and the votes do not say "
            "which task they belong to"
        )
    task = as_text(votes, "item").replace_strict(items, tasks, default=None).alias("task")
    return votes.with_columns([task])


def _remarks_on_join(items: Items, labels: Labels) -> list[Remark]:
    """Return remarks on labels and groups of joined items, some of which may have neither."""
    about: list[Remark] = []
    if labels.n_repeats:
        about.append(remarks.repeated_ratings(labels.n_repeats, labels.source))
    if n := items.origin.n_without_votes:
        about.append(remarks.labels_without_votes(n, labels.source))
        names = pl.Series(items.ids.tolist()).cast(pl.String)
        absent = labels.frame["item"].cast(pl.String)
        absent = absent.filter(~absent.is_in(names.implode()))
        similar = like_ids(names.filter(~pl.Series(items.is_labelled)).to_list(), absent.to_list())
        about += [] if similar is None else [similar]
    n_alone = 0 if items.group is None else int((items.group == items.unit_names).sum())
    if 0 < n_alone < len(items):
        about.append(remarks.items_without_group(n_alone))
    return about


def with_labels(
    counted: Items, labels: Labels, *, drawn: bool = False, about: Iterable[Remark] = ()
) -> Items:
    """Join items with labels as `join` does, and say in remarks what to know of them.

    `about` are remarks on the votes.
    """
    items = join(counted, labels, drawn=drawn)
    forbid(not items.is_labelled.any(), items.origin.no_labels)
    numbers = items.facts.n_disputed or 0, int(items.is_labelled.sum())
    return items.with_remarks(
        [
            *items.origin.remarks,
            *rater_remarks(labels.scale, labels.raters, *numbers, of_estimates=drawn),
            *on_sides([items]),
            *about,
            *_remarks_on_join(items, labels),
        ]
    )


def _names(items: pl.Series, as_text: bool) -> pl.Series:
    names = items.cast(pl.String) if as_text else items
    return names.str.strip_chars() if names.dtype == pl.String else names.cast(pl.Int128)


def _why_no_label(items: Items, labels: Labels) -> str:
    if not len(labels.frame):
        agreed = " on which its raters agree" if labels.n_disputed else ""
        return f"{labels.source}: no item has a label{agreed}"
    tasks = items.column("task") if "task" in labels.columns else None
    if tasks is not None and labels.values("task").is_in(tasks.implode()).any() is False:
        task = next(filter(None, tasks.to_list()), "")
        found = listing(labels.values("task"))
        return f"{labels.source}: no row has task {task!r}; found {found}"
    voted = f"item {items.ids[:1].tolist()[0]!r}" if len(items) else "no item"
    text = (
        f"no item has both votes and a label: the first item of the votes is {voted}, that of "
        f"{labels.source} is item {labels.frame['item'][0]!r}"
    )
    alike = like_ids(items.ids.tolist(), labels.frame["item"].to_list())
    return text if alike is None else f"{text}; {alike}"


def _least_probability(labels: Labels) -> float | None:
    if "least_probability" not in labels.columns:
        return None
    least = np.nanmin(_numbers(labels.frame["least_probability"], labels.source), initial=np.inf)
    return float(least) if np.isfinite(least) else None


def _drawn_by_chance(labels: Labels) -> tuple[Labels, int]:
    """Return labels without those of items that were chosen for a look, and how many these are."""
    if "probability" not in labels.columns:
        return labels, 0
    probability = labels.frame["probability"].cast(pl.Float64, strict=False)
    is_look = (probability == 0).fill_null(value=False)
    if not is_look.any():
        return labels, 0
    if is_look.all():
        raise InputError(
            source=labels.source,
            column="probability",
            got=0,
            expected="a number above 0 for at least one item, since no labelled item was drawn at "
            "random",
        )
    return replace(labels, data=labels.frame.filter(~is_look)), int(is_look.sum())


def _numbers(values: pl.Series, source: str) -> NDArray[np.float64]:
    numbers = values.cast(pl.Float64, strict=False)
    bad = values.filter(numbers.is_null() & values.is_not_null())
    if len(bad):
        expected = "a number above 0 and at most 1"
        raise InputError(source=source, column=values.name, got=bad[0], expected=expected)
    return numbers.fill_null(float("nan")).to_numpy()
